"""sweep: a grid of settings to a labelled dataset of predictions, and measurements that survive a crash."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.setting import Setting
from resolvent.setting.ranges import integer
from resolvent.simulate.memory import core_count
from resolvent.simulate.progress import bar
from resolvent.sweep.cells import Measure, Sizes
from resolvent.sweep.dask import dask_cluster
from resolvent.sweep.executors import Finished, Kept, in_process, process_pool
from resolvent.sweep.files import checked_path, save, saved_identity
from resolvent.sweep.grid import Grid
from resolvent.sweep.journal import Journal
from resolvent.sweep.labelled import differences, identity, labelled, with_measured
from resolvent.sweep.prediction import predicted

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a sweep: `dataset` holds what was finished, the rest is NaN."""

    def __init__(self, message: str, dataset: xarray.Dataset) -> None:
        super().__init__(message)
        self.dataset = dataset


def sweep(
    setting: Setting,
    over: Mapping[str, ArrayLike],
    *,
    simulate: Mapping[str, int] | None = None,
    path: str | Path | None = None,
    executor: Any = None,
    workers: int = 1,
    progress: bool = False,
) -> xarray.Dataset:
    """Predictions, and measurements if wanted, at every point of a grid of settings.

    Parameters
    ----------
    setting
        What does not vary.
    over
        Values of what varies, by name: any number of `Tokens`, `Weights` or `Setting`, f (names or
        expressions), keep_diagonal, centred.
    simulate
        {"n", "draws", "seed"} as in `simulate`, to measure too. A point on every axis but the ridge is one
        simulation, whose seed comes from `seed` and its place alone.
    path
        Where to save: .nc, .zarr or .parquet. Measurements are kept in `path.journal` as they finish, and the
        same call again computes only what is missing.
    executor, workers
        Where to simulate: in this process; with workers above 1, in so many processes; or on the Dask cluster
        of `executor`, a client, a cluster or a scheduler's address. The numbers are the same.
    progress
        Show a progress bar with the time left on stderr.

    Returns
    -------
    xarray.Dataset
        `predicted` (method, error, *over); the solver's certificate `residual`, `iterations`, `converged`
        (*over); when simulated `measured` and `standard_error` (method, error, *over), and `difference` and
        `difference_se` (error, *over): attention less linear regression, paired draw by draw. Attributes:
        the rest of the setting, the sizes, the versions. `predicted` is NaN where `converged` is False.

    Raises
    ------
    ValueError, TypeError
        For a wrong grid, setting or size, or a path that holds another sweep.
    ImportError
        When an optional library is missing.
    OSError
        When a file can't be written, a worker died or another sweep is at work on the same path. What was
        finished is kept.
    Stopped
        On Ctrl-C, a KeyboardInterrupt with the finished part of the dataset.

    >>> from resolvent import Setting
    >>> d = sweep(Setting(), {"ridge": [0.01, 0.1, 1.0], "f": ["tanh", "relu"]})
    >>> dict(d.predicted.sizes)
    {'method': 2, 'error': 2, 'ridge': 3, 'f': 2}
    """
    grid, workers = Grid.over(setting, over), integer("workers", workers, 1)
    sizes = None if simulate is None else Sizes.checked(dict(simulate), grid)
    if path is not None:
        path = checked_path(path)
    dataset = labelled(grid, predicted(grid, sizes and sizes.n), sizes)
    journal = None if path is None else _journal(path, dataset, sizes)
    if sizes is not None:
        with nullcontext() if journal is None else journal.alone():
            dataset = _measured(dataset, grid, sizes, journal, executor, workers, progress)
    if path is not None:
        save(dataset, path)
    return dataset


def _journal(path: Path, dataset: xarray.Dataset, sizes: Sizes | None) -> Journal | None:
    """The sweep's journal. Raises ValueError when the file or the journal belong to another sweep."""
    journal, here = Journal(path.with_name(path.name + ".journal")), identity(dataset)
    found = [saved_identity(path)]
    if sizes is not None or journal.folder.exists():
        found.append(journal.open(here))
    for there in found:
        if there is not None and (words := differences(there, here)):
            raise ValueError(
                f"{path} holds another sweep ({words}): "
                f"choose another file, or remove it and {journal.folder}"
            )
    return None if sizes is None else journal


def _measured(
    dataset: xarray.Dataset,
    grid: Grid,
    sizes: Sizes,
    journal: Journal | None,
    executor: Any,
    workers: int,
    progress: bool,
) -> xarray.Dataset:
    """The dataset with every cell measured, those of the journal read from it."""
    shape = Measure(grid, sizes).shape
    done = {} if journal is None else journal.read(grid.cells, shape)
    missing = [cell for cell in range(grid.cells) if cell not in done]
    try:
        with (
            closing(_finished(Measure(grid, sizes), journal, missing, executor, workers)) as finished,
            bar("cells", grid.cells, progress, len(done)) as advance,
        ):
            for cell, values in finished:
                done[cell] = values
                advance()
    except KeyboardInterrupt:
        stop = f"interrupted after {_kept(done, grid, journal)}"
        raise Stopped(stop, with_measured(dataset, grid, done)) from None
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        raise type(error)(f"{reason}, after {_kept(done, grid, journal)}") from error
    finally:
        if journal is not None:
            journal.close()
    return with_measured(dataset, grid, done)


def _finished(
    measure: Measure, journal: Journal | None, cells: list[int], executor: Any, workers: int
) -> Finished:
    """Finished cells of the executor that was chosen."""
    if not cells:
        return in_process(Kept(measure, None), [])
    if executor is not None:
        alone = Measure(measure.grid, measure.sizes, threads=1)
        return dask_cluster(alone, journal, cells, executor)
    if workers == 1:
        return in_process(Kept(measure, journal), cells)
    share = Measure(measure.grid, measure.sizes, threads=max(1, core_count() // workers))
    return process_pool(Kept(share, journal), cells, workers)


def _kept(done: dict[int, Array], grid: Grid, journal: Journal | None) -> str:
    """How much is finished and how to go on, in words."""
    count = f"{len(done)} of {grid.cells} cells"
    if journal is None:
        return f"{count}: give a path to keep them"
    return f"{count}, kept in {journal.folder}: the same command goes on from there"
