"""Setting -> Prediction: the limits of attention and linear regression, with the solver's certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import AttentionErrors, LinearErrors, ProbeErrors
from resolvent.predict.routes import attention_limits, linear_limits
from resolvent.refine import Refined, refine
from resolvent.setting import Setting
from resolvent.setting.cautions import cautions
from resolvent.setting.ranges import integer

Array = NDArray[np.float64]

LARGE = 10**18  # stands for p -> infinity in f(sqrt p)/sqrt p and a0 sqrt p


class ConvergenceError(ArithmeticError):
    """A fixed point that the solver could not reach."""


@dataclass(frozen=True)
class Prediction:
    """Limits for a setting: `attention` and `linear`, each with `train` and `test`.

    With a size p, `refined` holds the same at that size; it is computed when first read.
    """

    setting: Setting
    attention: AttentionErrors | ProbeErrors
    linear: LinearErrors | ProbeErrors
    p: int | None = None

    @cached_property
    def refined(self) -> Refined | None:
        """The refined equivalent at p, None without one."""
        return None if self.p is None else refine(self.setting, self.p)

    @property
    def cautions(self) -> list[str]:
        """Why the limit may be far off, at p where it is given."""
        return cautions(self.setting, self.p)

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent predict --json`."""
        cards = [
            {"name": head.f.name, **head.f.coefficients(head.scale).as_dict()} for head in self.setting.heads
        ]
        refined = {} if self.refined is None else {"refined": self.refined.as_dict()}
        return {
            "setting": self.setting.as_dict(),
            "nonlinearity": cards[0] if len(cards) == 1 else cards,
            "attention": {"train": self.attention.train, "test": self.attention.test},
            "linear": {"train": self.linear.train, "test": self.linear.test},
            "solver": {
                "converged": self.attention.converged,
                "residual": self.attention.residual,
                "iterations": self.attention.iterations,
            },
            "cautions": self.cautions,
            **refined,
        }

    def __str__(self) -> str:
        rows: list[tuple[str, Any]] = [("attention", self.attention), ("linear regression", self.linear)]
        if self.refined is not None and self.refined.attention is not None:
            rows += [("attention, refined", self.refined.attention)]
            rows += [("linear, refined", self.refined.linear)]
        lines = [f"{'':18} {'train':>10} {'test':>10}"]
        lines += [f"{name:18} {_number(e.train)} {_number(e.test)}" for name, e in rows]
        return "\n".join([*lines, *self.cautions])


def predict(setting: Setting, *, p: int | None = None) -> Prediction:
    """Deterministic limits of the training and test error, of attention and of linear regression.

    Every number in the setting may be an array; results have the broadcast shape. `p` sets the size at
    which a kept diagonal, f(sqrt p)/sqrt p, and the mean of an uncentred f, a0 sqrt p, are taken; without
    it they take their limit. With `p` the result also holds the refined equivalent at that size, right where
    p is small or weights are long (`refine`); it takes a fraction of a second.

    Raises ConvergenceError where the fixed point is not reached (for an array only if no entry is; entries
    that fail are NaN with `converged` False).

    Several heads, weights of rank above one, weights given as a matrix and noise of a covariance take a
    positive ridge. Raises ValueError for tokens of unequal norms that are not normalised: they have no
    universal limit.

    Source: Theorem 1 and Proposition 2 of arXiv 2506.18656 and the theory page, sections 4 to 8c.

    >>> from resolvent import Setting, Tokens, Weights
    >>> print(predict(Setting(Tokens(ratio=0.5, snr=2.0), Weights.aligned(1.0), "tanh", ridge=0.1)))
                            train       test
    attention             0.21681    0.51856
    linear regression     0.17346    0.52616
    """
    fixed = setting.dimension
    if p is not None and fixed is not None and p != fixed:
        raise ValueError(f"p must be {fixed}, the dimension of the weights, got {p}")
    attention = attention_limits(setting, LARGE if p is None else integer("p", p, 2))
    if np.size(attention.converged) and not np.any(attention.converged):
        raise ConvergenceError(
            f"the fixed point did not converge, residual {np.max(attention.residual):.1e}, at "
            + ", ".join(f"{name} {value}" for name, value in setting.as_dict().items())
        )
    return Prediction(setting, attention, linear_limits(setting), p)


def _number(value: Array | float) -> str:
    return f"{value:10.5f}" if np.ndim(value) == 0 else f"{'array ' + str(np.shape(value)):>10}"
