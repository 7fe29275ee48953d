"""Density, edges and atoms of the spectrum of a symmetric expression B.

With m(z) = tr (B - z)^-1/n the density at x is Im m(x + i0)/pi. The pencil of B - z is solved on the real
axis itself, as the limit from above; the mass of an atom at x is the limit of s Im m(x + i s).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from resolvent.engine.expression import Expression, Identity, Inverse, Sum, add, eye, transpose_invariant
from resolvent.engine.result import ConvergenceError, Spectrum, Value
from resolvent.engine.scalar import Scalar, Symbol, number
from resolvent.equivalents.dyson import Array

if TYPE_CHECKING:
    from resolvent.engine.equivalent import Equivalent

SHIFT = "spectral_shift"
"""Name of the symbol -z in the pencil of B - z."""
DARK = 1e-7
"""A density times the size of the support below this counts as zero."""


def resolvent_of(expression: Expression, given: Mapping[str, object]) -> Expression:
    """(shift + B)^-1 of the matrix whose spectrum is meant."""
    if not transpose_invariant(expression):
        raise ValueError("only an expression that is symmetric as written has a density on the real line")
    free = _free_symbol(expression, given)
    matrix = expression if free is None else add([*_terms(expression), (eye(expression.rows), -1 * free)])
    return Inverse(add([(matrix, number(1.0)), (eye(expression.rows), Symbol(SHIFT))]))


def _terms(expression: Expression) -> list[tuple[Expression, Scalar]]:
    assert isinstance(expression, Inverse)
    return [(expression.argument, number(1.0))]


def _free_symbol(expression: Expression, given: Mapping[str, object]) -> Scalar | None:
    """The symbol gamma of inv(gamma I + B), if it has no value."""
    if isinstance(expression, Inverse) and isinstance(expression.argument, Sum):
        for term, value in expression.argument.terms:
            names = value.symbols
            if (
                isinstance(term, Identity)
                and len(names) == 1
                and value == Symbol(next(iter(names)))
                and not names & set(given)
            ):
                return value
    return None


def _shifted(equivalent: Equivalent, values: Mapping[str, object]) -> Equivalent:
    from resolvent.engine.equivalent import Equivalent

    known = equivalent.__dict__.setdefault("_shifted", {})
    key = frozenset(values)
    if key not in known:
        known[key] = Equivalent(resolvent_of(equivalent.expression, values), equivalent.sizes)
    return known[key]  # type: ignore[no-any-return]


def stieltjes(equivalent: Equivalent, z: object, values: Mapping[str, object]) -> Value:
    """tr (B - z)^-1/n at complex z; on the real axis the limit from the upper half plane."""
    points = np.asarray(z, dtype=complex)
    below = -points - 1e-300j
    return _shifted(equivalent, values).trace(**{SHIFT: below}, **values)


def density(equivalent: Equivalent, grid: object, values: Mapping[str, object]) -> Value:
    """Im m(x + i0)/pi."""
    x = np.asarray(grid, dtype=float)
    found = stieltjes(equivalent, x, values)
    return Value(
        np.maximum(np.imag(found.value), 0.0) / np.pi, found.residual, found.iterations, found.converged
    )


def support(equivalent: Equivalent, values: Mapping[str, object], points: int = 400) -> Spectrum:
    """Edges by bisection of where the density vanishes, atoms, and their total mass."""
    for name, value in values.items():
        if np.ndim(value):  # type: ignore[arg-type]
            raise ValueError(f"a spectrum needs single values, got an array for {name}")

    def m(z: Array) -> Array:
        return np.asarray(stieltjes(equivalent, z, values).value)

    reach = _reach(m)
    coarse = np.linspace(-reach, reach, points) + 1e-9 * reach
    lit = coarse[~_dark(m, coarse, reach)]
    edges = np.empty((0, 2))
    if lit.size:
        pad = 4 * reach / points
        edges = _edges(m, np.linspace(lit[0] - pad, lit[-1] + pad, points) + 1e-9 * reach, reach)
    atoms = _atoms(m, reach, points)
    mass = sum(atoms.values()) + sum(_mass(m, a, b) for a, b in edges)
    return Spectrum(edges, atoms, float(mass))


def _reach(m: Any) -> float:
    """A radius that holds the spectrum: outside, |z m(z) + 1| <= 1 (B/|z| is small) and m is real."""
    radius = 1.0
    for _ in range(60):
        probe = m(np.array([-radius, radius, -2 * radius, 2 * radius]) + 0j)
        inside = (
            ~np.isfinite(probe)
            | (np.abs(probe.imag) * radius > DARK)
            | (np.abs(np.array([-1, 1, -2, 2]) * radius * probe + 1) > 1)
        )
        if not inside.any():
            return radius
        radius *= 2
    raise ConvergenceError("the spectrum seems unbounded")


def _dark(m: Any, x: Array, reach: float) -> Array:
    return np.asarray(np.nan_to_num(np.imag(m(x + 0j)), nan=np.inf) * reach < DARK)


def _edges(m: Any, grid: Array, reach: float) -> Array:
    dark = _dark(m, grid, reach)
    change = np.flatnonzero(dark[1:] != dark[:-1])
    left, right = grid[change].copy(), grid[change + 1].copy()
    start = dark[change]
    for _ in range(48 if len(change) else 0):
        middle = (left + right) / 2
        same = _dark(m, middle, reach) == start
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return np.asarray(((left + right) / 2)[: 2 * (len(change) // 2)].reshape(-1, 2))


def _mass(m: Any, a: float, b: float) -> float:
    """Integral of the density over a bulk; x = a + (b - a) sin^4-like map tames edges, hard ones included."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    s = (nodes + 1) / 2
    smooth, slope = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2
    values = np.nan_to_num(np.imag(m(a + (b - a) * smooth + 0j))) / np.pi
    return float(np.sum(weights / 2 * (b - a) * slope * values))


def _weight(m: Any, at: float, scale: float) -> float:
    """Mass of the atom, the s^(1/2) of a hard edge extrapolated away."""
    s = scale * np.array([1e-8, 1e-10])
    near, nearer = s * np.imag(m(at + 1j * s))
    return float((10 * nearer - near) / 9)


def _atoms(m: Any, reach: float, points: int) -> dict[float, float]:
    """Atoms at zero and at the peaks of the smoothed density that sharpen without end."""
    width = 4 * reach / points
    grid = np.linspace(-reach, reach, points)
    height = width * np.imag(m(grid + 1j * width))
    peaks = [
        k for k in range(1, points - 1) if height[k] >= max(height[k - 1], height[k + 1]) and height[k] > 1e-3
    ]
    found: dict[float, float] = {}
    for at in [0.0, *(_zoom(m, grid[k], width) for k in peaks)]:
        mass = _weight(m, at, reach)
        if mass > 1e-4 and not any(abs(at - other) < 1e-6 * reach for other in found):
            found[at] = mass
    return found


def _zoom(m: Any, at: float, width: float) -> float:
    """Follow a peak of the smoothed density while the smoothing shrinks."""
    for _ in range(12):
        near = at + width * np.linspace(-1.5, 1.5, 31)
        width /= 8
        at = float(near[np.argmax(np.nan_to_num(np.imag(m(near + 1j * width))))])
    return at
