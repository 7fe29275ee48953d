"""The refined equivalent on given tokens, and which assumption of the limit it mends most.

The limit takes scores as Gaussian with one law for all pairs, norms as equal, noise as white, and p and n to
infinity. Made one after the other, these assumptions lead from the refined training error to the limit's; the
largest step names the one that matters. Theory page, section 12.
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
        return self._classes(gaussian=False)

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
        """Training errors of attention with Gaussian scores, then with equal norms as well."""
        gaussian, ridge = self._classes(gaussian=True), float(self.setting.ridge)
        equal = np.full_like(gaussian.norm, np.sqrt(gaussian.weight @ gaussian.norm**2))
        ways = {"Gaussian scores": gaussian, "equal norms": replace(gaussian, norm=equal)}
        return {name: float(self._attention(way, ridge).train) for name, way in ways.items()}

    def _classes(self, *, gaussian: bool) -> Classes:
        tokens, labels = self.standard.tokens, self.standard.labels
        return token_classes(tokens, labels, key=self.weight, query=self.weight, gaussian=gaussian)

    def _attention(self, classes: Classes, ridge: ArrayLike) -> RefinedErrors:
        setting = self.setting
        return refined_errors(
            classes,
            ridge=ridge,
            f=setting.head.f,
            skip=float(setting.skip),
            keep_diagonal=setting.keep_diagonal,
        )


def difference(errors: dict[str, float]) -> str:
    """Which step changes the training error of attention most, from "refined" to the limit's."""
    changes = {name: abs(b - a) for (_, a), (name, b) in pairwise(errors.items())}
    most = max(changes, key=lambda name: changes[name] if np.isfinite(changes[name]) else -1.0)
    path = ", ".join(f"{name} {value:.4f}" for name, value in errors.items())
    return (
        f"Of the limit's assumptions, that of {most} changes the training error of attention most. "
        f"One assumption after the other: {path}."
    )
