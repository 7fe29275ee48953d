"""What it costs to hand a cell to another process and to get its numbers back: cells that measure nothing, on
one worker, in a process of the pool and through a Dask scheduler.
"""

import importlib.util

import numpy as np
from numpy.typing import NDArray

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent.sweep.executors import Kept, in_process, process_pool

SUMMARY = (2, 3, 2, 20)  # what a cell of 20 ridges gives


def nothing(cell: int) -> NDArray[np.float64]:
    return np.full(SUMMARY, float(cell))


@benchmark("dask", "milliseconds that an executor adds to each cell")
def dask_overhead(quick: bool) -> list[Row]:
    cells = range(200 if quick else 2000)
    walls = {
        "in process": timed(lambda: list(in_process(Kept(nothing, None), cells))).wall,
        "process pool, with its start": timed(
            lambda: list(process_pool(Kept(nothing, None), cells, 1)), 1
        ).wall,
    }
    if importlib.util.find_spec("distributed"):
        walls["Dask, running"] = _dask(cells)
    return [
        {"executor": name, "cells": len(cells), "seconds": wall, "ms_per_cell": 1e3 * wall / len(cells)}
        for name, wall in walls.items()
    ]


def _dask(cells: range) -> float:
    from distributed import Client, LocalCluster

    from resolvent.sweep.dask import dask_cluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        list(dask_cluster(nothing, None, range(4), client))  # the worker has imported everything
        return timed(lambda: list(dask_cluster(nothing, None, cells, client))).wall
