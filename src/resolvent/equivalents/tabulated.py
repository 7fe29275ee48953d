"""The feature side when only a table of the law of G = Z'Z/p is known: nodes g_j with weights.

With A the token side's matrix less the noise, Gamma(g) = (A + g M)^-1 and averages over the table,

    N = E Gamma,    Bv = E[g Gamma]/c  (Z'v with Z'v' for generic v, v'),    Gcal(H) = E[Gamma H Gamma],

replace what white noise gives in closed form. If Z = Sigma^1/2 W with W white, and mu and the weights are
generic, the p-dimensional averages of `features` follow from the table as well: with R = N^-1, X = I - M
Bv, Gcal_g(H) = E[g Gamma H Gamma],

    P = R - A,    K = c (R x R - Gcal^-1),    mu'G mu = |mu|^2 (M - M Bv M),
    E_l [l Y_l (M H M) Y_l'] = M Gcal_g(Gcal^-1(H)) M,     E_l Y_l = X,

l the eigenvalues of Sigma and Y_l = (I + l M N/c)^-1; so a fresh token of the same covariance needs no
Sigma. Theory page, sections 4 and 8b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.traces import damped, inverse, respond, symmetric_basis


@dataclass(frozen=True)
class Generic:
    """Low-rank weights and the signal, known by inner products: K = ... + W coupling W', W in given blocks.

    coupling (m, m) over the columns, block (m,), gram (1 + m, 1 + m) of mu and the columns.
    """

    coupling: Array
    block: NDArray[np.intp]
    gram: Array


@dataclass(frozen=True)
class TableEquation:
    """N = E[(A - S(N) + g M)^-1]: arguments as for `traces.Equation`, with the table instead of features."""

    c: float
    base: Array
    noise: Array
    M: Array
    nodes: Array
    weights: Array
    generic: Generic
    v: tuple[int, ...]

    def linearised(self, ridge: float, N: Array, scale: Array) -> tuple[Array, Array]:
        """Gcal^-1 (N - E Gamma) and Gcal^-1 - S, balanced."""
        square = scale[:, None] * scale
        Gamma = self._gamma(ridge, N) / square
        inverted = _inverted(self._average(Gamma))
        gap = N / square - np.einsum("j,jab->ab", self.weights, Gamma)
        error = np.einsum("abcd,cd->ab", inverted, gap)
        return error, inverted - self.noise * square[:, :, None, None] * square

    def start(self, ridge: float) -> Array:
        """Half-damped iteration from the limit of an infinite ridge."""
        return damped(self.base, ridge, self.c, self.v, self._next)

    def response(self, ridge: float, N: Array, source: Array) -> Array:
        """The Lambda with O(Lambda) = source: a change dA of A changes tr(source N) by -tr(Lambda dA)."""
        return respond(self, ridge, N, source)

    def dressed(self, ridge: float, N: Array) -> TableDressed:
        """The feature side at the solution N."""
        Gamma = self._gamma(ridge, N)
        return TableDressed(self, N, Gamma)

    def _next(self, A: Array, N: Array) -> Array:
        inner = A - np.einsum("abcd,cd->ab", self.noise, N)
        return np.asarray(np.einsum("j,jab->ab", self.weights, self._resolvents(inner)))

    def _gamma(self, ridge: float, N: Array) -> Array:
        A = self.base - np.einsum("abcd,cd->ab", self.noise, N)
        A[0, 0] += ridge
        return self._resolvents(A)

    def _resolvents(self, A: Array) -> Array:
        return np.asarray(np.linalg.inv(A + self.nodes[:, None, None] * self.M), dtype=np.float64)

    def _average(self, Gamma: Array, power: int = 0) -> Array:
        """E[g^power Gamma . Gamma] as a tensor [a, b, c, d]."""
        return np.asarray(
            np.einsum("j,jac,jdb->abcd", self.weights * self.nodes**power, Gamma, Gamma, optimize=True)
        )


@dataclass(frozen=True)
class TableDressed:
    """What `features.Dressed` offers, from averages over the table."""

    equation: TableEquation
    N: Array
    Gamma: Array

    def kernel(self) -> Array:
        """K as a tensor [a, b, c, d]."""
        R = inverse(self.N)
        return np.asarray(self.equation.c * (np.einsum("ac,db->abcd", R, R) - self._inverted))

    def signal(self) -> Array:
        """mu'G mu (B, B)."""
        e = self.equation
        bulk = e.M - e.M @ self._feature_form @ e.M
        return np.asarray(e.generic.gram[0, 0] * bulk + self._reach @ self._core @ self._reach.T)

    def fields(self, f: Array) -> Array:
        """Inner products phi_a'phi_b of phi = G (f (x) mu), shape (B, B)."""
        e, parts = self.equation, self.equation.generic
        sources = np.zeros((1 + parts.block.size, f.size))
        sources[0] = e.M @ f
        sources[1 + np.arange(parts.block.size), parts.block] = self._core @ (self._reach.T @ f)
        back = np.linalg.pinv(e.M)
        inner = back @ sources.T @ parts.gram @ sources @ back
        weighted = np.einsum("abcd,cd->ab", self._inverted, inner)
        spread = np.einsum("abcd,cd->ab", e._average(self.Gamma, 1), weighted)
        return np.asarray(e.M @ spread @ e.M)

    @property
    def _inverted(self) -> Array:
        return _inverted(self.equation._average(self.Gamma))

    @property
    def _feature_form(self) -> Array:
        """Bv."""
        e = self.equation
        return np.asarray(np.einsum("j,jab->ab", e.weights * e.nodes, self.Gamma) / e.c)

    @property
    def _reach(self) -> Array:
        """mu'X W (B, m)."""
        e = self.equation
        X = np.eye(e.M.shape[0]) - e.M @ self._feature_form
        return np.asarray(X[:, e.generic.block] * e.generic.gram[0, 1:])

    @property
    def _core(self) -> Array:
        parts = self.equation.generic
        metric = self._feature_form[np.ix_(parts.block, parts.block)] * parts.gram[1:, 1:]
        core = np.linalg.solve(np.eye(parts.block.size) + parts.coupling @ metric, parts.coupling)
        return np.asarray(0.5 * (core + core.T), dtype=np.float64)


def _inverted(average: Array) -> Array:
    """The inverse of a map of symmetric matrices, as a tensor."""
    B = average.shape[0]
    basis = symmetric_basis(B)
    matrix = basis.T @ average.reshape(B * B, B * B) @ basis
    return np.asarray(basis @ np.linalg.inv(matrix) @ basis.T).reshape(B, B, B, B)
