"""Adaptive Gauss-Legendre panels: sample a function where it bends, and know what is still unresolved.

On a panel of width h a function is sampled at 16 Gauss-Legendre nodes x_i. Its last Legendre coefficients
there,

    c_k = (k + 1/2) sum_i w_i P_k(x_i) f(x_i),      k = 13, 14, 15,

say how well a polynomial describes it, so h max |c_k| bounds what the panel can add to the error of an
integral. A jump can hide between a panel's last node and its end: it shows as a disagreement of the two
polynomials that meet there. Panels that fail the caller's test are halved, which walks into kinks, jumps and
sharp steps without being told where they are. (Trefethen, "Approximation Theory and Approximation Practice",
chapters 17 and 19.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

ORDER = 16
ROUNDING = 16 * float(np.finfo(float).eps)  # below it, relative to the samples, a coefficient is noise
_NODES, _WEIGHTS = leggauss(ORDER)
_TO_LEGENDRE = legvander(_NODES, ORDER - 1) * (np.arange(ORDER) + 0.5) * _WEIGHTS[:, None]
_TO_ENDS = _TO_LEGENDRE @ legvander(np.array([-1.0, 1.0]), ORDER - 1).T
_MARGIN = (1 - _NODES[-1]) / 2  # share of a panel beyond its last node

_MOST_PANELS = 20_000
_MOST_HALVINGS = 200

Array = NDArray[np.float64]


class UnresolvedError(ArithmeticError):
    """Halving did not end; `point` lies in the worst panel."""

    def __init__(self, point: float) -> None:
        super().__init__(f"not resolved near {point:.6g}")
        self.point = point


@dataclass(frozen=True)
class Panels:
    """Sorted panels [left, left + width], shape (P,), and samples (k, P, 16) of k functions on them."""

    left: Array
    width: Array
    values: Array

    @property
    def points(self) -> Array:
        """Nodes, shape (P, 16)."""
        return nodes(self.left, self.width)

    @property
    def weights(self) -> Array:
        """Quadrature weights, shape (P, 16)."""
        return self.width[:, None] / 2 * _WEIGHTS


def nodes(left: Array, width: Array) -> Array:
    """Gauss-Legendre nodes of each panel, shape (P, 16)."""
    return np.asarray(left[:, None] + width[:, None] * ((1 + _NODES) / 2))


def bend(samples: Array, left: Array, breakpoints: Array) -> Array:
    """How far samples (k, P, 16) on sorted panels are from polynomials that join up, shape (k, P).

    The larger of the last three Legendre coefficients and of the gaps at either end, these weighted by the
    share of the panel in which a jump could hide. Gaps are expected at `breakpoints`.
    """
    starts, ends = np.moveaxis(samples @ _TO_ENDS, -1, 0)
    gaps = _MARGIN * np.abs(ends[:, :-1] - starts[:, 1:]) * ~np.isin(left[1:], breakpoints)
    curve = np.abs(samples @ _TO_LEGENDRE[:, -3:]).max(axis=-1)
    curve[:, 1:] = np.maximum(curve[:, 1:], gaps)
    curve[:, :-1] = np.maximum(curve[:, :-1], gaps)
    return np.asarray(curve)


def start(samples: Array) -> Array:
    """Value at the left end of the first panel, weighted as the gaps of `bend`, shape (k,)."""
    return np.asarray(_MARGIN * np.abs(samples[:, 0] @ _TO_ENDS[:, 0]))


def refine(
    function: Callable[[Array], Array], edges: Array, unresolved: Callable[[Panels], NDArray[np.bool_]]
) -> Panels:
    """Sample `function`, points (P, 16) to values (k, P, 16), between `edges`; halve the `unresolved`."""
    panels = _sample(function, edges[:-1], np.diff(edges))
    for _ in range(_MOST_HALVINGS):
        split = unresolved(panels)
        if not split.any():
            return panels
        if panels.left.size > _MOST_PANELS:
            break
        panels = _halve(function, panels, split)
    raise UnresolvedError(float(panels.left[np.argmin(panels.width)]))


def _sample(function: Callable[[Array], Array], left: Array, width: Array) -> Panels:
    return Panels(left, width, function(nodes(left, width)))


def _halve(function: Callable[[Array], Array], panels: Panels, split: NDArray[np.bool_]) -> Panels:
    left, half = panels.left[split], panels.width[split] / 2
    new = _sample(function, np.concatenate([left, left + half]), np.concatenate([half, half]))
    lefts = np.concatenate([panels.left[~split], new.left])
    widths = np.concatenate([panels.width[~split], new.width])
    values = np.concatenate([panels.values[:, ~split], new.values], axis=1)
    order = np.argsort(lefts, kind="stable")
    return Panels(lefts[order], widths[order], values[:, order])
