"""The optimal nonlinearity under a0 = 0, nu = 1: only a1 matters, and a2 where labels are unbalanced.

Whatever f is, the errors see it through a1, a2 and sigma2 = nu - a1^2 (theory page, sections 4 to 7), and a2
meets only the constant vector and the norms, which are orthogonal to balanced labels. So the best f with
nu = 1 is a point of the half disc a1^2 + a2^2 <= 1, reached by

    f = a1 h1 + a2 h2 + sqrt(1 - a1^2 - a2^2) h3,    h_k the orthonormal Hermite polynomials.

Without a residual connection f and -f give the same errors, so a1 >= 0; with one, both signs are searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import attention_errors
from resolvent.nonlinearity import Nonlinearity, polynomial
from resolvent.phase.best import best_ridge as minimised
from resolvent.setting import Setting, Weights

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

POINTS = 21  # of the search along each coordinate, twice as many where it is the only one
ROUNDS = 6  # each narrows the search to a fifth


@dataclass(frozen=True)
class OptimalLinearPart:
    """Where the optimum lies and its error.

    `share` = a1^2 of nu = 1; `ridge` is the setting's, or the best one; `error` the error that was minimised,
    `identity` and `noise` the same error at a1^2 = 1 and at a1 = a2 = 0, the two ends.
    """

    a1: float
    a2: float
    ridge: float
    error: float
    identity: float
    noise: float
    which: Literal["train", "test"]

    @property
    def share(self) -> float:
        """a1^2 of nu = 1."""
        return self.a1**2

    @property
    def nonlinearity(self) -> Nonlinearity:
        """An f that attains it: a1 h1 + a2 h2 + sqrt(1 - a1^2 - a2^2) h3."""
        rest = np.sqrt(max(1.0 - self.a1**2 - self.a2**2, 0.0) / 6.0)
        even = self.a2 / np.sqrt(2.0)
        return polynomial(-even, self.a1 - 3.0 * rest, even, rest)

    def as_dict(self) -> dict[str, float | str]:
        """Plain values for JSON."""
        return {**vars(self), "share": self.share}

    def __str__(self) -> str:
        name = {"train": "training", "test": "test"}[self.which]
        return (
            f"least {name} error {self.error:.4f} at a1^2/nu = {self.share:.3f}, a2^2/nu = {self.a2**2:.3f} "
            f"(ridge {self.ridge:.3g}); {self.identity:.4f} for f = t, {self.noise:.4f} for pure noise"
        )


def optimal_linear_part(
    setting: Setting, *, error: Literal["train", "test"] = "test", best_ridge: bool = False
) -> OptimalLinearPart:
    """The a1 and a2 of the least error among all f with a0 = 0 and nu = 1.

    `error` is what to minimise, at the setting's ridge or, for the test error with `best_ridge`, at the best
    ridge of each f. The setting's own f plays no part. The search is a grid that narrows to 1e-5; a2 is kept
    at 0 for balanced labels, where it has no effect.

    Raises ValueError for a setting with arrays or a kept diagonal (which depends on more of f than a1 and
    a2), and for the training error at its best ridge, which is 0.

    Source: theory page, sections 2 to 7.

    >>> from resolvent import Setting
    >>> print(optimal_linear_part(Setting(ridge=0.1), error="train"))
    least training error ... at a1^2/nu = ..., a2^2/nu = 0.000 (ridge 0.1); ...
    """
    if setting.shape:
        raise ValueError(f"optimal_linear_part takes one setting, got arrays of shape {setting.shape}")
    if len(setting.heads) > 1 or not isinstance(setting.head.weights, Weights):
        raise ValueError("optimal_linear_part takes one head, with weights I + w_K w_Q'")
    if setting.keep_diagonal:
        raise ValueError("keep_diagonal must be off: a kept diagonal depends on more of f than a1 and a2")
    if error not in ("train", "test"):
        raise ValueError(f"error must be train or test, got {error!r}")
    if error == "train" and best_ridge:
        raise ValueError("the training error has no best ridge: it is least at ridge 0")

    def errors(a1: Array, a2: Array) -> tuple[Array, Array]:
        def at(ridge: Array, rows: Rows) -> Array:
            return _errors(setting, a1[rows], a2[rows], ridge, error)

        if best_ridge:
            best = minimised(at, a1.size)
            return best.ridge, best.test
        ridge = np.full(a1.size, float(setting.ridge))
        return ridge, at(ridge, np.arange(a1.size))

    a1, a2 = _least(errors, signed=bool(setting.skip), even=bool(setting.tokens.label_mean))
    ends = errors(np.array([a1, 1.0, 0.0]), np.array([a2, 0.0, 0.0]))
    least, identity, noise = (float(value) for value in ends[1])
    return OptimalLinearPart(a1, a2, float(ends[0][0]), least, identity, noise, error)


def _errors(setting: Setting, a1: Array, a2: Array, ridge: Array, error: str) -> Array:
    tokens = setting.tokens
    found = attention_errors(
        ratio=tokens.ratio,
        ridge=ridge,
        a1=a1,
        sigma2=np.maximum(1.0 - a1**2, 0.0),
        gram=setting.gram,
        skip=setting.skip,
        a2=a2,
        label_mean=tokens.label_mean,
        target_overlap=tokens.target_overlap,
    )
    return np.asarray(getattr(found, error))


def _least(errors: object, signed: bool, even: bool) -> tuple[float, float]:
    """The least over the half disc (or disc), on grids around the best point so far."""
    assert callable(errors)
    centre, width = np.zeros(2), 1.0
    for _ in range(ROUNDS):
        steps = np.linspace(-width, width, POINTS if even else 2 * POINTS - 1)
        one, two = np.meshgrid(centre[0] + steps, centre[1] + steps if even else np.zeros(1))
        a1, a2 = one.ravel(), two.ravel()
        inside = (a1**2 + a2**2 <= 1.0) & (signed | (a1 >= 0.0))
        edge = np.sqrt(np.maximum(1.0 - a2**2, 0.0))
        a1, a2 = np.concatenate([a1[inside], edge]), np.concatenate([a2[inside], a2])
        k = int(np.nanargmin(errors(a1, a2)[1]))
        centre, width = np.array([a1[k], a2[k]]), 0.2 * width
    return float(centre[0]), float(centre[1])
