"""Wall and processor time of a call, the best of a few repetitions."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    wall: float
    cpu: float  # of all threads together; says what an idle machine would do when this one is shared


def timed(call: Callable[[], object], repeats: int = 3) -> Timing:
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(min(walls), min(cpus))
