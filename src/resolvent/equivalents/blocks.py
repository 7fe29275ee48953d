"""The 3x3 blocks of the linearised resolvent: N, P, R and their linear response.

Q = (H'H/n + gamma)^-1 is the corner of the inverse of the pencil

    L = [[gamma, K', 0], [K, 0, I], [0, I, X'X/n]].

With M = [[0, a1, 0], [a1, 0, 0], [0, 0, c]] the noise-only bilinear forms of L^-1 are

    y with y        N/c,                       N = E[Gamma(g)],
    Z'v with Z'v'   (v'v') Bv,                 Bv = (N/c) (I + M N/c)^-1,

    N^-1 = R = A + P,   P = M (I + N M/c)^-1,   A = [[alpha, b0, 0], [b0, -t, 1], [0, 1, 0]].

Everything is kept in balanced scaling, rows and columns times (alpha^-1/2, alpha^1/2, alpha^-1/2): the
scaled N is finite at any ridge, zero included. Theory page, sections 4, 5 and 9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.bulk import Bulk

SYMMETRIC = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


class Blocks(NamedTuple):
    """Scaled 3x3 matrices (rows, 3, 3): N, P, R = N^-1, Bv, X = (I + M N/c)^-1 = Y diag(1, 1, alpha)."""

    N: Array
    P: Array
    R: Array
    Bv: Array
    X: Array
    Y: Array


def blocks(c: Array, a1: Array, bulk: Bulk) -> Blocks:
    """The scaled blocks at a solution of the bulk."""
    av, b0, x, alpha = bulk.averages, bulk.b0, bulk.x, bulk.averages.alpha
    N = _symmetric(
        av.i0 + c * x * av.j0,
        c * av.j1,
        -(b0 * av.i0 + a1 * alpha * av.j0),
        -c * av.j0,
        av.i0,
        (x + b0 * b0) * av.i0 + alpha * a1 * (av.j1 + b0 * av.j0),
    )
    zero, one = np.zeros_like(c), np.ones_like(c)
    A = _symmetric(one, b0, zero, -x, one, zero)
    M = _symmetric(zero, a1, zero, zero, zero, c)
    balance = np.stack([one, one, alpha], axis=-1)
    Y = inverse(M @ N / c[:, None, None] + balance[:, :, None] * np.eye(3))
    X = Y * balance[:, None, :]
    P = symmetrised(Y @ M)
    return Blocks(N, P, A + P, symmetrised(N @ X) / c[:, None, None], X, Y)


def response(c: Array, sigma2: Array, block: Blocks, source: Array) -> Array:
    """Lambda with R Lambda R - P Lambda P/c - (sigma2/c) S(Lambda) = source, the adjoint of N's own equation.

    S(Lambda) = [[L22, L12, 0], [L12, L11, 0], [0, 0, 0]]. Since N^-1 = A - (sigma2/c) S(N) + P, a change dA
    of the pencil changes tr(source dN) by -tr(Lambda dA).
    """
    scale = _balance(block.N)
    square = scale[:, :, None] * scale[:, None, :]
    operator = _kronecker(block.R * square) - _kronecker(block.P * square) / c[:, None, None]
    noise = sigma2 / c
    operator[:, 0, 3] -= noise
    operator[:, 3, 0] -= noise
    operator[:, 1, 1] -= noise
    right = np.stack([square[:, i, j] * source[:, i, j] for i, j in SYMMETRIC], axis=-1)
    solution = _solve(operator, right[..., None])[..., 0]
    return square * _symmetric(*np.moveaxis(solution, -1, 0))


def _solve(matrices: Array, right: Array) -> NDArray[np.floating[Any]]:
    """`numpy.linalg.solve` that answers NaN on singular rows instead of failing on all."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        singular = np.linalg.slogdet(matrices)[0] == 0.0
        return np.linalg.solve(np.where(singular[:, None, None], np.nan, matrices), right)


def _balance(N: Array) -> Array:
    """Scales (s, 1/s, s3) that make N/(s s') balanced; S commutes with them."""
    s = (np.abs(N[:, 0, 0] / N[:, 1, 1])) ** 0.25
    return np.stack([s, 1.0 / s, np.sqrt(np.abs(N[:, 2, 2]))], axis=-1)


def _kronecker(R: Array) -> Array:
    """H -> R H R for symmetric R on the six entries of symmetric H, shape (rows, 6, 6)."""
    out = np.empty((*R.shape[:-2], 6, 6))
    for row, (i, j) in enumerate(SYMMETRIC):
        for column, (k, m) in enumerate(SYMMETRIC):
            value = R[..., i, k] * R[..., j, m]
            out[..., row, column] = value if k == m else value + R[..., i, m] * R[..., j, k]
    return out


def inverse(matrix: Array) -> Array:
    """Inverses of 3x3 matrices by cofactors, several times faster than a LAPACK call on each."""
    rows = tuple(matrix[..., i, :] for i in range(3))
    cofactors = np.stack(
        [_cross(rows[1], rows[2]), _cross(rows[2], rows[0]), _cross(rows[0], rows[1])], axis=-1
    )
    determinant = (rows[0] * cofactors[..., 0]).sum(axis=-1)
    inverses: Array = cofactors / determinant[..., None, None]
    return inverses


def symmetrised(matrix: Array) -> Array:
    """(matrix + matrix')/2."""
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))


def _cross(u: Array, v: Array) -> Array:
    a, b, c = (u[..., i] for i in range(3))
    d, e, f = (v[..., i] for i in range(3))
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d], axis=-1)


def _symmetric(m00: Array, m01: Array, m02: Array, m11: Array, m12: Array, m22: Array) -> Array:
    """Symmetric 3x3 matrices from their six entries."""
    out = np.empty((*m00.shape, 3, 3))
    for (i, j), value in zip(SYMMETRIC, (m00, m01, m02, m11, m12, m22), strict=True):
        out[..., i, j] = value
        out[..., j, i] = value
    return out
