"""The matrix Dyson equation of a self-adjoint linear pencil, and what certifies a solution.

A pencil L = A + (blocks linear in Gaussian matrices) of N x N blocks has an inverse whose normalised block
traces T tend to the solution of (theory page, section 9; Helton, Rashidi Far and Speicher 2007)

    T = sum_k w_k G_k,    G_k = (A_k - Y)^-1,    Y = eta(T),

k running over the joint eigenvalues of the deterministic matrices in L. The unknowns are the entries
Y[writes] that the linear covariance map eta fills from the entries T[reads]. The equation has many solutions.
The limit is the one with

    (1 - F) X = sum_k w_k G_k G_k*  has a positive solution X,    F X = sum_k w_k G_k eta(X) G_k*.

F preserves positivity, so such an X exists if and only if F contracts; then the implicit function theorem
leads T into the half plane Im T > 0 of the equation for L - i x, where the solution is unique. For complex
parameters Im T >= 0 is needed as well, and inside a spectrum, where F has eigenvalue one, Im T >= 0 and not
zero takes the place of X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHUNK = 4_000_000
"""How many numbers a work array may hold."""
POSITIVE = 1e-7
"""How negative, beside the largest number, rounding may leave an eigenvalue that is not negative."""


@dataclass(frozen=True)
class Dyson:
    """One equation per point of a batch.

    constant (B, K, N, N): A at each of K nodes; weights (K, N): weight of the node in the dimension of each
    block; eta (B, R, P): the covariance map from the P entries `reads` (2, P) of T to the R entries `writes`
    (2, R) of Y.
    """

    constant: Array
    weights: Array
    eta: Array
    writes: Array
    reads: Array

    def take(self, points: Array) -> Dyson:
        """Return the equations of some points of the batch."""
        return replace(self, constant=self.constant[points], eta=self.eta[points])


def _regular(matrices: Array) -> tuple[Array, Array]:
    """The matrices with the identity in place of singular ones, and NaN for these, one for the others."""
    singular = (np.linalg.slogdet(matrices)[0] == 0)[..., None, None]
    return np.where(singular, np.eye(matrices.shape[-1]), matrices), np.where(singular, np.nan, 1.0)


def _inverse(matrices: Array) -> Array:
    """Inverses, NaN where there is none."""
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        regular, mark = _regular(matrices)
        return np.asarray(np.linalg.inv(regular) * mark)


def green_matrices(dyson: Dyson, unknowns: Array, shift: Array | None = None) -> Array:
    """(A_k - i shift - Y)^-1, shape (B, K, N, N)."""
    matrices = dyson.constant
    if shift is not None:
        matrices = matrices - 1j * shift[:, None, None, None] * np.eye(matrices.shape[-1])
    matrices = matrices.astype(np.result_type(matrices, unknowns))
    matrices[..., dyson.writes[0], dyson.writes[1]] -= unknowns[:, None, :]
    return _inverse(matrices)


def _mean(weights: Array, values: Array) -> Array:
    """Weighted mean over the nodes (axis 1); weights (K, ...) are those of the first axis behind it."""
    shape = weights.shape + (1,) * (values.ndim - 1 - weights.ndim)
    return np.asarray((weights.reshape(shape) * values).sum(axis=1))


def average(dyson: Dyson, matrices: Array) -> Array:
    """Mean over the nodes, each block with the weights of its dimension, shape (B, N, N)."""
    return _mean(dyson.weights, matrices) if len(dyson.weights) > 1 else np.asarray(matrices[:, 0])


def read(dyson: Dyson, matrices: Array) -> Array:
    """The entries of the node average that eta reads, shape (B, P)."""
    rows, cols = dyson.reads
    entries = matrices[..., rows, cols]
    return _mean(dyson.weights[:, rows], entries) if len(dyson.weights) > 1 else np.asarray(entries[:, 0])


def image(dyson: Dyson, matrices: Array) -> Array:
    """Apply eta to the node average, shape (B, R)."""
    return np.asarray((dyson.eta @ read(dyson, matrices)[..., None])[..., 0])


def sandwich(dyson: Dyson, left: Array, right: Array) -> Array:
    """The R x R matrix of Y -> eta(sum_k w_k left_k Y right_k), the nodes taken in slices to save memory."""
    (rows, cols), (i, j) = dyson.reads, dyson.writes
    weights = dyson.weights[:, rows]
    slice_size = max(1, CHUNK // max(1, len(left) * len(rows) * len(i)))
    total: Array | float = 0.0
    for start in range(0, len(weights), slice_size):
        part = slice(start, start + slice_size)
        products = left[:, part][..., rows[:, None], i] * right[:, part][..., j, cols[:, None]]
        total = total + (_mean(weights[part], products) if len(weights) > 1 else products[:, 0])
    return np.asarray(dyson.eta @ total)


def solve_rows(matrices: Array, right: Array) -> Array:
    """Solve matrices[b] x = right[b], NaN where the matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrices, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        regular, mark = _regular(matrices)
        return np.asarray(np.linalg.solve(regular, right[..., None])[..., 0] * mark[..., 0])


def matrix_of(dyson: Dyson, unknowns: Array) -> Array:
    """Y as matrices (B, N, N) from its entries."""
    size = dyson.constant.shape[-1]
    full = np.zeros((len(unknowns), size, size), dtype=unknowns.dtype)
    full[:, dyson.writes[0], dyson.writes[1]] = unknowns
    return full


def _imaginary(dyson: Dyson, green: Array) -> tuple[Array, Array]:
    """Whether Im T >= 0, up to rounding, and whether it is not zero."""
    traces = average(dyson, np.nan_to_num(green))
    values = np.linalg.eigvalsh((traces - traces.conj().swapaxes(1, 2)) / 2j)
    size = np.abs(traces).max((1, 2))
    return values[:, 0] >= -POSITIVE * size, values[:, -1] > 1e-8 * size


def upper(dyson: Dyson, green: Array) -> Array:
    """Whether Im T >= 0 and not zero."""
    positive, present = _imaginary(dyson, green)
    return positive & present


def contracts(dyson: Dyson, green: Array) -> Array:
    """Whether F contracts: X = sum_k w_k G_k (1 + V) G_k* with V = eta(X) must have V >= 0."""
    adjoint = green.conj().swapaxes(-1, -2)
    right = image(dyson, green @ adjoint)
    growth = solve_rows(np.eye(right.shape[1]) - sandwich(dyson, green, adjoint), right)
    finite = np.asarray(np.isfinite(growth).all(axis=1))
    matrix = matrix_of(dyson, np.where(finite[:, None], growth, 0.0))
    values = np.linalg.eigvalsh((matrix + matrix.conj().swapaxes(1, 2)) / 2)
    return np.asarray(finite & (values[:, 0] >= -POSITIVE * np.maximum(values[:, -1], 0.0)))


def certified(dyson: Dyson, green: Array) -> Array:
    """Whether a solution is the limit: F contracts, and Im T >= 0 if it is complex."""
    if not np.iscomplexobj(green):
        return contracts(dyson, np.nan_to_num(green))
    positive, present = _imaginary(dyson, green)
    return positive & (present | contracts(dyson, np.nan_to_num(green)))
