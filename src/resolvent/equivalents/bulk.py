"""The three scalars of the noise-only equivalent: t, u, alpha.

With E over the Marchenko-Pastur law, b(g) = a1 (g - 1) + d - u and Delta(g) = alpha (1 + t c g) + b(g)^2 c g,

    t     = (sigma2/c) E[(1 + t c g)/Delta]
    u     = (sigma2/c) E[b c g/Delta]
    alpha = gamma + (sigma2/c) E[alpha c g/Delta].

The solution with t > 0 and alpha >= gamma is unique, so a converged point in that domain is the answer.
Three bounded unknowns make Newton's method start well for every ridge: with s^2 = sigma2/c and
x = alpha t = s^2 Y,

    Y = E[(alpha + c x g)/Delta] in (0, 1],   V = u/s = s c E[b g/Delta] in (-1, 1),

and rho > 0, minus the real root of Delta, which stands for alpha = c rho (b(-rho)^2 + x) and saves the cubic
(`averages`). Theory page, section 4.

The driver works on many rows at once and drops those that have converged; what happens to a row is written
elementwise in `equations`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.equations import Index, Noise, Parameters, Point, physical
from resolvent.equivalents.stages import DIRECT, Stages

QUADRATIC = 1e-6  # a Newton step from below this residual lands below TOLERANCE
TOLERANCE = 1e-12  # on the residual of the three equations, each relative to its natural scale
ACCEPTED = 1e-9  # where rounding keeps the residual above TOLERANCE it counts as converged below this
MAX_ITERATIONS = 60


class Bulk(NamedTuple):
    """The solution, the residual of the equations there and the Newton steps spent."""

    noise: Noise
    residual: Array
    iterations: NDArray[np.int64]


def solve_bulk(c: Array, gamma: Array, a1: Array, sigma2: Array, d: Array, stages: Stages = DIRECT) -> Bulk:
    """Solve the fixed point for flat arrays of parameters with gamma > 0."""
    pars = Parameters(c, gamma, a1, np.sqrt(sigma2 / c), d)
    # a row that overflows has a NaN residual and is followed from a larger ridge
    with np.errstate(all="ignore"):
        point, iterations = _descend(stages, pars, _start(pars), QUADRATIC)
        noise, residual = _certified(stages, pars, point)
        for retry, enough in ((_polish, TOLERANCE), (_continue, ACCEPTED)):
            rough = np.flatnonzero(~(residual <= enough))
            if rough.size:
                some = pars.at(rough)
                better, count = retry(stages, some, point.at(rough))
                again, residual[rough] = _certified(stages, some, better)
                iterations[rough] += count
                _put(point, rough, better)
                _put(noise, rough, again)
    return Bulk(noise, residual, iterations)


def _put(target: tuple[Array, ...], rows: Index, values: tuple[Array, ...]) -> None:
    """Replace some of the rows."""
    for mine, new in zip(target, values, strict=True):
        mine[rows] = new


def _certified(stages: Stages, pars: Parameters, z: Point) -> tuple[Noise, Array]:
    noise = stages.solution(pars, z)
    return noise, _largest(np.log(noise.share), noise.miss, np.log(noise.excess))


def _largest(first: Array, second: Array, third: Array) -> Array:
    return np.maximum(np.maximum(np.abs(first), np.abs(second)), np.abs(third))


def _start(pars: Parameters) -> Point:
    """V = 0 and Y = 1, their limits at large ridge, and the rho of an alpha just above its own."""
    c, gamma, a1, s, d = pars
    alpha = gamma + s * s * c * np.minimum(c, 1.0)
    rho = alpha / (c * ((d - a1) ** 2 + s * s) + np.cbrt(c * (a1 * alpha) ** 2))
    return Point(rho, np.zeros_like(c), np.ones_like(c))


def _descend(stages: Stages, pars: Parameters, start: Point, stop: float) -> tuple[Point, NDArray[np.int64]]:
    """Newton steps on every row, the last from a residual below stop or where rounding ends the descent."""
    point, count = Point(*(np.empty_like(v) for v in start)), np.empty(start.V.shape, dtype=np.int64)
    active, z, last = np.arange(start.V.size), start, np.full(start.V.shape, np.inf)
    for step in range(1, MAX_ITERATIONS + 1):
        z, error = _step(stages, pars, _isolated(pars, z))
        going = (error > stop) & ((error < last) | (error > ACCEPTED)) & (step < MAX_ITERATIONS)
        if not going.all():
            done, rows = np.flatnonzero(~going), np.flatnonzero(going)
            _put(point, active[done], z.at(done))
            count[active[done]] = step
            active, pars, z, error = active[rows], pars.at(rows), z.at(rows), error[rows]
        if not active.size:
            break
        last = error
    return point, count


def _step(stages: Stages, pars: Parameters, z: Point) -> tuple[Point, Array]:
    """The next point and the residual at z."""
    at = stages.linearised(pars, z)
    log_share, log_excess = np.log(at.share), np.log(at.excess)
    rho, V, Y = stages.newton(at, log_share, log_excess)
    new = Point(z.rho * np.exp(rho), np.clip(z.V + V, -1.0, 1.0), z.Y * np.exp(Y))
    return new, _largest(log_share, at.miss, log_excess)


def _isolated(pars: Parameters, z: Point) -> Point:
    """Where Delta has three real roots, let rho stand for the one farthest from its neighbours.

    All three describe the same alpha, but d alpha/d rho vanishes where the chosen one meets another: at the
    crest of alpha(rho) and in the dip behind it. Where even the crest is below the ridge, alpha has to rise
    beyond the dip: start where it is as high as at the crest again.
    """
    b0, x = physical(pars, z)
    y1 = -pars.a1 * z.rho
    spread2 = -(x + b0 * y1 + 0.75 * y1 * y1)
    three = np.flatnonzero(spread2 > 0.0)
    if not three.size:
        return z
    y1, b0, x, spread = y1[three], b0[three], x[three], np.sqrt(spread2[three])
    c, gamma, a1 = pars.c[three], pars.gamma[three], pars.a1[three]
    middle = -b0 - 0.5 * y1
    roots = np.sort(np.stack([y1, middle - spread, middle + spread]), axis=0)
    alone = np.where(roots[2] - roots[1] > roots[1] - roots[0], roots[2], roots[0])

    # alpha/c = rho ((b0 - a1 rho)^2 + x), where a1 and b0 have one sign
    size, b0 = np.abs(a1), np.abs(b0)
    crest = (b0 * b0 + x) / (size * (2.0 * b0 + np.sqrt(b0 * b0 - 3.0 * x)))
    low = c * crest * ((b0 - size * crest) ** 2 + x) < gamma
    rho = z.rho.copy()
    rho[three] = np.where(low, 2.0 * (b0 / size - crest), np.where(alone / a1 < 0.0, -alone / a1, rho[three]))
    return z._replace(rho=rho)


def _polish(stages: Stages, pars: Parameters, point: Point) -> tuple[Point, NDArray[np.int64]]:
    """Newton steps down to TOLERANCE from where the first pass ended."""
    return _descend(stages, pars, point, TOLERANCE)


def _continue(stages: Stages, pars: Parameters, _: Point) -> tuple[Point, NDArray[np.int64]]:
    """Follow the solution down from a large ridge, where the start is nearly exact."""
    scale = pars.s**2 * pars.c + (np.abs(pars.a1) + np.abs(pars.d)) ** 2 * np.maximum(pars.c, 1.0)
    ridge = np.maximum(pars.gamma, 10.0 * scale * (1.0 + 1.0 / pars.c))
    larger = pars._replace(gamma=ridge)
    point, spent = _descend(stages, larger, _start(larger), TOLERANCE)
    while (above := np.flatnonzero(ridge > pars.gamma)).size:
        ridge[above] = np.maximum(pars.gamma, ridge / 3.0)[above]
        lower, count = _descend(stages, pars._replace(gamma=ridge).at(above), point.at(above), TOLERANCE)
        _put(point, above, lower)
        spent[above] += count
    return point, spent
