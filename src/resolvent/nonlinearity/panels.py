"""Adaptive Gauss-Legendre panels: sample a function where it bends, and know what is still unresolved.

On a panel of width h a function is sampled at 16 Gauss-Legendre nodes x_i. Its last Legendre coefficients
there,

    c_k = (k + 1/2) sum_i w_i P_k(x_i) f(x_i),      k = 13, 14, 15,

say how well a polynomial describes it, so h max |c_k| bounds what the panel can add to the error of an
integral. Panels that fail the caller's test are halved, which walks into kinks, jumps and sharp steps without
being told where they are. (Trefethen, "Approximation Theory and Approximation Practice", chapters 17 and 19.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

ORDER = 16
ROUNDING = 16 * float(np.finfo(float).eps)  # below it, relative to the samples, a coefficient is noise
_NODES, _WEIGHTS = leggauss(ORDER)
_LAST = (legvander(_NODES, ORDER - 1) * (np.arange(ORDER) + 0.5) * _WEIGHTS[:, None])[:, -3:]

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
    """Panels [left, left + width], shape (P,), and samples of k functions on them, shape (k, P, 16)."""

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


def tail(values: Array) -> Array:
    """Largest of the last three Legendre coefficients of samples (..., 16)."""
    return np.asarray(np.abs(values @ _LAST).max(axis=-1))


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
    return Panels(
        np.concatenate([panels.left[~split], new.left]),
        np.concatenate([panels.width[~split], new.width]),
        np.concatenate([panels.values[:, ~split], new.values], axis=1),
    )
