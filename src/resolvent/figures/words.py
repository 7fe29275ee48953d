"""Real tokens: words embedded by MiniLM, labelled by the VADER sentiment lexicon, weights off and aligned.

Each draw trains on a random part of the words, everything that looks at labels fitted there, and tests on
the others. The limit takes the words' estimated ratio and snr; the refined equivalent their classes too
(theory page, section 12).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from resolvent.dataset import StandardTokens, demo_tokens, estimate, standardise
from resolvent.equivalents.refined import Classes, refined_errors, refined_linear_errors, token_classes
from resolvent.figures.along import ERRORS, TITLES, errors_of
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan, Series
from resolvent.figures.verdict import agreement, ahead, holds
from resolvent.nonlinearity import nonlinearity
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens, Weights
from resolvent.simulate.draws import run_draws, stream
from resolvent.simulate.features import Attention, features, predictions
from resolvent.simulate.memory import workers_for
from resolvent.simulate.probe import fitted

Indices = NDArray[np.intp]

AT, CURVE = np.logspace(-2, 2, 9), np.logspace(-2, 2, 65)
LABELS = (
    "attention, weights off",
    "attention, weights along the classes",
    "linear regression",
    "attention along the classes less linear regression",
)
STYLES = (2, 0, 1, 0)
F = nonlinearity("tanh")


def panels(plan: Plan) -> Panels:
    """Both errors over the ridge, three methods."""
    words = standardise(demo_tokens())
    workers = workers_for(words.p, plan.n, words.n - plan.n, plan.draws)
    values = run_draws(partial(_draw, words, plan.n), plan.draws, plan.seed, workers, progress=False)
    first, _ = _split(words, plan.n, stream(plan.seed, 0))
    x = np.union1d(AT, CURVE)
    limits, refined = _limits(first, x), _refined(first)
    where = np.searchsorted(x, AT)
    values, limits, refined = (
        np.concatenate([a, np.diff(a[..., 1:, :, :], axis=-3) * -1.0], axis=-3)
        for a in (values, limits, refined)
    )

    def series(k: int, j: int) -> Series:
        return _series(k, x, where, limits[k, j], values[:, k, j], refined[k, j])

    return tuple(
        Panel(
            TITLES[error],
            "ridge",
            "error",
            tuple(series(k, j) for k in range(3)),
            "x",
            difference=series(3, j),
        )
        for error, j in ERRORS.items()
    )


def caption(panels: Panels, plan: Plan) -> str:
    """Whether aligned attention beats linear regression on the words."""
    sentences = []
    for panel in panels:
        if isinstance(panel, Panel):
            lower = ahead(panel) < 0.0
            sentences.append(f"For the {panel.title} it {holds(lower)}.")
    return (
        f"2237 words embedded by MiniLM, labelled by the sign of their VADER sentiment, whitened with "
        f"other words; tanh. "
        f"Our setting: {plan.n} words train, the others test, {plan.draws} random splits; bars are "
        f"standard errors over "
        f"splits, which share words. The claim is that weights along the class direction (of length sqrt "
        f"snr) make "
        f"attention better than linear regression. {' '.join(sentences)} {agreement(panels)}"
    )


def _split(words: StandardTokens, n: int, rng: np.random.Generator) -> tuple[StandardTokens, StandardTokens]:
    order = rng.permutation(words.n)
    return words.split(order[:n], order[n:])


def _draw(words: StandardTokens, n: int, rng: np.random.Generator, _: object) -> Array:
    """Errors of one split: (method, error, ridge)."""
    train, test = _split(words, n, rng)
    along = _direction(train)
    out = [_attention_errors(train, test, weight) for weight in (np.zeros_like(along), along)]
    error, w = fitted(train.tokens, train.labels, AT)
    return np.stack([*out, np.stack([error, _test_error(w @ test.tokens, test)])])


def _direction(train: StandardTokens) -> Array:
    found = estimate(train)
    return np.asarray(np.sqrt(found.snr_used) * found.direction)


def _attention_errors(train: StandardTokens, test: StandardTokens, weight: Array) -> Array:
    attention = Attention(F.evaluate, weight, weight)
    error, w = fitted(features(attention, train.tokens), train.labels, AT)
    outputs = predictions(attention, train.tokens, w @ train.tokens, w, test.tokens)
    return np.stack([error, _test_error(outputs, test)])


def _test_error(outputs: Array, test: StandardTokens) -> Array:
    return np.asarray(np.mean((outputs - test.labels) ** 2, axis=1))


def _limits(train: StandardTokens, ridge: Array) -> Array:
    """Limits (method, error, ridge)."""
    found = estimate(train)
    tokens = Tokens(found.ratio, found.snr_used, found.label_mean)
    off, on = (
        errors_of(predict(Setting(tokens, Weights.aligned(align), F, ridge=ridge)), ridge.shape)
        for align in (0.0, 1.0)
    )
    return np.stack([off[0], on[0], on[1]])  # linear regression has no weights


def _refined(train: StandardTokens) -> Array:
    """The refined equivalent on the classes of these words: (method, error, ridge)."""
    weight = _direction(train)

    def classes(weight: Array) -> Classes:
        return token_classes(train.tokens, train.labels, key=weight, query=weight)

    off, on = classes(np.zeros_like(weight)), classes(weight)
    attention = [refined_errors(tokens, ridge=AT, f=F) for tokens in (off, on)]
    linear = refined_linear_errors(off, ridge=AT)
    return np.array([*((e.train, e.test) for e in attention), (linear.train, linear.test)])


def _series(k: int, x: Array, where: Indices, limit: Array, values: Array, refined: Array) -> Series:
    measured, se, exact = (np.full(x.size, np.nan) for _ in range(3))
    measured[where], se[where] = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    exact[where] = refined
    return Series(LABELS[k], STYLES[k], x, limit, measured, se, exact)


FIGURE = Figure(
    "words",
    "Real words: MiniLM embeddings with VADER sentiment",
    Plan(1790, 8),
    Plan(700, 4),
    panels,
    caption,
)
