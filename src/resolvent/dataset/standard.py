"""Tokens in the model's convention: x = y mu + z with noise z of unit size, tr Cov(z) / p = 1.

An affine map fitted on labelled tokens,

    x -> (W x - m) / s,    m = (mean_+ + mean_-)/2 of W x,    s^2 = tr S / p,

with W the label-free whitening (or the identity) and S the within-class covariance of W x on n - 2 degrees of
freedom. Classes of unequal size keep their label mean: the midpoint is removed, not the mean. Source: section
1 of the theory page for the convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.dataset.labelled import LabelledTokens
from resolvent.dataset.labels import LabelValue
from resolvent.dataset.moments import class_means, within_class
from resolvent.dataset.whitening import inverse_root

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Whiten = Literal["auto", "none", "background"]
CHOICES = ("auto", "none", "background")


@dataclass(frozen=True, eq=False)
class Standardiser:
    """The affine map x -> (whitener @ x - midpoint) / scale; `whitener` is None where nothing is whitened."""

    whitener: Matrix | None
    midpoint: Vector
    scale: float
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(cls, tokens: Matrix, labels: Vector, background_cov: Matrix | None = None) -> Standardiser:
        """Fit on tokens (p x n) and labels (n, -1 or +1): labels enter through the class means alone.

        Raises ValueError if a class has fewer than 2 tokens, if the tokens have no noise about their class
        means, or if their squares leave the range of double precision.
        """
        whitener, notes = (None, ()) if background_cov is None else inverse_root(background_cov, tokens)
        return _fit(tokens if whitener is None else whitener @ tokens, labels, whitener, notes)

    def apply(self, tokens: ArrayLike) -> Matrix:
        """Standardised tokens, p x any number, fitted on or not. Raises ValueError if p differs."""
        x = np.asarray(tokens, dtype=np.float64)
        if x.ndim != 2 or x.shape[0] != self.midpoint.size:
            raise ValueError(
                f"tokens must have {self.midpoint.size} rows, one a dimension, got shape {x.shape}"
            )
        return self._finish(x.copy() if self.whitener is None else self.whitener @ x)

    def _finish(self, whitened: Matrix) -> Matrix:
        whitened -= self.midpoint[:, None]
        whitened /= self.scale
        return whitened


@dataclass(frozen=True, eq=False)
class StandardTokens:
    """Standardised tokens (p x n), labels -1 or +1, and the map that made them from the tokens as read."""

    tokens: Matrix
    labels: Vector
    standardiser: Standardiser
    label_names: tuple[LabelValue, LabelValue] = (-1, 1)
    source: str = "arrays"
    notes: tuple[str, ...] = ()

    @property
    def p(self) -> int:
        """Dimensions."""
        return int(self.tokens.shape[0])

    @property
    def n(self) -> int:
        """Tokens."""
        return int(self.tokens.shape[1])

    def split(self, train: ArrayLike, test: ArrayLike) -> tuple[StandardTokens, StandardTokens]:
        """Two parts, given by token indices, both standardised by the training part only.

        The whitening is kept, for it saw no labels; midpoint and scale are fitted again. Raises ValueError if
        an index is in both parts or the training part cannot be standardised.
        """
        first, second = np.asarray(train), np.asarray(test)
        if np.intersect1d(first, second).size:
            raise ValueError("a token must not be in the training part and in the test part")
        again = Standardiser.fit(self.tokens[:, first], self.labels[first])
        old = self.standardiser
        whole = Standardiser(
            old.whitener, old.midpoint + old.scale * again.midpoint, old.scale * again.scale, old.notes
        )

        def part(index: NDArray[np.int64]) -> StandardTokens:
            tokens = again._finish(self.tokens[:, index])
            return StandardTokens(
                tokens, self.labels[index], whole, self.label_names, self.source, self.notes
            )

        return part(first), part(second)

    def __str__(self) -> str:
        return "\n".join(
            (f"{self.source}: {self.n} tokens of {self.p} dimensions, standardised", *self.notes)
        )


def standardise(data: LabelledTokens, whiten: Whiten = "auto") -> StandardTokens:
    """Whiten, remove the class midpoint and scale the within-class noise to trace/p = 1.

    whiten  "auto": by the background covariance if the data have one; "background": the same, but its absence
            is an error; "none": never.

    Raises ValueError for another `whiten`, or for tokens without noise (`Standardiser.fit`).

    >>> from resolvent.dataset import demo_tokens
    >>> print(standardise(demo_tokens(), whiten="none").notes[-1])
    Not whitened; class midpoint removed, noise scaled to trace/p = 1 (was 0.003464).
    """
    if whiten not in CHOICES:
        raise ValueError(f"whiten must be one of {', '.join(CHOICES)}, got {whiten!r}")
    if whiten == "background" and data.background_cov is None:
        raise ValueError("whiten must be 'auto' or 'none' for data without background_cov, got 'background'")
    cov = None if whiten == "none" else data.background_cov
    whitener, guarded = (None, ()) if cov is None else inverse_root(cov, data.tokens)
    whitened = data.tokens.copy() if whitener is None else whitener @ data.tokens
    fitted = _fit(whitened, data.labels, whitener, guarded)
    how = "Not whitened" if whitener is None else "Whitened by the background covariance, which saw no labels"
    done = f"{how}; class midpoint removed, noise scaled to trace/p = 1 (was {fitted.scale**2:.4g})."
    notes = (*data.notes, *guarded, done)
    return StandardTokens(fitted._finish(whitened), data.labels, fitted, data.label_names, data.source, notes)


def _fit(whitened: Matrix, labels: Vector, whitener: Matrix | None, notes: tuple[str, ...]) -> Standardiser:
    midpoint, half = class_means(whitened, labels)
    p, n = whitened.shape
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        noise = within_class(whitened, labels, midpoint, half)
        variance = float(np.vdot(noise, noise)) / (p * (n - 2))
        whole = float(half @ half) / p + variance
    if not np.isfinite(whole):
        raise ValueError(
            f"tokens are too large to be squared: |x| up to {np.abs(whitened).max():.3g}; rescale them"
        )
    if not variance > 1e-24 * whole:
        raise ValueError(f"tokens have no noise about their class means: variance {variance:.3g}")
    return Standardiser(whitener, midpoint, float(np.sqrt(variance)), notes)
