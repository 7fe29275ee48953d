"""Softmax attention as an entry-wise nonlinearity with a free intercept.

Column j of K = (n/sqrt p) softmax_i(beta S_ij) holds the weights that token j puts on the tokens i != j.
Its limit is that of f(t) = e^(beta t)/E e^(beta t), with scores of standard deviation tau and x = (beta
tau)^2:

    a1 = beta tau,    sigma2 = e^x - 1 - x,    covariance of noise entries ij and ji: e^(rho x) - 1 - rho x.

The columns sum to n/sqrt p exactly, whatever the norm of token j. So the constant direction is pinned, as
by a spike a0 sqrt p of infinite strength: `intercept=True` in `attention_errors`, with a0 and a2 without
effect. A constant that costs nothing stands beside the probe, and the probe is orthogonal to the mean
token. Theory page, section 8a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SLOW_BEYOND = 1.5

SELF_SCORE = (
    "softmax with the self-score kept tends to the identity, the self-score being about sqrt p: mask it"
)


@dataclass(frozen=True)
class SoftmaxCoefficients:
    """a1, sigma2 and correlation of the noise, for kernels with `intercept=True`; a warning beyond 1.5."""

    a1: float
    sigma2: float
    correlation: float
    warning: str | None


def softmax_coefficients(beta: float, *, tau: float = 1.0, rho: float = 1.0) -> SoftmaxCoefficients:
    """Coefficients of column-normalised softmax at inverse temperature beta > 0, the self-score masked.

    tau is the standard deviation of the scores, rho the correlation of the scores ij and ji (`Factors.tau`,
    `Factors.rho`; 1 and 1 for weights I + low rank). Raises ValueError unless beta and tau are positive.

    Source: theory page, section 8a.

    >>> bool(np.isclose(softmax_coefficients(1.0).sigma2, np.e - 2))
    True
    """
    for name, value in (("beta", beta), ("tau", tau)):
        if not 0.0 < value < np.inf:
            raise ValueError(f"{name} must be positive, got {value:.6g}")
    power = (beta * tau) ** 2
    sigma2 = exponential_rest(power)
    return SoftmaxCoefficients(
        beta * tau, sigma2, exponential_rest(rho * power) / sigma2, _warning(beta * tau)
    )


def exponential_rest(x: float) -> float:
    """e^x - 1 - x, by its series where the difference would cancel."""
    if abs(x) > 0.5:
        return float(np.expm1(x) - x)
    total, term = 0.0, x
    for k in range(2, 20):
        term *= x / k
        total += term
    return total


def _warning(strength: float) -> str | None:
    if strength <= SLOW_BEYOND:
        return None
    return (
        f"softmax at beta tau = {strength:.3g} approaches its limit slowly: "
        f"beyond {SLOW_BEYOND} a few scores of each column dominate at any size that can be simulated"
    )
