"""compare_tokens: the same question asked of the user's own labelled tokens.

Training error: on all tokens, with weights along the class direction estimated from these same tokens; one
number, so without a standard error. Test error: repeated splits, everything that looks at labels fitted on
the training part, predicted at the split's own ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.compare.verdict import Winner, ahead, reason, table
from resolvent.dataset import (
    LabelledTokens,
    StandardTokens,
    TokenEstimate,
    broken_assumptions,
    estimate,
    standardise,
)
from resolvent.dataset.standard import Whiten
from resolvent.predict import Prediction, predict
from resolvent.setting import LowRankWeights, MatrixWeights, Setting, Tokens, Weights
from resolvent.setting.ranges import integer
from resolvent.simulate.attentions import acting
from resolvent.simulate.draws import Interrupted, run_draws
from resolvent.simulate.features import Attention, features, predictions
from resolvent.simulate.measure import Average
from resolvent.simulate.memory import workers_for
from resolvent.simulate.probe import fitted

Array = NDArray[np.float64]
METHODS = ("attention", "linear")


class Splits(NamedTuple):
    """`draws` random splits, each trained on `sizes` tokens of label -1 and of +1."""

    sizes: tuple[int, int]
    draws: int
    seed: int

    @property
    def size(self) -> int:
        """Tokens in a training part."""
        return sum(self.sizes)


@dataclass(frozen=True)
class TokenComparison:
    """Predicted and measured errors on given tokens.

    `train` has shape (method,), `test` (splits, method); `at_all` predicts the training error on all tokens
    and `at_split` the test error at the split's ratio.
    """

    estimate: TokenEstimate
    at_all: Prediction
    at_split: Prediction
    train: Array
    test: Array
    plan: Splits
    standard: StandardTokens

    def over_ridges(self, ridge: Array) -> tuple[Array, Array]:
        """Training errors (method, ridge) and test errors (split, method, ridge) of the same splits."""
        setting = self.at_all.setting
        train = _train_errors(setting, self.standard, self.estimate, ridge)
        return train, _test_errors(setting, self.standard, self.plan, ridge, False)

    @property
    def winner(self) -> dict[str, Winner]:
        """By error; for the test error a tie is below two paired standard errors over splits."""
        train = Average(float(self.train[0] - self.train[1]), 0.0)
        return {"train": ahead(train), "test": ahead(Average.over_draws(self.test[:, 0] - self.test[:, 1]))}

    @property
    def reason(self) -> str:
        """Why the loser loses, in words."""
        return reason(self.at_all.setting, self.winner)

    @property
    def assumptions(self) -> list[str]:
        """Which assumptions of the theory these tokens break, with the numbers."""
        return broken_assumptions(self.estimate)

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent compare --tokens FILE --json`; se and z of the training error are None."""
        predicted: dict[str, dict[str, float]] = {}
        measured: dict[str, dict[str, dict[str, float | None]]] = {}
        z: dict[str, dict[str, float | None]] = {}
        for k, method in enumerate(METHODS):
            train, test = getattr(self.at_all, method).train, getattr(self.at_split, method).test
            mean, se = (float(v) for v in Average.over_draws(self.test[:, k]))
            predicted[method] = {"train": train, "test": test}
            measured[method] = {
                "train": {"mean": float(self.train[k]), "se": None},
                "test": {"mean": mean, "se": se},
            }
            z[method] = {"train": None, "test": (mean - float(test)) / se if se > 0.0 else None}
        e, setting = self.estimate, self.at_all.setting
        size = {"n": e.n, "p": e.p, "draws": len(self.test), "seed": self.plan.seed}
        return {
            "setting": {**setting.as_dict(), **size},
            "nonlinearity": self.at_all.as_dict()["nonlinearity"],
            "solver": self.at_all.as_dict()["solver"],
            "predicted": predicted,
            "measured": measured,
            "z": z,
            "winner": self.winner,
            "reason": self.reason,
            "tokens": e.as_dict(),
            "assumptions": self.assumptions,
            "notes": list(self.standard.notes),
        }

    def __str__(self) -> str:
        broken = "\n".join(f"- {line}" for line in self.assumptions) or "- none that was checked"
        ridge = self.at_all.setting.ridge
        return "\n\n".join(
            [
                str(self.standard),
                str(self.estimate),
                f"{table(self.as_dict())}\n{'':8} (ridge {ridge:g}; training error on all tokens, "
                f"test error over {len(self.test)} splits)",
                self.reason,
                f"What these tokens break of the theory's assumptions:\n{broken}",
            ]
        )


def compare_tokens(
    data: LabelledTokens,
    setting: Setting | None = None,
    *,
    whiten: Whiten = "auto",
    draws: int = 20,
    train_share: float = 0.8,
    seed: int = 0,
    progress: bool = False,
) -> TokenComparison:
    """Predict and measure attention and linear regression on labelled tokens.

    `setting` gives f, ridge, skip, the diagonal and `weights`: none, aligned, where align a means w_K = w_Q =
    a sqrt(snr estimate) times the estimated unit direction, or a matrix, which acts on the whitened tokens.
    Ratio, SNR and label mean come from the tokens. `whiten` as in `dataset.standardise`; `draws` splits, each
    trained on `train_share` of either class.

    Raises ValueError for tokens or a setting that cannot be used this way, and `Interrupted` on Ctrl-C, whose
    `record` is the comparison over the splits that were finished.
    """
    setting = Setting() if setting is None else setting
    _check(setting, draws, train_share)
    standard = standardise(data, whiten=whiten)
    found = estimate(standard)
    plan = Splits(_training_sizes(found, train_share), draws, integer("seed", seed, 0))
    ridge = np.array([float(setting.ridge)])
    at_all = predict(_fitted(setting, found, found.ratio), p=found.p)
    at_split = predict(_fitted(setting, found, found.p / plan.size), p=found.p)
    train = _train_errors(setting, standard, found, ridge)[:, 0]

    def record(test: Array) -> TokenComparison:
        return TokenComparison(found, at_all, at_split, train, test[..., 0], plan, standard)

    try:
        return record(_test_errors(setting, standard, plan, ridge, progress))
    except Interrupted as stop:
        stop.record = record(stop.values) if len(stop.values) > 1 else None
        raise


def _check(setting: Setting, draws: int, train_share: float) -> None:
    if setting.shape:
        raise ValueError(f"compare_tokens takes one setting, got arrays of shape {setting.shape}")
    weights = setting.head.weights
    if isinstance(weights, LowRankWeights) or (
        isinstance(weights, Weights) and weights.align is None and np.any(setting.gram[..., 1:, 1:] != 0.0)
    ):
        raise ValueError("weights must be none, aligned or a matrix on given tokens: use align")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}")
    if not 0.1 <= train_share <= 0.95:
        raise ValueError(f"train_share must be between 0.1 and 0.95, got {train_share:g}")
    if float(setting.tokens.label_noise) > 0.0:
        raise ValueError("label_noise must be 0 on given tokens, whose labels are what they are")


def _fitted(setting: Setting, found: TokenEstimate, ratio: float) -> Setting:
    """The setting with what was estimated from the tokens, its signal along their class direction."""
    weights = setting.head.weights
    if isinstance(weights, MatrixWeights):
        if weights.dimension != found.p:
            raise ValueError(
                f"weights must be {found.p} x {found.p} for these tokens, got {weights.dimension}"
            )
        weights = MatrixWeights.build(weights.factors, None, found.direction)
    return replace(setting, weights=weights, tokens=Tokens(ratio, found.snr_used, found.label_mean))


def _attention(setting: Setting, found: TokenEstimate) -> Attention:
    align = float(getattr(setting.head.weights, "align", None) or 0.0)
    weight = align * np.sqrt(found.snr_used) * found.direction
    return acting(setting, setting.head, weight, weight)


def _training_sizes(found: TokenEstimate, share: float) -> tuple[int, int]:
    """How many tokens of -1 and of +1 train: the same share of each class, but two at least."""
    minus, plus = (max(2, round(share * count)) for count in (found.n_minus, found.n_plus))
    if minus + plus == found.n:
        raise ValueError(f"tokens must be at least 5, so that some are left to test on, got {found.n}")
    return minus, plus


def _split(standard: StandardTokens, plan: Splits, rng: Generator) -> tuple[StandardTokens, StandardTokens]:
    """A random training part and the rest."""
    order = rng.permutation(standard.n)
    classes = (order[standard.labels[order] == label] for label in (-1.0, 1.0))
    train = np.concatenate([tokens[:size] for tokens, size in zip(classes, plan.sizes, strict=True)])
    return standard.split(train, np.setdiff1d(order, train))


def _train_errors(setting: Setting, standard: StandardTokens, found: TokenEstimate, ridge: Array) -> Array:
    """Errors (method, ridge) on all tokens."""
    tokens, labels = standard.tokens, standard.labels
    with threadpool_limits(1, user_api="blas"):
        built = features(_attention(setting, found), tokens)
        return np.stack([fitted(h, labels, ridge)[0] for h in (built, tokens)])


def _test_errors(
    setting: Setting, standard: StandardTokens, plan: Splits, ridge: Array, progress: bool
) -> Array:
    """Errors (split, method, ridge) on the tokens that each split leaves out."""
    workers = workers_for(standard.p, standard.n, standard.n, plan.draws)

    def one(rng: Generator, _: object) -> Array:
        return _test_error(setting, *_split(standard, plan, rng), ridge)

    with threadpool_limits(1, user_api="blas"):
        return run_draws(one, plan.draws, plan.seed, workers, progress)


def _test_error(setting: Setting, train: StandardTokens, test: StandardTokens, ridge: Array) -> Array:
    attention = _attention(setting, estimate(train))
    _, w = fitted(features(attention, train.tokens), train.labels, ridge)
    linear = fitted(train.tokens, train.labels, ridge)[1] @ test.tokens
    outputs = predictions(attention, train.tokens, w @ train.tokens, w, test.tokens)
    return np.stack([np.mean((out - test.labels) ** 2, axis=1) for out in (outputs, linear)])
