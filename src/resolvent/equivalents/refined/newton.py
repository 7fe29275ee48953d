"""Newton's method and continuation for the class-wise fixed point.

The equation T = R(T)^-1 (`equation`) has the Newton step

    H - T coupling(H) T = T - T R T,

solved by GMRES (`krylov`). The half-damped iteration (T + R^-1)/2 keeps to the domain in which the solution
is unique and is quick far from it, slow near it; Newton's method is the reverse, so one follows the other.
The start is the solution for a single class, which the scalars of the limit give in closed form (`bulk`,
`blocks`). Where it is too far at a small ridge, the solution is followed down from a larger one: in balanced
scaling it hardly depends on the ridge. Theory page, sections 9 and 12.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import blocks
from resolvent.equivalents.bulk import solve_bulk
from resolvent.equivalents.refined.equation import Couplings, Equation
from resolvent.equivalents.refined.krylov import gmres
from resolvent.equivalents.refined.stacks import inverse, symmetrised

TOLERANCE = 1e-11  # on |T - T R T|/|T|, the largest entries of a row
ACCEPTED = 1e-8  # a residual that rounding keeps above TOLERANCE still counts as converged below this
HALF_STEPS = 10
MAX_STEPS = 12  # of Newton's method
STEP_ACCURACY = 1e-4  # of the linear solve behind a Newton step
FIRST_DESCENT = 4.0  # factor by which continuation lowers the ridge
LEAST_DESCENT = 1.02
MOST_CLIMBS = 24  # times that continuation looks at a ridge ten times larger for a place to start


class Solution(NamedTuple):
    """T (B, A, 3, 3), the residual |T - T R T|/|T| and the evaluations of R spent."""

    T: Array
    residual: Array
    iterations: NDArray[np.int64]


def start(couplings: Couplings, ridge: Array) -> tuple[Equation, Array]:
    """The equation, balanced, and the scaled T of one class with the mean coupling, noise and diagonal."""
    classes, tables = couplings.classes, couplings.tables
    weight, one = classes.weight, np.ones_like(ridge)
    mixed = weight * classes.norm
    a1 = mixed @ tables.m1 @ mixed / classes.share_outside * one
    shift = weight @ tables.diagonal + a1
    ratio = classes.ratio * one
    noise = solve_bulk(ratio, ridge, a1, weight @ tables.v @ weight * one, shift).noise
    alpha, N = noise.alpha, blocks(ratio, a1, noise).N
    d1 = (N.m00 / np.abs(N.m11)) ** 0.25 / np.sqrt(alpha)
    d3 = np.sqrt(N.m22 / alpha)
    full = np.stack([N.m00, N.m01, N.m02, N.m01, N.m11, N.m12, N.m02, N.m12, N.m22], axis=-1)
    rescale = np.stack([alpha**-0.5 / d1, alpha**0.5 * d1, alpha**-0.5 / d3], axis=-1)
    T = symmetrised(full.reshape(-1, 3, 3) * rescale[:, :, None] * rescale[:, None, :])
    equation = Equation(couplings, ridge, np.stack([d1, d3], axis=-1))
    return equation, np.repeat(T[:, None], weight.size, axis=1)


def solve(couplings: Couplings, ridge: Array) -> tuple[Equation, Solution]:
    """The solution for every ridge (B,)."""
    equation, T = start(couplings, ridge)
    solution = _newton(equation, _half_steps(equation, T))
    order = np.argsort(-ridge)
    for row in order[~(solution.residual[order] <= ACCEPTED)]:
        known = np.flatnonzero((solution.residual <= ACCEPTED) & (ridge > ridge[row]))
        above = known[np.argmin(ridge[known])] if known.size else None
        begin = None if above is None else (float(ridge[above]), solution.T[above : above + 1])
        found = _continued(couplings, float(ridge[row]), begin)
        solution.iterations[row] += found.iterations[0]
        if found.residual[0] < solution.residual[row]:
            solution.T[row], solution.residual[row] = found.T[0], found.residual[0]
    return equation, solution


def _half_steps(equation: Equation, T: Array) -> Array:
    for _ in range(HALF_STEPS):
        T = 0.5 * (T + symmetrised(inverse(equation.inverses(T, equation.resolvents(T)))))
    return T


def _newton(equation: Equation, T: Array) -> Solution:
    """Newton steps on every row until its residual is below TOLERANCE or stalls, or T turns unphysical."""
    best, residual = T.copy(), np.full(T.shape[0], np.inf)
    iterations = np.full(T.shape[0], HALF_STEPS, dtype=np.int64)
    active = np.arange(T.shape[0])
    for _ in range(MAX_STEPS):
        mine = equation.at(active)
        omega = mine.resolvents(T)
        defect = T - symmetrised(T @ mine.inverses(T, omega) @ T)
        error = np.abs(defect).max(axis=(1, 2, 3)) / np.abs(T).max(axis=(1, 2, 3))
        error = np.where(mine.physical(T), error, np.inf)
        better = error < residual[active]
        going = (error > TOLERANCE) & np.isfinite(error) & (better | (residual[active] > ACCEPTED))
        best[active[better]], residual[active[better]] = T[better], error[better]
        active, T, omega, defect = active[going], T[going], omega[going], defect[going]
        if not active.size:
            break
        iterations[active] += 1
        T = symmetrised(T + newton_solve(equation.at(active), T, omega, defect, STEP_ACCURACY))
    return Solution(best, residual, iterations)


def newton_solve(equation: Equation, T: Array, omega: Array, right: Array, accuracy: float) -> Array:
    """H with H - T coupling(H) T = right."""
    return gmres(lambda H: H - T @ equation.coupling(omega, H) @ T, right, equation.classes.weight, accuracy)


def _continued(couplings: Couplings, target: float, begin: tuple[float, Array] | None) -> Solution:
    """Follow the solution from `begin`, a larger ridge and its T, or from the first ridge large enough."""
    spent = np.zeros(1, dtype=np.int64)
    ridge, factor = target, FIRST_DESCENT
    for _ in range(MOST_CLIMBS):
        if begin is not None:
            break
        ridge *= 10.0
        equation, T = start(couplings, np.array([ridge]))
        found = _newton(equation, _half_steps(equation, T))
        spent += found.iterations
        begin = (ridge, found.T) if found.residual[0] <= ACCEPTED else None
    failed = Solution(np.full((1, couplings.classes.weight.size, 3, 3), np.nan), np.full(1, np.inf), spent)
    if begin is None:
        return failed
    ridge, T = begin
    while factor > LEAST_DESCENT:
        trial = max(target, ridge / factor)
        found = _newton(start(couplings, np.array([trial]))[0], T)
        spent += found.iterations
        if found.residual[0] > ACCEPTED:
            factor = factor**0.5
            continue
        ridge, T = trial, found.T
        if trial == target:
            return found._replace(iterations=spent)
    return failed
