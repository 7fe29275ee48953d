"""The points of a sweep: a setting, and the values that some of its fields take.

A *cell* is what one simulation measures: a point on every axis but the ridge, whose whole curve costs one
factorisation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.setting import Setting
from resolvent.setting.ranges import flag, number
from resolvent.setting.variation import CHOICES, checked_names, varied

Array = NDArray[np.float64]
Index = tuple[int | slice, ...]


@dataclass(frozen=True)
class Grid:
    """A setting and its axes: the values of each field that varies, by name, in the order of the dims."""

    setting: Setting
    axes: dict[str, list[Any]]

    @classmethod
    def over(cls, setting: Setting, axes: Mapping[str, Any]) -> Grid:
        """Check the axes and the setting at every point; ValueError or TypeError in one line."""
        if setting.shape:
            raise ValueError(f"sweep takes one setting, got arrays of shape {setting.shape}")
        if not axes:
            raise ValueError("over must name at least one field that varies, got none")
        checked_names(axes)
        grid = cls(setting, {name: _values(name, values) for name, values in axes.items()})
        for _ in grid.parts(CHOICES):  # a setting checks itself
            pass
        return grid

    @property
    def shape(self) -> tuple[int, ...]:
        """Points on each axis."""
        return tuple(len(values) for values in self.axes.values())

    def parts(self, split: Sequence[str]) -> Iterator[tuple[Index, Setting]]:
        """The grid cut along the axes in `split`: where each part lies, and its points as one setting of
        arrays.
        """
        names = list(self.axes)
        cut = [name for name in names if name in split]
        whole = [name for name in names if name not in split]
        open_axes = dict(zip(whole, np.ix_(*(self.axes[name] for name in whole)), strict=True))
        for at in product(*(range(len(self.axes[name])) for name in cut)):
            place = dict(zip(cut, at, strict=True))
            chosen = {name: self.axes[name][i] for name, i in place.items()}
            yield (
                tuple(place.get(name, slice(None)) for name in names),
                varied(self.setting, chosen | open_axes),
            )

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """Points on each axis but the ridge's."""
        return tuple(len(values) for name, values in self.axes.items() if name != "ridge")

    @property
    def cells(self) -> int:
        """How many simulations the grid needs."""
        return math.prod(self.cell_shape)

    def place(self, cell: int) -> Index:
        """Where a cell lies in the grid, the ridge left open."""
        at = iter(np.unravel_index(cell, self.cell_shape)) if self.cell_shape else iter(())
        return tuple(slice(None) if name == "ridge" else int(next(at)) for name in self.axes)

    def cell(self, cell: int) -> Setting:
        """The setting of a cell; its ridge is a curve where the ridge varies."""
        pairs = zip(self.axes.items(), self.place(cell), strict=True)
        return varied(self.setting, {name: values[at] for (name, values), at in pairs})

    def fixed(self) -> dict[str, Any]:
        """Values of the setting that are the same at every point, by name."""
        numbers = [name for name in self.axes if name not in CHOICES]
        _, points = next(self.parts([name for name in self.axes if name not in numbers]))
        values: dict[str, Any] = points.as_dict()
        plain = {
            name: json.dumps(value, default=float) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return {name: value for name, value in plain.items() if name not in self.axes and np.ndim(value) == 0}


def _values(name: str, values: Any) -> list[Any]:
    """The values of an axis: distinct, and of the kind that the field takes."""
    if isinstance(values, str) or np.ndim(values) != 1:
        raise ValueError(f"{name} must vary over a list of values, got {values!r}")
    if len(values) == 0:
        raise ValueError(f"{name} must vary over at least one value, got none")
    kept: list[Any]
    if name == "f":
        for value in values:
            if not isinstance(value, str):
                raise TypeError(f"f must vary over names or expressions, got {value!r}")
        kept = [str(value) for value in values]
    elif name in CHOICES:
        kept = [flag(name, value) for value in values]
    else:
        kept = np.asarray(number(name, values)).tolist()
    for i, value in enumerate(kept):
        if value in kept[:i]:
            raise ValueError(f"{name} must vary over distinct values, got {value!r} twice")
    return kept
