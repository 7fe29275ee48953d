"""One draw in NumPy, and on every library and device of the array API that this machine has, GPUs included.

It needs nobody: what the machine lacks is left out, and a last row says so where there is no GPU. Times are
of whole draws, tokens and transfers included. The agreement is the largest difference of the errors from
NumPy's, on the same tokens; a GPU also takes sizes that would keep NumPy for minutes.
"""

import os
from functools import partial

import numpy as np

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent import Setting, Tokens, Weights, simulate
from resolvent.simulate.device import device

DEVICES = ("torch", "torch:cuda", "cupy", "jax")
CURVE = np.geomspace(1e-3, 10.0, 20)


@benchmark("device", "seconds of one draw at p = n/4 with 20 ridges and with one, by device")
def devices(quick: bool) -> list[Row]:
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    there = [name for name in DEVICES if _found(name)]
    gpus = [name for name in there if _is_gpu(name)]
    rows: list[Row] = []
    for n in [1024] if quick else [2048, 8192]:
        for ridge in (CURVE, CURVE[9:10]):
            call = partial(
                simulate, Setting(Tokens(0.25, 2.0), Weights.aligned(0.5), ridge=ridge), n=n, draws=1
            )
            here, wall = call().values, timed(call, 2).wall
            rows.append(_row("NumPy", n, ridge.size, wall, 1.0, 0.0))
            for name in there:
                values = call(device=name).values  # also warms up
                took = timed(partial(call, device=name), 2).wall
                rows.append(_row(name, n, ridge.size, took, wall / took, float(np.abs(values - here).max())))
    for name in gpus:
        for n in [] if quick else [16384, 32768]:
            setting = Setting(Tokens(0.25, 2.0), Weights.aligned(0.5), ridge=CURVE)
            took = timed(partial(simulate, setting, n=n, draws=1, device=name), 1).wall
            rows.append(_row(name, n, CURVE.size, took))
    return rows if gpus else [*rows, _row("no GPU on this machine")]


def _row(
    name: str,
    n: int | None = None,
    ridges: int | None = None,
    seconds: float | None = None,
    times: float | None = None,
    agreement: float | None = None,
) -> Row:
    return {
        "device": name,
        "n": n,
        "ridges": ridges,
        "seconds": seconds,
        "times NumPy": times,
        "agreement": agreement,
    }


def _found(name: str) -> bool:
    """Whether this machine has it."""
    try:
        device(name)
    except (ImportError, ValueError):
        return False
    return True


def _is_gpu(name: str) -> bool:
    if name == "jax":
        import jax

        return bool(jax.default_backend() != "cpu")
    return name in ("torch:cuda", "cupy")
