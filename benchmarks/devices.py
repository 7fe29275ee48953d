"""One draw in NumPy, and on every library and device of the array API that this machine has, GPUs included.

The agreement is the largest difference of the errors from NumPy's, on the same tokens.
"""

from functools import partial

import numpy as np

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent import Setting, Tokens, Weights, simulate
from resolvent.simulate.device import device

DEVICES = ("torch", "torch:cuda", "cupy", "jax")


@benchmark("device", "seconds of one draw with 20 ridges, by device")
def devices(quick: bool) -> list[Row]:
    setting = Setting(Tokens(0.25, 2.0), Weights.aligned(0.5), ridge=np.geomspace(1e-3, 10.0, 20))
    n = 1024 if quick else 8192
    call = partial(simulate, setting, n=n, draws=1)
    here = call().values
    rows: list[Row] = [{"device": "NumPy", "n": n, "seconds": timed(call, 2).wall, "agreement": 0.0}]
    for name in DEVICES:
        try:
            device(name)
        except (ImportError, ValueError):
            continue  # not on this machine
        there = partial(call, device=name)
        agreement = float(np.abs(there().values - here).max())  # the first call also warms up
        rows.append({"device": name, "n": n, "seconds": timed(there, 2).wall, "agreement": agreement})
    return rows
