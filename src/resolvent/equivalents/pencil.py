"""Solving the matrix Dyson equation of a pencil: continuation, derivatives, two-point functions.

F(Y) = eta(T(Y)) - Y = 0 is a small system for Newton's method, which alone may land on a wrong branch. So the
pencil is scaled, the equation is solved for L - i x at x = 3 and x is led towards 0: Euler predictor, Newton
corrector, half-averaged steps Y <- (Y + eta(T))/2 where those fail. On the way x = 0 itself is tried, and
taken only with the certificate of `dyson`. (Theory page, section 9.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from resolvent.equivalents.dyson import (
    CHUNK,
    Array,
    Dyson,
    average,
    certified,
    green_matrices,
    image,
    matrix_of,
    read,
    sandwich,
    solve_rows,
    upper,
)

START = 3.0
"""Where on the imaginary axis the continuation starts, the pencil being scaled to entries of order one."""
PATIENCE = 0.98
"""A point is given up when steps to this fraction of x still fail, or after 60 of them."""
NEAR = 0.5
"""Below it the end point x = 0 is tried."""
TOLERANCE = 1e-11
"""Residual max|F| / max(1, max|Y|), of the scaled system, below which a solution counts."""


@dataclass(frozen=True)
class Fixed:
    """Solutions: T (B, N, N), Y[writes] (B, R); residual, iterations, `converged` (B,)."""

    traces: Array
    unknowns: Array
    residual: Array
    iterations: Array
    converged: Array


# ---------------------------------------------------------------- scaling


def _balance(dyson: Dyson) -> Array:
    """Scales D (B, N) that bring the blocks of D L D near order one: least squares on the logarithms of their
    norms.

    (Curtis and Reid 1972. For ridge gamma it gives gamma^(1/2) against gamma^(-1/2), the scaling of the
    theory page.) Blocks below 1e-20 count as absent, after a first pass that brings huge diagonal blocks to
    one.
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
    for row, col in zip(rows, cols, strict=True):
        moments[:, dyson.writes[0, row], dyson.reads[0, col]] += np.abs(dyson.eta[:, row, col])
    return np.asarray(np.maximum(moments, moments.swapaxes(1, 2)))


def _scaled(dyson: Dyson, scale: Array) -> Dyson:
    (i, j), (a, b) = dyson.writes, dyson.reads
    eta = (scale[:, i] * scale[:, j])[:, :, None] * dyson.eta * (scale[:, a] * scale[:, b])[:, None, :]
    return replace(
        dyson, constant=scale[:, None, :, None] * dyson.constant * scale[:, None, None, :], eta=eta
    )


# ---------------------------------------------------------------- solving


def _size(change: Array, scale: Array) -> Array:
    """max|change| / max(1, max|scale|), infinite where it is not a number."""
    ratio = np.max(np.abs(change), axis=1, initial=0.0) / np.maximum(
        1.0, np.max(np.abs(scale), axis=1, initial=0.0)
    )
    return np.where(np.isnan(ratio), np.inf, ratio)


def _newton(
    dyson: Dyson, unknowns: Array, shift: Array | None, steps: int, goal: float = 1e-13
) -> tuple[Array, Array, Array]:
    """Newton's method until its steps fall below the goal or rounding stops them; returns Y, T_k and the
    residual.

    The size of the steps decides, not the residual: near a singularity a tiny residual may hide a large
    error. A point whose steps are still large after five of them is given up.
    """
    eye = np.eye(unknowns.shape[1])
    unknowns, green = unknowns.copy(), green_matrices(dyson, unknowns, shift)
    residual = before = np.full(len(unknowns), np.inf)
    residual = residual.copy()
    live = np.arange(len(unknowns))
    y, now, target, part = unknowns, green, image(dyson, green), dyson
    for count in range(steps):
        change = solve_rows(eye - sandwich(part, now, now), target - y)
        y = y + change
        now = green_matrices(part, y, None if shift is None else shift[live])
        target = image(part, now)
        step, left = _size(change, y), _size(target - y, y)
        unknowns[live], green[live], residual[live] = y, now, left
        stalled = (step > 0.3 * before) & (step < 1e-3) & (left < TOLERANCE)
        going = ~stalled & (step >= goal) & (step < (1e30 if count < 5 else 0.1))
        before = step
        if not going.all():
            live, y, now, target, before = live[going], y[going], now[going], target[going], before[going]
            if not len(live):
                break
            part = part.take(going)
    return unknowns, green, residual


def _averaged(dyson: Dyson, unknowns: Array, shift: Array, steps: int) -> Array:
    """Half-averaged steps Y <- (Y + eta(T))/2: slow, but they cannot leave Im T > 0."""
    for _ in range(steps):
        unknowns = 0.5 * (unknowns + image(dyson, green_matrices(dyson, unknowns, shift)))
    return unknowns


def _predict(dyson: Dyson, unknowns: Array, shift: Array, target: Array) -> Array:
    """Euler predictor: along dY/dx of the solution at L - i x."""
    green = green_matrices(dyson, unknowns, shift)
    right = 1j * image(dyson, green @ green)
    slope = solve_rows(np.eye(right.shape[1]) - sandwich(dyson, green, green), right)
    return np.asarray(unknowns + (target - shift)[:, None] * np.where(np.isfinite(slope), slope, 0.0))


def _correct(dyson: Dyson, guess: Array, target: Array) -> tuple[Array, Array]:
    """Solution near a guess at L - i target, and whether it is one in Im T > 0."""
    found, green, residual = _newton(dyson, guess, target, 6, goal=1e-5)
    return found, (residual < 1e-8) & upper(dyson, green)


def _advance(dyson: Dyson, unknowns: Array, shift: Array, target: Array) -> tuple[Array, Array]:
    """One step of the continuation; averaged steps from the last solution where prediction fails."""
    found, good = _correct(dyson, _predict(dyson, unknowns, shift, target), target)
    if not good.all():
        part, bad = dyson.take(~good), ~good
        found[bad], good[bad] = _correct(part, _averaged(part, unknowns[bad], target[bad], 40), target[bad])
    return found, good


def _land(dyson: Dyson, unknowns: Array, shift: Array, real: bool) -> tuple[Array, Array, Array]:
    """Try x = 0 from the solution at x; returns Y, the residual, and whether it carries its certificate."""
    guess = _predict(dyson, unknowns, shift, np.zeros(len(shift)))
    found, green, residual = _newton(dyson, guess.real if real else guess, None, 20)
    return found, residual, (residual < TOLERANCE) & certified(dyson, green)


def _continue(dyson: Dyson, real: bool) -> Fixed:
    """Lead every point from x = START to 0, with a step of its own; the traces stay empty."""
    count, width = len(dyson.constant), dyson.writes.shape[1]
    shift, factor = np.full(count, START), np.full(count, 0.3)
    unknowns = _averaged(dyson, np.zeros((count, width), dtype=complex), shift, 5)
    unknowns, _ = _correct(dyson, unknowns, shift)
    result = np.full((count, width), np.nan, dtype=float if real else complex)
    residual, iterations = np.full(count, np.inf), np.zeros(count, dtype=int)
    done, active = np.zeros(count, dtype=bool), np.arange(count)
    while active.size:
        iterations[active] += 1
        near = active[shift[active] < NEAR]
        if near.size:
            found, residual[near], landed = _land(dyson.take(near), unknowns[near], shift[near], real)
            result[near[landed]] = found[landed]
            done[near[landed]] = True
            alive = (shift > 1e-13) & (factor < PATIENCE) & (iterations < 60) & ~done
            active = active[alive[active]]
        target = shift[active] * factor[active]
        found, good = _advance(dyson.take(active), unknowns[active], shift[active], target)
        unknowns[active[good]], shift[active[good]] = found[good], target[good]
        factor[active] = np.where(good, np.maximum(factor[active] ** 1.5, 0.03), np.sqrt(factor[active]))
    return Fixed(np.empty(0), result, residual, iterations, done)


def _solve(dyson: Dyson) -> Fixed:
    real = not np.iscomplexobj(dyson.constant) and not np.iscomplexobj(dyson.eta)
    scale = _balance(dyson)
    scaled = _scaled(dyson, scale)
    fixed = _continue(scaled, real)
    traces = average(scaled, green_matrices(scaled, fixed.unknowns))
    traces = scale[:, :, None] * traces * scale[:, None, :]
    traces[~fixed.converged] = np.nan
    i, j = dyson.writes
    return replace(fixed, traces=traces, unknowns=fixed.unknowns / (scale[:, i] * scale[:, j]))


def solve(dyson: Dyson) -> Fixed:
    """Solve the equation at every point of the batch, on the branch that is the limit of the random pencil.

    Each point converges with the certificate of `dyson`, or has `converged` False and traces NaN.
    """
    count, nodes, size, _ = dyson.constant.shape
    chunk = max(1, CHUNK // (nodes * size**2 + dyson.eta.shape[1] * dyson.eta.shape[2]))
    with np.errstate(all="ignore"):
        parts = [_solve(dyson.take(np.arange(k, min(k + chunk, count)))) for k in range(0, count, chunk)]
    fields = zip(*((p.traces, p.unknowns, p.residual, p.iterations, p.converged) for p in parts), strict=True)
    return Fixed(*(np.concatenate(field) for field in fields))


# ---------------------------------------------------------------- derivatives and two points


def derivative(dyson: Dyson, fixed: Fixed, d_constant: Array, d_eta: Array) -> Array:
    """dT (B, N, N) when A moves by d_constant and eta by d_eta: one linear solve."""
    green = green_matrices(dyson, fixed.unknowns)
    moved = -green @ d_constant @ green
    right = image(dyson, moved) + (d_eta @ read(dyson, green)[..., None])[..., 0]
    change = solve_rows(np.eye(right.shape[1]) - sandwich(dyson, green, green), right)
    return average(dyson, moved + green @ matrix_of(dyson, change)[:, None] @ green)


def two_point(dyson: Dyson, first: Fixed, other: Dyson, second: Fixed, inserted: Array) -> Array:
    """Block traces (B, N, N) of L^-1 (inserted (x) I) L'^-1 for two pencils with the same random part.

    They solve X = sum_k w_k G (inserted + eta(X)) G', G and G' the two Green's matrices.
    """
    left, right = green_matrices(dyson, first.unknowns), green_matrices(other, second.unknowns)
    plain = left @ inserted @ right
    change = solve_rows(np.eye(dyson.writes.shape[1]) - sandwich(dyson, left, right), image(dyson, plain))
    return average(dyson, plain + left @ matrix_of(dyson, change)[:, None] @ right)
