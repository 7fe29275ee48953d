"""The alignment from which attention wins: the least a, w_K = w_Q = a mu, at which its error is below linear
regression's.

The difference of the two limits is scanned over a grid of alignments at once, and its first change of sign
is found on a finer grid. Theory page, sections 5 to 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import linear_errors
from resolvent.phase.best import best_ridge
from resolvent.predict import predict
from resolvent.setting import Setting, Weights

Array = NDArray[np.float64]

MOST = 5.0
GRID = np.linspace(0.0, MOST, 51)
FINER = 21  # points in the interval of the change, which is linear between two of them
TIE = 1e-9  # errors closer than this are equal


@dataclass(frozen=True)
class WinningAlignment:
    """The least alignment up to 5 from which attention's error is lower, NaN where there is none.

    `train` and `test` at the setting's ridge; `best_test` with each method at its own best ridge.
    """

    train: float
    test: float
    best_test: float

    def as_dict(self) -> dict[str, float]:
        """{"train", "test", "best_test"}."""
        return dict(vars(self))

    def __str__(self) -> str:
        names = {"train": "training error", "test": "test error", "best_test": "test error at best ridges"}
        return "; ".join(f"{names[k]} {_words(v)}" for k, v in vars(self).items())


def winning_alignment(setting: Setting) -> WinningAlignment:
    """The alignment from which attention wins, in the limit, with the setting's f, tokens and ridge.

    Raises ValueError for a setting with arrays.

    Source: theory page, sections 5 to 7.

    >>> from resolvent import Setting, Tokens
    >>> print(winning_alignment(Setting(Tokens(ratio=2.0), ridge=0.1)))
    training error never; test error from 0.58; test error at best ridges from 0.315
    """
    if setting.shape:
        raise ValueError(f"winning_alignment takes one setting, got arrays of shape {setting.shape}")
    tokens = setting.tokens

    def at(align: Array, ridge: Array | float) -> Setting:
        return replace(setting, weights=Weights.aligned(align), ridge=ridge)

    def linear_test(ridge: Array, rows: NDArray[np.intp]) -> Array:
        found = linear_errors(
            ratio=tokens.ratio, ridge=ridge, snr=tokens.snr, target_overlap=tokens.target_overlap
        )
        return np.broadcast_to(found.test, rows.shape)

    linear = linear_errors(
        ratio=tokens.ratio, ridge=setting.ridge, snr=tokens.snr, target_overlap=tokens.target_overlap
    )
    least = best_ridge(linear_test, 1).test[0]

    def best_test(align: Array) -> Array:
        def test(ridge: Array, rows: NDArray[np.intp]) -> Array:
            return np.asarray(predict(at(align[rows], ridge)).attention.test)

        return np.asarray(best_ridge(test, align.size).test - least)

    return WinningAlignment(
        _first(lambda a: np.asarray(predict(at(a, setting.ridge)).attention.train - linear.train)),
        _first(lambda a: np.asarray(predict(at(a, setting.ridge)).attention.test - linear.test)),
        _first(best_test),
    )


def _first(difference: Callable[[Array], Array]) -> float:
    """The least alignment at which the difference is negative."""
    negative = difference(GRID) < -TIE
    if not negative.any():
        return np.nan
    k = int(np.argmax(negative))
    if k == 0:
        return 0.0
    inside = np.linspace(GRID[k - 1], GRID[k], FINER)
    values = difference(inside)
    k = max(int(np.argmax(values < -TIE)), 1)
    low, high = values[k - 1] + TIE, values[k] + TIE
    return float(inside[k - 1] + (inside[k] - inside[k - 1]) * low / (low - high))


def _words(value: float) -> str:
    if np.isnan(value):
        return "never"
    return "always" if value == 0.0 else f"from {value:.3g}"
