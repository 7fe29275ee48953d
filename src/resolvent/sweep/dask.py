"""Cells on a Dask cluster, near or far.

Its workers need not share a disk with this process, so this process keeps the journal. Cells of a worker that
dies go to another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.sweep.executors import Finished
from resolvent.sweep.journal import Journal

if TYPE_CHECKING:
    from distributed import Client

Array = NDArray[np.float64]

PATIENCE = 10  # seconds to find a scheduler


def dask_cluster(
    measure: Callable[[int], Array], journal: Journal | None, cells: Sequence[int], scheduler: Any
) -> Finished:
    """Cells on the cluster of `scheduler`: an address, a cluster object or a client.

    Raises ChildProcessError when a cell's workers died again and again, and ConnectionError when there is no
    scheduler, or no longer.
    """
    from distributed import CancelledError, KilledWorker, as_completed

    with _client(scheduler) as client:
        futures = client.map(_measured, [measure] * len(cells), cells, pure=False)
        cell_of = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        try:
            for future, values in as_completed(futures, loop=client.loop, with_results=True):
                cell = cell_of[future.key]
                if journal is not None:
                    journal.append(cell, values)
                yield cell, values
        except KilledWorker as error:
            raise ChildProcessError(f"workers of the Dask cluster died again and again: {error}") from None
        except CancelledError:
            raise ConnectionError("the Dask scheduler went away") from None
        finally:
            client.cancel(futures)


def _measured(measure: Callable[[int], Array], cell: int) -> Array:
    """On a worker: with one thread for linear algebra, whatever other cells it measures beside this one."""
    threadpool_limits(1, user_api="blas")
    return measure(cell)


@contextmanager
def _client(scheduler: Any) -> Iterator[Client]:
    """A client of the scheduler, closed at the end unless it was given."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a Dask scheduler needs the extra dask: pip install 'resolvent[dask]'") from None

    if isinstance(scheduler, Client):
        yield scheduler
        return
    if not isinstance(scheduler, str) and not hasattr(scheduler, "scheduler_address"):
        raise TypeError(
            f"executor must be a Dask cluster, a client or a scheduler's address, got {scheduler!r}"
        )
    try:
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConnectionError(f"no Dask scheduler at {scheduler}: {reason}") from None
    with client:
        yield client
