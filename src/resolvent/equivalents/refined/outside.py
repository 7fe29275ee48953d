"""Averages over the directions outside of the span.

There the linear part of the attention couples tokens through C (K, K) on features (`features`) and through the weights and the
noise of each direction. `mean` stands for an average over the p - r directions times (p - r)/p, and with Theta on the
features

    Omega = (C^-1 + Theta)^-1,   bracket = mean Omega,   along H: mean Omega Theta(H) Omega,
    Xi    = mean (I + C Theta)^-1 Gamma (I + Theta C)^-1,

Gamma being what a fresh token reads. For weights that are the identity (`Eigenvalues`) a direction whose noise has variance l
has C l in place of C and Gamma l^2 in place of Gamma. For the weights of a head (`Head`) features multiply directions: S_k
in block (2,1) becomes S_k M, the two (K m) dimensional. All but 2 x rank of the directions see M = 0 and share one
coordinate. Theory page, sections 8 and 12 (the head's form joins the two).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import symmetrised
from resolvent.equivalents.refined.features import Features


@dataclass(frozen=True)
class Eigenvalues:
    """Identity weights; values and shares (L,) of the noise's eigenvalues, the shares of sum (p - r)/p."""

    part: Features
    values: Array
    shares: Array

    def resolvents(self, J: Array, Theta: Array) -> Array:
        """Omega for each eigenvalue, (B, L, K, K); J (B, K) is the balance of C^-1."""
        C, shift = self.part.C, J[:, None, :] / self.values[:, None]
        system = (C @ Theta)[:, None] + shift[..., None] * np.eye(C.shape[0])
        return symmetrised(_solved(system, np.broadcast_to(C, system.shape)))

    def average(self, omega: Array) -> Array:
        """mean Omega: (B, K, K)."""
        return np.einsum("l,blij->bij", self.shares, omega)

    def along(self, omega: Array, inner: Array) -> Array:
        """mean Omega inner Omega for inner (B, K, K)."""
        return self.average(omega @ inner[:, None] @ omega)

    def read(self, J: Array, Theta: Array, Gamma: Array) -> Array:
        """Xi: (B, K, K)."""
        C = self.part.C
        system = self.values[:, None, None] * (C @ Theta)[:, None] + J[:, None, :, None] * np.eye(C.shape[0])
        left = _solved(system, np.broadcast_to(Gamma[:, None], system.shape))
        Xi = np.swapaxes(_solved(system, np.swapaxes(left, -1, -2)), -1, -2)
        return np.einsum("l,blij->bij", self.shares * self.values**2, Xi)


@dataclass(frozen=True)
class Head:
    """White noise and weights M (m, m) between m coordinates, each of which stands for shares (m,) of p directions."""

    part: Features
    M: Array
    shares: Array

    def _blocks(self, first: Array, second: Array, third: Array) -> Array:
        """(K m, K m) with first and second (m, m) beside C in blocks (1,2) and (2,1), third in (3,3)."""
        C, (one, two, three) = self.part.C, self.part.slices
        out = np.zeros((C.shape[0], self.M.shape[0], *C.shape[1:], self.M.shape[0]))
        for rows, columns, matrix in ((one, two, first), (two, one, second), (three, three, third)):
            out[rows, :, columns] = np.einsum("ij,xy->ixjy", C[rows, columns], matrix)
        return out.reshape(C.shape[0] * self.M.shape[0], -1)

    def _coupling(self) -> Array:
        return self._blocks(self.M.T, self.M, np.eye(self.M.shape[0]))

    def _system(self, J: Array, Theta: Array) -> tuple[Array, Array]:
        """C, and C Theta + J, both (K m, K m)."""
        C, m = self._coupling(), self.M.shape[0]
        system = _times(np.broadcast_to(C, (J.shape[0], *C.shape)), Theta, m)
        return C, system + np.repeat(J, m, axis=1)[:, :, None] * np.eye(C.shape[0])

    def resolvents(self, J: Array, Theta: Array) -> Array:
        """Omega, (B, K m, K m)."""
        C, system = self._system(J, Theta)
        return symmetrised(_solved(system, np.broadcast_to(C, system.shape)))

    def average(self, omega: Array) -> Array:
        """mean Omega: (B, K, K)."""
        m = self.M.shape[0]
        K = omega.shape[-1] // m
        return np.einsum("x,bixjx->bij", self.shares, omega.reshape(-1, K, m, K, m))

    def along(self, omega: Array, inner: Array) -> Array:
        """mean Omega inner Omega for inner (B, K, K)."""
        m = self.M.shape[0]
        B, size = omega.shape[:2]
        weighted = _times(omega, inner, m).reshape(B, -1, m, size) * self.shares[:, None]
        return weighted.reshape(B, size // m, -1) @ np.swapaxes(omega.reshape(B, size // m, -1), -1, -2)

    def read(self, J: Array, Theta: Array, Gamma: Array) -> Array:
        """Xi: (B, K, K)."""
        m, (_, two, three) = self.M.shape[0], self.part.slices
        taken = np.zeros((*self.part.C.shape[:1], m, m))
        taken[two], taken[three] = self.M, np.eye(m)
        full = np.einsum("ixz,bij,jyz->bixjy", taken, Gamma, taken).reshape(
            J.shape[0], taken.shape[0] * m, -1
        )
        _, system = self._system(J, Theta)
        left = _solved(system, full)
        return self.average(np.swapaxes(_solved(system, np.swapaxes(left, -1, -2)), -1, -2))


def _times(matrix: Array, inner: Array, m: int) -> Array:
    """matrix (inner x I_m) for matrix (B, N, K m) and inner (B, K, K)."""
    B, N, size = matrix.shape
    split = np.swapaxes(matrix.reshape(B, N, size // m, m), -1, -2)
    return np.swapaxes(split @ inner[:, None], -1, -2).reshape(B, N, size)


def _solved(system: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(system, right), dtype=np.float64)
