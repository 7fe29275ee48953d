"""Linear regression alone, measured without building attention features: sizes of the published figures.

E_train = |y - X'w|^2/n,   w = (XX' + n ridge)^-1 X y        theory page, section 6
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import linear_errors
from resolvent.figures.along import Along, Path
from resolvent.figures.record import Panel, Plan
from resolvent.figures.verdict import decimals
from resolvent.setting import Setting, Tokens
from resolvent.simulate.draws import run_draws
from resolvent.simulate.memory import workers_for
from resolvent.simulate.probe import fitted
from resolvent.simulate.sampling import draw

Array = NDArray[np.float64]

MOST_FRESH = 2048


def linear_along(path: Path, curve: Array, at: Array, plan: Plan) -> Along:
    """Limits on `curve` and measurements at `at`, as `along`; what belongs to attention is NaN."""
    x = np.union1d(curve, at)
    tokens, ridge = path(x).tokens, path(x).ridge
    limits = linear_errors(ratio=np.broadcast_to(tokens.ratio, x.shape), ridge=ridge, snr=tokens.snr)
    predicted, measured, se, missing = (np.full((3, 2, x.size), np.nan) for _ in range(4))
    predicted[1] = limits.train, limits.test
    whole = path(at)
    settings = [whole] if np.shape(whole.ridge) == at.shape else [path(value) for value in at]
    plans = [plan._replace(seed=plan.seed + index) for index in range(len(settings))]
    values = np.concatenate([_measured(*each) for each in zip(settings, plans, strict=True)], axis=-1)
    where = np.searchsorted(x, at)
    measured[1][:, where] = values.mean(axis=0)
    se[1][:, where] = values.std(axis=0, ddof=1) / np.sqrt(plan.draws)
    return Along(x, predicted, measured, se, missing)


def error_panels(found: Along, axis: str, log: str) -> tuple[Panel, Panel]:
    """Training and test error."""
    train, test = (found.series("linear", error) for error in ("train", "test"))
    return Panel("training error", axis, "error", (train,), log), Panel(
        "test error", axis, "error", (test,), log
    )


def size_note(plan: Plan, published: Plan) -> str:
    """Whether the size is the published one."""
    if plan.n == published.n:
        return "The published setting"
    return f"The published setting at n = {plan.n} instead of {decimals(published.n)}"


def _measured(setting: Setting, plan: Plan) -> Array:
    """Errors (draw, error, ridge)."""
    p = round(float(setting.tokens.ratio) * plan.n)
    fresh = min(plan.n, MOST_FRESH)
    workers = workers_for(p, plan.n, fresh, plan.draws)
    mu = np.zeros(p)
    mu[0] = np.sqrt(float(setting.tokens.snr))
    ridge = np.atleast_1d(np.asarray(setting.ridge, dtype=float))
    task = partial(_draw, setting.tokens, mu, plan.n, fresh, ridge)
    return run_draws(task, plan.draws, plan.seed, workers, progress=False)


def _draw(
    tokens: Tokens, mu: Array, n: int, fresh: int, ridge: Array, rng: np.random.Generator, _: object
) -> Array:
    """Errors of one draw: (error, ridge)."""
    context = draw(tokens, mu, n, rng)
    train, w = fitted(context.tokens, context.targets, ridge)
    del context
    new = draw(tokens, mu, fresh, rng)
    return np.stack([train, np.mean((w @ new.tokens - new.targets) ** 2, axis=1)])
