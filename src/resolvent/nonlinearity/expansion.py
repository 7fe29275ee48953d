"""Hermite coefficients of f under N(0, s^2), accurate at kinks and jumps, and for nearly linear f.

With xi standard normal and h_k the orthonormal Hermite polynomials (the theory page, section 2)

    a_k = E[f(s xi) h_k(xi)],      sigma^2 = E[(f(s xi) - a_0 - a_1 xi)^2]

Three ideas keep the digits:

- f is split into even and odd parts on the half line, so that parity is exact: a_1 of an even f is 0, not
  1e-17;
- adaptive panels (see `panels`) are refined until the *residual* f - a_0 - a_1 xi is resolved, part by part,
  relative to its own size: sigma^2 is never the difference of large numbers;
- a coefficient smaller than the rounding of the sum that gives it is reported as 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.panels import ROUNDING, Array, Panels, UnresolvedError, bend, nodes, refine, start

REACH = 48.0  # beyond it exp(-x^2/4), the weight of f, is close to underflow
TOLERANCE = 1e-13  # error that one panel may add, relative to the integral
HIGHEST_DEGREE = 256

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Expansion:
    """Even and odd part of f(s x) at the nodes x >= 0, times q = sqrt(quadrature weight x normal density).

    Sums of products of such arrays are expectations. `even_rest` and `odd_rest` are the parts less a_0 and
    a_1 x.
    """

    x: Array
    q: Array
    even: Array
    odd: Array
    a0: float
    a1: float
    even_rest: Array
    odd_rest: Array

    def coefficient(self, degree: int) -> float:
        """a_k = E[f h_k], from the residual for k >= 2."""
        if degree < 2:
            return (self.a0, self.a1)[degree]
        part, rest = (self.odd, self.odd_rest) if degree % 2 else (self.even, self.even_rest)
        h = _hermite(degree, self.x) * self.q
        value = float(rest @ h)
        rounded_away = abs(value) <= ROUNDING * float(np.abs(part) @ np.abs(h))
        return 0.0 if rounded_away or not rest.any() else value

    @property
    def sigma2(self) -> float:
        """Power above degree one."""
        return float(self.even_rest @ self.even_rest + self.odd_rest @ self.odd_rest)

    @property
    def parity(self) -> str:
        """`even`, `odd` or `neither`, of f less its mean."""
        if not self.even_rest.any():
            return "odd"
        return "neither" if self.a1 != 0 or self.odd_rest.any() else "even"


@lru_cache(maxsize=256)
def expand(function: Function, breakpoints: tuple[float, ...], scale: float, name: str) -> Expansion:
    """Expansion of `function` under N(0, scale^2).

    Raises ValueError, naming the function, when it is not finite, not square-integrable under N(0, scale^2),
    or too irregular to integrate.
    """

    def parts(x: Array) -> Array:
        above, below = function(scale * x), function(-scale * x)
        if not (np.isfinite(above).all() and np.isfinite(below).all()):
            raise ValueError(f"{name} is not finite at t = {_first_bad(function, scale * x):.6g}")
        return np.stack([above / 2 + below / 2, above / 2 - below / 2])

    with np.errstate(all="ignore"):
        if not np.isfinite(function(np.zeros(1))).all():
            raise ValueError(f"{name} is not finite at t = 0")
        breaks = np.abs(breakpoints) / scale
        edges = _support(function, _edges(breaks, scale), scale, name)
        try:
            panels = refine(parts, edges, lambda panels: _unresolved(panels, breaks))
        except UnresolvedError as error:
            raise ValueError(
                f"{name} is not square-integrable under N(0, {scale:g}^2), or too irregular to integrate, "
                f"near |t| = {scale * error.point:.6g}"
            ) from None
        expansion = _expansion(panels)
        second = expansion.even @ expansion.even + expansion.odd @ expansion.odd
    if not np.isfinite(second):
        raise ValueError(f"{name} is too large under N(0, {scale:g}^2): its second moment overflows")
    return expansion


def _edges(breaks: Array, scale: float) -> Array:
    """Starting panels: half a unit wide in x, near the origin in t too, and split at breakpoints."""
    inner = np.concatenate([np.arange(1, 17) / (2 * scale), breaks])
    return np.unique(np.concatenate([np.arange(0.0, REACH + 0.25, 0.5), inner[inner < REACH]]))


def _support(function: Function, edges: Array, scale: float, name: str) -> Array:
    """The edges up to where f^2 exp(-x^2/2) has died out."""
    x = nodes(edges[:-1], np.diff(edges))
    values = np.stack([function(scale * x), function(-scale * x)])
    weighted = (np.abs(values) * np.exp(-(x**2) / 4)).max(axis=(0, 2))
    good = np.isfinite(values).all(axis=(0, 2))
    count = good.size if good.all() else int(np.argmin(good))
    peak = weighted[:count]
    if count > 1 and peak[-1] <= 1e-7 * peak.max() and (peak[-1] == 0 or peak[-1] < peak[-2]):
        return edges[: count + 1]
    overflowed = count > 1 and np.abs(values[:, count - 1]).max() > 1e100
    if count == good.size or overflowed:
        raise ValueError(f"{name} is not square-integrable under N(0, {scale:g}^2)")
    raise ValueError(f"{name} is not finite at t = {_first_bad(function, scale * x):.6g}")


def _first_bad(function: Function, t: Array) -> float:
    both = np.concatenate([t.ravel(), -t.ravel()])
    bad = both[~np.isfinite(function(both))]
    return float(bad[np.argmin(np.abs(bad))])


def _unresolved(panels: Panels, breaks: Array) -> NDArray[np.bool_]:
    """Panels whose residual, even or odd, is not yet a polynomial to the tolerance or to rounding."""
    x, root = panels.points, _root_density(panels.points)
    whole = panels.values * root
    basis = np.stack([root, x * root])
    rest = whole - _overlap(whole, basis, panels.weights)[:, None, None] * basis
    power = np.sum(panels.weights * rest**2, axis=(1, 2))
    error, size = bend(rest, panels.left, breaks), np.abs(rest).max(axis=-1)
    if 0.0 not in breaks:  # an odd part that is not 0 at 0 hides a jump
        error[1, 0] = max(error[1, 0], start(rest)[1])
    floor = ROUNDING * np.abs(whole).max(axis=(0, 2))
    failed = (panels.width * error * size > TOLERANCE * power[:, None]) & (error > floor)
    return np.asarray(failed.any(axis=0))


def _overlap(values: Array, basis: Array, weights: Array) -> Array:
    return np.asarray(np.sum(weights * values * basis, axis=(1, 2)))


def _root_density(x: Array) -> Array:
    """Square root of the density of |xi| on the half line."""
    return np.asarray(np.exp(-(x**2) / 4) * (2 / np.pi) ** 0.25)


def _expansion(panels: Panels) -> Expansion:
    x = panels.points.ravel()
    q = _root_density(x) * np.sqrt(panels.weights.ravel())
    even, odd = (part.ravel() * q for part in panels.values)
    a0, a1 = _projection(even, q), _projection(odd, x * q)
    floor = ROUNDING * np.sqrt(even @ even + odd @ odd)
    even_rest, odd_rest = (_rest(even, a0, q, floor), _rest(odd, a1, x * q, floor))
    return Expansion(x, q, even, odd, a0, a1, even_rest, odd_rest)


def _projection(part: Array, h: Array) -> float:
    value = float(part @ h)
    return 0.0 if abs(value) <= ROUNDING * float(np.abs(part) @ np.abs(h)) else value


def _rest(part: Array, coefficient: float, h: Array, floor: float) -> Array:
    rest = part - coefficient * h
    return rest if np.sqrt(rest @ rest) > floor else np.zeros_like(rest)


def _hermite(degree: int, x: Array) -> Array:
    """Orthonormal h_k: sqrt(k+1) h_(k+1) = x h_k - sqrt(k) h_(k-1)."""
    before, h = np.zeros_like(x), np.ones_like(x)
    for k in range(degree):
        before, h = h, (x * h - np.sqrt(k) * before) / np.sqrt(k + 1)
    return h
