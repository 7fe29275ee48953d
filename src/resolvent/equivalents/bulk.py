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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array, Averages, Slopes, averages, slopes

Index = NDArray[np.intp]
Triple = tuple[Array, Array, Array]

QUADRATIC = 1e-6  # a Newton step from below this residual lands below TOLERANCE
TOLERANCE = 1e-12  # on the residual of the three equations, each relative to its natural scale
ACCEPTED = 1e-9  # where rounding keeps the residual above TOLERANCE it counts as converged below this
LONGEST_STEP = 4.0  # of log rho and log Y
MAX_ITERATIONS = 60


class Parameters(NamedTuple):
    """Flat arrays: ratio c, ridge gamma, linear coefficient a1, s = sqrt(sigma2/c) and diagonal shift d."""

    c: Array
    gamma: Array
    a1: Array
    s: Array
    d: Array

    def at(self, rows: Index) -> Parameters:
        """Some of the rows."""
        return Parameters(*(v[rows] for v in self))


class Point(NamedTuple):
    """The unknowns log rho, V and log Y (flat arrays)."""

    log_rho: Array
    V: Array
    log_Y: Array

    def at(self, rows: Index) -> Point:
        """Some of the rows."""
        return Point(*(v[rows] for v in self))

    def put(self, rows: Index, values: Point) -> None:
        """Replace some of the rows."""
        for mine, new in zip(self, values, strict=True):
            mine[rows] = new


class Bulk(NamedTuple):
    """The solution: unknowns, averages there, residual of the equations and Newton steps spent."""

    V: Array
    b0: Array
    x: Array
    averages: Averages
    residual: Array
    iterations: NDArray[np.int64]


def solve_bulk(c: Array, gamma: Array, a1: Array, sigma2: Array, d: Array) -> Bulk:
    """Solve the fixed point for flat arrays of parameters with gamma > 0."""
    pars = Parameters(c, gamma, a1, np.sqrt(sigma2 / c), d)
    with np.errstate(
        all="ignore"
    ):  # a row that overflows has a NaN residual and is followed from a larger ridge
        point, iterations = _newton(pars, _start(pars), QUADRATIC)
        solution = _solution(pars, point, iterations)
        for retry, enough in ((_polish, TOLERANCE), (_continuation, ACCEPTED)):
            rough = np.flatnonzero(~(solution.residual <= enough))
            if rough.size:
                again, more = retry(pars.at(rough), point.at(rough))
                point.put(rough, again)
                iterations[rough] += more
                solution = _solution(pars, point, iterations)
        return solution


def _solution(pars: Parameters, z: Point, iterations: NDArray[np.int64]) -> Bulk:
    rho, b0, x = _physical(pars, z)
    av = averages(pars.c, pars.a1, rho, b0, x)
    equation, _, _ = _equation(pars, z, x, av)
    return Bulk(z.V, b0, x, av, _largest(equation), iterations)


def _physical(pars: Parameters, z: Point) -> Triple:
    """rho, b0 and x."""
    return np.exp(z.log_rho), pars.d - pars.a1 - pars.s * z.V, pars.s * pars.s * np.exp(z.log_Y)


def _start(pars: Parameters) -> Point:
    """V = 0 and Y = 1, their limits at large ridge, and the rho of an alpha just above its own."""
    c, gamma, a1, s, d = pars
    alpha = gamma + s * s * c * np.minimum(c, 1.0)
    rho = alpha / (c * ((d - a1) ** 2 + s * s) + np.cbrt(c * (a1 * alpha) ** 2))
    return Point(np.log(rho), np.zeros_like(c), np.zeros_like(c))


def _newton(pars: Parameters, start: Point, stop: float) -> tuple[Point, NDArray[np.int64]]:
    """Newton steps on every row, the last from a residual below stop or where rounding ends the descent."""
    point = Point(*(v.copy() for v in start))
    count = np.zeros(start.V.shape, dtype=np.int64)
    active = np.arange(start.V.size)
    p, z, last = pars, point, np.full(start.V.shape, np.inf)
    for _ in range(MAX_ITERATIONS):
        z, error = _step(p, _isolated(p, z))
        point.put(active, z)
        count[active] += 1
        going = (error > stop) & ~((error >= last) & (error <= ACCEPTED))
        if not going.any():
            break
        if not going.all():
            rows = np.flatnonzero(going)
            active, p, z, error = active[rows], p.at(rows), z.at(rows), error[rows]
        last = error
    return point, count


def _isolated(pars: Parameters, z: Point) -> Point:
    """Where Delta has three real roots, let rho stand for the one farthest from its neighbours.

    All three describe the same alpha, but d alpha/d rho vanishes where the chosen one meets another.
    """
    rho, b0, x = _physical(pars, z)
    y1 = -pars.a1 * rho
    spread2 = -(x + b0 * y1 + 0.75 * y1 * y1)
    three = np.flatnonzero(spread2 > 0.0)
    if not three.size:
        return z
    y1, b0, spread, a1 = y1[three], b0[three], np.sqrt(spread2[three]), pars.a1[three]
    middle = -b0 - 0.5 * y1
    roots = np.sort(np.stack([y1, middle - spread, middle + spread]), axis=0)
    alone = np.where(roots[2] - roots[1] > roots[1] - roots[0], roots[2], roots[0])
    moved = (alone != y1) & (alone / a1 < 0.0)
    log_rho = z.log_rho.copy()
    log_rho[three[moved]] = np.log(-alone[moved] / a1[moved])
    return z._replace(log_rho=log_rho)


def _equation(pars: Parameters, z: Point, x: Array, av: Averages) -> tuple[Triple, Array, Array]:
    """The three equations (zero at the solution), alpha's share and Y's mass (one and c Y there)."""
    share = pars.gamma / av.alpha + pars.s * pars.s * pars.c * av.j0
    mass = av.i0 + pars.c * x * av.j0
    return (np.log(share), z.V - pars.s * pars.c * av.j1, z.log_Y - np.log(mass)), share, mass


def _largest(triple: Triple) -> Array:
    return np.maximum(np.maximum(np.abs(triple[0]), np.abs(triple[1])), np.abs(triple[2]))


def _step(pars: Parameters, z: Point) -> tuple[Point, Array]:
    """The next point, at most LONGEST_STEP away, and the residual at z."""
    c, gamma, a1, s, _ = pars
    rho, b0, x = _physical(pars, z)
    av = averages(c, a1, rho, b0, x)
    equation, share, mass = _equation(pars, z, x, av)
    ridge, noise, sc = gamma / av.alpha, s * s * c, s * c

    def column(d: Slopes) -> Triple:
        return (noise * d.j0 - ridge * d.log_alpha) / share, -sc * d.j1, c * d.j2 / mass

    in_rho, in_b0, in_x = (column(d) for d in slopes(av, c, a1, rho))
    in_V = (-s * in_b0[0], 1.0 - s * in_b0[1], -s * in_b0[2])
    in_Y = (x * in_x[0], x * in_x[1], 1.0 + x * in_x[2])
    delta = _solve3((in_rho, in_V, in_Y), equation)
    scale = -np.minimum(1.0, LONGEST_STEP / np.maximum(np.abs(delta[0]), np.abs(delta[2])))
    V = np.clip(z.V + scale * delta[1], -1.0, 1.0)
    return Point(z.log_rho + scale * delta[0], V, z.log_Y + scale * delta[2]), _largest(equation)


def _solve3(columns: tuple[Triple, Triple, Triple], right: Triple) -> Triple:
    """Cramer's rule for 3x3 systems given by columns."""
    a, b, c = columns
    bc, ra = _cross(b, c), _cross(right, a)
    determinant = _dot(a, bc)
    return _dot(right, bc) / determinant, -_dot(ra, c) / determinant, _dot(ra, b) / determinant


def _cross(u: Triple, v: Triple) -> Triple:
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def _dot(u: Triple, v: Triple) -> Array:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def _polish(pars: Parameters, point: Point) -> tuple[Point, NDArray[np.int64]]:
    """Newton steps down to TOLERANCE from where the first pass ended."""
    return _newton(pars, point, TOLERANCE)


def _continuation(pars: Parameters, _: Point) -> tuple[Point, NDArray[np.int64]]:
    """Follow the solution down from a large ridge, where the start is nearly exact."""
    scale = pars.s**2 * pars.c + (np.abs(pars.a1) + np.abs(pars.d)) ** 2 * np.maximum(pars.c, 1.0)
    ridge = np.maximum(pars.gamma, 10.0 * scale * (1.0 + 1.0 / pars.c))
    point, spent = _newton(pars._replace(gamma=ridge), _start(pars._replace(gamma=ridge)), TOLERANCE)
    while np.any(ridge > pars.gamma):
        ridge = np.maximum(pars.gamma, ridge / 3.0)
        point, count = _newton(pars._replace(gamma=ridge), point, TOLERANCE)
        spent += count
    return point, spent
