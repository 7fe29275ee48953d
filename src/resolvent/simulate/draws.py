"""Running independent draws on the available cores, each with its own random stream.

Every draw computes with one BLAS thread and a stream made from (seed, index) alone, so that results do not
depend on how many draws run at once. A single draw uses the cores for its column blocks instead.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from resolvent.simulate.progress import bar

Array = NDArray[np.float64]
Task = Callable[[np.random.Generator, Executor | None], Array]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: `values` holds the finished draws in order, `record` the result made of them (at least 2)."""

    def __init__(self, values: Array, draws: int) -> None:
        super().__init__(f"interrupted after {len(values)} of {draws} draws")
        self.values = values
        self.record: object | None = None


def stream(seed: int, index: int) -> np.random.Generator:
    """The random stream of one draw."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))


def run_draws(task: Task, draws: int, seed: int, workers: int, progress: bool) -> Array:
    """task(rng, pool) for every draw, stacked in order; Interrupted keeps those that were finished."""
    done: dict[int, Array] = {}
    running: dict[Future[Array], int] = {}
    waiting = iter(range(draws))
    with ThreadPoolExecutor(workers) as pool, bar("draws", draws, progress) as advance:
        try:
            if draws == 1:
                return task(stream(seed, 0), pool)[None]
            running |= {pool.submit(task, stream(seed, i), None): i for i in islice(waiting, workers + 1)}
            while running:
                future = next(as_completed(running))
                done[running.pop(future)] = future.result()
                running |= {pool.submit(task, stream(seed, i), None): i for i in islice(waiting, 1)}
                advance()
        except BaseException as error:
            pool.shutdown(cancel_futures=True)  # waits for the draws that are running
            if isinstance(error, KeyboardInterrupt):
                kept = {i: f.result() for f, i in running.items() if not f.cancelled() and not f.exception()}
                raise Interrupted(_stack(done | kept), draws) from None
            raise
    return _stack(done)


def _stack(done: dict[int, Array]) -> Array:
    return np.array([done[index] for index in sorted(done)])
