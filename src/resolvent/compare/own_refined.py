"""The refined equivalent on given tokens, and which assumption of the limit it mends most.

The limit takes scores as Gaussian with one law for all pairs, norms as equal, noise as white, and p and n to
infinity; and weights as independent of the noise, where those along an estimated direction see it as signal.
Made one after the other, these assumptions lead from the refined training error to the limit's; the largest
step names the one that matters. Theory page, section 12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.dataset import StandardTokens
from resolvent.equivalents.refined import (
    Classes,
    RefinedErrors,
    refined_errors,
    refined_linear_errors,
    token_classes,
)
from resolvent.refine import Refined
from resolvent.setting import Setting, Weights

Array = NDArray[np.float64]

FEWEST = 40  # tokens of a label, below which its classes are hardly more than its tokens
SMALL = 0.05  # relative change of an error that the estimates of the classes may make by themselves


@dataclass(frozen=True)
class TokenRefinement:
    """The refined equivalent of a setting on given tokens with the weights w_K = w_Q = `weight`."""

    standard: StandardTokens
    setting: Setting
    weight: Array

    @property
    def missing(self) -> str | None:
        """Why there is none; None if there is one."""
        if not isinstance(self.setting.head.weights, Weights):
            return "No refined prediction: it needs weights I + w_K w_Q'."
        labels, ridge = self.standard.labels, float(self.setting.ridge)
        fewest = min(np.count_nonzero(labels > 0), np.count_nonzero(labels < 0))
        if fewest < FEWEST:
            return f"No refined prediction: it needs {FEWEST} tokens of each label, and one has {fewest}."
        if not ridge > 0.0:
            return f"No refined prediction: it needs a positive ridge, and this is {ridge:g}."
        return None

    @cached_property
    def classes(self) -> Classes:
        """Classes of all tokens."""
        return self._classes()

    def errors(self, n: int, ridge: ArrayLike) -> Refined:
        """Errors at n tokens like these."""
        if self.missing is not None:
            return Refined(None, None, self.missing)
        classes = replace(self.classes, n=float(n))
        try:
            attention = self._attention(classes, ridge)
        except ValueError as error:
            return Refined(None, None, f"No refined prediction: {error}.")
        if not np.any(attention.converged):
            return Refined(None, None, "No refined prediction: its fixed point did not converge.")
        return Refined(attention, refined_linear_errors(classes, ridge=ridge))

    def steps(self) -> dict[str, float]:
        """Training errors of attention as one assumption after the other is made, by assumption."""
        gaussian = self._classes(gaussian=True)
        ways = {
            "Gaussian scores": gaussian,
            "equal norms": _equal_norms(gaussian),
            "white noise": _white_span(_equal_norms(self._classes(white=True, discriminant=False))),
        }
        ridge = float(self.setting.ridge)
        return {name: float(self._attention(way, ridge).train) for name, way in ways.items()}

    def _classes(self, *, gaussian: bool = False, white: bool = False, discriminant: bool = True) -> Classes:
        return token_classes(
            self.standard.tokens,
            self.standard.labels,
            key=self.weight,
            query=self.weight,
            discriminant=discriminant,
            gaussian=gaussian,
            white=white,
        )

    def _attention(self, classes: Classes, ridge: ArrayLike) -> RefinedErrors:
        setting = self.setting
        return refined_errors(
            classes,
            ridge=ridge,
            f=setting.head.f,
            skip=float(setting.skip),
            keep_diagonal=setting.keep_diagonal,
        )


def _equal_norms(classes: Classes) -> Classes:
    size = np.sqrt(classes.weight @ classes.norm**2)
    return replace(classes, norm=np.full_like(classes.norm, size))


def _white_span(classes: Classes) -> Classes:
    """The noise along the signal, which is all of the span, made as strong as in any other direction."""
    plus, weight = classes.label > 0.0, classes.weight

    def deviation(x: Array) -> Array:
        means = [np.average(x[side], axis=0, weights=weight[side]) for side in (plus, ~plus)]
        return np.asarray(x - np.where(plus[:, None], *means))

    variance = weight @ deviation(classes.position)[:, 0] ** 2
    excess = 1.0 - np.sqrt(weight @ classes.norm**2 / classes.share_outside / variance)
    factors = {name: getattr(classes, name) for name in ("position", "left", "right", "fresh")}
    return replace(
        classes, **{name: x - excess * deviation(x) for name, x in factors.items() if x is not None}
    )


def difference(errors: dict[str, float]) -> str:
    """Which step changes the training error of attention most, from "refined" to the limit's."""
    changes = {name: abs(b - a) for (_, a), (name, b) in pairwise(errors.items()) if np.isfinite(b - a)}
    most = max(changes, key=lambda name: changes[name], default="")
    small = not changes or changes[most] < SMALL * errors["refined"]
    subject = "none" if small else f"that of {most}"
    by = f"by more than {SMALL:.0%}" if small else "most"
    path = ", ".join(f"{name} {value:.4f}" for name, value in errors.items())
    return (
        f"Of the limit's assumptions, {subject} changes the training error of attention {by}. "
        f"One assumption after the other: {path}."
    )
