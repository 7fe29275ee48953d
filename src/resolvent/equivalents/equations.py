"""The three equations of the noise-only equivalent at one point, their derivatives and the Newton step.

With s^2 = sigma2/c the unknowns are rho, V = u/s and Y = alpha t/s^2 (see `bulk`), and

    share   gamma/alpha + s^2 c E[g/Delta]               = 1       (alpha's own equation over alpha)
    miss    V - s c E[b g/Delta]                         = 0
    excess  Y/E[(alpha + c x g)/Delta],   x = s^2 Y      = 1.

Everything here is elementwise. Theory page, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array, Averages, Slopes, averages, slopes
from resolvent.equivalents.matrices import Vector, solve

Index = NDArray[np.intp]

LONGEST_STEP = 4.0  # of log rho and log Y


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


def linearised(pars: Parameters, z: Point) -> Linearised:
    """The equations and their derivatives at z (elementwise)."""
    c, gamma, a1, s, _ = pars
    b0, x = physical(pars, z)
    av = averages(c, a1, z.rho, b0, x)
    share, miss, mass = _equations(pars, z, x, av)
    in_rho, in_b0, in_x = slopes(av, c, a1, z.rho)
    noise, ridge, sc, per_mass = s * s * c / share, gamma / (av.alpha * share), s * c, 1.0 / mass
    share_rho, miss_rho, excess_rho = _column(in_rho, noise, ridge, sc, c * per_mass)
    share_b0, miss_b0, excess_b0 = _column(in_b0, noise, ridge, sc, c * per_mass)
    share_x, miss_x, excess_x = _column(in_x, noise, ridge, sc, c * per_mass)
    return Linearised(
        share, miss, z.Y * per_mass,
        share_rho, miss_rho, excess_rho,
        -s * share_b0, 1.0 - s * miss_b0, -s * excess_b0,
        x * share_x, x * miss_x, 1.0 + x * excess_x,
    )  # fmt: skip


def physical(pars: Parameters, z: Point) -> tuple[Array, Array]:
    """b0 = b(0) and x = alpha t."""
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
    b0, x = physical(pars, z)
    av = averages(pars.c, pars.a1, z.rho, b0, x)
    share, miss, mass = _equations(pars, z, x, av)
    return Noise(z.V, b0, x, av.alpha, av.j0, av.j1, av.i0, share, miss, z.Y / mass)
