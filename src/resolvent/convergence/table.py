"""Predicted less measured over n, for training and test error of attention and of linear regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.convergence.rate import Rate, fit_rate
from resolvent.predict import Prediction, predict
from resolvent.setting import Setting
from resolvent.setting.cautions import LARGE_SCORE, added_score, cautions
from resolvent.setting.ranges import integer
from resolvent.simulate import Interrupted, Measurement, simulate

Array = NDArray[np.float64]

METHODS = ("attention", "linear")
ERRORS = ("train", "test")
CELLS = tuple(product(range(2), range(2)))
ZERO = 1e-12  # an error below it is zero: interpolation without a ridge
NAMES = {"attention": "attention", "linear": "linear regression", "train": "training", "test": "test"}


@dataclass(frozen=True, eq=False)
class Convergence:
    """Errors at sizes n and p, each (k,); `predicted`, `refined`, `mean`, `se` are (k, method, error).

    Methods are attention and linear regression, errors training and test. `refined` is NaN where there is no
    refined equivalent. `tolerance` is relative to the prediction.
    """

    setting: Setting
    n: NDArray[np.int64]
    p: NDArray[np.int64]
    draws: int
    seed: int
    tolerance: float
    predicted: Array
    refined: Array
    mean: Array
    se: Array

    @property
    def gap(self) -> Array:
        """Predicted less measured."""
        return self.predicted - self.mean

    @property
    def relative(self) -> tuple[Array, Array]:
        """The gap and its standard error as shares of the prediction, NaN where that is zero or infinite."""
        share = np.where((self.predicted > ZERO) & np.isfinite(self.predicted), self.predicted, np.nan)
        return self.gap / share, self.se / share

    @property
    def rates(self) -> dict[str, dict[str, Rate | None]]:
        """By method and error: how the gap falls with n, None where it is inside its noise."""
        return _by_name(lambda m, e: fit_rate(self.n, self.gap[:, m, e], self.se[:, m, e]))

    @property
    def within(self) -> dict[str, dict[str, int | None]]:
        """By method and error: the size from which on the limit is certainly within the tolerance, or None.

        Certainly: |gap| plus two standard errors is at most the tolerance times the prediction.
        """
        return _by_name(self._within)

    @property
    def added_scores(self) -> Array:
        """Size of what signal and weights add to a score at each p; above 0.3 the limit may be far off."""
        return np.array([added_score(self.setting, int(p)) for p in self.p])

    @property
    def cautions(self) -> list[str]:
        """Why the limit may be far off, and at which sizes (theory page, sections 8a and 11)."""
        scores, large = self.added_scores, self.added_scores > LARGE_SCORE
        found = cautions(self.setting)
        if not large.any():
            return found
        sizes = ", ".join(str(n) for n in self.n[large])
        there = "" if np.isnan(self.refined[large]).all() else "; the refined column does not linearise them"
        return [
            *found,
            f"At n = {sizes} the scores that signal and weights add reach up to {scores.max():.2f}, "
            f"not small against 1: the limit may be far off{there}.",
        ]

    def _within(self, method: int, error: int) -> int | None:
        worst = np.abs(self.gap) + 2.0 * self.se
        allowed = self.tolerance * self.predicted + ZERO
        good = (np.isfinite(worst) & (worst <= allowed))[:, method, error]
        holds = np.logical_and.accumulate(good[::-1])[::-1]
        return int(self.n[np.argmax(holds)]) if holds.any() else None

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent convergence --json`."""
        rates = self.rates
        return {
            "setting": {**self.setting.as_dict(), "draws": self.draws, "seed": self.seed},
            "tolerance": self.tolerance,
            "sizes": [
                {
                    "n": int(self.n[k]),
                    "p": int(self.p[k]),
                    "added_score": self.added_scores[k],
                    **_by_name(lambda m, e, k=k: self._cell(k, m, e)),
                }
                for k in range(self.n.size)
            ],
            "rate": {
                m: {e: None if (r := rates[m][e]) is None else r.as_dict() for e in ERRORS} for m in METHODS
            },
            "within": self.within,
            "cautions": self.cautions,
        }

    def _cell(self, k: int, method: int, error: int) -> dict[str, float]:
        at = (k, method, error)
        return {
            "predicted": self.predicted[at],
            "refined": self.refined[at],
            "mean": self.mean[at],
            "se": self.se[at],
            "gap": self.gap[at],
        }

    def __str__(self) -> str:
        lines = [f"{self.draws} draws at each n, ridge {self.setting.ridge:g}; gap = predicted less measured"]
        for method, error in CELLS:
            lines += ["", *self._block(method, error)]
        return "\n".join([*lines, *([""] if self.cautions else []), *self.cautions])

    def _block(self, method: int, error: int) -> Iterator[str]:
        """The table of one error of one method, and what it says."""
        yield (
            f"{NAMES[METHODS[method]]}, {NAMES[ERRORS[error]]} error\n"
            f"{'n':>8} {'p':>7} {'predicted':>10} {'refined':>10} {'measured':>20} {'gap':>9} {'se':>6}"
        )
        gap, se = (100.0 * part[:, method, error] for part in self.relative)
        for k in range(self.n.size):
            cell = self._cell(k, method, error)
            refined = "" if np.isnan(cell["refined"]) else f"{cell['refined']:.4f}"
            yield (
                f"{self.n[k]:8} {self.p[k]:7} {cell['predicted']:10.4f} {refined:>10} "
                f"{cell['mean']:10.4f} +- {cell['se']:.4f}"
                + ("" if np.isnan(gap[k]) else f" {gap[k]:+7.1f} % {se[k]:4.1f} %")
            )
        yield f"-> {self._verdict(method, error)}"

    def _verdict(self, method: int, error: int) -> str:
        """One sentence: the rate, and from where on the limit is good enough."""
        names = METHODS[method], ERRORS[error]
        rate, within = self.rates[names[0]][names[1]], self.within[names[0]][names[1]]
        first = "the gap is inside its noise" if rate is None else f"the gap {rate}"
        percent, at = f"{100.0 * self.tolerance:g} %", (-1, method, error)
        if within is not None:
            return f"{first}; within {percent} from n = {within} on"
        allowed = self.tolerance * self.predicted[at]
        if not np.isfinite(self.predicted[at]):
            return "the limit is infinite"
        if abs(self.gap[at]) - 2.0 * self.se[at] <= allowed:
            return f"{first}; whether it is within {percent} takes more draws to tell"
        size = np.inf if rate is None else rate.size(allowed)
        if not np.isfinite(size):
            return f"{first}; not within {percent} at any n here"
        return f"{first}; not within {percent} here, by the fit from about n = {float(f'{size:.2g}'):.0f} on"


def convergence(
    setting: Setting,
    *,
    sizes: Sequence[int] = (128, 256, 512, 1024),
    draws: int = 20,
    seed: int = 0,
    tolerance: float = 0.03,
    progress: bool = False,
) -> Convergence:
    """Predict a setting and measure it at several n, to see from which n on the limit is good enough.

    Each size is `simulate(setting, n=n, draws=draws, seed=seed)`, and predicted as in `compare`: a kept
    diagonal and the mean of an uncentred f are taken at its p = round(ratio n), and the refined equivalent
    stands beside the limit. Rates are fitted by `fit_rate`, to three sizes or more.

    Raises ValueError for a setting with arrays, fewer than two sizes or draws, or a tolerance that is not
    positive, and what `predict` and `simulate` raise; `Interrupted` on Ctrl-C, whose `record` is the table of
    the sizes that were finished.

    >>> c = convergence(Setting(), sizes=(48, 96, 192), draws=4)
    >>> c.gap.shape, sorted(c.within["linear"])
    ((3, 2, 2), ['test', 'train'])
    """
    ordered = _checked(setting, sizes, draws, tolerance)
    done: list[tuple[Prediction, Measurement]] = []
    for n in ordered:
        try:
            measured = simulate(setting, n=n, draws=draws, seed=seed, progress=progress)
            done.append((predict(setting, p=measured.p), measured))
        except Interrupted as stop:
            stop.record = _tabulated(done, tolerance) if done else None
            raise
    return _tabulated(done, tolerance)


def _checked(setting: Setting, sizes: Sequence[int], draws: int, tolerance: float) -> list[int]:
    if setting.shape:
        raise ValueError(f"convergence takes one setting, got arrays of shape {setting.shape}")
    if setting.dimension is not None:
        raise ValueError(
            f"convergence needs weights of any size, got a matrix of dimension {setting.dimension}"
        )
    ordered = sorted({integer("sizes", n, 4) for n in sizes})
    if len(ordered) < 2:
        raise ValueError(f"sizes must be at least two different n, got {list(sizes)}")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}")
    if not 0.0 < tolerance < np.inf:
        raise ValueError(f"tolerance must be positive, got {tolerance:g}")
    return ordered


def _tabulated(done: list[tuple[Prediction, Measurement]], tolerance: float) -> Convergence:
    predicted, refined, mean, se = (np.full((len(done), 2, 2), np.nan) for _ in range(4))
    for k, (limit, measured) in enumerate(done):
        for m, e in CELLS:
            average = getattr(getattr(measured, METHODS[m]), ERRORS[e])
            mean[k, m, e], se[k, m, e] = average
            predicted[k, m, e] = getattr(getattr(limit, METHODS[m]), ERRORS[e])
            part: Any = getattr(limit.refined, METHODS[m])
            refined[k, m, e] = np.nan if part is None else getattr(part, ERRORS[e])
    first = done[0][1]
    return Convergence(
        first.setting,
        np.array([m.n for _, m in done]),
        np.array([m.p for _, m in done]),
        first.draws,
        first.seed,
        tolerance,
        predicted,
        refined,
        mean,
        se,
    )


def _by_name(value: Any) -> dict[str, dict[str, Any]]:
    """value(method, error) under their names."""
    return {METHODS[m]: {ERRORS[e]: value(m, e) for e in range(2)} for m in range(2)}
