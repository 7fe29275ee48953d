"""The refined prediction of a setting at a real size: p features and n = p/ratio tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.refined import (
    Classes,
    RefinedErrors,
    RefinedLinearErrors,
    adapted_classes,
    gaussian_classes,
    refined_errors,
    refined_linear_errors,
)
from resolvent.setting import Setting, Weights

Array = NDArray[np.float64]

NORM_NODES = 5


@dataclass(frozen=True)
class Refined:
    """`attention` and `linear`, each with `train` and `test`; `missing` says why there are none."""

    attention: RefinedErrors | None
    linear: RefinedLinearErrors | None
    missing: str | None = None

    def as_dict(self) -> dict[str, object] | None:
        """{"attention": {"train", "test"}, "linear": {...}}, or None."""
        if self.attention is None or self.linear is None:
            return None
        return {
            "attention": {"train": self.attention.train, "test": self.attention.test},
            "linear": {"train": self.linear.train, "test": self.linear.test},
        }


def refine(setting: Setting, p: int) -> Refined:
    """Errors conditional on classes of tokens, which neither linearise in the weights nor equate norms.

    Only `ridge` may be an array, and must be positive. Where the refined equivalent does not apply, the
    result is empty and says why. Classes are refined until the errors settle to 0.1 %; where mu, w_K and w_Q
    span three dimensions that takes long, and a fixed 162 classes are used, good to about 0.2 %. Tokens of
    unequal norms, which have no limit, are taken as they are.

    Source: theory page, section 12.

    >>> from resolvent import Setting, Weights
    >>> round(refine(Setting(weights=Weights.aligned(1.0)), 64).attention.train, 3)
    0.311
    """
    reason = _unfit(setting, p)
    if reason is not None:
        return Refined(None, None, reason)
    tokens = setting.tokens
    try:
        classes = _classes(setting, p)
        attention = refined_errors(
            classes,
            ridge=setting.ridge,
            f=setting.head.f,
            skip=float(setting.skip),
            keep_diagonal=setting.keep_diagonal,
            target_overlap=float(tokens.target_overlap),
        )
    except ValueError as error:
        return Refined(None, None, str(error))
    linear = refined_linear_errors(classes, ridge=setting.ridge, target_overlap=float(tokens.target_overlap))
    return Refined(attention, linear)


def _classes(setting: Setting, p: int) -> Classes:
    classes = _of_equal_norms(setting, p)
    tokens = setting.tokens
    if tokens.normalise is None and tokens.norm_spread == 0.0:
        return classes
    return _with_norms(classes, tokens.norm_spread, tokens.normalise is not None)


def _of_equal_norms(setting: Setting, p: int) -> Classes:
    tokens, gram = setting.tokens, setting.gram.reshape(3, 3)
    n, label_mean = p / float(tokens.ratio), float(tokens.label_mean)
    if _span(setting) == 3:
        return gaussian_classes(p=p, n=n, gram=gram, label_mean=label_mean, nodes=3)
    return adapted_classes(
        p=p,
        n=n,
        gram=gram,
        label_mean=label_mean,
        ridge=setting.ridge,
        f=setting.head.f,
        skip=float(setting.skip),
        keep_diagonal=setting.keep_diagonal,
    ).classes


def _with_norms(classes: Classes, spread: float, normalised: bool) -> Classes:
    """The classes under norms of their own, of log standard deviation `spread`, or with |x|^2 = p."""
    if normalised:
        square = (classes.position**2).sum(axis=1) / classes.p + classes.norm**2
        return _scaled(classes, 1.0 / np.sqrt(square))
    nodes, share = np.polynomial.hermite_e.hermegauss(NORM_NODES)
    factor = np.exp(spread * nodes - spread**2)
    repeated = {
        name: np.repeat(getattr(classes, name), NORM_NODES, axis=0)
        for name in ("label", "position", "norm", "left", "right")
    }
    weight = np.outer(classes.weight, share / share.sum()).ravel()
    return _scaled(classes, np.tile(factor, classes.weight.size), weight=weight, **repeated)


def _scaled(classes: Classes, factor: Array, **fields: Array) -> Classes:
    """Classes with these fields, whose tokens are multiplied by factor."""
    values: dict[str, Any] = fields | {
        name: (fields.get(name, getattr(classes, name)).T * factor).T
        for name in ("position", "norm", "left", "right")
    }
    return replace(classes, **values)


def _span(setting: Setting) -> int:
    return int(np.linalg.matrix_rank(setting.gram.reshape(3, 3), hermitian=True))


def _unfit(setting: Setting, p: int) -> str | None:
    if len(setting.heads) > 1 or not isinstance(setting.head.weights, Weights):
        return "the refined equivalent takes one head, with weights I + w_K w_Q'"
    if setting.tokens.noise != "gaussian" or setting.tokens.population is not None:
        return "the refined equivalent of a setting takes white Gaussian noise"
    if setting.shape != np.shape(setting.ridge):
        return "the refined equivalent takes one setting, in which only ridge may be an array"
    if not np.all(np.asarray(setting.ridge) > 0.0):
        return "the refined equivalent needs a positive ridge"
    if p <= _span(setting) + 1:
        return f"the refined equivalent needs p above {_span(setting) + 1}"
    return None
