"""The minimum of a function of one variable, for many problems at once, without derivatives.

Each problem keeps three points a < b < c with f(b) below both ends. The next point is the vertex of the
parabola through them, or the golden section of the longer side where there is no vertex inside or the last
step did not halve the bracket (after Brent, Algorithms for Minimization without Derivatives, 1973, chapter
5). A last parabola refines what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Function = Callable[[Array, Rows], Array]

GOLDEN = 0.3819660112501051  # (3 - sqrt 5)/2
MOST = 60  # steps; the golden section alone closes a bracket of one to 1e-12 in as many


class Bracket(NamedTuple):
    """Points a < b < c (1-d arrays, an entry a problem) and the values there."""

    a: Array
    b: Array
    c: Array
    at_a: Array
    at_b: Array
    at_c: Array

    @property
    def width(self) -> Array:
        """The longer side."""
        return np.maximum(self.c - self.b, self.b - self.a)


def minimum(function: Function, bracket: Bracket, width: float) -> tuple[Array, Array]:
    """Place and value of a minimum in each bracket.

    `function(x, rows)` gives the values of the problems `rows` at their places x. Brackets close until their
    longer side is at most `width`; the last parabola leaves an error of order width^3 in a smooth place, and
    of width^6 in the value.
    """
    state = np.stack(bracket)
    slow = np.zeros(bracket.b.size, dtype=bool)
    for _ in range(MOST):
        open_rows = np.flatnonzero(Bracket(*state).width > width)
        if not open_rows.size:
            break
        part = Bracket(*state[:, open_rows])
        x = _next(part, slow[open_rows], 0.5 * width)
        state[:, open_rows] = narrowed = _narrowed(part, x, function(x, open_rows))
        slow[open_rows] = narrowed[2] - narrowed[0] > 0.5 * (part.c - part.a)
    return _last(function, Bracket(*state))


def _vertex(bracket: Bracket) -> Array:
    """The vertex of the parabola through the three points; NaN on a line."""
    a, b, c, at_a, at_b, at_c = bracket
    left, right = (b - a) * (at_b - at_c), (b - c) * (at_b - at_a)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex: Array = b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right)
    return vertex


def _next(bracket: Bracket, slow: NDArray[np.bool_], least: float) -> Array:
    """Where to look next: a step of at least `least` from b, into the longer side if the vertex is at b."""
    a, b, c = bracket[:3]
    right = c - b > b - a
    vertex = _vertex(bracket)
    golden = np.where(right, b + GOLDEN * (c - b), b - GOLDEN * (b - a))
    x = np.where((vertex > a) & (vertex < c) & ~slow, vertex, golden)
    return np.where(np.abs(x - b) < least, np.where(right, b + least, b - least), x)


def _narrowed(bracket: Bracket, x: Array, at_x: Array) -> Array:
    """The brackets around the lower of b and x, stacked."""
    a, b, c, at_a, at_b, at_c = bracket
    right = x > b
    first, last = np.where(right, b, x), np.where(right, x, b)
    at_first, at_last = np.where(right, at_b, at_x), np.where(right, at_x, at_b)
    around_first = np.stack([a, first, last, at_a, at_first, at_last])
    around_last = np.stack([first, last, c, at_first, at_last, at_c])
    return np.where(at_first < at_last, around_first, around_last)


def _last(function: Function, bracket: Bracket) -> tuple[Array, Array]:
    """b, or the vertex where that is lower."""
    a, b, c, _, at_b, _ = bracket
    vertex = _vertex(bracket)
    x = np.where((vertex > a) & (vertex < c), vertex, b)
    at_x = function(x, np.arange(b.size))
    lower = at_x < at_b
    return np.where(lower, x, b), np.where(lower, at_x, at_b)
