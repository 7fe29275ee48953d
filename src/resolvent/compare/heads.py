"""A pretrained head in the theory's place of M: predicted beside measured, beside linear regression.

The head's own M = W_K'W_Q acts on tokens x = +-mu + z with white noise z, scaled so that a score has the
standard deviation tau:

    K = f(X'M X/sqrt p)/sqrt p,     |M|_F = tau sqrt p,     p = d_model,

so the nonlinearity sees scores of the size it was made for, whatever the temperature of the model. What the
head does for a probe depends on where mu lies: in a random direction, along M's first left (key) or right
(query) singular vector, or along the user's own signal.

The limit (theory page, section 8) takes scores for Gaussian, and the signal's part in each of them for small.
Real heads strain both. Scores of a head of low stable rank |M|_F^2/|M|_2^2 are sums of few products: the
measured error lies a few percent above the limit. And

    q = |M mu|^2/(p tau^2)

is the variance that the signal gives the scores through the queries, over that of the noise: where it isn't
small, f bends what it carries and attention does better than its limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.checkpoints import Head
from resolvent.predict import Prediction, predict
from resolvent.setting import Setting, Weights
from resolvent.setting.matrix import PLACES, MatrixWeights
from resolvent.simulate import Interrupted, simulate
from resolvent.simulate.measure import Average, sizes

Array = NDArray[np.float64]
Axis = Literal["ridge", "snr"]
Signal = str | ArrayLike

METHODS, ERRORS = ("attention", "linear"), ("train", "test")
EVERYWHERE: dict[str, Signal] = {place: place for place in PLACES}
READ = 0.05  # query signal up to which a limit holds within a few percent
STEPS: dict[str, Array] = {  # of the value that the setting holds
    "ridge": np.logspace(-2.0, 2.0, 9),
    "snr": np.array([0.0, 0.25, 0.5, 1.0, 2.0]),
}


def head_setting(
    head: Head,
    setting: Setting | None = None,
    *,
    signal: Signal = "random",
    tau: float = 1.0,
    gain: bool = False,
) -> Setting:
    """The setting with the head's M, scaled to |M|_F = tau sqrt p, in place of its weights.

    `signal` is the direction of mu: "random", "top-key", "top-query" or a vector (d_model,). `gain` folds the
    gain of the norm before the head into M.

    Raises ValueError for a head with M = 0, weights that aren't finite, and a gain that isn't known.

    Source: theory page, section 8.

    >>> rng = np.random.default_rng(0)
    >>> head = Head(0, 0, *rng.normal(size=(2, 4, 20)), None, None, "toy", None, "memory")
    >>> round(head_setting(head, signal="top-key").weights.factors.tau, 12)
    1.0
    """
    K, Q = head.key_query(gain=gain)
    return replace(setting or Setting(), weights=Weights.factors(K, Q, tau=tau, signal=signal))


def query_signal(setting: Setting) -> float:
    """q = |M mu|^2/(p tau^2); above about 0.05 the limit overstates attention's error.

    >>> mu = np.array([2.0, 0.0, 0.0, 0.0])
    >>> from resolvent import Tokens
    >>> round(query_signal(Setting(Tokens(snr=4.0), Weights.matrix(np.eye(4), signal=mu))), 12)
    1.0
    """
    weights = setting.head.weights
    assert isinstance(weights, MatrixWeights)
    f = weights.factors
    read = f.values * (f.right.T @ weights.signal)
    return float(setting.tokens.snr * (read @ read) / (f.values @ f.values))


@dataclass(frozen=True)
class Placed:
    """Errors with the signal in one place: predicted, and `values` measured (draws, method, error, x).

    `query_signal` is q at the value asked for.
    """

    place: str
    query_signal: float
    prediction: Prediction
    values: Array

    def predicted(self, method: str, error: str) -> Array:
        """Over x."""
        return np.asarray(getattr(getattr(self.prediction, method), error))

    def measured(self, method: str, error: str) -> Average:
        """Mean and standard error over x."""
        return Average.over_draws(self.values[:, METHODS.index(method), ERRORS.index(error)])

    def deviation(self, i: int) -> Average:
        """measured/predicted - 1 of attention's training error at x[i]."""
        predicted = self.predicted("attention", "train")[i]
        return Average.over_draws(self.values[:, 0, 0, i] / predicted - 1.0)

    def as_dict(self) -> dict[str, object]:
        """{"query_signal", "predicted": {method: {error: [...]}}, "measured": {... {"mean", "se"}}}."""
        return {
            "query_signal": self.query_signal,
            "predicted": {m: {e: self.predicted(m, e) for e in ERRORS} for m in METHODS},
            "measured": {m: {e: self.measured(m, e).as_dict() for e in ERRORS} for m in METHODS},
        }


@dataclass(frozen=True)
class HeadComparison:
    """One head over ridge or snr, `x`, for each place of the signal; `setting` holds the value asked for."""

    head: Head
    setting: Setting
    over: Axis
    x: Array
    cases: Sequence[Placed]
    n: int
    seed: int

    @property
    def stable_rank(self) -> float:
        """|M|_F^2/|M|_2^2."""
        weights = self.setting.head.weights
        assert isinstance(weights, MatrixWeights)
        return weights.factors.stable_rank

    @property
    def deviations(self) -> dict[str, Average]:
        """By place, measured/predicted - 1 of attention's training error at the value of the setting."""
        return {
            case.place: case.deviation(int(np.argmin(np.abs(STEPS[self.over] - 1.0)))) for case in self.cases
        }

    def as_dict(self) -> dict[str, object]:
        """{"layer", "head", "over", "x", "places": {place: {"predicted", "measured"}}, ...}."""
        draws = len(self.cases[0].values)
        size = {"n": self.n, "p": self.head.d_model, "draws": draws, "seed": self.seed}
        fixed = {k: v for k, v in self.setting.as_dict().items() if k not in ("signal", "digest")}
        return {
            "layer": self.head.layer,
            "head": self.head.head,
            "setting": {**fixed, **size},
            "over": self.over,
            "x": self.x,
            "places": {case.place: case.as_dict() for case in self.cases},
            "deviations": {place: average.as_dict() for place, average in self.deviations.items()},
        }

    def __str__(self) -> str:
        s, draws, rows = self.setting, len(self.cases[0].values), []
        for name, case, method in self._blocks():
            rows += [self._row(name, case, method, i) for i in range(0, len(self.x), self._step)] + [""]
        fixed = f"snr {s.tokens.snr:g}" if self.over == "ridge" else f"ridge {s.ridge:g}"
        middle = s.ridge if self.over == "ridge" else s.tokens.snr
        off = [
            f"{case.place:18} {d.mean:+.1%} +- {d.se:.1%}, q = {case.query_signal:.2g}"
            for case, d in zip(self.cases, self.deviations.values(), strict=True)
        ]
        return "\n".join(
            [
                f"{self.head}, {s.name}, {fixed}, n = {self.n}, p = {self.head.d_model}, {draws} draws",
                "",
                f"{'signal':18} {self.over:>8} {'train':>9} {'measured':>17} {'test':>9} {'measured':>17}",
                *rows,
                f"Measured over predicted training error of attention at {self.over} {middle:g}:",
                *off,
                f"The lower the stable rank, here {self.stable_rank:.1f}, the further above the limit. Where "
                f"queries read",
                f"more of the signal than q = {READ:g}, attention does better than its limit.",
            ]
        )

    @property
    def _step(self) -> int:
        """Every other ridge is shown, every snr."""
        return 2 if len(self.x) > 5 else 1

    def _blocks(self) -> list[tuple[str, Placed, str]]:
        """Attention in every place; linear regression, to which all places are one."""
        return [
            *((c.place, c, "attention") for c in self.cases),
            ("linear regression", self.cases[0], "linear"),
        ]

    def _row(self, name: str, case: Placed, method: str, i: int) -> str:
        cells = []
        for error in ERRORS:
            mean, se = (np.asarray(v)[i] for v in case.measured(method, error))
            cells.append(f"{case.predicted(method, error)[i]:9.4f} {f'{mean:.4f} +- {se:.4f}':>17}")
        return f"{name:18} {self.x[i]:8.3g} " + " ".join(cells)


def compare_head(
    head: Head,
    setting: Setting | None = None,
    *,
    signals: Mapping[str, Signal] = EVERYWHERE,
    over: Axis = "ridge",
    draws: int = 8,
    seed: int = 0,
    tau: float = 1.0,
    gain: bool = False,
    progress: bool = False,
) -> HeadComparison:
    """Predict and measure a head over ridge or over snr, around the value that the setting holds.

    `signals` names the places of the signal and says where each is, as `head_setting` takes it. Measured with
    p = d_model and n = p/ratio; `draws`, `seed` and `progress` as in `simulate`, at least 2 draws.

    Raises what `head_setting`, `predict` and `simulate` raise, and ValueError for a ridge of 0. `Interrupted`
    on Ctrl-C holds the comparison of the places that were finished as its `record`.

    Source: theory page, section 8.

    >>> rng = np.random.default_rng(0)
    >>> head = Head(0, 0, *rng.normal(size=(2, 4, 20)), None, None, "toy", None, "memory")
    >>> compare_head(head, draws=2).cases[1].place
    'top-key'
    """
    base = setting or Setting()
    if base.shape:
        raise ValueError(f"compare_head takes one setting, got arrays of shape {base.shape}")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}")
    x = STEPS[over] * float(base.ridge if over == "ridge" else base.tokens.snr)
    first = head_setting(head, base, tau=tau, gain=gain)
    n, _ = sizes(first)
    cases: list[Placed] = []
    try:
        for place, signal in signals.items():
            placed = head_setting(head, base, signal=signal, tau=tau, gain=gain)
            measured = _measured(placed, over, x, draws, seed, progress)
            cases.append(Placed(place, query_signal(placed), predict(along(placed, over, x)), measured))
    except Interrupted as stop:
        stop.record = HeadComparison(head, first, over, x, cases, n, seed) if cases else None
        raise
    return HeadComparison(head, first, over, x, cases, n, seed)


def along(setting: Setting, over: Axis, x: Array) -> Setting:
    """The setting with all values of ridge or snr at once."""
    return (
        replace(setting, ridge=x)
        if over == "ridge"
        else replace(setting, tokens=replace(setting.tokens, snr=x))
    )


def _measured(setting: Setting, over: Axis, x: Array, draws: int, seed: int, progress: bool) -> Array:
    """(draws, method, error, x); all ridges at once, one snr after the other on the same noise."""
    if over == "ridge":
        return simulate(along(setting, over, x), draws=draws, seed=seed, progress=progress).values
    runs = [
        simulate(along(setting, over, value), draws=draws, seed=seed, progress=progress).values for value in x
    ]
    return np.stack(runs, axis=-1)
