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
from resolvent.setting.ranges import flag, integer
from resolvent.simulate.attentions import attentions
from resolvent.simulate.device import Device
from resolvent.simulate.device import device as find_device
from resolvent.simulate.draws import Interrupted, Task, run_draws
from resolvent.simulate.elsewhere import Model, draw_errors
from resolvent.simulate.features import Attention, features, predictions
from resolvent.simulate.memory import workers_for
from resolvent.simulate.probe import fitted
from resolvent.simulate.sampling import Sample, draw

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
    causal: bool = False

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
        size: dict[str, object] = {"n": self.n, "p": self.p, "draws": self.draws, "seed": self.seed}
        size |= {"causal": True} if self.causal else {}
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
        if self.causal:
            lines.append("Causal mask: measured only, the theory does not predict it.")
        return "\n".join(lines)


def simulate(
    setting: Setting,
    *,
    n: int | None = None,
    draws: int = 20,
    seed: int = 0,
    fresh: int | None = None,
    single: bool = False,
    causal: bool = False,
    threads: int | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Measurement:
    """Measure a setting exactly: sample tokens, build the features, solve the probe, average over draws.

    Parameters
    ----------
    setting
        One setting; only `ridge` may be an array (1-d), and costs one factorisation in all.
    n, draws, seed
        Tokens (at least 4; p = round(ratio n), at least 2), independent repetitions, and the integer that
        decides all randomness: results do not depend on the number of threads. n is 1024 when left out, or
        p/ratio where weights given as a matrix fix p.
    fresh
        Fresh tokens per draw for the test error, n up to 4096 by default; 0 skips it (NaN).
    single
        Form products in float32 and add them up in float64: faster, errors about 1e-6.
    causal
        Token j attends to the tokens before it alone, a fresh one to all. No theory here predicts this.
    threads
        At most so many threads, all cores by default.
    device
        "torch", "torch:cuda" or another library of the array API (cupy, jax), and one of its devices: compute
        there, one draw after the other, on the same tokens. Numbers agree with NumPy's to rounding.
    progress
        Show a progress bar on stderr.

    Raises
    ------
    ImportError
        When the device's library is missing.
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
    draws, seed = (integer(name, v, low) for name, v, low in (("draws", draws, 1), ("seed", seed, 0)))
    ridge = np.asarray(setting.ridge, dtype=float)
    if ridge.ndim > 1 or replace(setting, ridge=0.0).shape != ():
        raise ValueError("simulate takes one setting, in which only ridge may be an array of one dimension")
    n, p = sizes(setting, n)
    count = min(n, MOST_FRESH) if fresh is None else integer("fresh", fresh, 0)
    most = None if threads is None else integer("threads", threads, 1)
    workers = workers_for(p * len(setting.heads), n, count, draws, most)
    run = Run(setting, p, n, count, np.atleast_1d(ridge), single, flag("causal", causal))
    task: Task = partial(_draw, run)
    if device is not None:
        if single:
            raise ValueError("single goes without a device, which computes in float64")
        workers, task = 1, partial(_draw_on, find_device(device), run)

    def record(values: Array) -> Measurement:
        kept = values[..., 0] if ridge.ndim == 0 else values
        return Measurement(setting, n, p, len(values), seed, kept, causal)

    with threadpool_limits(1, user_api="blas"):
        try:
            return record(run_draws(task, draws, seed, workers, progress))
        except Interrupted as stop:
            stop.record = record(stop.values) if len(stop.values) > 1 else None
            raise


def sizes(setting: Setting, n: int | None = None) -> tuple[int, int]:
    """n and p = round(ratio n); weights given as a matrix fix p, and n where it is left out.

    >>> from resolvent import Weights
    >>> sizes(Setting(weights=Weights.matrix(np.eye(100))))
    (200, 100)
    """
    ratio, fixed = float(setting.tokens.ratio), setting.dimension
    if n is None:
        n = 1024 if fixed is None else max(round(fixed / ratio), 4)
    n = integer("n", n, 4)
    p = round(ratio * n)
    if fixed is not None and p != fixed:
        if abs(fixed / n - ratio) > 0.5 / n + 1e-9:
            raise ValueError(
                f"n must be about {round(fixed / ratio)}, "
                f"the dimension {fixed} of the weights over the ratio {ratio:g}, got {n}"
            )
        p = fixed
    if p < 2:
        raise ValueError(f"p = round(ratio n) must be at least 2, got {p}: raise ratio or n")
    return n, p


class Run(NamedTuple):
    """What every draw of a simulation shares."""

    setting: Setting
    p: int
    n: int
    fresh: int
    ridge: Array
    single: bool
    causal: bool

    def sample(self, rng: np.random.Generator) -> tuple[list[Attention], Sample, Sample]:
        """The heads, the context and the fresh tokens of a draw."""
        tokens = self.setting.tokens
        mu, heads = attentions(self.setting, self.p, rng, single=self.single, causal=self.causal)
        return heads, draw(tokens, mu, self.n, rng), draw(tokens, mu, self.fresh, rng)


def _draw(run: Run, rng: np.random.Generator, pool: Executor | None) -> Array:
    """Errors of one draw: (method, error, ridge)."""
    heads, context, new = run.sample(rng)
    out = np.full((2, 2, run.ridge.size), np.nan)
    built = [features(head, context.tokens, pool) for head in heads]
    out[0, 0], w = fitted(built[0] if len(built) == 1 else np.vstack(built), context.targets, run.ridge)
    if run.fresh:
        outputs = np.zeros((run.ridge.size, run.fresh))
        for head, part in zip(heads, np.split(w, len(heads), axis=1), strict=True):
            outputs += predictions(head, context.tokens, part @ context.tokens, part, new.tokens, pool)
        out[0, 1] = np.mean((outputs - new.targets) ** 2, axis=1)
    out[1, 0], w = fitted(context.tokens, context.targets, run.ridge)
    if run.fresh:
        out[1, 1] = np.mean((w @ new.tokens - new.targets) ** 2, axis=1)
    return out


def _draw_on(
    device: Device,
    run: Run,
    rng: np.random.Generator,
    pool: Executor | None,  # noqa: ARG001  (the device has its own)
) -> Array:
    """`_draw` on a device."""
    heads, context, new = run.sample(rng)
    models = [
        Model(head.f, head.scale, attention) for head, attention in zip(run.setting.heads, heads, strict=True)
    ]
    return draw_errors(device, models, context, new, run.ridge)


def _cell(average: Average) -> str:
    if np.ndim(average.mean):
        return f"array {np.shape(average.mean)}"
    return f"{average.mean:.5f}" + ("" if np.isnan(average.se) else f" +- {average.se:.5f}")
