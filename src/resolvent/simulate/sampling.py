"""Drawing labels, targets and tokens X = mu y' + Z, and the weight vectors with given inner products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Sample(NamedTuple):
    """Tokens (p x n), the labels they carry and the targets of the probe (both n)."""

    tokens: Array
    labels: Array
    targets: Array


def vectors(gram: Array, p: int) -> Array:
    """mu, w_K, w_Q as rows of a (3, p) array with this Gram matrix, on the first axes.

    Gaussian noise is invariant under rotation, so the axes may be chosen. Raises ValueError when p is
    smaller than the dimension that the three vectors span.
    """
    values, basis = np.linalg.eigh(gram)
    kept = values > 1e-14 * values.max()
    if kept.sum() > p:
        raise ValueError(
            f"p = round(ratio n) must be at least {kept.sum()}, the dimension that mu, w_K and w_Q span, "
            f"got {p}: raise ratio or n"
        )
    out = np.zeros((3, p))
    out[:, : kept.sum()] = basis[:, kept] * np.sqrt(values[kept])
    return out


def draw(mu: Array, n: int, label_mean: float, label_noise: float, rng: np.random.Generator) -> Sample:
    """n tokens around mu; labels have the given mean, targets flip with probability label_noise."""
    labels = np.where(rng.random(n) < 0.5 * (1.0 + label_mean), 1.0, -1.0)
    targets = np.where(rng.random(n) < label_noise, -labels, labels)
    tokens = rng.standard_normal((mu.size, n))
    tokens += np.outer(mu, labels)
    return Sample(tokens, labels, targets)
