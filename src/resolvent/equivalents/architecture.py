"""Multi-head softmax attention at initialisation: ridge regression on its output.

Fixed orthogonal tokens X (X'X/d = I_n, n <= d), Gaussian W_Q, W_K, W_V, W_O, and h heads. F (n x d_O) is the
centred output sum_h (n A_h - 1 1')/sqrt n V_h O_h, scaled to tr FF'/n = 1. With the widths

    g_K = h d_K/n,   g_V = h d_V/n,   g_O = d_O/n,   theta = e^(beta^2) - 1,   b = beta^2/theta

the limit of w(lambda) = tr FF'(FF' + lambda)^-1/n is the root, in 0 < w < min(1, h, g_V, g_O), of

    lambda w S(-w) = (1 - w)(1 - w/h)(1 - w/g_V)(1 - w/g_O),
    S(z) = 2/(1 + b z/g_K + sqrt((1 - b z/g_K)^2 + 4 b^2 z/g_K)),

and ridge regression of y = F beta + e, |beta|^2 = 1 isotropic and |e|^2 = s^2, errs in the coefficients by

    |beta_hat - beta|^2 = 1 - w/g_O + (lambda/g_O - s^2) w'(lambda).

Hayase and Karakida, "Gaussian Equivalence for Multi-Head Self-Attention"; theory page, section 8e.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import numbers, plain, require

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArchitectureErrors:
    """Limits: the ridge `error` of the coefficients, and `effective` = w, effective dimensions per token."""

    error: Array | float
    effective: Array | float


def architecture_errors(
    *,
    heads: ArrayLike,
    beta: ArrayLike,
    key_width: ArrayLike,
    value_width: ArrayLike,
    output_width: ArrayLike,
    ridge: ArrayLike,
    noise: ArrayLike = 0.0,
) -> ArchitectureErrors:
    """Ridge coefficient error and effective dimension of multi-head softmax attention at initialisation.

    All arguments broadcast: heads h >= 1, inverse temperature beta > 0, widths g_K, g_V, g_O > 0 over the
    number of tokens (module docstring), ridge lambda > 0 and label noise s^2 >= 0. Sharing keys and values
    across heads leaves the limit as it is. The root is bracketed, found to rounding (Brent's method).

    Raises ValueError for an argument out of range, naming it.

    Source: Hayase and Karakida; theory page, section 8e.

    >>> found = architecture_errors(heads=8, beta=1.0, key_width=1.0, value_width=1.0, output_width=0.5,
    ...                             ridge=0.01, noise=0.1)
    >>> round(found.error, 4)
    0.1098
    """
    given = {
        "beta": beta,
        "key_width": key_width,
        "value_width": value_width,
        "output_width": output_width,
        "ridge": ridge,
    }
    arrays = {"heads": numbers("heads", heads), "noise": numbers("noise", noise)}
    require("heads", arrays["heads"], arrays["heads"] >= 1.0, "at least 1")
    require("noise", arrays["noise"], arrays["noise"] >= 0.0, "zero or positive")
    for name, value in given.items():
        arrays[name] = numbers(name, value)
        require(name, arrays[name], arrays[name] > 0.0, "positive")
    h, s2, b, k, v, o, lam = np.broadcast_arrays(*arrays.values())
    share = b**2 / np.expm1(b**2)
    w = np.array(
        [_root(*row) for row in zip(*(x.ravel() for x in (lam, h, v, o, share / k, share)), strict=True)]
    )
    w = w.reshape(lam.shape)
    error = 1.0 - w / o + (lam / o - s2) * _derivative(w, lam, h, v, o, share / k, share)
    return ArchitectureErrors(plain(error), plain(w))


def _pulled(w: Array | float, x: Array | float, share: Array | float) -> Array | float:
    """w S(-w), with x = b/g_K."""
    y = x * w
    return 2.0 * w / (1.0 - y + np.sqrt(np.maximum((1.0 + y) ** 2 - 4.0 * share * y, 0.0)))


def _root(lam: float, h: float, v: float, o: float, x: float, share: float) -> float:
    from scipy.optimize import brentq

    def excess(w: float) -> float:
        product = (1.0 - w) * (1.0 - w / h) * (1.0 - w / v) * (1.0 - w / o)
        return float(lam * _pulled(w, x, share) - product)

    return float(brentq(excess, 0.0, min(1.0, h, v, o), xtol=1e-16, rtol=1e-14))


def _derivative(w: Array, lam: Array, h: Array, v: Array, o: Array, x: Array, share: Array) -> Array:
    """w'(lambda): the implicit derivative of the equation."""
    y = x * w
    root = np.sqrt((1.0 + y) ** 2 - 4.0 * share * y)
    below = 1.0 - y + root
    slope = 2.0 / below - 2.0 * w * x * (-1.0 + (1.0 + y - 2.0 * share) / root) / below**2
    factors = [1.0 - w / a for a in (np.ones_like(w), h, v, o)]
    falling = sum(
        np.prod([f for j, f in enumerate(factors) if j != i], axis=0) / a
        for i, a in enumerate((np.ones_like(w), h, v, o))
    )
    return np.asarray(-(2.0 * w / below) / (lam * slope + falling))
