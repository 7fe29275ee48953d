"""Covariance of what two nonlinearities add above degree one, on correlated scores.

For standard normal x, x' with correlation rho and Hermite coefficients a_k, b_k of f(s x) and g(s' x)
(Mehler)

    sum_{k >= 2} a_k b_k rho^k = E[f(s x) g(s' x')] - a_0 b_0 - rho a_1 b_1.

Small rho: the series, cut where rho^k is. Large rho, where kinks make the series slow: the right-hand side,
with g averaged over x' given x and f taken without its degrees 0 and 1. |rho| = 1: polarisation of the
noise power, (sigma^2(f + g) - sigma^2(f) - sigma^2(g))/2, g mirrored when rho = -1. Theory page, section 8.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.nonlinearity import Nonlinearity
from resolvent.nonlinearity.softmax import Softmax, exponential_rest

Array = NDArray[Any]

SERIES_UP_TO = 0.6
DROPPED = 1e-15


@dataclass(frozen=True)
class _Sum:
    """f(s t) + g(s' t)."""

    f: Nonlinearity
    g: Nonlinearity
    scale_f: float
    scale_g: float

    def __call__(self, t: Array) -> Array:
        return np.asarray(self.f.function(self.scale_f * t) + self.g.function(self.scale_g * t))


def noise_covariance(
    f: Nonlinearity | Softmax,
    g: Nonlinearity | Softmax,
    rho: float,
    *,
    scale_f: float = 1.0,
    scale_g: float = 1.0,
) -> float:
    """sum_{k >= 2} a_k b_k rho^k for f under N(0, scale_f^2) and g under N(0, scale_g^2).

    With f = g and rho = 1 it is the noise power sigma2. Accurate to 1e-10 of the product of the two noise
    scales up to |rho| = 0.6 and at |rho| = 1; between, to 1e-6 at kinks and to 1e-3 at jumps, as |rho|
    nears 1. Raises ValueError when |rho| > 1.

    Source: Mehler's formula; theory page, section 8.

    >>> from resolvent.nonlinearity import nonlinearity
    >>> relu = nonlinearity("relu")
    >>> bool(np.isclose(noise_covariance(relu, relu, 1.0), relu.coefficients().sigma2))
    True
    """
    if not abs(rho) <= 1.0 + 1e-9:
        raise ValueError(f"rho must be between -1 and 1, got {rho:.6g}")
    if isinstance(f, Softmax) and isinstance(g, Softmax):
        return float(exponential_rest(rho * float(f.beta) * float(g.beta) * scale_f * scale_g))
    f = f.entrywise(scale_f) if isinstance(f, Softmax) else f
    g = g.entrywise(scale_g) if isinstance(g, Softmax) else g
    if abs(rho) <= SERIES_UP_TO:
        return _series(f, g, rho, scale_f, scale_g)
    if 1.0 - abs(rho) < 1e-9:
        return _polarised(f, g, float(np.sign(rho)), scale_f, scale_g)
    return _averaged(f, g, rho, scale_f, scale_g)


def _series(f: Nonlinearity, g: Nonlinearity, rho: float, scale_f: float, scale_g: float) -> float:
    if rho == 0.0:
        return 0.0
    last = int(np.ceil(np.log(DROPPED) / np.log(abs(rho))))
    return float(
        sum(f.hermite(k, scale_f) * g.hermite(k, scale_g) * rho**k for k in range(2, max(last, 2) + 1))
    )


def _polarised(f: Nonlinearity, g: Nonlinearity, sign: float, scale_f: float, scale_g: float) -> float:
    own_f, own_g = f.coefficients(scale_f).sigma2, g.coefficients(scale_g).sigma2
    if f.function == g.function and scale_f == scale_g and sign > 0:
        return own_f
    scale = sign * scale_g
    points = [b / scale_f for b in f.breakpoints or ()] + [b / scale for b in g.breakpoints or ()]
    both = Nonlinearity(f"{f.name} + {g.name}", _Sum(f, g, scale_f, scale), tuple(sorted(set(points))))
    return 0.5 * (both.coefficients().sigma2 - own_f - own_g)


def _averaged(f: Nonlinearity, g: Nonlinearity, rho: float, scale_f: float, scale_g: float) -> float:
    """E[f_rest(x) E[g(x') | x]], f_rest being f less its degrees 0 and 1."""
    rest = f.expansion(scale_f)
    spread = scale_g * np.sqrt((1.0 - rho) * (1.0 + rho))
    above, below = (g.moments(rho * scale_g * x, spread, reference=scale_g).m0 for x in (rest.x, -rest.x))
    even, odd = rest.q * (above + below) / 2, rest.q * (above - below) / 2
    return float(rest.even_rest @ even + rest.odd_rest @ odd)
