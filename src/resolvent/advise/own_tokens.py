"""Advice on the user's own tokens: estimate, rank with uncertainty, measure the first choices, compare.

Three predictions of the same test error stand beside the measurement:

    limit      the model at the estimated ratio, snr and label mean
    at p       the same refined at the real p and n
    tokens     refined on the classes of these tokens: their norms and noise spectrum (section 12)

The step that brings the prediction to the measurement names the assumption that was broken. The candidates
are ranked by the last one. The standard error of the snr moves every prediction, and mostly together: what
decides between two candidates is how their difference moves. Theory page, sections 11 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.advise.advice import Choice, F, checked, ranked
from resolvent.advise.candidates import Candidate, attention, linear_regression
from resolvent.compare import compare_tokens
from resolvent.compare.verdict import ahead
from resolvent.dataset import LabelledTokens, TokenEstimate, broken_assumptions, estimate, standardise
from resolvent.dataset.standard import StandardTokens, Whiten
from resolvent.equivalents.refined import Classes, token_classes
from resolvent.setting import Setting, Tokens
from resolvent.setting.ranges import integer
from resolvent.simulate.draws import Interrupted
from resolvent.simulate.measure import Average

Array = NDArray[np.float64]

NORMAL = 1.96  # standard errors of the snr in its interval
CLOSE = 0.01  # relative difference of predicted errors that is not worth telling apart
ROOM = 0.02  # of an error, what the refined equivalent may be off without a broken assumption
ZERO = 1e9  # a ridge that stands for the zero probe


class Ranked(NamedTuple):
    """A candidate, its interval by the snr's standard error, and whether it can't be told from the first."""

    candidate: Candidate
    interval: tuple[float, float]
    tied: bool


@dataclass(frozen=True)
class Checked:
    """A choice that was measured: predictions by limit, at p and on the tokens, and the measured test error.

    `test` (splits,) holds the measured errors at `ridge`; `agrees` says whether the prediction on the tokens
    is within two standard errors, that of a single data set and of the snr included, and 2 %.
    """

    name: str
    ridge: float
    limit: float
    at_p: float
    tokens: float
    interval: tuple[float, float]
    test: Array
    n: int

    @property
    def measured(self) -> Average:
        """Mean and standard error over splits."""
        return Average.over_draws(self.test)

    def near(self, predicted: float) -> bool:
        """Whether a prediction is as near as it should be."""
        mean, se = float(self.measured.mean), float(self.measured.se)
        half = 0.5 * (self.interval[1] - self.interval[0]) / NORMAL
        own = mean / np.sqrt(self.n)  # one data set fluctuates by about 1/sqrt n
        return bool(abs(predicted - mean) <= 2.0 * np.sqrt(se**2 + half**2 + own**2) + ROOM * mean)

    @property
    def agrees(self) -> bool:
        """Of the prediction on the tokens, by which candidates are ranked."""
        return self.near(self.tokens)

    @property
    def why(self) -> str:
        """Which step brings the prediction to the measurement."""
        if self.near(self.limit):
            return "within error, the limit too"
        if self.near(self.at_p):
            return "within error once finite size counts: the limit is off"
        if self.agrees:
            return "within error once norms and covariance of these tokens count"
        side = "above" if float(self.measured.mean) > self.tokens else "below"
        return (
            f"measured {side} the prediction: beyond norms and covariance, likely noise whose law depends "
            "on the label, or a direction estimated from the tokens it weighs"
        )

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "ridge": self.ridge,
            "predicted": {"limit": self.limit, "at_p": self.at_p, "tokens": self.tokens},
            "interval": list(self.interval),
            "measured": self.measured.as_dict(),
            "agrees": self.agrees,
            "why": self.why,
        }


@dataclass(frozen=True)
class TokenAdvice:
    """The estimate, the ranking with intervals, and the measured first choices beside linear regression."""

    estimate: TokenEstimate
    setting: Setting
    ranking: tuple[Ranked, ...]
    linear: Ranked
    checked: tuple[Checked, ...]
    left_out: dict[str, str]

    @property
    def predicted(self) -> Choice:
        """What theory chooses: the first of the ranking, linear regression, or either where they are tied."""
        if self.linear.tied:
            return "either"
        ours, theirs = (float(r.candidate.best.test) for r in (self.ranking[0], self.linear))
        return "attention" if ours < theirs else "linear"

    @property
    def measured(self) -> Choice:
        """What the measurement chooses: by two paired standard errors over the same splits."""
        ours = min(self.checked[:-1], key=lambda c: float(c.measured.mean))
        winner = ahead(Average.over_draws(ours.test - self.checked[-1].test))
        return "either" if winner == "tie" else winner

    @property
    def verdict(self) -> str:
        """Prediction and measurement in one sentence."""
        said, found = _WORDS[self.predicted], _WORDS[self.measured]
        ours = min(self.checked[:-1], key=lambda c: float(c.measured.mean))
        if self.predicted == self.measured:
            return f"Predicted and measured: {found} (best measured attention: {ours.name})."
        gap = abs(self.checked[0].tokens - self.checked[-1].tokens)
        off = max(abs(c.tokens - float(c.measured.mean)) for c in (self.checked[0], self.checked[-1]))
        return (
            f"Predicted: {said}; measured: {found} (best measured attention: {ours.name}). The predicted "
            f"difference is {gap:.4f}, and the two predictions are off by up to {off:.4f}."
        )

    @property
    def assumptions(self) -> list[str]:
        """Which assumptions these tokens break, with the numbers."""
        return broken_assumptions(self.estimate)

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent advise --tokens FILE --json`."""
        return {
            "setting": {**self.setting.as_dict(), "p": self.estimate.p},
            "tokens": self.estimate.as_dict(),
            "ranking": [_entry(r) for r in self.ranking],
            "linear": _entry(self.linear),
            "left_out": self.left_out,
            "checked": [c.as_dict() for c in self.checked],
            "predicted": self.predicted,
            "measured": self.measured,
            "verdict": self.verdict,
            "assumptions": self.assumptions,
        }

    def __str__(self) -> str:
        lines = [f"{'':3} {'predicted on these tokens':26} {'ridge':>8} {'test':>8} {'95 % by snr':>18}"]
        for place, r in enumerate([*self.ranking[:SHOWN], self.linear]):
            c = r.candidate
            rank = "" if r is self.linear else str(place + 1)
            tie = "  can't be told from the first" if r.tied and place else ""
            low, high = r.interval
            span = f"{low:.4f} to {high:.4f}"
            lines.append(f"{rank:>3} {c.name:26} {c.best_ridge:8.3g} {c.best.test:8.4f} {span:>18}{tie}")
        table = [f"{'':18} {'limit':>8} {'at p':>8} {'tokens':>8} {'measured':>18}"]
        for one in self.checked:
            mean, se = one.measured
            table.append(
                f"{one.name:18} {one.limit:8.4f} {one.at_p:8.4f} {one.tokens:8.4f} "
                f"{f'{mean:.4f} +- {se:.4f}':>18}  {one.why}"
            )
        broken = "\n".join(f"- {line}" for line in self.assumptions) or "- none that was checked"
        return "\n\n".join(
            [
                str(self.estimate),
                "\n".join(lines),
                f"Measured over {self.checked[0].test.size} splits, each at its predicted best ridge:\n"
                + "\n".join(table),
                self.verdict,
                f"What these tokens break of the theory's assumptions:\n{broken}",
            ]
        )


SHOWN = 8  # rows of the table
_WORDS = {"attention": "attention wins", "linear": "linear regression wins", "either": "too close to tell"}


def advise_tokens(
    data: LabelledTokens,
    setting: Setting | None = None,
    nonlinearities: Sequence[F] = (),
    *,
    whiten: Whiten = "auto",
    top: int = 2,
    draws: int = 10,
    train_share: float = 0.8,
    seed: int = 0,
    progress: bool = False,
) -> TokenAdvice:
    """What to choose on labelled tokens: predicted with its uncertainty, then measured.

    `setting` gives weights (none or aligned, along the estimated direction), skip and diagonal; every name
    and `nonlinearities` are ranked at each one's best ridge, at the size of a split. The `top` choices and
    linear regression are then measured on `draws` random splits, each trained on `train_share` of either
    class.

    Raises ValueError for tokens or a setting that cannot be used this way, and `Interrupted` on Ctrl-C.

    Source: theory page, sections 11 and 12.
    """
    setting = Setting() if setting is None else setting
    checked(setting)
    integer("top", top, 1)
    standard = standardise(data, whiten=whiten)
    found = estimate(standard)
    n = round(train_share * found.n)
    own = replace(setting, tokens=Tokens(found.p / n, found.snr_used, found.label_mean))
    classes = _classes(own, standard, found, n)
    pairs, left_out = ranked(own, nonlinearities, lambda s: attention(s, classes=classes), "best")
    linear = (linear_regression(own, classes=classes), own)
    moved = [_moved(c, s, found, linear=c is linear[0]) for c, s in (*pairs, linear)]
    ranking = [
        Ranked(c, _interval(c, by), _tied(pairs[0][0], moved[0], c, by))
        for (c, _), by in zip((*pairs, linear), moved, strict=True)
    ]

    def measured(s: Setting, ridge: float, method: int) -> Array:
        at = replace(s, tokens=Tokens(), ridge=ZERO if ridge == np.inf else ridge)
        try:
            same = compare_tokens(
                data, at, whiten=whiten, draws=draws, train_share=train_share, seed=seed, progress=progress
            )
        except Interrupted as stop:  # one method's splits are no advice
            stop.record = None
            raise
        return same.test[:, method]

    choices = [(r, s, 0) for r, (_, s) in zip(ranking[:top], pairs[:top], strict=True)]
    choices.append((ranking[-1], replace(own, nonlinearity="identity", centred=None, beta=None), 1))
    results = []
    for r, s, method in choices:
        c = r.candidate
        at_p = (linear_regression if method else attention)(s, found.p)
        test = measured(s, c.best_ridge, method)
        predictions = (float(c.limit[1].test), float(at_p.best.test), float(c.best.test))
        results.append(Checked(c.name, c.best_ridge, *predictions, r.interval, test, n))
    return TokenAdvice(found, own, tuple(ranking[:-1]), ranking[-1], tuple(results), left_out)


def _classes(setting: Setting, standard: StandardTokens, found: TokenEstimate, n: int) -> Classes:
    """Classes of the tokens, under weights along their estimated direction, in a split of n."""
    align = float(getattr(setting.head.weights, "align", None) or 0.0)
    weight = align * np.sqrt(found.snr_used) * found.direction
    return replace(token_classes(standard.tokens, standard.labels, key=weight, query=weight), n=float(n))


def _moved(c: Candidate, setting: Setting, found: TokenEstimate, *, linear: bool) -> Array:
    """Limits of the best test error at the ends of the snr's interval, over that at its estimate."""
    out = []
    for snr in (found.snr - NORMAL * found.snr_se, found.snr + NORMAL * found.snr_se):
        own = replace(setting, tokens=replace(setting.tokens, snr=max(snr, 0.0)))
        limit = (linear_regression if linear else attention)(own).best.test
        out.append(float(limit) / float(c.limit[1].test))
    return np.array(out)


def _interval(c: Candidate, moved: Array) -> tuple[float, float]:
    ends = float(c.best.test) * moved
    return float(ends.min()), float(ends.max())


def _tied(first: Candidate, first_moved: Array, c: Candidate, moved: Array) -> bool:
    """Whether their order changes within the snr's interval, or their errors are within 1 %."""
    gaps = float(c.best.test) * np.r_[1.0, moved] - float(first.best.test) * np.r_[1.0, first_moved]
    return bool(np.ptp(np.sign(gaps)) > 0.0 or abs(gaps[0]) <= CLOSE * float(first.best.test))


def _entry(r: Ranked) -> dict[str, object]:
    return {**r.candidate.as_dict(), "interval": list(r.interval), "tied": r.tied}
