"""Key-query weights M reduced once to what the equivalent needs: M = U S V' on its column and row spaces.

A head gives M = W_K' W_Q with W_K, W_Q of shape (d, p), d << p: thin QR of both and a d x d SVD. Symmetric
weights are diagonalised instead, M = U S U' with signed S. With |M|_F^2 = p tau^2 the score of two tokens
has variance tau^2, and

    rho = tr(M^2)/|M|_F^2          the correlation of the scores ij and ji,
    stable rank = |M|_F^2/|M|_2^2  how nearly Gaussian a score is: it is a sum of about that many products.

Theory page, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.averages import Array

NEGLIGIBLE = 1e-13  # of the largest singular value


@dataclass(frozen=True, eq=False)
class Factors:
    """M = left diag(values) right' with orthonormal columns, left is right when M is symmetric."""

    left: Array
    values: Array
    right: Array

    @property
    def dimension(self) -> int:
        """p."""
        return int(self.left.shape[0])

    @property
    def rank(self) -> int:
        """Number of singular values kept."""
        return int(self.values.size)

    @property
    def symmetric(self) -> bool:
        """M = M'."""
        return self.left is self.right

    @property
    def tau(self) -> float:
        """Standard deviation of the scores, |M|_F/sqrt p."""
        return float(np.sqrt(self.values @ self.values / self.dimension))

    @property
    def stable_rank(self) -> float:
        """|M|_F^2/|M|_2^2."""
        return float(self.values @ self.values / np.max(self.values**2))

    @cached_property
    def overlap(self) -> Array:
        """right' left (rank, rank)."""
        return self.right.T @ self.left

    @property
    def trace(self) -> float:
        """tr M/p."""
        return float(self.values @ np.diag(self.overlap)) / self.dimension

    @property
    def rho(self) -> float:
        """tr(M^2)/|M|_F^2, in [-1, 1]; 1 for symmetric M."""
        return 1.0 if self.symmetric else float(np.clip(self.correlation(self)[1], -1.0, 1.0))

    def correlation(self, other: Factors) -> tuple[float, float]:
        """Correlations of scores ij of this head with scores ij and with scores ji of another."""
        size = np.sqrt((self.values @ self.values) * (other.values @ other.values))
        same = (self.left.T @ other.left) * (self.right.T @ other.right)
        turned = (self.left.T @ other.right) * (self.right.T @ other.left)
        return self._mixed(same, other) / float(size), self._mixed(turned, other) / float(size)

    def _mixed(self, matrix: Array, other: Factors) -> float:
        return float(self.values @ matrix @ other.values)

    def scaled(self, tau: float = 1.0) -> Factors:
        """The same weights with |M|_F = tau sqrt p."""
        return replace(self, values=self.values * (tau / self.tau))

    def norm_gram(self, other: Factors, kurtosis: float = 3.0) -> Array:
        """2 x 2 covariances of the norm fluctuations, (keys, queries) of this head with those of another.

        Keys fluctuate like sqrt p (z'MM'z/(p tau^2) - 1), queries like the same with M'M: covariance
        (2 tr(AB) + (kurtosis - 3) sum_i A_ii B_ii)/(p tau^2 tau'^2) for noise entries of that kurtosis.
        """
        scale = self.dimension * self.tau**2 * other.tau**2
        mine, theirs = ((f.left, f.right) for f in (self, other))
        out = np.empty((2, 2))
        for i, a in enumerate(mine):
            for j, b in enumerate(theirs):
                chaos = self.values**2 @ (a.T @ b) ** 2 @ other.values**2
                diagonal = (a**2 @ self.values**2) @ (b**2 @ other.values**2)
                out[i, j] = (2.0 * chaos + (kurtosis - 3.0) * diagonal) / scale
        return out


def reduce_matrix(M: ArrayLike) -> Factors:
    """Factors of a square matrix of weights (p, p).

    Raises ValueError when M is not a square matrix of finite real numbers, or is zero.

    >>> reduce_matrix([[0.0, 1.0], [1.0, 0.0]]).symmetric
    True
    """
    matrix = _finite(M, "weights")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"weights must be a square matrix, got shape {matrix.shape}")
    if _is_symmetric(matrix):
        return _diagonalised(np.eye(matrix.shape[0]), matrix)
    u, s, vt = np.linalg.svd(matrix)
    return _kept(u, s, vt.T)


def reduce_factors(key: ArrayLike, query: ArrayLike) -> Factors:
    """Factors of M = W_K' W_Q for one head, W_K and W_Q of shape (d, p).

    Raises ValueError when they are not matrices of the same shape of finite real numbers, or when W_K' W_Q
    is zero.
    """
    wk, wq = _finite(key, "key weights"), _finite(query, "query weights")
    if wk.ndim != 2 or wk.shape != wq.shape:
        raise ValueError(f"key and query weights must share one shape (d, p), got {wk.shape} and {wq.shape}")
    if wk.shape[0] >= wk.shape[1]:
        return reduce_matrix(wk.T @ wq)
    q_key, r_key = np.linalg.qr(wk.T)
    q_query, r_query = np.linalg.qr(wq.T)
    basis, _ = np.linalg.qr(np.hstack([wk.T, wq.T]))
    core = (basis.T @ wk.T) @ (wq @ basis)
    if _is_symmetric(core):
        return _diagonalised(basis, core)
    u, s, vt = np.linalg.svd(r_key @ r_query.T)
    return _kept(q_key @ u, s, q_query @ vt.T)


def _finite(value: ArrayLike, name: str) -> Array:
    raw = np.asarray(value)
    if raw.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be real numbers, got {raw.dtype}")
    if raw.size == 0 or not np.isfinite(raw).all():
        raise ValueError(f"{name} must be finite and not empty")
    return raw.astype(np.float64)


def _is_symmetric(matrix: NDArray[np.float64]) -> bool:
    return bool(np.linalg.norm(matrix - matrix.T) <= 1e-12 * np.linalg.norm(matrix))


def _diagonalised(basis: Array, core: Array) -> Factors:
    values, vectors = np.linalg.eigh(0.5 * (core + core.T))
    return _kept(basis @ vectors, values, None)


def _kept(left: Array, values: Array, right: Array | None) -> Factors:
    """Drop directions that M does not reach."""
    good = np.abs(values) > NEGLIGIBLE * np.abs(values).max(initial=0.0)
    if not good.any():
        raise ValueError("weights must not be zero")
    U = left[:, good]
    return Factors(U, values[good], U if right is None else right[:, good])
