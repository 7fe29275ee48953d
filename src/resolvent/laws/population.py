"""Covariances of the token noise, by their eigenvalues: levels l with shares of the p dimensions, mean 1.

Power law l_k ~ k^-exponent, AR(1) l(w) = (1 - r^2)/(1 - 2 r cos w + r^2), a few spikes on white noise, or
any given eigenvalues. Theory page, section 8b.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Population:
    """Eigenvalues `levels` (increasing, mean 1) of a covariance, each on a share of the dimensions."""

    levels: Array
    shares: Array

    def moment(self, order: int) -> float:
        """tr Sigma^order/p; the second one is the variance s2 of the scores."""
        return float(self.shares @ self.levels**order)

    @property
    def norm_variance(self) -> float:
        """2 tr Sigma^4/(p s2^2): variance of the norm fluctuations that a2 sees, for Gaussian noise."""
        return 2.0 * self.moment(4) / self.moment(2) ** 2


def population(eigenvalues: ArrayLike, shares: ArrayLike | None = None) -> Population:
    """Given eigenvalues, equal shares by default, scaled to mean 1; equal ones are merged.

    Raises ValueError unless they are positive and finite (and the shares, too).

    >>> population([1.0, 3.0, 1.0, 3.0]).levels
    array([0.5, 1.5])
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    portions = np.ones_like(values) if shares is None else np.asarray(shares, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or values.shape != portions.shape:
        raise ValueError(
            f"eigenvalues and shares must be lists of one length, got {values.shape}, {portions.shape}"
        )
    for name, array in (("eigenvalues", values), ("shares", portions)):
        if not (np.isfinite(array).all() and (array > 0.0).all()):
            raise ValueError(f"{name} must be positive and finite")
    levels, place = np.unique(values, return_inverse=True)
    merged = np.bincount(place.ravel(), portions)
    merged = merged / merged.sum()
    return Population(levels / float(merged @ levels), merged)


def power_law(exponent: float, size: int) -> Population:
    """Eigenvalues k^-exponent, k = 1, ..., size (the dimension p), scaled to mean 1; exponent at least 0.

    >>> bool(np.isclose(power_law(1.0, 100).moment(1), 1.0))
    True
    """
    if not 0.0 <= exponent < np.inf:
        raise ValueError(f"exponent must be zero or positive, got {exponent:.6g}")
    return population(np.arange(1, _size(size) + 1, dtype=np.float64) ** -exponent)


def autoregressive(correlation: float, size: int = 400) -> Population:
    """AR(1) noise, covariance correlation^|i - j|, by `size` points of its limiting spectrum.

    >>> round(autoregressive(0.5).moment(2), 6)  # (1 + r^2)/(1 - r^2)
    1.666667
    """
    if not -1.0 < correlation < 1.0:
        raise ValueError(f"correlation must be between -1 and 1 (bounds excluded), got {correlation:.6g}")
    w = np.pi * (np.arange(_size(size)) + 0.5) / size
    return population((1.0 - correlation**2) / (1.0 - 2.0 * correlation * np.cos(w) + correlation**2))


def spiked(spikes: Mapping[float, float]) -> Population:
    """White noise with eigenvalues `spikes` {level: share}, shares summing to less than 1; scaled to mean 1.

    >>> spiked({9.0: 0.125}).levels
    array([0.5, 4.5])
    """
    total = float(sum(spikes.values()))
    if not total < 1.0:
        raise ValueError(f"shares of the spikes must sum to less than 1, got {total:.6g}")
    return population([1.0, *spikes], [1.0 - total, *spikes.values()])


def _size(size: int) -> int:
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return size
