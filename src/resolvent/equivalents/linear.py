"""Linear regression on the same tokens: training and test error in closed form.

q = gamma tr Q/n is the positive root of q^2 + (gamma + c - 1) q - gamma = 0, D the square root of its
discriminant, v = 1 - q = 2 c/(1 + c + gamma + D). With r = snr v/c,

    E_train = q (q + gamma/(1 + r)) / (D (1 + r)),   E_test = 1/(1 + r)^2 + (v + r) / (D (1 + r)^2).

Every term is positive and finite at gamma = 0 (c = 1 excepted), so nothing cancels. This rewrites
Proposition 2 of Liao et al., arXiv 2506.18656, whose r = snr gamma m mt; the test error is in section 6 of
the theory page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, plain

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearErrors:
    """Limits for ridge regression on the tokens: `train`, `test`; exact, so there is no residual."""

    train: Array | float
    test: Array | float


def linear_errors(
    *, ratio: ArrayLike, ridge: ArrayLike, snr: ArrayLike, target_overlap: ArrayLike = 1.0
) -> LinearErrors:
    """Limits of the training and test error of ridge regression w = (XX' + n ridge)^-1 X t.

    All arguments broadcast: ratio = p/n > 0, ridge >= 0 (0 is the ridgeless limit; at ratio 1 its test
    error diverges), snr = |mu|^2 >= 0, target_overlap in [-1, 1] the overlap t'y/n of target and labels.
    Raises ValueError outside.

    With kappa the overlap, the training error and the variance are mixed with those of r = 0 in shares
    kappa^2 and 1 - kappa^2, and the first term of the test error becomes 1 - 2 kappa^2 r/(1 + r) + kappa^2
    (r/(1 + r))^2.

    Source: Proposition 2 of arXiv 2506.18656; theory page, section 6.

    >>> linear_errors(ratio=0.25, ridge=1e-5, snr=[0.0, 1.0, 10.0]).train.round(4)
    array([0.75  , 0.375 , 0.0682])
    """
    args = checked(ratio=ratio, ridge=ridge, snr=snr, target_overlap=target_overlap)
    train, test = _errors(args["ratio"], args["ridge"], args["snr"], args["target_overlap"])
    return LinearErrors(plain(train), plain(test))


def _errors(c: Array, gamma: Array, snr: Array, kappa: Array) -> tuple[Array, Array]:
    """Mix the signal's errors with those of pure memorisation (r = 0), in shares kappa^2 and 1 - kappa^2."""
    B = gamma + c - 1.0
    D = np.sqrt(B * B + 4.0 * gamma)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(B > 0.0, 2.0 * gamma / (D + B), 0.5 * (D - B))
        v = 2.0 * c / (1.0 + c + gamma + D)
        r = snr * v / c
        signal, noise = kappa * kappa, 1.0 - kappa * kappa
        train = signal * q * (q + gamma / (1.0 + r)) / (1.0 + r) + noise * q * (q + gamma)
        variance = signal * (v + r) / (1.0 + r) ** 2 + noise * v
        return np.where(D > 0.0, train / D, 0.0), noise + signal / (1.0 + r) ** 2 + variance / D
