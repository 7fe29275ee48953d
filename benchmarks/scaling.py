"""One draw as n grows, each in a process of its own: time, processor time and peak memory.

`scaling` keeps p/n fixed: the products cost 4 p n^2 flops and memory is a few arrays of p n numbers, so the
slopes in log n should be 3 and 2. `large` keeps p = 1024, forms the products in single precision and takes no
fresh tokens; its parts are those products at the speed of a bare product in float32, on as many threads, and
f on n^2 entries.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.clock import timed
from benchmarks.machine import cores
from benchmarks.registry import Row, benchmark

MIB = 2**20
CHILD = """
import json, sys, time
from resource import RUSAGE_SELF, getrusage
from resolvent import Setting, Tokens, simulate
p, n, single = (int(word) for word in sys.argv[1:])
fresh = 0 if single else None
simulate(Setting(), n=64, draws=1)  # everything is loaded
before, wall, cpu = getrusage(RUSAGE_SELF).ru_maxrss, time.perf_counter(), time.process_time()
simulate(Setting(Tokens(p / n, 1.0)), n=n, draws=1, single=bool(single), fresh=fresh)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, getrusage(RUSAGE_SELF).ru_maxrss]))
"""


class Cost(NamedTuple):
    """Seconds of wall and of processor, and the peak memory of the process in MiB."""

    wall: float
    cpu: float
    peak: float


def one_draw(p: int, n: int, single: bool) -> Cost:
    """A draw in a new process."""
    command = [sys.executable, "-c", CHILD, str(p), str(n), str(int(single))]
    wall, cpu, peak = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    return Cost(wall, cpu, peak * unit / MIB)


@benchmark("scaling", "one draw at p = n/4 as n doubles")
def scaling(quick: bool) -> list[Row]:
    sizes = [512, 1024, 2048] if quick else [1024, 2048, 4096, 8192]
    costs = [one_draw(n // 4, n, single=False) for n in sizes]
    rows: list[Row] = [{"n": n, **cost._asdict()} for n, cost in zip(sizes, costs, strict=True)]
    last = np.log(sizes[-2:])
    slopes = (np.log(np.array(costs[-1])) - np.log(np.array(costs[-2]))) / (last[1] - last[0])
    return [*rows, {"n": "slope", **Cost(*slopes.tolist())._asdict()}]


@benchmark("large", "one draw at p = 1024 in single precision, beside its products and f")
def large(quick: bool) -> list[Row]:
    p = 1024
    product, tanh = _parts(p)
    rows: list[Row] = []
    for n in [4_000, 8_000] if quick else [10_000, 20_000, 100_000]:
        cost = one_draw(p, n, single=True)
        parts = 4.0 * p * n**2 * product + n**2 * tanh
        rows.append(
            {
                "n": n,
                **cost._asdict(),
                "parts": parts / cores(),
                "x parts": cost.wall * cores() / parts,
                "x parts, of one core": cost.cpu / parts,
            }
        )
    return rows


def _parts(p: int) -> tuple[float, float]:
    """Processor seconds of a flop of a product, and of tanh of an entry, in float32 on all cores."""
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((p, width)).astype(np.float32) for width in (2048, 512))
    scores = left.T @ right

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(cores()) as pool:

        def seconds(call: Callable[[], object]) -> float:
            def everywhere() -> None:
                for done in [pool.submit(call) for _ in range(cores())]:
                    done.result()

            return timed(everywhere, 9).cpu / cores()

        flop = seconds(lambda: left.T @ right) / (2.0 * p * scores.size)
        return flop, seconds(lambda: np.tanh(scores)) / scores.size
