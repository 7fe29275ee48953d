"""The fixed point of the class-wise equivalent, factored.
 One symmetric 3x3 matrix T_a per class solves, with TT = blockdiag(pi_a T_a/c) and the coupling MM between
classes,

    T_a^-1 = R_a(T) = A_a - eta_a(T) + phi [mean_l (I + l MM TT)^-1 l MM]_aa,
    A_a = [[gamma, d_a, 0], [d_a, 0, 1], [0, 1, 0]],
    eta_a: (1,1) sum_b pi_b v_ba T_b22/c,  (2,2) sum_b pi_b v_ab T_b11/c,  (1,2) sum_b pi_b kap_ab T_b12/c.
 Couplings vary smoothly from class to class, so MM_ab = w_a C w_b' with few features (`features`). The
bracket becomes w_a mean_l(Omega_l) w_a' with small matrices

    Omega_l = (C^-1/l + Theta)^-1,    Theta = sum_a pi_a w_a' T_a w_a/c,
 and its derivative along H is -w_a mean_l(Omega_l Theta(H) Omega_l) w_a'. Together with eta it makes the
linear operator `coupling`, which is symmetric in the pi-weighted inner product: Newton's method and the
adjoint of every derivative use it.
 Everything is kept in balanced scaling, T -> D^-1 T D^-1 with D = diag(d1, 1/d1, d3) for each ridge, so that
small ridges lose no digits. Arrays are (B, A, 3, 3): B ridges, A classes. Theory page, section 12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.features import Features, features
from resolvent.equivalents.refined.stacks import symmetrised
from resolvent.equivalents.refined.tables import Tables

NEGLIGIBLE = 1e-6  # share of the largest singular value below which the noise's features are left out
NEGLIGIBLE_MEANS = 1e-12  # and those of the means, of which one may be as large as sqrt p


@dataclass(frozen=True)
class Couplings:
    """What does not depend on the ridge: classes, tables, features of the noise and of the means."""

    classes: Classes
    tables: Tables
    fresh: Tables
    noise: Features
    means: Features

    @classmethod
    def of(cls, classes: Classes, tables: Tables, fresh: Tables) -> Couplings:
        """The couplings that the tables, and those of a fresh token, stand for."""
        weight, norm, outside, c = classes.weight, classes.norm, classes.share_outside, classes.ratio
        slopes, third = tables.m1 * np.outer(norm, norm) / outside, norm[:, None] / np.sqrt(outside)
        noise = features(weight, slopes, third, c, NEGLIGIBLE)
        means = features(weight, np.sqrt(classes.p) * tables.m0, classes.position, c, NEGLIGIBLE_MEANS)
        return cls(classes, tables, fresh, noise, means)


@dataclass(frozen=True)
class Equation:
    """The fixed point for B ridges: ridge (B,) and scale (B, 2), the balance d1 and d3."""

    couplings: Couplings
    ridge: Array
    scale: Array

    def at(self, rows: NDArray[np.intp]) -> Equation:
        """The rows `rows`."""
        return replace(self, ridge=self.ridge[rows], scale=self.scale[rows])

    @property
    def classes(self) -> Classes:
        """The classes of tokens."""
        return self.couplings.classes

    def pencil(self) -> Array:
        """A_a, scaled: (B, A, 3, 3)."""
        d1, d3 = self.scale.T
        A = np.zeros((self.ridge.size, self.classes.weight.size, 3, 3))
        A[:, :, 0, 0] = (self.ridge * d1 * d1)[:, None]
        A[:, :, 0, 1] = A[:, :, 1, 0] = self.couplings.tables.diagonal
        A[:, :, 1, 2] = A[:, :, 2, 1] = (d3 / d1)[:, None]
        return A

    def inner(self, part: Features, H: Array) -> Array:
        """Theta(H) = sum_a pi_a w_a' H_a w_a/c: (B, K, K)."""
        return part.gathered(H * (self.classes.weight / self.classes.ratio)[:, None, None])

    def balance(self, part: Features) -> Array:
        """J (B, K): scaled, C^-1 becomes C^-1 J; 1/d3^2 in block 3, where it may all but vanish."""
        J = np.ones((self.ridge.size, part.C.shape[0]))
        J[:, part.slices[2]] = self.scale[:, 1:] ** -2
        return J

    def resolvents(self, T: Array) -> Array:
        """Omega_l: (B, L, K, K)."""
        C, part = self.couplings.noise.C, self.couplings.noise
        shift = self.balance(part)[:, None, :] / self.classes.eigenvalues[:, None]
        system = (C @ self.inner(part, T))[:, None] + shift[..., None] * np.eye(C.shape[0])
        return symmetrised(np.asarray(np.linalg.solve(system, np.broadcast_to(C, system.shape)), np.float64))

    def eta(self, H: Array) -> Array:
        """eta_a(H): (B, A, 3, 3), zero in block 3."""
        tables, share = self.couplings.tables, (self.classes.weight / self.classes.ratio)[:, None]
        out = np.zeros_like(H)
        out[:, :, 0, 0] = H[:, :, 1, 1] @ (share * tables.v)
        out[:, :, 1, 1] = H[:, :, 0, 0] @ (share * tables.v.T)
        out[:, :, 0, 1] = out[:, :, 1, 0] = H[:, :, 0, 1] @ (share * tables.kap)
        return out

    def inverses(self, T: Array, omega: Array) -> Array:
        """R_a(T)."""
        return self.pencil() - self.eta(T) + self._outside(omega)

    def coupling(self, omega: Array, H: Array) -> Array:
        """Minus the derivative of R along H."""
        return self.eta(H) + self._outside(omega @ self.inner(self.couplings.noise, H)[:, None] @ omega)

    def _outside(self, inner: Array) -> Array:
        """phi w_a mean_l(inner) w_a' for inner (B, L, K, K): (B, A, 3, 3)."""
        average = np.einsum("l,blij->bij", self.classes.share_outside * self.classes.shares, inner)
        return self.couplings.noise.spread(average)

    def physical(self, T: Array) -> NDArray[np.bool_]:
        """T_11 > 0 >= T_22 in every class: the domain in which the solution is unique."""
        return np.asarray(((T[:, :, 0, 0] > 0.0) & (T[:, :, 1, 1] <= 0.0)).all(axis=1))
