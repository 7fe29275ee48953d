"""Density, edges and atoms of the spectrum of a symmetric expression B.

With m(z) = tr (B - z)^-1/n the density at x is Im m(x + i0)/pi. The pencil of B - z is solved on the real
axis itself, as the limit from above; the mass of an atom at x is the limit of s Im m(x + i s).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
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
    """(shift + B)^-1 of the matrix B whose spectrum is meant."""
    if not transpose_invariant(expression):
        raise ValueError("only an expression that is symmetric as written has a density on the real line")
    terms = [(expression, number(1.0))]
    free = _free_symbol(expression, given)
    if free is not None and isinstance(expression, Inverse):
        terms = [(expression.argument, number(1.0)), (eye(expression.rows), -1 * free)]
    return Inverse(add([*terms, (eye(expression.rows), Symbol(SHIFT))]))


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
    peaks = [0.0, *_peaks(m, reach, points)]
    atoms = _atoms(m, reach, peaks)
    mass = sum(atoms.values()) + sum(_mass(m, a, b, peaks) for a, b in edges)
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
            return 1.1 * radius
        radius *= 2
    raise ConvergenceError("the spectrum seems unbounded")


def _dark(m: Any, x: Array, reach: float) -> Array:
    return np.asarray(np.nan_to_num(np.imag(m(x + 0j)), nan=np.inf) * reach < DARK)


def _edges(m: Any, grid: Array, reach: float) -> Array:
    dark = _dark(m, grid, reach)
    change = np.flatnonzero(dark[1:] != dark[:-1])
    left, right = grid[change].copy(), grid[change + 1].copy()
    start = dark[change]
    for _ in range(36 if len(change) else 0):
        middle = (left + right) / 2
        same = _dark(m, middle, reach) == start
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return np.asarray(((left + right) / 2)[: 2 * (len(change) // 2)].reshape(-1, 2))


def _mass(m: Any, a: float, b: float, peaks: list[float]) -> float:
    """Integral of the density over a bulk, cut at its peaks; s^2 (3 - 2 s) tames the ends of each piece."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s = (nodes + 1) / 2
    inner = sorted(x for x in peaks if a + 1e-6 * (b - a) < x < b - 1e-6 * (b - a))
    total = 0.0
    for low, high in pairwise([a, *inner, b]):
        values = np.nan_to_num(np.imag(m(low + (high - low) * s**2 * (3 - 2 * s) + 0j))) / np.pi
        total += float(np.sum(weights / 2 * (high - low) * 6 * s * (1 - s) * values))
    return total


def _peaks(m: Any, reach: float, points: int) -> list[float]:
    """Where the smoothed density peaks, followed while the smoothing shrinks."""
    width = 4 * reach / points
    grid = np.linspace(-reach, reach, points)
    height = np.imag(m(grid + 1j * width))
    inner = height[1:-1]
    found = grid[1:-1][(inner >= height[:-2]) & (inner >= height[2:]) & (width * inner > 1e-3)]
    return [_zoom(m, float(at), width) for at in found]


def _zoom(m: Any, at: float, width: float) -> float:
    """Follow a peak while the smoothing shrinks, then go where 1/m, linear beside an atom, vanishes."""
    for _ in range(4):
        near = at + width * np.linspace(-1.5, 1.5, 31)
        width /= 8
        at = float(near[np.argmax(np.nan_to_num(np.imag(m(near + 1j * width))))])
    for step in (width, width / 10):
        one, two = m(at + 1j * step * np.array([1.0, 2.0]))
        if one != two and np.isfinite([one, two]).all():
            root = at + float(np.real(1j * step * (1 - two / (one - two))))
            at = root if abs(root - at) < width else at
    return at


def _atoms(m: Any, reach: float, peaks: list[float]) -> dict[float, float]:
    """Mass at each peak: the limit of s Im m(x + i s), extrapolated past the power of s of a hard edge."""
    found: dict[float, float] = {}
    s = reach * np.array([1e-2, 1e-4, 1e-6, 1e-8])
    for at in peaks:
        masses = s * np.imag(m(at + 1j * s))
        masses_here = masses[np.isfinite(masses)]
        if len(masses_here) < 3:
            raise ConvergenceError(f"no certified values around the peak at {at:.6g}")
        first, second, third = masses_here[-3:]
        bend = first - 2 * second + third
        mass = float(third - (third - second) ** 2 / bend if abs(bend) > 1e-9 else third)
        if mass > 1e-3 and not any(abs(at - other) < 1e-6 * reach for other in found):
            found[at] = mass
    return found
