"""Cells of a simulated sweep per second, with the journal, in this process and in one and two others.

Every run writes its journal afresh, synced after each cell. The start of the processes is measured by itself,
as a sweep of one cell on each.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent import Setting, Weights
from resolvent.simulate import simulate
from resolvent.sweep.cells import Measure, Sizes
from resolvent.sweep.executors import Finished, Kept, in_process, process_pool
from resolvent.sweep.grid import Grid
from resolvent.sweep.journal import Journal

SIZES = {"small": Sizes(n=128, draws=4), "large": Sizes(n=1024, draws=4)}


def grid(cells: int) -> Grid:
    over = {"snr": np.linspace(0.0, 8.0, cells), "ridge": np.geomspace(1e-3, 10.0, 20)}
    return Grid.over(Setting(weights=Weights.aligned(1.0)), over)


def measured(task: Measure, cells: int, workers: int) -> int:
    """Measure so many cells into a new journal; how many it then holds."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal")
        journal.open({})
        kept, todo = Kept(task, journal), range(cells)
        finished: Finished = process_pool(kept, todo, workers) if workers else in_process(kept, todo)
        for _ in finished:
            pass
        journal.close()
        return len(journal.read(cells, task.shape))


@benchmark("sweep", "cells of a simulated sweep per second, by worker processes (0: none but this)")
def sweep(quick: bool) -> list[Row]:
    rows: list[Row] = []
    for name, sizes in SIZES.items():
        cells = (40 if quick else 400) if name == "small" else (4 if quick else 16)
        task = Measure(grid(cells), sizes, threads=1)
        alone = timed(partial(simulate, task.grid.cell(0), n=sizes.n, draws=sizes.draws, threads=1), 2).wall
        rows += [_row(task, workers, cells, alone) for workers in (0, 1, 2)]
    return rows


def _row(task: Measure, workers: int, cells: int, alone: float) -> Row:
    start = timed(partial(measured, task, workers, workers), 1).wall if workers else 0.0
    timing = timed(partial(measured, task, cells, workers), 1)
    return {
        "cell": f"n = {task.sizes.n}, {task.sizes.draws} draws",
        "workers": workers,
        "cells": cells,
        "seconds": timing.wall,
        "of which start": start,
        "cells_per_second": cells / timing.wall,
        "x simulate alone": timing.wall / (cells * alone),
    }
