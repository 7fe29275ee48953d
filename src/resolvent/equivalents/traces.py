"""The equation of the block traces N on the token side, for any feature side, followed down in the ridge.

    N^-1 = A - S(N) + P(N),      A_11 = base_11 + ridge,

S the covariance map of the noise (entries of the token-side noise have variance 1/p) and P = tr_p G/p of
`features`. Its linear response

    O(H) = R H R - S(H) - K(H)/c,      R = N^-1,

is the Jacobian of Newton's method and, being self-adjoint, gives every derivative of the probe. At a large
ridge half-damped iteration converges; from there Newton's method follows the solution, which is analytic in
the ridge, by steps of a factor FACTOR at most. All is done in balanced coordinates, N/(s s') with s^2 =
|diag N|. Theory page, sections 8 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.features import Features

TOLERANCE = 1e-12  # on the residual of the equation in balanced coordinates
ACCEPTED = 1e-9  # a residual that rounding keeps above TOLERANCE still counts as converged below this
FACTOR = 8.0  # between neighbouring ridges on the way down
SMALLEST_FACTOR = 1.01
DAMPED_STEPS = 12
NEWTON_STEPS = 15


@dataclass(frozen=True)
class Equation:
    """base (B, B) is A without the ridge, noise[a, b, c, d] maps N_cd to S(N)_ab, v lists the X'w."""

    c: float
    base: Array
    noise: Array
    features: Features
    v: tuple[int, ...]

    def at(self, ridge: float, scale: Array) -> tuple[Array, Array, Features]:
        """A, S and the features in coordinates where N becomes N/(scale scale')."""
        A = self.base.copy()
        A[0, 0] += ridge
        square = scale[:, None] * scale
        return A * square, self.noise * square[:, :, None, None] * square, self.features.balanced(scale)

    def response(self, ridge: float, N: Array, source: Array) -> Array:
        """The Lambda with O(Lambda) = source: a change dA of A changes tr(source N) by -tr(Lambda dA)."""
        scale = _balance(N)
        square = scale[:, None] * scale
        _, operator = self.linearised(ridge, N, scale)
        return _solve(operator, source * square) * square

    def linearised(self, ridge: float, N: Array, scale: Array) -> tuple[Array, Array]:
        """A - S(N) + P - N^-1 and the operator O, both balanced."""
        A, noise, features = self.at(ridge, scale)
        balanced = N / (scale[:, None] * scale)
        R = inverse(balanced)
        dressed = features.dressed(balanced, self.c)
        error = A - np.einsum("abcd,cd->ab", noise, balanced) + dressed.trace() - R
        operator = np.einsum("ac,db->abcd", R, R) - noise - dressed.kernel() / self.c
        return error, operator


@dataclass(frozen=True)
class Solution:
    """N at a ridge with its certificate: the balanced residual, the iterations spent, and both accepted."""

    N: Array
    residual: float
    iterations: int
    converged: bool


def follow(equation: Equation, ridges: Array, top: float) -> list[Solution]:
    """Solutions at positive ridges (any order), from one path that starts near the ridge `top`."""
    found: dict[int, Solution] = {}
    with np.errstate(all="ignore"):
        ridge = max(top, float(ridges.max()))
        here = _newton(equation, ridge, _iterated(equation, ridge))
        for index in np.argsort(-ridges, kind="stable"):
            target = float(ridges[index])
            found[int(index)] = reached = _descend(equation, ridge, here, target)
            if reached.converged:
                ridge, here = target, reached
    return [found[k] for k in range(ridges.size)]


def _descend(equation: Equation, ridge: float, here: Solution, target: float) -> Solution:
    """From a solution at `ridge` to `target` below it, by shorter steps where Newton's method fails."""
    factor, spent = FACTOR, here.iterations
    while ridge > target and here.converged:
        step = max(target, ridge / factor)
        new = _newton(equation, step, here.N)
        spent += new.iterations
        if new.converged:
            ridge, here, factor = step, new, min(FACTOR, factor**2)
        elif factor < SMALLEST_FACTOR:
            here = new
        else:
            factor = float(np.sqrt(factor))
    return replace(here, iterations=spent)


def _iterated(equation: Equation, ridge: float) -> Array:
    """Half-damped iteration from the limit of an infinite ridge."""
    A = equation.base.copy()
    A[0, 0] += ridge
    start = A.copy()
    for v in equation.v:
        start[v + 1, v + 1] += equation.c
    N = inverse(start)
    for _ in range(DAMPED_STEPS):
        P = equation.features.dressed(N, equation.c).trace()
        N = 0.5 * (N + inverse(A - np.einsum("abcd,cd->ab", equation.noise, N) + P))
    return N


def _newton(equation: Equation, ridge: float, N: Array) -> Solution:
    """Newton's method from N until the residual is below TOLERANCE or stops falling below ACCEPTED."""
    best, least, spent = N, np.inf, 0
    for _ in range(NEWTON_STEPS):
        scale = _balance(N)
        try:
            error, operator = equation.linearised(ridge, N, scale)
            residual = float(np.abs(error).max())
            if not np.isfinite(residual) or (residual >= least and least <= ACCEPTED):
                break
            if residual < least:
                best, least = N, residual
            if residual <= TOLERANCE:
                break
            step = _solve(operator, -error)
        except np.linalg.LinAlgError:  # a step that lands on a singular matrix is a failed step
            break
        step *= min(1.0, 1.0 / np.abs(step).max())
        N = N + step * (scale[:, None] * scale)
        spent += 1
    return Solution(best, least, spent, bool(least <= ACCEPTED) and _physical(equation, ridge, best))


def _physical(equation: Equation, ridge: float, N: Array) -> bool:
    """Signs of the true solution: 0 < ridge tr Q/n <= 1, N_vv < 0, tr K Q K'/n >= 0 on the block after v."""
    signs = all(N[v, v] < 0.0 <= N[v + 1, v + 1] for v in equation.v)
    return bool(0.0 < ridge * N[0, 0] <= 1.0 + 1e-9 and signs)


def inverse(matrix: Array) -> Array:
    """Inverse of a symmetric matrix, symmetric."""
    out = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return 0.5 * (out + out.T)


def _balance(N: Array) -> Array:
    return np.sqrt(np.maximum(np.abs(np.diag(N)), np.finfo(float).tiny))


def _solve(operator: Array, right: Array) -> Array:
    """The symmetric H with operator(H) = right."""
    size = right.shape[0]
    basis = symmetric_basis(size)
    matrix = basis.T @ operator.reshape(size * size, size * size) @ basis
    return np.asarray((basis @ np.linalg.solve(matrix, basis.T @ right.ravel())).reshape(size, size))


def symmetric_basis(size: int) -> Array:
    """Orthonormal basis of the symmetric matrices, as columns (size^2, size (size + 1)/2)."""
    pairs = [(i, j) for i in range(size) for j in range(i, size)]
    basis = np.zeros((size, size, len(pairs)))
    for column, (i, j) in enumerate(pairs):
        basis[i, j, column] = basis[j, i, column] = 1.0 if i == j else np.sqrt(0.5)
    return basis.reshape(size * size, len(pairs))
