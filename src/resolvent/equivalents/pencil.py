"""The matrix Dyson equation of a self-adjoint linear pencil: solve, certify, differentiate.

A pencil L = A + (blocks linear in Gaussian matrices) of N x N blocks has an inverse whose normalised block traces T tend
to the solution of (theory page, section 9; Helton, Rashidi Far and Speicher 2007)

    T = sum_k w_k (A_k - Y)^-1,      Y = eta(T),      k runs over the eigenvalues of the deterministic matrices in L.

The unknowns are the entries Y[writes] that the linear covariance map eta fills, from the entries T[reads]:
F(Y) = eta t(Y) - Y = 0 is a small system, solved by Newton's method. Newton alone may land on another branch, so the
equation is first solved for L - i x (unique with Im T > 0), x is led from 3 to 0, and what is found is certified:

    (1 - T eta(.) T*) X = T T*   has a positive X    <=>    T eta(.) T* contracts    <=>    T is the limit,

since then the implicit function theorem leads T back into Im T > 0, where the solution is unique. Inside a spectrum,
where this map has eigenvalue one, Im T >= 0 (not zero) takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

START = 3.0
"""Where on the imaginary axis the continuation starts, the pencil being scaled to entries of order one."""
TOLERANCE = 1e-11
"""Residual max|F| / max(1, max|Y|), of the scaled system, below which a solution counts."""
POSITIVE = 1e-7
"""How negative, relative to the largest eigenvalue, rounding may leave one that should not be negative."""


@dataclass(frozen=True)
class Dyson:
    """One equation per point of a batch.

    constant (B, K, N, N): A at each of K nodes; weights (K, N): weight of the node in the dimension of each block;
    eta (B, R, P): the covariance map from the P entries `reads` (2, P) of T to the R entries `writes` (2, R) of Y.
    """

    constant: Array
    weights: Array
    eta: Array
    writes: Array
    reads: Array

    def take(self, points: Array) -> Dyson:
        """Return the equations of some points of the batch."""
        return replace(self, constant=self.constant[points], eta=self.eta[points])


@dataclass(frozen=True)
class Fixed:
    """Solutions: T (B, N, N), Y[writes] (B, R), residual, iterations and `converged` (B,), which includes the branch."""

    traces: Array
    unknowns: Array
    residual: Array
    iterations: Array
    converged: Array


# ---------------------------------------------------------------- the equation


def _inverse(matrices: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        bad = ~(np.linalg.cond(matrices) < 1e16)
        return np.where(
            bad[..., None, None],
            np.nan,
            np.linalg.inv(np.where(bad[..., None, None], np.eye(matrices.shape[-1]), matrices)),
        )


def _green(dyson: Dyson, unknowns: Array, shift: Array | float = 0.0) -> Array:
    """(A_k - i shift - Y)^-1, shape (B, K, N, N)."""
    size = dyson.constant.shape[-1]
    matrices = (
        dyson.constant - (1j * np.asarray(shift))[..., None, None, None] * np.eye(size)
        if np.any(shift)
        else dyson.constant
    )
    matrices = matrices.astype(np.result_type(matrices, unknowns))
    matrices[..., dyson.writes[0], dyson.writes[1]] -= unknowns[:, None, :]
    return _inverse(matrices)


def _mean(weights: Array, values: Array) -> Array:
    """Weighted mean over the nodes (axis 1); weights (K, ...) are those of the first axis behind it."""
    if len(weights) == 1:
        return np.asarray(values[:, 0])
    shape = weights.shape + (1,) * (values.ndim - 1 - weights.ndim)
    return np.asarray((weights.reshape(shape) * values).sum(axis=1))


def _average(dyson: Dyson, matrices: Array) -> Array:
    """Mean over the nodes, each block with the weights of its dimension, shape (B, N, N)."""
    return _mean(dyson.weights, matrices)


def _read(dyson: Dyson, matrices: Array) -> Array:
    """The entries of the node average that eta reads, shape (B, P)."""
    rows, cols = dyson.reads
    return _mean(dyson.weights[:, rows], matrices[..., rows, cols])


def _image(dyson: Dyson, matrices: Array) -> Array:
    """Apply eta to the node average, shape (B, R)."""
    return np.asarray((dyson.eta @ _read(dyson, matrices)[..., None])[..., 0])


def _sandwich(dyson: Dyson, left: Array, right: Array) -> Array:
    """The R x R matrix of Y -> eta(sum_k w_k left_k Y right_k)."""
    (rows, cols), (i, j) = dyson.reads, dyson.writes
    products = left[..., rows[:, None], i] * right[..., j, cols[:, None]]
    return np.asarray(dyson.eta @ _mean(dyson.weights[:, rows], products))


def _solve(matrices: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(matrices, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan, dtype=right.dtype)


def _matrix(dyson: Dyson, unknowns: Array) -> Array:
    size = dyson.constant.shape[-1]
    full = np.zeros((len(unknowns), size, size), dtype=unknowns.dtype)
    full[:, dyson.writes[0], dyson.writes[1]] = unknowns
    return full


# ---------------------------------------------------------------- scaling


def _balance(dyson: Dyson) -> Array:
    """Scales D (B, N) that bring the blocks of D L D near order one: least squares on the logarithms of their norms.

    (Curtis and Reid 1972. For ridge gamma it gives gamma^(1/2) against gamma^(-1/2), the scaling of the theory page.)
    Blocks below 1e-20 count as absent, after a first pass that brings huge diagonal blocks to one.
    """
    norms = np.sqrt(_moments(dyson))
    own = np.diagonal(norms, axis1=1, axis2=2)
    first = np.where(own > 1e20, own, 1.0) ** -0.5
    norms = first[:, :, None] * norms * first[:, None, :]
    present = norms > 1e-20
    logs = np.log(np.where(present, norms, 1.0))
    normal = present + np.einsum("bi,ij->bij", present.sum(2) + 1e-6, np.eye(norms.shape[1]))
    scale = np.exp(np.linalg.solve(normal, -logs.sum(2)[..., None])[..., 0])
    largest = np.max(scale[:, :, None] * norms * scale[:, None, :], axis=(1, 2))
    return np.asarray(first * scale / np.sqrt(largest)[:, None])


def _moments(dyson: Dyson) -> Array:
    """Squared norms of the blocks, (B, N, N): of the constant part, or the row variance of the random one."""
    moments = np.max(np.abs(dyson.constant) ** 2, axis=1)
    rows, cols = np.nonzero(
        (dyson.writes[0] == dyson.writes[1])[:, None] & (dyson.reads[0] == dyson.reads[1])[None, :]
    )
    np.add.at(
        moments, (slice(None), dyson.writes[0, rows], dyson.reads[0, cols]), np.abs(dyson.eta[:, rows, cols])
    )
    return np.maximum(moments, moments.swapaxes(1, 2))


def _scaled(dyson: Dyson, scale: Array) -> Dyson:
    (i, j), (a, b) = dyson.writes, dyson.reads
    eta = (scale[:, i] * scale[:, j])[:, :, None] * dyson.eta * (scale[:, a] * scale[:, b])[:, None, :]
    return replace(
        dyson, constant=scale[:, None, :, None] * dyson.constant * scale[:, None, None, :], eta=eta
    )


# ---------------------------------------------------------------- solving


def _residual(image: Array, unknowns: Array, scale: Array) -> Array:
    """max|image - unknowns| / max(1, max|scale|), infinite where it is not a number."""
    size = np.maximum(1.0, np.max(np.abs(scale), axis=1, initial=0.0))
    ratio = np.max(np.abs(image - unknowns), axis=1, initial=0.0) / size
    return np.where(np.isnan(ratio), np.inf, ratio)


def _newton(
    dyson: Dyson, unknowns: Array, shift: Array | float, steps: int, goal: float = 1e-13
) -> tuple[Array, Array, Array]:
    """Newton's method until its steps are below the goal or rounding stops them; returns Y, the Green's matrices, residual.

    The size of the steps decides, not the residual: near a singularity a tiny residual may hide a large error. A point
    whose steps are still large after five of them is given up.
    """
    eye = np.eye(unknowns.shape[1])
    unknowns, live = unknowns.copy(), np.arange(len(unknowns))
    part, before, residual = dyson, np.full(len(unknowns), np.inf), np.full(len(unknowns), np.inf)
    shift = np.broadcast_to(shift, (len(unknowns),))
    green = _green(dyson, unknowns, shift)
    image, current = _image(dyson, green), green
    for count in range(steps):
        y = unknowns[live] + _solve(eye - _sandwich(part, current, current), image - unknowns[live])
        current = _green(part, y, shift[live])
        image = _image(part, current)
        step, left = _residual(y, unknowns[live], y), _residual(image, y, y)
        unknowns[live], green[live], residual[live] = y, current, left
        stalled = (step > 0.3 * before) & (step < 1e-3) & (left < TOLERANCE)
        going = ~stalled & (step >= goal) & (step < (1e30 if count < 5 else 0.1))
        if not going.any():
            break
        before = step[going]
        if not going.all():
            live, part, current, image = live[going], part.take(going), current[going], image[going]
    return unknowns, green, residual


def _averaged(dyson: Dyson, unknowns: Array, shift: Array, steps: int) -> Array:
    """Half-averaged steps Y <- (Y + eta(T))/2: slow, but they cannot leave Im T > 0."""
    for _ in range(steps):
        unknowns = 0.5 * (unknowns + _image(dyson, _green(dyson, unknowns, shift)))
    return unknowns


def _imaginary(dyson: Dyson, green: Array) -> tuple[Array, Array]:
    """Whether Im T >= 0, up to rounding, and whether it is not zero."""
    traces = _average(dyson, np.nan_to_num(green))
    values = np.linalg.eigvalsh((traces - traces.conj().swapaxes(1, 2)) / 2j)
    size = np.abs(traces).max((1, 2))
    return values[:, 0] >= -POSITIVE * size, values[:, -1] > 1e-8 * size


def _upper(dyson: Dyson, green: Array) -> Array:
    positive, present = _imaginary(dyson, green)
    return positive & present


def contracts(dyson: Dyson, green: Array) -> Array:
    """Whether T eta(.) T* is a contraction: the solution X = sum_k w_k G (1 + V) G*, V = eta(X), must have V >= 0."""
    adjoint = green.conj().swapaxes(-1, -2)
    right = _image(dyson, green @ adjoint)
    growth = _solve(np.eye(right.shape[1]) - _sandwich(dyson, green, adjoint), right)
    finite = np.isfinite(growth).all(axis=1)
    matrix = _matrix(dyson, np.where(finite[:, None], growth, 0.0))
    values = np.linalg.eigvalsh((matrix + matrix.conj().swapaxes(1, 2)) / 2)
    return np.asarray(finite & (values[:, 0] >= -POSITIVE * np.maximum(values[:, -1], 0.0)))


def _certified(dyson: Dyson, green: Array) -> Array:
    if not np.iscomplexobj(green):
        return contracts(dyson, np.nan_to_num(green))
    positive, present = _imaginary(dyson, green)
    return positive & (present | contracts(dyson, np.nan_to_num(green)))


def _tangent(dyson: Dyson, green: Array) -> Array:
    """dY/dx of the solution at L - i x."""
    right = 1j * _image(dyson, green @ green)
    return _solve(np.eye(right.shape[1]) - _sandwich(dyson, green, green), right)


def _advance(dyson: Dyson, unknowns: Array, shift: Array, target: Array) -> tuple[Array, Array, Array]:
    """One step of the continuation: Euler predictor, Newton corrector, averaged steps where those fail."""
    guess = unknowns + (target - shift)[:, None] * _tangent(dyson, _green(dyson, unknowns, shift))
    guess = np.where(np.isfinite(guess), guess, unknowns)
    found, green, residual = _newton(dyson, guess, target, 6, 1e-5)
    good = (residual < 1e-8) & _upper(dyson, green)
    if not good.all():
        bad = ~good
        part = dyson.take(bad)
        slow = _averaged(part, unknowns[bad], target[bad], 40)
        retry, retry_green, retry_residual = _newton(part, slow, target[bad], 6, 1e-5)
        kept = (retry_residual < 1e-8) & _upper(part, retry_green)
        found[bad] = np.where(kept[:, None], retry, slow)
        good[bad] = kept
    return found, good, residual


def _land(dyson: Dyson, unknowns: Array, shift: Array, real: bool) -> tuple[Array, Array, Array]:
    """Try the solution at x = 0 from the one at x, and keep it only with its certificate."""
    guess = unknowns - shift[:, None] * _tangent(dyson, _green(dyson, unknowns, shift))
    guess = np.where(np.isfinite(guess), guess, unknowns)
    found, green, residual = _newton(dyson, guess.real if real else guess, 0.0, 20)
    return found, residual, (residual < TOLERANCE) & _certified(dyson, green)


def _continue(dyson: Dyson, real: bool) -> tuple[Array, Array, Array, Array]:
    count, unknown = dyson.constant.shape[0], dyson.writes.shape[1]
    shift = np.full(count, START)
    factor = np.full(count, 0.3)
    unknowns = np.zeros((count, unknown), dtype=complex)
    unknowns, *_ = _newton(dyson, _averaged(dyson, unknowns, shift, 5), shift, 6, 1e-5)
    done = np.zeros(count, dtype=bool)
    residual = np.full(count, np.inf)
    result = np.full((count, unknown), np.nan, dtype=float if real else complex)
    iterations = np.zeros(count, dtype=int)
    active = np.arange(count)
    while active.size:
        part = dyson.take(active)
        iterations[active] += 1
        if (shift[active] < 0.5).any():
            found, left, landed = _land(part, unknowns[active], shift[active], real)
            result[active[landed]] = found[landed]
            residual[active] = left
            done[active[landed]] = True
            active = active[~landed & (shift[active] > 1e-13) & (iterations[active] < 200)]
            part = dyson.take(active)
        target = shift[active] * factor[active]
        found, good, _ = _advance(part, unknowns[active], shift[active], target)
        unknowns[active[good]] = found[good]
        shift[active[good]] = target[good]
        factor[active] = np.where(good, np.maximum(factor[active] ** 1.5, 0.03), np.sqrt(factor[active]))
        active = active[factor[active] < 0.9999]
    return result, residual, iterations, done


def solve(dyson: Dyson) -> Fixed:
    """Solve the equation at every point of the batch, on the branch that is the limit of the random pencil.

    Each point converges with its certificate (see the head of this file) or has `converged` False and NaN traces.
    """
    real = not np.iscomplexobj(dyson.constant) and not np.iscomplexobj(dyson.eta)
    scale = _balance(dyson)
    scaled = _scaled(dyson, scale)
    with np.errstate(all="ignore"):
        unknowns, residual, iterations, done = _continue(scaled, real)
        traces = _average(scaled, _green(scaled, unknowns))
    traces = scale[:, :, None] * traces * scale[:, None, :]
    traces[~done] = np.nan
    i, j = dyson.writes
    return Fixed(traces, unknowns / (scale[:, i] * scale[:, j]), residual, iterations, done)


# ---------------------------------------------------------------- derivatives and two points


def derivative(dyson: Dyson, fixed: Fixed, d_constant: Array, d_eta: Array) -> Array:
    """dT (B, N, N) when A moves by d_constant and eta by d_eta: the equation differentiated, one linear solve."""
    green = _green(dyson, fixed.unknowns)
    moved = -green @ d_constant @ green
    right = _image(dyson, moved) + (d_eta @ _read(dyson, green)[..., None])[..., 0]
    change = _solve(np.eye(right.shape[1]) - _sandwich(dyson, green, green), right)
    return _average(dyson, moved + green @ _matrix(dyson, change)[:, None] @ green)


def two_point(dyson: Dyson, first: Fixed, other: Dyson, second: Fixed, inserted: Array) -> Array:
    """Block traces (B, N, N) of L^-1 (inserted (x) I) L'^-1 for two pencils with the same random part.

    They solve X = sum_k w_k G (inserted + eta(X)) G', G and G' the two Green's matrices.
    """
    left, right = _green(dyson, first.unknowns), _green(other, second.unknowns)
    plain = left @ inserted @ right
    change = _solve(np.eye(dyson.writes.shape[1]) - _sandwich(dyson, left, right), _image(dyson, plain))
    return _average(dyson, plain + left @ _matrix(dyson, change)[:, None] @ right)
