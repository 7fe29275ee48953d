"""The generalised Marchenko-Pastur law: G = Z'Z/p for noise Z of covariance Sigma with eigenvalues l.

Its Stieltjes transform N(z) solves (Silverstein), with u = -c/N,

    z = u (1/c + E[l/(u - l)]),       dz/du = (1 - c E[l^2/(u - l)^2])/c.

Real u with dz/du > 0 are the outside of the support, so its edges are the z(u) where c E[l^2/(u - l)^2] =
1; that function is convex between neighbouring l: one root on either side of all l, none or two in each
gap. Inside, the density Im N/pi comes from Newton's method in the half plane Im u > 0, followed down to the
real axis, and is integrated on adaptive panels in an angle that takes the square roots at the edges. Theory
page, section 8b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resolvent.laws.law import MASS_TOLERANCE, Array, Law
from resolvent.laws.population import Population
from resolvent.nonlinearity.panels import Panels, bend, refine

Complex = NDArray[np.complex128]

HALVINGS = 200
FACTOR, SMALLEST_FACTOR = 30.0, 1.01
NEWTON_STEPS = 30
SOLVED = 1e-11  # change of u, relative
LOWEST = 1e-6  # height, relative to x, from which the last step goes to the real axis
PANEL_TOLERANCE = 1e-11
MOST_PANELS = 300  # beyond, the mass says whether what is left matters


def generalised_marchenko_pastur(noise: Population, ratio: float) -> Law:
    """Table of the law of G for noise of this covariance, ratio = c = p/n.

    Raises ValueError unless ratio is positive, ArithmeticError where the mass is not 1 to 1e-6.

    Source: Silverstein and Bai 1995, Silverstein and Choi 1995; theory page, section 8b.

    >>> from resolvent.laws.population import population
    >>> law = generalised_marchenko_pastur(population([1.0, 8.0]), 0.2)
    >>> len(law.support), round(float(law.mean(lambda g: g)), 9)
    (2, 1.0)
    """
    intervals = support(noise, ratio)
    tables = [_table(noise, ratio, left, right) for left, right in intervals]
    atoms = ((0.0, 1.0 - ratio),) if ratio < 1.0 else ()
    nodes = np.concatenate([*(t[0] for t in tables), [place for place, _ in atoms]])
    weights = np.concatenate([*(t[1] for t in tables), [mass for _, mass in atoms]])
    if not abs(weights.sum() - 1.0) <= MASS_TOLERANCE:
        raise ArithmeticError(f"the law is not resolved: its mass is {weights.sum():.8f} instead of 1")
    return Law(nodes, weights, intervals, atoms)


def support(noise: Population, ratio: float) -> Array:
    """Intervals of positive density (k, 2), the atom at zero left out."""
    if not 0.0 < ratio < np.inf:
        raise ValueError(f"ratio must be positive, got {ratio:.6g}")
    levels, shares = noise.levels, noise.shares
    reach = 1.001 * np.sqrt(ratio) * levels[-1]
    outer = _bisect(
        noise, ratio, np.array([levels[0] - reach, levels[-1] + reach]), np.array([levels[0], levels[-1]])
    )
    left, right = levels[:-1], levels[1:]
    # c E[..] is at least what the two neighbours give, whose minimum over the gap is this
    bound = np.cbrt(ratio * shares[:-1] * left**2) + np.cbrt(ratio * shares[1:] * right**2)
    maybe = bound**3 < (right - left) ** 2
    left, right = left[maybe], right[maybe]
    middle = _lowest(noise, left, right)
    open_gap = _spread(noise, ratio, middle) < 1.0
    left, right, middle = left[open_gap], right[open_gap], middle[open_gap]
    ends, starts = _bisect(noise, ratio, middle, left), _bisect(noise, ratio, middle, right)
    u = np.sort(np.concatenate([outer, ends, starts]))
    return np.maximum(_place(noise, ratio, u), 0.0).reshape(-1, 2)


def _place(noise: Population, c: float, u: NDArray[np.float64]) -> Array:
    """z(u)."""
    return u * (1.0 / c + (noise.levels / (u[:, None] - noise.levels)) @ noise.shares)


def _spread(noise: Population, c: float, u: Array) -> Array:
    """c E[l^2/(u - l)^2]."""
    with np.errstate(divide="ignore"):
        return np.asarray(c * (noise.levels / (u[:, None] - noise.levels)) ** 2 @ noise.shares)


def _bisect(noise: Population, c: float, below: Array, above: Array) -> Array:
    """Where c E[..] = 1 between points where it is below one and the poles `above`."""
    for _ in range(HALVINGS):
        middle = 0.5 * (below + above)
        inside = _spread(noise, c, middle) < 1.0
        below, above = np.where(inside, middle, below), np.where(inside, above, middle)
    return below


def _lowest(noise: Population, left: Array, right: Array) -> Array:
    """The minimum of the convex E[l^2/(u - l)^2] between two poles."""
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = -(noise.levels**2 / (middle[:, None] - noise.levels) ** 3) @ noise.shares
        left, right = np.where(slope < 0.0, middle, left), np.where(slope < 0.0, right, middle)
    return 0.5 * (left + right)


def _table(noise: Population, c: float, left: float, right: float) -> tuple[Array, Array]:
    """Nodes and weights on one interval: adaptive panels in the v of x = left + width sin^2(pi v/2)."""

    def place(v: Array) -> Array:
        return left + (right - left) * np.sin(0.5 * np.pi * v) ** 2

    def weighted(v: Array) -> Array:
        slope = 0.5 * np.pi * (right - left) * np.sin(np.pi * v)
        return (np.nan_to_num(density(noise, c, place(v).ravel())).reshape(v.shape) * slope)[None]

    def unresolved(panels: Panels) -> NDArray[np.bool_]:
        curve = bend(panels.values, panels.left, np.empty(0))[0]
        return np.asarray((panels.width * curve > PANEL_TOLERANCE) & (panels.left.size < MOST_PANELS))

    panels = refine(weighted, np.linspace(0.0, 1.0, 5), unresolved)
    return place(panels.points).ravel(), (panels.weights * panels.values[0]).ravel()


def density(noise: Population, ratio: float, g: Array) -> Array:
    """Density at g > 0, shape (k,); NaN where the equation is not solved."""
    x = np.asarray(g, dtype=np.float64)
    scale = float(noise.levels[-1] * (1.0 + 1.0 / np.sqrt(ratio)) ** 2)
    height = np.full(x.shape, 10.0 * scale)
    u, good = _newton(noise, ratio, x + 1j * height, ratio * (x + 1j * height))
    factor = np.full(x.shape, FACTOR)
    going = np.flatnonzero(good)
    done = np.zeros(x.shape, dtype=bool)
    while going.size:
        lower = height[going] / factor[going]
        lower[lower < LOWEST * x[going]] = 0.0
        new, good = _newton(noise, ratio, x[going] + 1j * lower, u[going])
        won, lost = going[good], going[~good]
        u[won], height[won], factor[won] = new[good], lower[good], np.minimum(FACTOR, factor[won] ** 2)
        factor[lost] = np.sqrt(factor[lost])
        done[won] = height[won] == 0.0
        going = going[~done[going] & (factor[going] > SMALLEST_FACTOR)]
    return np.where(done, np.maximum((-ratio / u).imag, 0.0) / np.pi, np.nan)


def _newton(noise: Population, c: float, z: Complex, u: Complex) -> tuple[Complex, NDArray[np.bool_]]:
    """Newton's method for z(u) = z, row by row, and which rows reached a solution with Im u >= 0."""
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            quotient = noise.levels / (u[:, None] - noise.levels)
            error = u * (1.0 / c + quotient @ noise.shares) - z
            step = error / ((1.0 - c * (quotient**2 @ noise.shares)) / c)
            step = step * np.minimum(1.0, 0.5 * np.abs(u) / np.abs(step))
            u = u - step
            if np.all(np.abs(step) <= SOLVED * np.abs(u)):
                break
        solved = (np.abs(step) <= np.sqrt(SOLVED) * np.abs(u)) & (np.abs(error) <= 1e-9 * np.abs(z))
        return u, solved & (u.imag >= -1e-9 * np.abs(u))
