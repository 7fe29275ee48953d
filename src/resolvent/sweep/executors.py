"""Where cells are measured: in this process, or in a pool of processes.

Each executor is a generator of finished cells, in whatever order they finish; closing it stops the rest.
Processes are spawned, and compute with one thread for linear algebra each. They live as long as the other
end of a pipe: when this process closes it or dies, however it dies, they stop at once.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.sweep.journal import Journal

Array = NDArray[np.float64]
Finished = Generator[tuple[int, Array], None, None]


@dataclass
class Kept:
    """Measures a cell and writes it to the journal, if there is one, in the process that measured it."""

    measure: Callable[[int], Array]
    journal: Journal | None

    def __call__(self, cell: int) -> Array:
        """The cell's values, kept."""
        values = self.measure(cell)
        if self.journal is not None:
            self.journal.append(cell, values)
        return values


def in_process(task: Kept, cells: Sequence[int]) -> Finished:
    """One cell after the other."""
    for cell in cells:
        yield cell, task(cell)


def process_pool(task: Kept, cells: Sequence[int], workers: int) -> Finished:
    """Cells on `workers` processes. Raises ChildProcessError when one of them dies."""
    _refuse_local_functions(task)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    pool = ProcessPoolExecutor(min(workers, len(cells)), context, _start, (theirs, task))
    try:
        with _ignoring_interrupts():
            futures = {pool.submit(_measure, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
    except BrokenExecutor:
        raise ChildProcessError("a worker process died, killed or out of memory") from None
    except BaseException:
        ours.close()  # stops what runs
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        theirs.close()


def _refuse_local_functions(task: Kept) -> None:
    """ValueError for a setting that can't be sent to another process."""
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"workers must be 1 for an f that other processes can't import: {reason}") from None


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes that start here ignore Ctrl-C, which is their parent's to hear."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)


_task: Kept | None = None  # of a worker process, whose only job it is


def _start(pipe: Connection, task: Kept) -> None:
    """Prepare a worker process, and bind it to its parent's life."""
    global _task
    _task = task
    threadpool_limits(1, user_api="blas")
    threading.Thread(target=_until_closed, args=(pipe,), daemon=True).start()


def _until_closed(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)


def _measure(cell: int) -> Array:
    assert _task is not None
    return _task(cell)
