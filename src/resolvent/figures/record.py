"""What a figure is made of: panels of curves with measured points, as numbers, before anything is drawn.

The same numbers are drawn, written as CSV and read by the caption, so that the three cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Row = dict[str, str | float]


class Plan(NamedTuple):
    """Size of the measurements: n tokens, `draws` repetitions; a checkpoint where a figure reads one."""

    n: int
    draws: int
    seed: int = 0
    checkpoint: Path | None = None


@dataclass(frozen=True)
class Series:
    """A predicted curve over x and the points measured on it.

    Arrays share the shape of x; NaN where nothing was measured, or where the refined equivalent was not
    computed. `style` counts the entries of `plot.style.SERIES`.
    """

    label: str
    style: int
    x: Array
    predicted: Array
    measured: Array
    se: Array
    refined: Array

    @property
    def points(self) -> NDArray[np.bool_]:
        """Where something was measured."""
        return np.isfinite(self.measured)

    @property
    def best(self) -> Array:
        """The refined equivalent where there is one, the limit elsewhere."""
        return np.where(np.isfinite(self.refined), self.refined, self.predicted)


class Spike(NamedTuple):
    """An isolated eigenvalue: its predicted place, and the measured one."""

    label: str
    predicted: float
    measured: float
    se: float


@dataclass(frozen=True)
class Panel:
    """Series over one axis, whose name is a column of the table.

    `difference` is the first series less the second, measured draw by draw; it decides who is lower. `note`
    is what the caption says of the data.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log: str = ""
    difference: Series | None = None
    spikes: tuple[Spike, ...] = ()
    note: str = ""

    def rows(self) -> Iterator[Row]:
        """One row a point."""
        for s in (*self.series, *([self.difference] if self.difference else [])):
            columns = zip(s.x, s.predicted, s.refined, s.measured, s.se, strict=True)
            for x, predicted, refined, measured, se in columns:
                values = {"predicted": predicted, "refined": refined, "measured": measured, "se": se}
                yield {"panel": self.title, "series": s.label, self.x: float(x), **_numbers(values)}
        for label, *numbers in self.spikes:
            values = dict(zip(("predicted", "measured", "se"), numbers, strict=True))
            yield {"panel": self.title, "series": f"place of the {label}", **_numbers(values)}


class Points(NamedTuple):
    """Measured points of a plane; arrays of one length."""

    x: Array
    y: Array
    predicted: Array
    refined: Array
    measured: Array
    se: Array


@dataclass(frozen=True)
class Map:
    """A predicted difference of errors over a plane (y, x), and points at which it was measured."""

    title: str
    x: str
    y: str
    xs: Array
    ys: Array
    predicted: Array
    points: Points
    boundary: list[Array] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        """One row a point of the plane, then one a measured point."""
        for i, y in enumerate(self.ys):
            for j, x in enumerate(self.xs):
                yield self._row(x, y, {"predicted": self.predicted[i, j]})
        names = ("predicted", "refined", "measured", "se")
        for x, y, *numbers in zip(*self.points, strict=True):
            yield self._row(x, y, dict(zip(names, numbers, strict=True)))

    def _row(self, x: float, y: float, values: dict[str, float]) -> Row:
        place: Row = {"panel": self.title, "series": "difference", self.x: float(x), self.y: float(y)}
        return {**place, **_numbers(values)}


Panels = tuple[Panel | Map, ...]


@dataclass(frozen=True)
class Figure:
    """A figure: its name, what it shows, its sizes, the numbers, and the caption that reads them."""

    name: str
    title: str
    full: Plan
    quick: Plan
    panels: Callable[[Plan], Panels]
    caption: Callable[[Panels, Plan], str]


def _numbers(values: dict[str, float]) -> Row:
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
