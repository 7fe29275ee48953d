"""Wall and processor time of a call, the best of a few repetitions."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    wall: float
    cpu: float  # of all threads together; says what an idle machine would do when this one is shared

    def times(self, count: int) -> "Timing":
        return Timing(count * self.wall, count * self.cpu)

    def __add__(self, other: "Timing") -> "Timing":
        return Timing(self.wall + other.wall, self.cpu + other.cpu)


def _processor_seconds() -> float:
    """Of this process and of those it has waited for."""
    return time.process_time() + sum(os.times()[2:4])


def measured(call: Callable[[], T]) -> tuple[T, Timing]:
    """What a call returns, and its times."""
    wall, cpu = time.perf_counter(), _processor_seconds()
    result = call()
    return result, Timing(time.perf_counter() - wall, _processor_seconds() - cpu)


def timed(call: Callable[[], object], repeats: int = 3) -> Timing:
    timings = [measured(call)[1] for _ in range(repeats)]
    return Timing(min(t.wall for t in timings), min(t.cpu for t in timings))
