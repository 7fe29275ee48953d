"""The ridge curve of large features by bidiagonalisation, against their eigenpairs, one thread each.

`chosen` says what the cost model does; the agreement is the largest difference of the training errors.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.clock import measured
from benchmarks.registry import Row, benchmark
from resolvent.nonlinearity import nonlinearity
from resolvent.simulate.bidiagonal import bidiagonal, quicker, worth
from resolvent.simulate.features import Attention, features
from resolvent.simulate.probe import Probe

Array = NDArray[np.float64]


@benchmark("bidiagonal", "a curve of 50 ridges from its smallest up to 100, against eigenpairs")
def curve(quick: bool) -> list[Row]:
    p = 1024 if quick else 4096
    n = 2 * p
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], n)
    mu = np.full(p, 1.0 / np.sqrt(p))
    tokens = rng.standard_normal((p, n)) + np.outer(mu, labels)
    with threadpool_limits(1, user_api="blas"):
        built = features(Attention(nonlinearity("tanh").evaluate, 0 * mu, 0 * mu, single=True), tokens)
        exact, pairs = measured(lambda: Probe.fit(built, labels))
        mean = float(np.vdot(built, built)) / (n * p)
        most = 4 * worth(p, n, 50)  # also where that is no gain
        rows: list[Row] = []
        for smallest in (1.0, 0.1, 0.01, 0.001):
            ridge = np.geomspace(smallest, 100.0, 50)
            found, timing = measured(partial(_curve, built, labels, ridge, most))
            if found is None:
                continue
            steps, train = found
            rows.append(
                {
                    "smallest ridge": smallest,
                    "p": p,
                    "n": n,
                    "steps": steps,
                    "seconds": timing.wall,
                    "eigenpairs": pairs.wall,
                    "times quicker": pairs.wall / timing.wall,
                    "of one core": pairs.cpu / timing.cpu,
                    "chosen": str(quicker(p, n, ridge, mean)),
                    "agreement": float(np.abs(train - exact.train(ridge)).max()),
                }
            )
    return rows


def _curve(built: Array, labels: Array, ridge: Array, most: int) -> tuple[int, Array] | None:
    """Steps, and the training errors."""
    found = bidiagonal(built, labels, float(ridge[0]), most)
    return None if found is None else (found.alpha.size, found.solve(ridge)[0])
