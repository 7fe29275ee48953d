"""Inverse and symmetric part of 3x3 matrices stacked over classes and ridges, (..., 3, 3)."""

from __future__ import annotations

import numpy as np

from resolvent.equivalents.averages import Array


def inverse(matrix: Array) -> Array:
    """Inverses by cofactors, several times faster than a LAPACK call on each."""
    rows = tuple(matrix[..., i, :] for i in range(3))
    cofactors = np.stack(
        [_cross(rows[1], rows[2]), _cross(rows[2], rows[0]), _cross(rows[0], rows[1])], axis=-1
    )
    determinant = (rows[0] * cofactors[..., 0]).sum(axis=-1)
    inverses: Array = cofactors / determinant[..., None, None]
    return inverses


def symmetrised(matrix: Array) -> Array:
    """(matrix + matrix')/2."""
    part: Array = 0.5 * (matrix + np.swapaxes(matrix, -1, -2))
    return part


def _cross(u: Array, v: Array) -> Array:
    a, b, c = (u[..., i] for i in range(3))
    d, e, f = (v[..., i] for i in range(3))
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d], axis=-1)
