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

The driver works on many rows at once and drops those that have converged. What it does to a row is written in
the elementwise functions `linearised`, `newton` and `solution`; `Stages` says how they are run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array, Averages, Slopes, averages, slopes
from resolvent.equivalents.matrices import Vector, solve

Index = NDArray[np.intp]

QUADRATIC = 1e-6  # a Newton step from below this residual lands below TOLERANCE
TOLERANCE = 1e-12  # on the residual of the three equations, each relative to its natural scale
ACCEPTED = 1e-9  # where rounding keeps the residual above TOLERANCE it counts as converged below this
LONGEST_STEP = 4.0  # of log rho and log Y
MAX_ITERATIONS = 60


class Parameters(NamedTuple):
    """Ratio c, ridge gamma, linear coefficient a1, s = sqrt(sigma2/c) and diagonal shift d."""

    c: Array
    gamma: Array
    a1: Array
    s: Array
    d: Array

    def at(self, rows: Index) -> Parameters:
        """Some of the rows."""
        return Parameters(*(v[rows] for v in self))


class Point(NamedTuple):
    """The unknowns."""

    rho: Array
    V: Array
    Y: Array

    def at(self, rows: Index) -> Point:
        """Some of the rows."""
        return Point(*(v[rows] for v in self))


class Linearised(NamedTuple):
    """The three equations at a point and their derivatives in (log rho, V, log Y).

    The equations are log share = 0, miss = 0 and log excess = 0.
    """

    share: Array
    miss: Array
    excess: Array
    share_rho: Array
    miss_rho: Array
    excess_rho: Array
    share_V: Array
    miss_V: Array
    excess_V: Array
    share_Y: Array
    miss_Y: Array
    excess_Y: Array


class Noise(NamedTuple):
    """The noise-only equivalent at a solution: V = u/s, b(0), x = alpha t, alpha and its averages."""

    V: Array
    b0: Array
    x: Array
    alpha: Array
    j0: Array
    j1: Array
    i0: Array
    share: Array
    miss: Array
    excess: Array


class Bulk(NamedTuple):
    """The solution, the residual of the equations there and the Newton steps spent."""

    noise: Noise
    residual: Array
    iterations: NDArray[np.int64]


def linearised(pars: Parameters, z: Point) -> Linearised:
    """The equations and their derivatives at z (elementwise)."""
    c, gamma, a1, s, _ = pars
    b0, x = _physical(pars, z)
    av = averages(c, a1, z.rho, b0, x)
    share, miss, mass = _equations(pars, z, x, av)
    in_rho, in_b0, in_x = slopes(av, c, a1, z.rho)
    noise, ridge = s * s * c / share, gamma / (av.alpha * share)
    share_rho, miss_rho, excess_rho = _column(in_rho, noise, ridge, s * c, c / mass)
    share_b0, miss_b0, excess_b0 = _column(in_b0, noise, ridge, s * c, c / mass)
    share_x, miss_x, excess_x = _column(in_x, noise, ridge, s * c, c / mass)
    return Linearised(
        share, miss, z.Y / mass,
        share_rho, miss_rho, excess_rho,
        -s * share_b0, 1.0 - s * miss_b0, -s * excess_b0,
        x * share_x, x * miss_x, 1.0 + x * excess_x,
    )  # fmt: skip


def _physical(pars: Parameters, z: Point) -> tuple[Array, Array]:
    """b0 and x."""
    return pars.d - pars.a1 - pars.s * z.V, pars.s * pars.s * z.Y


def _equations(pars: Parameters, z: Point, x: Array, av: Averages) -> Vector:
    """Alpha's share and V's miss, one and zero at the solution, and the mass, Y there."""
    share = pars.gamma / av.alpha + pars.s * pars.s * pars.c * av.j0
    return share, z.V - pars.s * pars.c * av.j1, av.i0 + pars.c * x * av.j0


def _column(d: Slopes, noise: Array, ridge: Array, sc: Array, mass: Array) -> Vector:
    """Derivatives of log share, miss and log excess along one direction, as the mass is 1 - c j2."""
    return noise * d.j0 - ridge * d.log_alpha, -sc * d.j1, mass * d.j2


def newton(at: Linearised, log_share: Array, log_excess: Array) -> Vector:
    """The Newton step of log rho, V and log Y, shortened to LONGEST_STEP (elementwise)."""
    columns = (
        (at.share_rho, at.miss_rho, at.excess_rho),
        (at.share_V, at.miss_V, at.excess_V),
        (at.share_Y, at.miss_Y, at.excess_Y),
    )
    step = solve(columns, (log_share, at.miss, log_excess))
    scale = -LONGEST_STEP / np.maximum(LONGEST_STEP, np.maximum(np.abs(step[0]), np.abs(step[2])))
    return scale * step[0], scale * step[1], scale * step[2]


def solution(pars: Parameters, z: Point) -> Noise:
    """The noise-only equivalent at z (elementwise)."""
    b0, x = _physical(pars, z)
    av = averages(pars.c, pars.a1, z.rho, b0, x)
    share, miss, mass = _equations(pars, z, x, av)
    return Noise(z.V, b0, x, av.alpha, av.j0, av.j1, av.i0, share, miss, z.Y / mass)


class Stages(NamedTuple):
    """How the elementwise functions are run over rows: directly, or through their compiled loops."""

    linearised: Callable[[Parameters, Point], Linearised] = linearised
    newton: Callable[[Linearised, Array, Array], Vector] = newton
    solution: Callable[[Parameters, Point], Noise] = solution


DIRECT = Stages()

def solve_bulk(
    c: Array, gamma: Array, a1: Array, sigma2: Array, d: Array, stages: Stages = DIRECT
) -> Bulk:
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


def _descend(
    stages: Stages, pars: Parameters, start: Point, stop: float
) -> tuple[Point, NDArray[np.int64]]:
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

    All three describe the same alpha, but d alpha/d rho vanishes where the chosen one meets another.
    """
    b0, x = _physical(pars, z)
    y1 = -pars.a1 * z.rho
    spread2 = -(x + b0 * y1 + 0.75 * y1 * y1)
    three = np.flatnonzero(spread2 > 0.0)
    if not three.size:
        return z
    y1, b0, spread, a1 = y1[three], b0[three], np.sqrt(spread2[three]), pars.a1[three]
    middle = -b0 - 0.5 * y1
    roots = np.sort(np.stack([y1, middle - spread, middle + spread]), axis=0)
    alone = np.where(roots[2] - roots[1] > roots[1] - roots[0], roots[2], roots[0])
    moved = (alone != y1) & (alone / a1 < 0.0)
    rho = z.rho.copy()
    rho[three[moved]] = -alone[moved] / a1[moved]
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
    while np.any(ridge > pars.gamma):
        ridge = np.maximum(pars.gamma, ridge / 3.0)
        point, count = _descend(stages, pars._replace(gamma=ridge), point, TOLERANCE)
        spent += count
    return point, spent
