"""The ridge probe w = (HH' + n ridge)^-1 H t for a whole curve of ridges from one factorisation.

With the eigenpairs (lambda_k, v_k) of H'H/n, its training error is

    E = (1/n) [ sum_k (ridge/(lambda_k + ridge))^2 (t'v_k)^2 + |t_perp|^2 ],

and for p < n the p x p side gives the same from b = U'H t/n: E = 1 - sum_k b_k^2 (lambda_k + 2
ridge)/(lambda_k + ridge)^2. A single ridge needs no eigenpairs: one linear solve is several times quicker.
Large features with ridges that are not tiny need no factorisation: see `bidiagonal`. Theory page, section 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.simulate import bidiagonal

Array = NDArray[np.float64]


def fitted(features: Array, target: Array, ridge: Array) -> tuple[Array, Array]:
    """Training errors (ridges,) and w (ridges, p) by the quickest way."""
    if (found := bidiagonal.curve(features, target, ridge)) is not None:
        return found
    if ridge.size == 1 and ridge[0] > 0.0:
        return _solved(features, target, float(ridge[0]))
    probe = Probe.fit(features, target)
    return probe.train(ridge), probe.weights(ridge)


def _solved(features: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    p, n = features.shape
    if p <= n:
        w = np.linalg.solve(features @ features.T + n * ridge * np.eye(p), features @ target)
        rest = target - w @ features
    else:  # H'w = t - n ridge a for a = (H'H + n ridge)^-1 t
        dual = np.linalg.solve(features.T @ features + n * ridge * np.eye(n), target)
        w, rest = features @ dual, n * ridge * dual
    return np.array([rest @ rest / n]), w[None]


@dataclass(frozen=True)
class Probe:
    """One factorisation of the features (p x n): eigenpairs of the smaller side and the target on them."""

    features: Array
    eigenvalues: Array
    vectors: Array
    target: Array

    @classmethod
    def fit(cls, features: Array, target: Array) -> Probe:
        """Factorise HH'/n (p <= n) or H'H/n."""
        p, n = features.shape
        if p <= n:
            values, vectors = _eigh(features @ features.T / n)
            return cls(features, values, vectors, vectors.T @ (features @ target) / n)
        values, vectors = _eigh(features.T @ features / n)
        return cls(features, values, vectors, vectors.T @ target)

    @property
    def _wide(self) -> bool:
        return bool(self.vectors.shape[0] != self.features.shape[0])

    def train(self, ridge: Array) -> Array:
        """Training error at each ridge (1-d)."""
        shifted = self.eigenvalues + ridge[:, None]
        if self._wide:
            with np.errstate(invalid="ignore"):
                kept = np.where(shifted > 0.0, ridge[:, None] / shifted, 1.0)
            error: Array = kept**2 @ self.target**2 / self.features.shape[1]
            return error
        with np.errstate(divide="ignore", invalid="ignore"):
            explained = np.where(shifted > 0.0, (shifted + ridge[:, None]) / shifted**2, 0.0)
        return np.maximum(1.0 - explained @ self.target**2, 0.0)

    def coefficients(self, ridge: Array) -> Array:
        """w, or what H/n turns into w when p > n, on the eigenvectors: (ridges, eigenvectors)."""
        shifted = self.eigenvalues + ridge[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(shifted > 0.0, self.target / shifted, 0.0)

    def weights(self, ridge: Array) -> Array:
        """w at each ridge: (ridges, p)."""
        solved = self.coefficients(ridge) @ self.vectors.T
        return solved @ self.features.T / self.features.shape[1] if self._wide else solved


def _eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenpairs of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return without_rounding(values), vectors


def without_rounding(values: Array) -> Array:
    """Eigenvalues in rising order, exactly zero where they are rounding."""
    return np.where(values > values[-1] * len(values) * np.finfo(float).eps, values, 0.0)
