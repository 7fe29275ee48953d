"""One path through settings: limits on a fine grid, measurements with standard errors at some of its points.

Along the ridge all points share their draws and one factorisation; along anything else each has its own, so
that their errors are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.figures.record import Panel, Plan, Series
from resolvent.predict import predict
from resolvent.refine import refine
from resolvent.setting import Setting
from resolvent.simulate import simulate

Array = NDArray[np.float64]
Path = Callable[[Any], Setting]  # from a value or an array of values

METHODS = {"attention": 0, "linear": 1, "difference": 2}
ERRORS = {"train": 0, "test": 1}
TITLES = {"train": "training error", "test": "test error"}
LABELS = {
    "attention": "attention",
    "linear": "linear regression",
    "difference": "attention less linear regression",
}


@dataclass(frozen=True)
class Along:
    """Errors (method, error, x) along a path; the last method is attention less linear regression, paired."""

    x: Array
    predicted: Array
    measured: Array
    se: Array
    refined: Array

    def series(self, method: str, error: str, label: str = "", style: int | None = None) -> Series:
        """One method's error, or the difference of both."""
        at = METHODS[method], ERRORS[error]
        values = [array[at] for array in (self.predicted, self.measured, self.se, self.refined)]
        return Series(label or LABELS[method], at[0] if style is None else style, self.x, *values)

    def panel(self, error: str, axis: str, fixed: str, log: str = "") -> Panel:
        """Both methods and their difference; the title says what is fixed."""
        both = self.series("attention", error), self.series("linear", error)
        return Panel(
            f"{TITLES[error]}{fixed}", axis, "error", both, log, difference=self.series("difference", error)
        )


def along(path: Path, curve: Array, at: Array, plan: Plan, *, refined: bool = False) -> Along:
    """Limits on `curve` and `at`, measurements at `at`; with `refined` also the refined equivalent there."""
    at = _reachable(path, at, plan.n)
    x = np.union1d(curve, at)
    where = np.searchsorted(x, at)
    predicted = with_difference(errors_of(predict(path(x)), x.shape))
    measured, se, exact = (np.full((3, 2, x.size), np.nan) for _ in range(3))
    whole = path(at)
    settings = [whole] if np.shape(whole.ridge) == at.shape else [path(value) for value in at]
    places = [where] if len(settings) == 1 else list(where[:, None])
    for index, (setting, here) in enumerate(zip(settings, places, strict=True)):
        m = simulate(setting, n=plan.n, draws=plan.draws, seed=plan.seed + index)
        for i, method in enumerate((m.attention, m.linear, m.difference)):
            for j, average in enumerate(method):
                measured[i, j, here], se[i, j, here] = average
        if refined:
            exact[:, :, here] = with_difference(errors_of(refine(setting, m.p), here.shape))
    return Along(x, predicted, measured, se, exact)


def errors_of(record: Any, shape: tuple[int, ...]) -> Array:
    """Errors (method, error, *shape) of a record that has them by name."""
    return np.array(
        [
            [np.broadcast_to(getattr(getattr(record, method), error), shape) for error in ERRORS]
            for method in ("attention", "linear")
        ]
    )


def with_difference(errors: Array) -> Array:
    """Errors of both methods and their difference, along the first axis."""
    return np.concatenate([errors, errors[:1] - errors[1:]])


def _reachable(path: Path, at: Array, n: int) -> Array:
    """Values as they are at n tokens: ratios are those of whole dimensions."""
    if np.shape(path(at).tokens.ratio) != at.shape:
        return at
    return np.asarray(np.unique(np.round(at * n)) / n)
