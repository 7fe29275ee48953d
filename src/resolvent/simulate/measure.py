"""simulate: mean and standard error of the same errors that `predict` gives, over independent draws."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.setting import Setting
from resolvent.setting.ranges import integer
from resolvent.simulate.draws import Interrupted, run_draws
from resolvent.simulate.features import Attention, features, predictions
from resolvent.simulate.memory import workers_for
from resolvent.simulate.probe import fitted
from resolvent.simulate.sampling import draw, vectors

Array = NDArray[np.float64]

MOST_FRESH = 4096


class Average(NamedTuple):
    """Mean over draws and its standard error (NaN for a single draw); arrays over ridge when it is one."""

    mean: Array | float
    se: Array | float

    @classmethod
    def over_draws(cls, values: Array) -> Average:
        """Over the first axis."""
        draws = values.shape[0]
        spread = values.std(axis=0, ddof=1) if draws > 1 else np.full(values.shape[1:], np.nan)
        mean, se = values.mean(axis=0), spread / np.sqrt(draws)
        return cls(mean, se) if mean.ndim else cls(float(mean), float(se))

    def as_dict(self) -> dict[str, Array | float]:
        """{"mean", "se"}."""
        return self._asdict()


class Errors(NamedTuple):
    """Training and test error of one method."""

    train: Average
    test: Average

    def as_dict(self) -> dict[str, object]:
        """{"train", "test"}."""
        return {"train": self.train.as_dict(), "test": self.test.as_dict()}


@dataclass(frozen=True)
class Measurement:
    """Measured errors.

    `values` has shape (draws, method, error, *ridge), methods attention and linear, errors train and test.
    """

    setting: Setting
    n: int
    p: int
    draws: int
    seed: int
    values: Array

    @property
    def attention(self) -> Errors:
        """The probe on attention features."""
        return self._errors(0)

    @property
    def linear(self) -> Errors:
        """Linear regression on the same tokens."""
        return self._errors(1)

    @property
    def difference(self) -> Errors:
        """Attention less linear regression, paired draw by draw."""
        paired = self.values[:, 0] - self.values[:, 1]
        return Errors(Average.over_draws(paired[:, 0]), Average.over_draws(paired[:, 1]))

    def _errors(self, method: int) -> Errors:
        return Errors(*(Average.over_draws(self.values[:, method, error]) for error in (0, 1)))

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent simulate --json`."""
        size = {"n": self.n, "p": self.p, "draws": self.draws, "seed": self.seed}
        return {
            "setting": {**self.setting.as_dict(), **size},
            "attention": self.attention.as_dict(),
            "linear": self.linear.as_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{'':18} {'train':>20} {'test':>20}"]
        for name, errors in (("attention", self.attention), ("linear regression", self.linear)):
            cells = [_cell(average) for average in errors]
            lines.append(f"{name:18} {cells[0]:>20} {cells[1]:>20}")
        return "\n".join(lines)


def simulate(
    setting: Setting,
    *,
    n: int = 1024,
    draws: int = 20,
    seed: int = 0,
    fresh: int | None = None,
    single: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Measurement:
    """Measure a setting exactly: sample tokens, build the features, solve the probe, average over draws.

    Parameters
    ----------
    setting
        One setting; only `ridge` may be an array (1-d), and costs one factorisation in all.
    n, draws, seed
        Tokens (at least 4; p = round(ratio n), at least 2), independent repetitions, and the integer that
        decides all randomness: results do not depend on the number of threads.
    fresh
        Fresh tokens per draw for the test error, n up to 4096 by default; 0 skips it (NaN).
    single
        Form products in float32 and add them up in float64: faster, errors about 1e-6.
    threads
        At most so many threads, all cores by default.
    progress
        Show a progress bar on stderr.

    Raises
    ------
    ValueError, TypeError
        For sizes out of range, a setting with other arrays, or one that needs more memory than there is.
    OverflowError
        When f overflows on the scores.
    Interrupted
        On Ctrl-C, a KeyboardInterrupt whose `record` is the Measurement of the draws that were finished.

    Source: theory page, section 10 for the algorithm.

    >>> from resolvent import Setting
    >>> m = simulate(Setting(), n=64, draws=3, seed=1)
    >>> m.p, m.values.shape
    (32, (3, 2, 2))
    """
    n, draws, seed = (
        integer(name, v, low) for name, v, low in (("n", n, 4), ("draws", draws, 1), ("seed", seed, 0))
    )
    count = min(n, MOST_FRESH) if fresh is None else integer("fresh", fresh, 0)
    ridge = np.asarray(setting.ridge, dtype=float)
    if ridge.ndim > 1 or replace(setting, ridge=0.0).shape != ():
        raise ValueError("simulate takes one setting, in which only ridge may be an array of one dimension")
    p = round(float(setting.tokens.ratio) * n)
    if p < 2:
        raise ValueError(f"p = round(ratio n) must be at least 2, got {p}: raise ratio or n")
    most = None if threads is None else integer("threads", threads, 1)
    workers = workers_for(p, n, count, draws, most)
    task = partial(_draw, setting, p, n, count, single, np.atleast_1d(ridge))

    def record(values: Array) -> Measurement:
        return Measurement(setting, n, p, len(values), seed, values[..., 0] if ridge.ndim == 0 else values)

    with threadpool_limits(1, user_api="blas"):
        try:
            return record(run_draws(task, draws, seed, workers, progress))
        except Interrupted as stop:
            stop.record = record(stop.values) if len(stop.values) > 1 else None
            raise


def _draw(
    setting: Setting,
    p: int,
    n: int,
    fresh: int,
    single: bool,
    ridge: Array,
    rng: np.random.Generator,
    pool: Executor | None,
) -> Array:
    """Errors of one draw: (method, error, ridge)."""
    tokens = setting.tokens
    label_mean, label_noise = float(tokens.label_mean), float(tokens.label_noise)
    mu, key, query = vectors(setting.gram.reshape(3, 3), p)
    attention = Attention(setting.f.evaluate, key, query, float(setting.skip), setting.keep_diagonal, single)
    context = draw(mu, n, label_mean, label_noise, rng)
    new = draw(mu, fresh, label_mean, label_noise, rng)
    out = np.full((2, 2, ridge.size), np.nan)

    built = features(attention, context.tokens, pool)
    out[0, 0], w = fitted(built, context.targets, ridge)
    if fresh:
        outputs = predictions(attention, context.tokens, w @ context.tokens, w, new.tokens, pool)
        out[0, 1] = np.mean((outputs - new.targets) ** 2, axis=1)
    out[1, 0], w = fitted(context.tokens, context.targets, ridge)
    if fresh:
        out[1, 1] = np.mean((w @ new.tokens - new.targets) ** 2, axis=1)
    return out


def _cell(average: Average) -> str:
    if np.ndim(average.mean):
        return f"array {np.shape(average.mean)}"
    return f"{average.mean:.5f}" + ("" if np.isnan(average.se) else f" +- {average.se:.5f}")
