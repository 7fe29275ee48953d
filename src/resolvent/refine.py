"""The refined prediction of a setting at a real size: p features and n = p/ratio tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resolvent.equivalents.refined import (
    Classes,
    RefinedErrors,
    RefinedLinearErrors,
    adapted_classes,
    gaussian_classes,
    refined_errors,
    refined_linear_errors,
)
from resolvent.setting import Setting


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
    span three dimensions that takes long, and a fixed 162 classes are used, good to about 0.2 %.

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
            f=setting.f,
            skip=float(setting.skip),
            keep_diagonal=setting.keep_diagonal,
            target_overlap=float(tokens.target_overlap),
        )
    except ValueError as error:
        return Refined(None, None, str(error))
    linear = refined_linear_errors(classes, ridge=setting.ridge, target_overlap=float(tokens.target_overlap))
    return Refined(attention, linear)


def _classes(setting: Setting, p: int) -> Classes:
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
        f=setting.f,
        skip=float(setting.skip),
        keep_diagonal=setting.keep_diagonal,
    ).classes


def _span(setting: Setting) -> int:
    return int(np.linalg.matrix_rank(setting.gram.reshape(3, 3), hermitian=True))


def _unfit(setting: Setting, p: int) -> str | None:
    if setting.shape != np.shape(setting.ridge):
        return "the refined equivalent takes one setting, in which only ridge may be an array"
    if not np.all(np.asarray(setting.ridge) > 0.0):
        return "the refined equivalent needs a positive ridge"
    if p <= _span(setting) + 1:
        return f"the refined equivalent needs p above {_span(setting) + 1}"
    return None
