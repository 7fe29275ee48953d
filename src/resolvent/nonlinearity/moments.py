"""First moments of f(shift + scale xi) for many shifts and scales at once, xi standard normal.

    m0 = E f,      m1 = E[xi f]/scale  (= E f' where f has a derivative),      second = E f^2

are the numbers that a class-wise equivalent needs for every pair of classes (the theory page, section 12).
Pairs with like shift and scale share adaptive panels in t (see `panels`), on which f is sampled once; each
pair then weighs the samples with its own normal density, so thousands of pairs cost little more than their
exponentials.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.panels import ROUNDING, Array, Panels, UnresolvedError, bend, nodes, refine

REACHES = (9.0, 14.0, 20.0, 28.0)  # half-widths of the window in standard deviations, tried in turn
NEGLIGIBLE = 1e-12  # f^2 x density at the window's edge, relative to E f^2
TOLERANCE = 1e-12  # error that one panel may add, relative to the size of f around it
SHARED = 32.0  # shifts within so many scales share panels
BLOCK = 1 << 18  # densities held at a time


class Moments(NamedTuple):
    """m0 = E f, m1 = E[xi f]/scale and second = E f^2, in the broadcast shape of shift and scale."""

    m0: Array
    m1: Array
    second: Array


@dataclass(frozen=True)
class Sampler:
    """A function to sample, where it is known to break, and what to call it in errors."""

    function: Callable[[Array], Array]
    breakpoints: tuple[float, ...]
    name: str

    def __call__(self, t: Array) -> Array:
        """Finite values at t, with a leading axis of one."""
        values = self.function(t)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name} is not finite at t = {t[~np.isfinite(values)][0]:.6g}")
        return values[None]


def shifted_moments(sampler: Sampler, shift: Array, scale: Array) -> Moments:
    """Moments at flat arrays of shifts and positive scales, to about 1e-11 of sqrt(second).

    Raises ValueError, naming the function, when it is not finite, or not square-integrable under one of the
    normals.
    """
    moments = np.empty((3, shift.size))
    waiting = np.arange(shift.size)
    with np.errstate(all="ignore"):
        for reach in REACHES:
            for group in _groups(shift, scale, waiting):
                t, weighted = _sample(sampler, shift[group], scale[group], reach)
                moments[:, group] = _weigh(t, weighted, shift[group], scale[group])
            edge = _edge_power(sampler.function, shift[waiting], scale[waiting], reach)
            settled = (edge <= NEGLIGIBLE * moments[2, waiting]) & np.isfinite(moments[:, waiting]).all(
                axis=0
            )
            waiting = waiting[~settled]
            if not waiting.size:
                return Moments(*moments)
    worst = waiting[0]
    raise ValueError(
        f"{sampler.name} is not square-integrable under N({shift[worst]:g}, {scale[worst]:g}^2), "
        "or too nearly so"
    )


def _groups(shift: Array, scale: Array, members: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Members with scales in one octave and shifts within `SHARED` scales."""
    octave = np.floor(np.log2(scale[members]))
    place = np.round(shift[members] / (SHARED * 2.0**octave))
    keys, index = np.unique(np.stack([octave, place]), axis=1, return_inverse=True)
    for number in range(keys.shape[1]):
        yield members[index.ravel() == number]


def _sample(sampler: Sampler, shift: Array, scale: Array, reach: float) -> tuple[Array, Array]:
    """Nodes t covering every window, and weight x (f, f^2) there, shape (nodes, 2)."""
    low, high, width = (shift - reach * scale).min(), (shift + reach * scale).max(), float(scale.min())
    inner = np.array([b for b in sampler.breakpoints if low < b < high])
    edges = np.union1d(np.linspace(low, high, int(np.ceil((high - low) / width)) + 1), inner)
    size = _surrounding(sampler(nodes(edges[:-1], np.diff(edges)))[0])
    try:
        panels = refine(sampler, edges, lambda panels: _unresolved(panels, inner, edges, size, width))
    except UnresolvedError as error:
        raise ValueError(f"{sampler.name} is too irregular to integrate near t = {error.point:.6g}") from None
    values, weights = panels.values[0].ravel(), panels.weights.ravel()
    return panels.points.ravel(), np.stack([weights * values, weights * values**2], axis=1)


def _surrounding(values: Array) -> Array:
    """Largest |f| on each starting panel and its neighbours."""
    peak = np.abs(values).max(axis=1)
    padded = np.concatenate([peak[:1], peak, peak[-1:]])
    return np.asarray(np.maximum(np.maximum(padded[:-2], padded[2:]), peak))


def _unresolved(panels: Panels, inner: Array, edges: Array, size: Array, width: float) -> NDArray[np.bool_]:
    around = size[np.searchsorted(edges, panels.left + panels.width / 2) - 1]
    error = bend(panels.values, panels.left, inner)[0]
    return np.asarray((panels.width / width * error > TOLERANCE * around) & (error > ROUNDING * around))


def _weigh(t: Array, weighted: Array, shift: Array, scale: Array) -> Array:
    """Rows m0, m1, second."""
    rows = max(1, BLOCK // t.size)
    blocks = [
        _weigh_block(t, weighted, shift[i : i + rows, None], scale[i : i + rows, None])
        for i in range(0, shift.size, rows)
    ]
    return np.concatenate(blocks, axis=1)


def _weigh_block(t: Array, weighted: Array, shift: Array, scale: Array) -> Array:
    z = (t - shift) / scale
    density = np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * scale)
    m0, second = (density @ weighted).T
    m1 = (density * z) @ weighted[:, 0] / scale[:, 0]
    return np.asarray([m0, m1, second])


def _edge_power(function: Callable[[Array], Array], shift: Array, scale: Array, reach: float) -> Array:
    """f^2 x exp(-reach^2/2) at the worse edge of the window; NaN or infinite where f is."""
    edges = np.stack([function(shift - reach * scale), function(shift + reach * scale)])
    return np.asarray((np.abs(edges) * np.exp(-(reach**2) / 4)).max(axis=0) ** 2)
