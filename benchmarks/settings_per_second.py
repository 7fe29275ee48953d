"""How many settings a second `attention_errors` solves, against the two ways one would write first.

scipy.optimize.root solves the three equations for (log t, u, log alpha) point by point, and the half-damped
iteration of the same equations runs on all points at once; both average over midpoint nodes of the
Marchenko-Pastur law. They stop at the three scalars, where `attention_errors` goes on to both errors. The
accuracy is the largest relative error of t, u and alpha against the same equations with 20,000 nodes.
"""

import importlib.util

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from benchmarks.clock import Timing, timed
from benchmarks.registry import Row, benchmark
from resolvent.equivalents import attention_errors

Array = NDArray[np.float64]
Scalars = tuple[Array, Array, Array]

REFERENCE_NODES = 20_000
NODES = 64


def random_settings(size: int, seed: int = 0) -> dict[str, Array]:
    """Ratios 0.1 to 10, ridges 1e-4 to 10, powers of the usual activations, random weights."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, 3, 4))
    return {
        "ratio": 10.0 ** rng.uniform(-1.0, 1.0, size),
        "ridge": 10.0 ** rng.uniform(-4.0, 1.0, size),
        "a1": rng.uniform(0.2, 1.0, size),
        "sigma2": 10.0 ** rng.uniform(-2.0, 0.5, size),
        "gram": vectors @ np.swapaxes(vectors, -1, -2),
    }


def law(c: Array, nodes: int) -> tuple[Array, Array]:
    """Midpoint nodes and weights of the Marchenko-Pastur law, the atom at 0 last: (settings, nodes + 1)."""
    angle = np.pi * (np.arange(nodes) + 0.5) / nodes
    half = 2.0 / np.sqrt(c)[:, None]
    g = 1.0 + 1.0 / c[:, None] + half * np.cos(angle)
    weight = half**2 * np.sin(angle) ** 2 * c[:, None] / (2.0 * nodes * g)
    atom = np.maximum(1.0 - c, 0.0)[:, None]
    return np.hstack([g, np.zeros_like(atom)]), np.hstack([weight, atom])


def image(settings: dict[str, Array], law: tuple[Array, Array], scalars: Scalars) -> Scalars:
    """The right-hand sides of the three equations (theory page, section 4)."""
    g, weight = law
    c, gamma, a1, sigma2 = (settings[name][:, None] for name in ("ratio", "ridge", "a1", "sigma2"))
    t, u, alpha = (value[:, None] for value in scalars)
    b = a1 * (g - 1.0) - u
    Delta = alpha * (1.0 + t * c * g) + b * b * c * g
    noise = sigma2 / c * weight / Delta
    return (
        (noise * (1.0 + t * c * g)).sum(axis=1),
        (noise * b * c * g).sum(axis=1),
        (gamma + (noise * alpha * c * g).sum(axis=1, keepdims=True))[:, 0],
    )


def half_damped(settings: dict[str, Array], nodes: int, tolerance: float = 1e-10) -> Scalars:
    """Iterate from (0, 0, gamma), dropping the settings that no longer move."""
    nodes_of = law(settings["ratio"], nodes)
    result = np.array([np.zeros_like(settings["ratio"]), np.zeros_like(settings["ratio"]), settings["ridge"]])
    active = np.arange(result.shape[1])
    for _ in range(5_000):
        some = {name: settings[name][active] for name in ("ratio", "ridge", "a1", "sigma2")}
        old = result[:, active]
        new = 0.5 * (old + image(some, (nodes_of[0][active], nodes_of[1][active]), (old[0], old[1], old[2])))
        result[:, active] = new
        active = active[np.abs(new - old).max(axis=0) > tolerance * np.abs(new).max(axis=0)]
        if not active.size:
            break
    return result[0], result[1], result[2]


def by_root(settings: dict[str, Array], nodes: int, start: Scalars | None = None) -> Scalars:
    """scipy.optimize.root for one setting after the other."""
    solutions = []
    for i in range(settings["ratio"].size):
        one = {name: settings[name][i : i + 1] for name in ("ratio", "ridge", "a1", "sigma2")}
        nodes_of = law(one["ratio"], nodes)

        def gap(z: Array, one: dict[str, Array] = one, nodes_of: tuple[Array, Array] = nodes_of) -> Array:
            point = np.exp(z[:1]), z[1:2], np.exp(z[2:])
            t, u, alpha = image(one, nodes_of, point)
            return np.concatenate([np.log(t) - z[:1], u - z[1:2], np.log(alpha) - z[2:]])

        first = (one["sigma2"] / (one["ratio"] * (one["ridge"] + one["sigma2"])), 0.0 * one["a1"],
                 one["ridge"] + one["sigma2"])  # fmt: skip
        t, u, alpha = first if start is None else (value[i : i + 1] for value in start)
        z = root(gap, np.concatenate([np.log(t), u, np.log(alpha)]), tol=1e-13).x
        solutions.append((np.exp(z[0]), z[1], np.exp(z[2])))
    t, u, alpha = np.array(solutions).T
    return t, u, alpha


def worst(scalars: Scalars, reference: Scalars) -> tuple[float, float]:
    """Median and largest, over the settings, of the largest relative error of the three."""
    gaps = [np.abs(mine - exact) / np.abs(exact) for mine, exact in zip(scalars, reference, strict=True)]
    error = np.nan_to_num(np.max(gaps, axis=0), nan=np.inf)
    return float(np.median(error)), float(error.max())


@benchmark("settings", "settings per second, accuracy beside speed")
def settings_per_second(quick: bool) -> list[Row]:
    many = random_settings(100_000 if quick else 1_000_000)
    few = random_settings(60 if quick else 300, seed=1)
    here = attention_errors(**few, compiled=False)
    reference = by_root(few, REFERENCE_NODES, (here.t, here.u, here.alpha))

    rows: list[Row] = []

    def add(method: str, size: int, timing: Timing, scalars: Scalars) -> None:
        median, largest = worst(scalars, reference)
        rows.append(
            {
                "method": method,
                "settings": size,
                "per_second": size / timing.wall,
                "per_cpu_second": size / timing.cpu,
                "median_error": median,
                "largest_error": largest,
            }
        )

    size = many["ratio"].size
    add("resolvent, NumPy", size, timed(lambda: attention_errors(**many, compiled=False)),
        (here.t, here.u, here.alpha))  # fmt: skip
    if importlib.util.find_spec("numba"):
        compiled = attention_errors(**few, compiled=True)
        add("resolvent, compiled", size, timed(lambda: attention_errors(**many, compiled=True)),
            (compiled.t, compiled.u, compiled.alpha))  # fmt: skip
    some = {name: value[:2_000] for name, value in many.items()}
    add(f"half-damped, {NODES} nodes", 2_000, timed(lambda: half_damped(some, NODES), 1),
        half_damped(few, NODES))  # fmt: skip
    add(f"scipy root, {NODES} nodes", few["ratio"].size, timed(lambda: by_root(few, NODES), 1),
        by_root(few, NODES))  # fmt: skip
    slowest = rows[-1]["per_second"]
    return [row | {"times_scipy": row["per_second"] / slowest} for row in rows]
