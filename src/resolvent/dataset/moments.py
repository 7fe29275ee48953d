"""Class means and within-class noise of labelled tokens: x = midpoint + y half + noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def class_sizes(labels: Vector) -> tuple[int, int]:
    """Tokens with label +1 and with label -1. Raises ValueError unless both are at least 2."""
    plus = int(np.count_nonzero(labels > 0))
    minus = labels.size - plus
    if min(plus, minus) < 2:
        raise ValueError(f"each label needs at least 2 tokens, got {plus} of +1 and {minus} of -1")
    return plus, minus


def class_means(tokens: Matrix, labels: Vector) -> tuple[Vector, Vector]:
    """(mean_+ + mean_-)/2 and (mean_+ - mean_-)/2, each of length p."""
    plus, minus = class_sizes(labels)
    upper = tokens @ (np.maximum(labels, 0) / plus)
    lower = tokens @ (np.maximum(-labels, 0) / minus)
    return (upper + lower) / 2, (upper - lower) / 2


def within_class(tokens: Matrix, labels: Vector, midpoint: Vector, half: Vector) -> Matrix:
    """Tokens less their class mean, p x n; row by row, so that one copy is all it takes."""
    noise = tokens - midpoint[:, None]
    for row, difference in zip(noise, half, strict=True):
        row -= difference * labels
    return noise


def leverage_scale(labels: Vector) -> Vector:
    """1 - 1/(size of its class) for each token: the share of noise that the class mean has not absorbed."""
    plus, minus = class_sizes(labels)
    return np.where(labels > 0, 1 - 1 / plus, 1 - 1 / minus)
