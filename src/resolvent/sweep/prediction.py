"""Predictions for a whole grid: one vectorised call for each nonlinearity.

Only where p matters, because the diagonal or the mean of f is kept, is each ratio predicted by itself, at p =
round(ratio n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.predict import predict
from resolvent.setting.variation import CHOICES
from resolvent.sweep.grid import Grid

Array = NDArray[np.float64]


class Predicted(NamedTuple):
    """Errors (method, error, *grid) and the solver's certificate (*grid)."""

    errors: Array
    residual: Array
    iterations: NDArray[np.int64]
    converged: NDArray[np.bool_]


def predicted(grid: Grid, n: int | None) -> Predicted:
    """The limits at every point of the grid; with n, at the dimension that a simulation of n tokens has."""
    out = Predicted(
        np.empty((2, 2, *grid.shape)),
        np.empty(grid.shape),
        np.empty(grid.shape, dtype=np.int64),
        np.empty(grid.shape, dtype=bool),
    )
    split = (*CHOICES, "ratio") if n is not None and _size_matters(grid) else CHOICES
    for at, setting in grid.parts(split):
        p = dimension(float(setting.tokens.ratio), n) if n is not None and "ratio" in split else None
        limits = predict(setting, p=p)
        attention, linear = limits.attention, limits.linear
        for i, train, test in ((0, attention.train, attention.test), (1, linear.train, linear.test)):
            out.errors[(i, 0, *at)], out.errors[(i, 1, *at)] = train, test
        out.residual[at] = attention.residual
        out.iterations[at] = attention.iterations
        out.converged[at] = attention.converged
    return out


def dimension(ratio: float, n: int) -> int:
    """p = round(ratio n); ValueError below 2."""
    p = round(ratio * n)
    if p < 2:
        raise ValueError(f"p = round(ratio n) must be at least 2, got {p}: raise ratio or n")
    return p


def _size_matters(grid: Grid) -> bool:
    """Whether the diagonal or the mean of f is kept anywhere."""
    kept = grid.axes.get("keep_diagonal", [grid.setting.keep_diagonal])
    centred = grid.axes.get("centred", [grid.setting.centred])
    return any(kept) or not all(centred)
