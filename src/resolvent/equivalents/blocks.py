"""The 3x3 blocks of the linearised resolvent: N, P, R and their linear response.

Q = (H'H/n + gamma)^-1 is the corner of the inverse of the pencil

    L = [[gamma, K', 0], [K, 0, I], [0, I, X'X/n]].

With M = [[0, a1, 0], [a1, 0, 0], [0, 0, c]] the noise-only bilinear forms of L^-1 are

    y with y        N/c,                       N = E[Gamma(g)],
    Z'v with Z'v'   (v'v') Bv,                 Bv = (N/c) X,     X = (I + M N/c)^-1,

    N^-1 = R = A + P,   P = M (I + N M/c)^-1,   A = [[alpha, b0, 0], [b0, -t, 1], [0, 1, 0]].

Everything is kept in balanced scaling, rows and columns times (alpha^-1/2, alpha^1/2, alpha^-1/2): the
scaled N is finite at any ridge, zero included. Theory page, sections 4, 5 and 9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.matrices import Symmetric, Vector, along, cross, dot

ENTRIES = np.array([[1, 2], [2, 2], [1, 1], [0, 0], [0, 2], [0, 1]])  # the order of elimination
PLACE = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # of entry (i, j) in a Symmetric
REFINEMENTS = 3
WORK = (14, 6)  # shape of the work space of `response`


class Blocks(NamedTuple):
    """Scaled N, P and R = N^-1; the first columns of X = Y diag(1, 1, alpha) and the last one of Y."""

    N: Symmetric
    P: Symmetric
    R: Symmetric
    X0: Vector
    X1: Vector
    Y2: Vector


def blocks(c: Array, a1: Array, noise: Noise) -> Blocks:
    """The scaled blocks at a solution of the bulk."""
    alpha, b0, x, j0, j1, i0 = noise.alpha, noise.b0, noise.x, noise.j0, noise.j1, noise.i0
    N = Symmetric(
        i0 + c * x * j0,
        c * j1,
        -(b0 * i0 + a1 * alpha * j0),
        -c * j0,
        i0,
        (x + b0 * b0) * i0 + alpha * a1 * (j1 + b0 * j0),
    )
    # Y = X diag(1, 1, 1/alpha) = (diag(1, 1, alpha) + M N/c)^-1 by cofactors, and P = Y M
    a = a1 / c
    r0 = (1.0 + a * N.m01, a * N.m11, a * N.m12)
    r1 = (a * N.m00, r0[0], a * N.m02)
    r2 = (N.m02, N.m12, alpha + N.m22)
    cofactors = cross(r1, r2)
    scale = 1.0 / dot(r0, cofactors)
    y0, y1, y2 = along(scale, cofactors), along(scale, cross(r2, r0)), along(scale, cross(r0, r1))
    P = Symmetric(a1 * y1[0], a1 * y0[0], c * y2[0], a1 * y0[1], c * y2[1], c * y2[2])
    R = Symmetric(1.0 + P.m00, b0 + P.m01, P.m02, P.m11 - x, 1.0 + P.m12, P.m22)
    return Blocks(N, P, R, y0, y1, y2)


def response(
    c: Array, sigma2: Array, block: Blocks, source: Symmetric, work: Array
) -> tuple[Symmetric, Array]:
    """Lambda with R Lambda R - P Lambda P/c - (sigma2/c) S(Lambda) = source, the adjoint of N's own equation.

    S(Lambda) = [[L22, L12, 0], [L12, L11, 0], [0, 0, 0]]. Since N^-1 = A - (sigma2/c) S(N) + P, a change dA
    of the pencil changes tr(source dN) by -tr(Lambda dA).

    Gaussian elimination in the order of ENTRIES, which seldom needs pivoting, and one step of refinement; the
    second value is the relative size of that step. Where it is not small take `pivoted_response`. `work`, of
    shape (*WORK, ...), is overwritten.
    """
    matrix, right, answer, diagonal, pivots = work[:6], work[6], work[7], work[8], work[9]
    _system(c, sigma2, block, source, matrix, right, work[10:])
    for k in range(6):
        answer[k] = right[k]
        diagonal[k] = matrix[k, k]
    _factorise(matrix, pivots)
    _substitute(matrix, pivots, answer)
    for i in range(6):
        right[i] -= diagonal[i] * answer[i]
        for j in range(i):
            right[i] -= matrix[i, j] * answer[j]
            right[j] -= matrix[i, j] * answer[i]
    _substitute(matrix, pivots, right)
    for k in range(6):
        answer[k] += right[k]
    doubt = np.maximum(np.abs(right[2] / answer[2]), np.abs(right[3] / answer[3]))
    return _unpacked(answer), doubt


def pivoted_response(c: Array, sigma2: Array, block: Blocks, source: Symmetric) -> Symmetric:
    """`response` by LAPACK on a balanced system, refined in extended precision where the machine has it.

    Slower, for arrays of the rows that need it.
    """
    work = np.empty((*WORK, *c.shape), dtype=np.longdouble)
    _system(c, sigma2, block, source, work[:6], work[6], work[10:])
    size = np.sqrt(np.abs(block.N.m00 / block.N.m11))
    scales = np.sqrt(np.stack([size, 1.0 / size, np.abs(block.N.m22)]))
    scale = np.stack([scales[i] * scales[j] for i, j in ENTRIES], axis=-1)
    matrix = np.moveaxis(work[:6], -1, 0) * scale[:, :, None] * scale[:, None, :]
    right = (np.moveaxis(work[6], -1, 0) * scale)[..., None]
    answer = np.zeros_like(right)
    for _ in range(REFINEMENTS):
        answer += _solve(matrix.astype(np.float64), (right - matrix @ answer).astype(np.float64))
    return _unpacked((scale * answer[..., 0]).astype(np.float64).T)


def _solve(matrices: Array, right: Array) -> NDArray[np.floating[Any]]:
    """`numpy.linalg.solve` that answers NaN on singular rows instead of failing on all."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        singular = np.linalg.slogdet(matrices)[0] == 0.0
        return np.linalg.solve(np.where(singular[:, None, None], np.nan, matrices), right)


def _unpacked(answer: Array) -> Symmetric:
    return Symmetric(answer[3], answer[5], answer[4], answer[2], answer[0], answer[1])


def _system(
    c: Array, sigma2: Array, block: Blocks, source: Symmetric, matrix: Array, right: Array, held: Array
) -> None:
    """The equations for the entries of Lambda; off the diagonal they count twice, hence are symmetric."""
    R, P, F, P_c = held[0], held[1], held[2], held[3]
    R[0], R[1], R[2], R[3], R[4], R[5] = block.R
    P[0], P[1], P[2], P[3], P[4], P[5] = block.P
    F[0], F[1], F[2], F[3], F[4], F[5] = source
    for k in range(6):
        P_c[k] = P[k] / c
    for row in range(6):
        i, j = ENTRIES[row, 0], ENTRIES[row, 1]
        times = 1.0 if i == j else 2.0
        right[row] = times * F[PLACE[i, j]]
        for column in range(row, 6):
            k, m = ENTRIES[column, 0], ENTRIES[column, 1]
            ik, jm, im, jk = PLACE[i, k], PLACE[j, m], PLACE[i, m], PLACE[j, k]
            value = R[ik] * R[jm] - P_c[ik] * P[jm]
            if k != m:
                value = value + (R[im] * R[jk] - P_c[im] * P[jk])
            matrix[row, column] = times * value
    matrix[5, 5] -= 2.0 * sigma2 / c
    matrix[2, 3] -= sigma2 / c
    for row in range(6):
        for column in range(row):
            matrix[row, column] = matrix[column, row]


def _factorise(matrix: Array, pivots: Array) -> None:
    """Eliminate one unknown after the other in the upper triangle; the lower one keeps the matrix."""
    for k in range(6):
        pivots[k] = 1.0 / matrix[k, k]
        for i in range(k + 1, 6):
            factor = matrix[k, i] * pivots[k]
            for j in range(i, 6):
                matrix[i, j] -= factor * matrix[k, j]


def _substitute(matrix: Array, pivots: Array, vector: Array) -> None:
    """Solve with the factorised matrix (its pivots inverted), in place."""
    for k in range(6):
        factor = vector[k] * pivots[k]
        for i in range(k + 1, 6):
            vector[i] -= factor * matrix[k, i]
    for back in range(6):
        k = 5 - back
        for j in range(k + 1, 6):
            vector[k] -= matrix[k, j] * vector[j]
        vector[k] *= pivots[k]
