"""One cell of a sweep: a simulation with a seed of its own, made of the sweep's seed and the cell's index.

What it gives depends on nothing else: not on the process, the number of workers or the order of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.setting.ranges import integer
from resolvent.simulate import Measurement, simulate
from resolvent.sweep.grid import Grid
from resolvent.sweep.prediction import dimension

Array = NDArray[np.float64]

SUMMARY = (2, 3, 2)  # mean and standard error; attention, linear and their difference; train and test


class Sizes(NamedTuple):
    """How much is simulated in each cell."""

    n: int = 1024
    draws: int = 20
    seed: int = 0

    @classmethod
    def checked(cls, given: Any, grid: Grid) -> Sizes:
        """From {"n", "draws", "seed"}; ValueError or TypeError in one line."""
        if not isinstance(given, dict) or set(given) - set(cls._fields):
            raise TypeError(f"simulate takes a dict of {', '.join(cls._fields)}, got {given!r}")
        values = cls(**given)._asdict()
        lowest = {"n": 4, "draws": 1, "seed": 0}
        sizes = cls(**{name: integer(name, value, lowest[name]) for name, value in values.items()})
        if sizes.seed >= 2**63:
            raise ValueError(f"seed must be below 2^63, got {sizes.seed}")
        for ratio in grid.axes.get("ratio", [grid.setting.tokens.ratio]):
            dimension(float(ratio), sizes.n)
        return sizes


@dataclass(frozen=True)
class Measure:
    """Measures a cell by its index, on at most `threads` threads."""

    grid: Grid
    sizes: Sizes
    threads: int | None = None

    def __call__(self, cell: int) -> Array:
        """Summary of the draws, SUMMARY x ridge."""
        n, draws, _ = self.sizes
        measured = simulate(
            self.grid.cell(cell), n=n, draws=draws, seed=self.seed(cell), threads=self.threads
        )
        return _summary(measured)

    def seed(self, cell: int) -> int:
        """The cell's own seed: 64 bits of SeedSequence(seed, spawn_key=(cell,))."""
        sequence = np.random.SeedSequence(self.sizes.seed, spawn_key=(cell,))
        return int(sequence.generate_state(1, np.uint64)[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a summary."""
        return (*SUMMARY, len(self.grid.axes.get("ridge", [0])))


def _summary(measured: Measurement) -> Array:
    methods = (measured.attention, measured.linear, measured.difference)
    averages = np.array([[tuple(average) for average in errors] for errors in methods], dtype=float)
    values = np.moveaxis(averages, 2, 0)
    return values if values.ndim == 4 else values[..., None]
