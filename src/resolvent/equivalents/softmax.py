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

from resolvent.nonlinearity.softmax import Softmax, exponential_rest


@dataclass(frozen=True)
class SoftmaxCoefficients:
    """a1, sigma2 and correlation of the noise, for kernels with `intercept=True`."""

    a1: float
    sigma2: float
    correlation: float


def softmax_coefficients(beta: float, *, tau: float = 1.0, rho: float = 1.0) -> SoftmaxCoefficients:
    """Coefficients of column-normalised softmax at inverse temperature beta > 0, the self-score masked.

    tau is the standard deviation of the scores, rho the correlation of the scores ij and ji (`Factors.tau`,
    `Factors.rho`; 1 and 1 for weights I + low rank). Raises ValueError unless beta and tau are positive.

    Source: theory page, section 8a.

    >>> import numpy as np
    >>> bool(np.isclose(softmax_coefficients(1.0).sigma2, np.e - 2))
    True
    """
    if not tau > 0.0:
        raise ValueError(f"tau must be positive, got {tau:.6g}")
    a = Softmax(beta).coefficients(tau)
    return SoftmaxCoefficients(a.a1, a.sigma2, float(exponential_rest(rho * a.a1**2)) / a.sigma2)
