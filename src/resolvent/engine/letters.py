"""Random and deterministic matrices, the letters of an expression.

Random entries are Gaussian; by universality the limits hold for any independent entries of the same variance
with a finite fourth moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from resolvent.engine.expression import Expression
from resolvent.engine.scalar import Dim, Scalar, dimension, scalar


@dataclass(frozen=True, repr=False)
class Random(Expression):
    """Gaussian matrix X: entries of one variance, E[X_ij X_ji] = correlation * variance, otherwise
    independent.

    `source` is set on the noise of an entry-wise nonlinearity: what two such noises share decides their
    covariance.
    """

    name: str
    rows: Dim
    cols: Dim
    variance: Scalar
    correlation: float = 0.0
    flipped: bool = False
    source: Any = None

    @property
    def T(self) -> Random:
        """The transpose; a Wigner matrix is its own."""
        if self.correlation == 1:
            return self
        return replace(self, rows=self.cols, cols=self.rows, flipped=not self.flipped)

    @property
    def degree(self) -> Fraction:
        """(1 + degree of the variance)/2: entries of variance 1 make a norm of order sqrt n."""
        return (1 + self.variance.degree) / 2

    def __str__(self) -> str:
        return self.name + (".T" if self.flipped else "")


@dataclass(frozen=True, repr=False)
class Deterministic(Expression):
    """A given matrix: `values` is its diagonal, with the `weights` of each, or the matrix itself, without."""

    name: str
    rows: Dim
    cols: Dim
    values: Any = field(compare=False)
    weights: Any = field(compare=False)
    symmetric: bool = True
    flipped: bool = False

    @property
    def T(self) -> Deterministic:
        """The transpose."""
        return (
            self
            if self.symmetric
            else replace(self, rows=self.cols, cols=self.rows, flipped=not self.flipped)
        )

    @property
    def degree(self) -> Fraction:
        """Zero: its norm is taken to stay bounded."""
        return Fraction(0)

    def __str__(self) -> str:
        return self.name + (".T" if self.flipped else "")

    def fits(self, ratio: Scalar) -> None:
        """Check that a rectangular matrix has the ratio of its dimensions; ValueError otherwise."""
        if self.weights is not None:
            return
        rows, cols = self.values.T.shape if self.flipped else self.values.shape
        if ratio.constant is None or abs(ratio.constant * cols - rows) > 1e-9 * rows:
            raise ValueError(
                f"{self.name} is {rows} x {cols}: its dimensions must have that ratio, got {ratio}"
            )


def Gaussian(name: str, rows: Dim, cols: Dim, variance: object = 1.0) -> Expression:
    """Return a rows x cols matrix of independent Gaussian entries, mean 0.

    (By universality the limits hold for any independent entries of this variance with a finite fourth
    moment.)
    """
    return Random(name, dimension(rows), dimension(cols), _variance(variance))


def Wigner(name: str, dim: Dim, variance: object = 1.0) -> Expression:
    """Return a symmetric Gaussian matrix of this variance off the diagonal: 1/n has the spectrum [-2, 2]."""
    return Random(name, dimension(dim), dimension(dim), _variance(variance), 1.0)


def Elliptic(name: str, dim: Dim, correlation: float, variance: object = 1.0) -> Expression:
    """Return a square Gaussian matrix with E[X_ij X_ji] = correlation * variance: 0 iid, 1 Wigner."""
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must be between -1 and 1, got {correlation}")
    return Random(name, dimension(dim), dimension(dim), _variance(variance), float(correlation))


def Diagonal(name: str, dim: Dim, values: object, weights: object = None) -> Expression:
    """Return a diagonal matrix known by its spectral law: `values` with `weights` (default: equal), which sum
    to one.

    Diagonals of one dimension share an order: value k of one stands at the same places as value k of another,
    so their numbers of values and their weights must be the same.
    """
    numbers = np.atleast_1d(np.array(values, dtype=float))
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(
            f"values of {name} must be a finite one-dimensional array, got shape {numbers.shape}"
        )
    shares = np.full(len(numbers), 1 / len(numbers)) if weights is None else np.array(weights, dtype=float)
    if shares.shape != numbers.shape or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise ValueError(f"weights of {name} must be {len(numbers)} non-negative numbers that sum to one")
    return Deterministic(name, dimension(dim), dim, numbers, shares)


def Given(name: str, rows: Dim, cols: Dim, matrix: object) -> Expression:
    """Return a given matrix, rectangular or symmetric, in general position to everything random.

    At other sizes it stands for copies of itself on the block diagonal, so a rectangular one must have the
    ratio of its dimensions. Several given matrices of one dimension must commute. Raises ValueError if
    entries are not finite or a square matrix is not symmetric.
    """
    entries = np.array(matrix, dtype=float)
    if entries.ndim != 2 or not np.isfinite(entries).all():
        raise ValueError(f"{name} must be a finite two-dimensional array, got shape {entries.shape}")
    symmetric = False
    if dimension(rows) == dimension(cols):
        if entries.shape[0] != entries.shape[1]:
            raise ValueError(f"{name} is declared {rows} x {cols}, got shape {entries.shape}")
        if not np.allclose(entries, entries.T, rtol=0, atol=1e-12 * np.abs(entries).max()):
            raise ValueError(f"a square given matrix must be symmetric, {name} is not")
        entries, symmetric = (entries + entries.T) / 2, True
    return Deterministic(name, rows, cols, entries, None, symmetric)


def _variance(value: object) -> Scalar:
    variance = scalar(value)
    if variance.constant is not None and variance.constant <= 0:
        raise ValueError(f"variance must be positive, got {variance.constant:g}")
    return variance
