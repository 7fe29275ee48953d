"""The engine on linear attention in noise: compile, one value, and a thousand ridges in one call."""

from time import perf_counter

import numpy as np

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent.engine import Dim, Equivalent, Gaussian, Wigner, equivalent, eye, inv, symbols


def attention() -> Equivalent:
    """The equivalent of the noise-only resolvent of attention at ratio 1/2."""
    n, p = Dim("n"), Dim("p")
    gamma, a1, sigma = symbols("gamma a1 sigma")
    Z, W = Gaussian("Z", p, n), Wigner("W", n, 1 / p)
    K = a1 * (Z.T @ Z / p - eye(n)) + sigma * W
    return equivalent(inv(gamma * eye(n) + K.T @ Z.T @ Z @ K / n), {p / n: 0.5})


@benchmark("engine", "what does the engine take for the attention pencil?")
def engine(quick: bool) -> list[Row]:
    start = perf_counter()
    eq = attention()
    eq.trace(gamma=0.1, a1=0.6, sigma=0.17)
    first = perf_counter() - start
    one = timed(lambda: eq.trace(gamma=0.1, a1=0.6, sigma=0.17), 50)
    ridges = np.logspace(-3, 1, 100 if quick else 1000)
    many = timed(lambda: eq.trace(gamma=ridges, a1=0.6, sigma=0.17), 3)
    return [
        {"what": "compile and first value", "ms wall": 1e3 * first, "ms of one core": None},
        {"what": "one value", "ms wall": 1e3 * one.wall, "ms of one core": 1e3 * one.cpu},
        {"what": f"{ridges.size} ridges", "ms wall": 1e3 * many.wall, "ms of one core": 1e3 * many.cpu},
    ]
