"""Softmax attention, column by column: K = (n/sqrt p) softmax_i(beta S_ij), the self-score masked.

Column j holds the weights that token j puts on the tokens i != j; they sum to n/sqrt p. The limit is that of
the entry-wise f(t) = e^(beta t)/E e^(beta t) with a free intercept. Under scores N(0, s^2), x = (beta s)^2,

    a_k = (beta s)^k/sqrt k!,    sigma^2 = e^x - 1 - x,    sum_{k>=2} a_k b_k rho^k = e^(rho x) - 1 - rho x,

and a_0, a_2 have no effect, because the sum of a column is fixed. Theory page, section 8a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.nonlinearity import Coefficients, Nonlinearity

Array = NDArray[Any]

SELF_SCORE = (
    "softmax with the self-score kept tends to the identity matrix, the self-score being about sqrt p: "
    "keep_diagonal must be left out"
)
STRONGEST = 20.0  # e^(beta^2) stays a number


@dataclass(frozen=True)
class Softmax:
    """Softmax at inverse temperature beta > 0, a number or an array."""

    beta: float | Array = 1.0

    def __post_init__(self) -> None:
        beta = np.asarray(self.beta)
        if beta.dtype.kind not in "fiu":
            raise TypeError(f"beta must be a real number, got {self.beta!r}")
        good = (beta > 0.0) & (beta <= STRONGEST)
        if not good.all():
            raise ValueError(f"beta must be positive and at most {STRONGEST:g}, got {beta[~good].flat[0]:g}")

    @property
    def name(self) -> str:
        """softmax."""
        return "softmax"

    @property
    def centred(self) -> bool:
        """True: the sum of a column is fixed, which leaves no mean to fit."""
        return True

    def coefficients(self, scale: float = 1.0) -> Coefficients:
        """a1 = beta scale and sigma2 = e^x - 1 - x, x = a1^2; a0 and a2, which have no effect, are 0.

        >>> bool(np.isclose(Softmax(1.0).coefficients().sigma2, np.e - 2))
        True
        """
        a1: Any = np.multiply(self.beta, scale)
        sigma2: Any = exponential_rest(a1**2)
        zero: Any = np.zeros_like(a1)
        if np.ndim(a1) == 0:
            return Coefficients(0.0, float(a1), 0.0, float(a1**2 + sigma2), float(sigma2))
        return Coefficients(zero, a1, zero, a1**2 + sigma2, sigma2)

    def entrywise(self, scale: float = 1.0) -> Nonlinearity:
        """f(t) = e^(beta t - x/2) - 1, which has these coefficients."""
        beta, half = float(self.beta), 0.5 * float(self.beta * scale) ** 2
        return Nonlinearity(f"exp({beta:g} t)", lambda t: np.exp(beta * t - half), (), True)


def exponential_rest(x: Array | float) -> Array:
    """e^x - 1 - x, by its series where the difference would cancel.

    >>> f"{exponential_rest(1e-8):.12g}"
    '5.00000001667e-17'
    """
    x = np.asarray(x, dtype=np.float64)
    term = small = 0.5 * x * x
    for k in range(3, 20):
        term = term * x / k
        small = small + term
    return np.where(np.abs(x) > 0.5, np.expm1(x) - x, small)
