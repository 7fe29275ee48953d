"""Low-rank weights M = I + U V' (LoRA): which rank and scale bring which gain, by how they are initialised.

U and V are p x r with columns of length `scale`. Three starts are compared:

    random      independent uniform directions: their overlap with the signal is of order 1/sqrt p
    gradient    the first gradient step of the probe's loss in M, taken at M = I on a sample of its own
    signal      the first column along mu in both U and V, the rest random

At M = I the gradient of |y - H'w|^2/n in M is, by the envelope theorem (w at its optimum),

    G = -2/(n p) sum_{i != j} (x_i'w) f'(S_ij) r_j x_i x_j',    r = y - H'w,    H = X f(X'X/sqrt p)/sqrt p,

and with f' at its mean a1, as in linearised attention, -2 a1/(n p) [X X'w (X r)' - X diag(X'w r) X']. U and
V are the leading singular vectors of -G: the first along X X'w and X r, nearly. White noise sees weights
through the Gram matrix of (mu, U, V) alone, so that a start is predicted by the limit for r rank-one terms
(theory page, sections 3 and 8c), at its own Gram matrix, and simulated on tokens independent of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.advise.advice import checked
from resolvent.nonlinearity import Nonlinearity
from resolvent.predict import predict
from resolvent.setting import LowRankWeights, Setting, Weights
from resolvent.setting.ranges import POSITIVE, integer, number
from resolvent.simulate import simulate
from resolvent.simulate.attentions import acting
from resolvent.simulate.draws import stream
from resolvent.simulate.features import features
from resolvent.simulate.measure import Errors
from resolvent.simulate.probe import fitted
from resolvent.simulate.sampling import draw

Array = NDArray[np.float64]
Start = Literal["random", "gradient", "signal"]
STARTS: tuple[Start, ...] = ("random", "gradient", "signal")


class Adaptation(NamedTuple):
    """A start of rank r: its overlap with the signal, and predicted and (where asked for) measured errors.

    `overlap` is mu'U V'mu/(|mu|^2 scale^2), 1 for weights along the signal.
    """

    start: Start
    rank: int
    scale: float
    overlap: float
    train: float
    test: float
    measured: Errors | None

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**self._asdict(), "measured": None if self.measured is None else self.measured.as_dict()}


@dataclass(frozen=True)
class LoraAdvice:
    """Adaptations over ranks, scales and starts, against M = I (`none`: train and test error)."""

    setting: Setting
    p: int
    none: tuple[float, float]
    adaptations: tuple[Adaptation, ...]

    def cheapest(self, gain: float) -> Adaptation | None:
        """The least rank, then scale, whose predicted test error is lower than without by `gain`."""
        enough = [a for a in self.adaptations if self.none[1] - a.test >= gain]
        return min(enough, key=lambda a: (a.rank, a.scale, a.test), default=None)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "setting": {**self.setting.as_dict(), "p": self.p},
            "none": {"train": self.none[0], "test": self.none[1]},
            "adaptations": [a.as_dict() for a in self.adaptations],
        }

    def __str__(self) -> str:
        lines = [
            f"M = I: train {self.none[0]:.4f}, test {self.none[1]:.4f} (p = {self.p})",
            f"{'start':10} {'rank':>4} {'scale':>6} {'overlap':>8} {'train':>8} {'test':>8} "
            f"{'measured test':>18}",
        ]
        for a in self.adaptations:
            measured = "" if a.measured is None else f"{a.measured.test.mean:.4f} +- {a.measured.test.se:.4f}"
            lines.append(
                f"{a.start:10} {a.rank:4d} {a.scale:6.2g} {a.overlap:8.3f} {a.train:8.4f} {a.test:8.4f} "
                f"{measured:>18}"
            )
        return "\n".join(lines)


def advise_lora(
    setting: Setting,
    *,
    ranks: tuple[int, ...] = (1, 4),
    scales: tuple[float, ...] = (0.5, 1.0, 2.0),
    n: int = 512,
    draws: int = 0,
    seed: int = 0,
) -> LoraAdvice:
    """Predicted, and with `draws` measured, gain of low-rank weights by start, rank and scale.

    `setting` gives tokens, f and ridge; its own weights must be none. n tokens, p = round(ratio n), are the
    size at which starts are drawn (the gradient's on a sample of n of its own) and simulated.

    Raises ValueError for a setting with arrays, several heads, other weights, softmax, tokens that are not
    white and Gaussian, no signal or an f without linear part, and for ranks or scales out of range.

    Source: theory page, sections 3 and 8c.

    >>> from resolvent import Setting, Tokens
    >>> found = advise_lora(Setting(Tokens(0.5, 2.0)), ranks=(1,), scales=(1.5,), n=200)
    >>> [a.start for a in sorted(found.adaptations, key=lambda a: a.overlap)]
    ['random', 'gradient', 'signal']
    """
    _check(setting)
    ranks = tuple(integer("ranks", rank, 1) for rank in ranks)
    scales = tuple(float(number("scales", scale, POSITIVE)) for scale in scales)
    n, draws, seed = integer("n", n, 4), integer("draws", draws, 0), integer("seed", seed, 0)
    p = round(float(setting.tokens.ratio) * n)
    if max(ranks) >= p - 1:
        raise ValueError(f"ranks must be below p - 1 = {p - 1}, got {max(ranks)}")
    rng = stream(seed, 0)
    mu = np.zeros(p)
    mu[0] = np.sqrt(float(setting.tokens.snr))
    none = predict(setting).attention
    found = []
    for start in STARTS:
        key, query = _directions(start, setting, mu, n, max(ranks), rng)
        for rank in ranks:
            for scale in scales:
                weights = Weights.low_rank(scale * key[:, :rank].T, scale * query[:, :rank].T, mu)
                found.append(_adapted(start, weights, scale, setting, n, draws, seed + 1))
    return LoraAdvice(setting, p, (float(none.train), float(none.test)), tuple(found))


def _check(setting: Setting) -> None:
    checked(setting)
    if not isinstance(setting.head.f, Nonlinearity):
        raise ValueError("nonlinearity must act entry by entry, got softmax")
    if np.any(setting.gram[1:, 1:]):
        raise ValueError("weights must be none: advise_lora compares those it adds")
    if not float(setting.tokens.snr) > 0.0:
        raise ValueError(f"snr must be positive, got {float(setting.tokens.snr):g}")


def _adapted(
    start: Start, weights: LowRankWeights, scale: float, setting: Setting, n: int, draws: int, seed: int
) -> Adaptation:
    own = replace(setting, weights=weights)
    limit = predict(own).attention
    r = weights.rank
    overlap = float(weights.inner[0, 1 : 1 + r] @ weights.inner[0, 1 + r :]) / scale**2
    measured = simulate(own, n=n, draws=draws, seed=seed).attention if draws else None
    return Adaptation(start, r, scale, overlap, float(limit.train), float(limit.test), measured)


def _directions(
    start: Start, setting: Setting, mu: Array, n: int, rank: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """U and V of unit columns (p, rank)."""
    if start == "gradient":
        left, _, right = np.linalg.svd(-gradient(setting, mu, n, rng), full_matrices=False)
        return left[:, :rank], right[:rank].T
    both = []
    for _ in range(2):
        columns = rng.standard_normal((mu.size, rank))
        if start == "signal":
            columns[:, 0] = mu
        both.append(np.linalg.qr(columns)[0])
    if start == "signal":
        both = [columns * np.sign(columns.T @ mu + (np.arange(rank) > 0)) for columns in both]
    return both[0], both[1]


def gradient(setting: Setting, mu: Array, n: int, rng: np.random.Generator) -> Array:
    """G (p, p), the gradient of the probe's loss in M at M = I, f' at its mean, on n tokens from rng."""
    f = setting.head.f
    assert isinstance(f, Nonlinearity)
    a1 = f.coefficients().a1
    if a1 == 0.0:
        raise ValueError(f"{f.name} has no linear part (a1 = 0), so the mean gradient in the weights is zero")
    X, _, t = draw(setting.tokens, mu, n, rng)
    none = np.zeros((mu.size, 1))
    H = features(acting(setting, setting.head, none, none), X)
    w = fitted(H, t, np.array([float(setting.ridge)]))[1][0]
    read, rest = w @ X, t - w @ H
    scale = -2.0 * a1 / (n * mu.size)
    return np.asarray(scale * (np.outer(X @ read, X @ rest) - (X * (read * rest)) @ X.T))
