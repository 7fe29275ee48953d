"""The three scalars of the noise-only equivalent: t, u, alpha.

With E over the Marchenko-Pastur law, b(g) = a1 (g - 1) + d - u and Delta(g) = alpha (1 + t c g) + b(g)^2 c g,

    t = (sigma2/c) E[(1 + t c g)/Delta],   u = (sigma2/c) E[b c g/Delta],   alpha = gamma + (sigma2/c) E[alpha c g/Delta].

The solution with t > 0 and alpha >= gamma is unique, so a converged point in that domain is the answer. Three
bounded unknowns make Newton's method start well for every ridge: with s^2 = sigma2/c and x = alpha t = s^2 Y,

    Y = E[(alpha + c x g)/Delta] in (0, 1],   V = u/s = s c E[b g/Delta] in (-1, 1),   rho = -(real root of Delta) > 0,

and rho stands for alpha = c rho (b(-rho)^2 + x), which saves the cubic (`averages`). Theory page, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array, Averages, averages, slopes

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

TOLERANCE = 1e-12  # on the residual of the three equations, each relative to its natural scale
ACCEPTED = 1e-9  # a residual that rounding keeps above TOLERANCE still counts as converged below this
LONGEST_STEP = 4.0  # of log rho and log Y
MAX_ITERATIONS = 60


class Parameters(NamedTuple):
    """Flat arrays: ratio c, ridge gamma, linear coefficient a1, s = sqrt(sigma2/c) and diagonal shift d."""

    c: Array
    gamma: Array
    a1: Array
    s: Array
    d: Array

    def at(self, index: Index) -> Parameters:
        """The rows `index`."""
        return Parameters(*(v[index] for v in self))


class Point(NamedTuple):
    """The unknowns log rho, V and log Y (flat arrays)."""

    log_rho: Array
    V: Array
    log_Y: Array


class Bulk(NamedTuple):
    """The solution: scaled unknowns, the averages there, the residual and the iterations spent."""

    rho: Array
    V: Array
    Y: Array
    b0: Array
    x: Array
    averages: Averages
    residual: Array
    iterations: NDArray[np.int64]


def solve_bulk(c: Array, gamma: Array, a1: Array, sigma2: Array, d: Array) -> Bulk:
    """Solve the fixed point for flat arrays of parameters; gamma = 0 (with c < 1) is the ridgeless limit."""
    pars = Parameters(c, gamma, a1, np.sqrt(sigma2 / c), d)
    point, residual, iterations = _newton(pars, _start(pars))
    stuck = np.flatnonzero(~(residual <= ACCEPTED))
    if stuck.size:
        easier, rest, more = _continuation(pars.at(stuck))
        for mine, new in zip(point, easier, strict=True):
            mine[stuck] = new
        residual[stuck] = rest
        iterations[stuck] += more
    rho, b0, x = _physical(pars, point)
    return Bulk(rho, point.V, np.exp(point.log_Y), b0, x, averages(c, a1, rho, b0, x), residual, iterations)


def _physical(pars: Parameters, z: Point) -> tuple[Array, Array, Array]:
    """(rho, b0, x); rho = 0 where the ridge is."""
    rho = np.where(pars.gamma > 0.0, np.exp(z.log_rho), 0.0)
    return rho, pars.d - pars.a1 - pars.s * z.V, pars.s * pars.s * np.exp(z.log_Y)


def _start(pars: Parameters) -> Point:
    """V = 0, Y = 1 (their limits at large ridge) and the rho of an alpha just above them."""
    c, gamma, a1, s, d = pars
    alpha = gamma + s * s * c * np.minimum(c, 1.0)
    linear = c * ((d - a1) ** 2 + s * s)
    rho = alpha / np.maximum(linear + np.cbrt(c * (a1 * alpha) ** 2), np.finfo(float).tiny)
    return Point(np.log(np.maximum(rho, np.finfo(float).tiny)), np.zeros_like(c), np.zeros_like(c))


def _newton(pars: Parameters, start: Point) -> tuple[Point, Array, NDArray[np.int64]]:
    """Newton's method on every row until its residual is below TOLERANCE or stops falling below ACCEPTED."""
    best = Point(*(v.copy() for v in start))
    residual = np.full(start.V.shape, np.inf)
    iterations = np.zeros(start.V.shape, dtype=np.int64)
    active = np.arange(start.V.size)
    z, p = start, pars
    for _ in range(MAX_ITERATIONS):
        z = _isolated(p, z)
        step, error = _step(p, z)
        better = error < residual[active]
        settled = (error <= TOLERANCE) | (~better & (residual[active] <= ACCEPTED))
        won = active[better]
        for mine, new in zip(best, z, strict=True):
            mine[won] = new[better]
        residual[won] = error[better]
        going = ~settled & np.isfinite(error)
        active = active[going]
        if not active.size:
            break
        iterations[active] += 1
        p = p.at(np.flatnonzero(going))
        z = Point(*(v[going] + dv[going] for v, dv in zip(z, step, strict=True)))
    return best, residual, iterations


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


def _step(pars: Parameters, z: Point) -> tuple[Point, Array]:
    """The Newton step from z, shortened to LONGEST_STEP, and the residual at z."""
    c, gamma, a1, s, _ = pars
    rho, b0, x = _physical(pars, z)
    with np.errstate(
        all="ignore"
    ):  # a row that overflows yields a NaN residual and is taken up by continuation
        av = averages(c, a1, rho, b0, x)
        noise = s * s * c
        share = gamma / av.alpha + noise * av.j0  # = 1 at the solution
        mass = av.i0 + c * x * av.j0
        equation = (np.log(share), z.V - s * c * av.j1, z.log_Y - np.log(mass))
        columns = []
        for direction in ((1.0, 0.0, 0.0), (0.0, -s, 0.0), (0.0, 0.0, x)):
            d = slopes(av, c, a1, rho, *direction)
            columns.append(
                ((noise * d.j0 - d.log_alpha * gamma / av.alpha) / share, -s * c * d.j1, c * d.j2 / mass)
            )
        columns[1] = (columns[1][0], columns[1][1] + 1.0, columns[1][2])
        columns[2] = (columns[2][0], columns[2][1], columns[2][2] + 1.0)
        ridgeless = gamma == 0.0
        if ridgeless.any():  # rho = 0 is known: its equation is replaced by "no step"
            equation = (np.where(ridgeless, 0.0, equation[0]), *equation[1:])
            columns = [
                (
                    np.where(ridgeless, float(k == 0), col[0]),
                    *(np.where(ridgeless & (k == 0), 0.0, v) for v in col[1:]),
                )
                for k, col in enumerate(columns)
            ]
        delta = _solve3(columns, equation)
        longest = np.maximum(np.abs(delta[0]), np.abs(delta[2]))
        shorten = -np.minimum(1.0, LONGEST_STEP / longest)
        error = np.maximum(np.maximum(np.abs(equation[0]), np.abs(equation[1])), np.abs(equation[2]))
        V = np.clip(z.V + shorten * delta[1], -1.0, 1.0) - z.V
    return Point(shorten * delta[0], V, shorten * delta[2]), error


def _solve3(columns: list[tuple[Array, ...]], right: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """Cramer's rule for 3x3 systems given by columns."""
    a, b, c = columns
    bc = _cross(b, c)
    determinant = _dot(a, bc)
    ra = _cross(right, a)
    return _dot(right, bc) / determinant, _dot(ra, c) / -determinant, _dot(ra, b) / determinant


def _cross(u: tuple[Array, ...], v: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def _dot(u: tuple[Array, ...], v: tuple[Array, ...]) -> Array:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def _continuation(pars: Parameters) -> tuple[Point, Array, NDArray[np.int64]]:
    """Follow the solution down from a large ridge, where the start is nearly exact, to the ridge asked for."""
    scale = pars.s**2 * pars.c + (np.abs(pars.a1) + np.abs(pars.d)) ** 2 * np.maximum(pars.c, 1.0)
    lowest = np.maximum(pars.gamma, 1e-13 * scale)
    ridge = np.maximum(pars.gamma, 10.0 * scale * (1.0 + 1.0 / pars.c))
    z = _start(pars._replace(gamma=ridge))
    spent = np.zeros(ridge.shape, dtype=np.int64)
    while True:
        z, residual, count = _newton(pars._replace(gamma=ridge), z)
        spent += count
        if np.all(ridge <= lowest):
            break
        ridge = np.maximum(lowest, ridge / 3.0)
    if np.any(ridge > pars.gamma):
        z, residual, count = _newton(pars, z)
        spent += count
    return z, residual, spent
