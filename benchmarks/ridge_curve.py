"""A training curve of 50 ridges: all of it against the sum of its parts, and against one solve per ridge.

The parts are what no exact method avoids: the products X'X and XK at the speed of NumPy's product, f on the
n x n scores, and one eigendecomposition of a p x p matrix.
"""

import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark
from resolvent.nonlinearity import nonlinearity
from resolvent.simulate.features import Attention, features
from resolvent.simulate.probe import Probe

Array = NDArray[np.float64]

RIDGES = np.logspace(-4, 2, 50)
F = nonlinearity("tanh")


def curve(tokens: Array, labels: Array) -> Array:
    """As `simulate` does for a single draw: one BLAS thread a worker, column blocks over the cores."""
    zero = np.zeros(tokens.shape[0])
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        built = features(Attention(F.evaluate, zero, zero), tokens, pool)
        return Probe.fit(built, labels).train(RIDGES)


def parts(tokens: Array) -> None:
    """Two products, f and one eigendecomposition, with all threads of the BLAS."""
    p = tokens.shape[0]
    scores = tokens.T @ tokens
    scores /= np.sqrt(p)
    np.tanh(scores, out=scores)
    built = tokens @ scores
    np.linalg.eigh(np.eye(p) + built[:, :p] + built[:, :p].T)


def one_solve(built: Array, labels: Array, ridge: float) -> Array:
    """The probe at one ridge, as one would write it first."""
    p, n = built.shape
    return np.linalg.solve(built @ built.T + n * ridge * np.eye(p), built @ labels)


def solve_in_token_space(built: Array, ridge: float) -> Array:
    """The n x n inverse that the definition of Q asks for."""
    n = built.shape[1]
    return np.linalg.inv(built.T @ built / n + ridge * np.eye(n))


@benchmark("ridge_curve", "what does a curve of 50 ridges cost, beside its parts and other ways?")
def ridge_curve(quick: bool) -> list[Row]:
    p, n = (512, 1024) if quick else (2048, 4096)
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], n)
    tokens = rng.standard_normal((p, n)) + 0.02 * labels
    zero = np.zeros(p)
    built = features(Attention(F.evaluate, zero, zero), tokens)
    ours = timed(lambda: curve(tokens, labels), 3)
    bare = timed(lambda: Probe.fit(built, labels).train(RIDGES), 2)
    inverse = timed(lambda: solve_in_token_space(built, 0.1), 1)
    anew = timed(lambda: features(Attention(F.evaluate, zero, zero), tokens), 1)
    ways = [
        ("features and curve, resolvent", ours),
        ("its parts: two products, f, eigh", timed(lambda: parts(tokens), 3)),
        ("curve alone from features, resolvent", bare),
        ("50 solves of p x p, numpy", timed(lambda: one_solve(built, labels, 0.1), 2).times(50)),
        ("50 inverses of n x n, numpy", inverse.times(50)),
        ("the same, features built anew for each", (inverse + anew).times(50)),
    ]
    if importlib.util.find_spec("sklearn") is not None:
        from sklearn.linear_model import Ridge, RidgeCV

        plain = Ridge(alpha=0.1 * n, fit_intercept=False)
        cv = RidgeCV(alphas=RIDGES * n, fit_intercept=False)
        ways += [
            ("50 fits of scikit-learn's Ridge", timed(lambda: plain.fit(built.T, labels), 1).times(50)),
            ("scikit-learn's RidgeCV", timed(lambda: cv.fit(built.T, labels), 1)),
        ]
    return [
        {
            "way": name,
            "p": p,
            "n": n,
            "seconds": took.wall,
            "of one core": took.cpu,
            "x features and curve": took.wall / ours.wall,
            "x curve": took.wall / bare.wall,
        }
        for name, took in ways
    ]
