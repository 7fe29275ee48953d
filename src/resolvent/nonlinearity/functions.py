"""The named nonlinearities: each takes an array and, to work in place, an `out` that may be the input itself.

`breakpoints` lists where a function or one of its derivatives jumps, so that integrals can be split there.
scipy.special is imported by the functions that need it, since it takes longer to load than the rest of the
package.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _identity(t: Array, out: Array | None = None) -> Array:
    return np.positive(t, out=out)


def _erf(t: Array, out: Array | None = None) -> Array:
    from scipy.special import erf

    return np.asarray(erf(t, out=out))


def _sigmoid(t: Array, out: Array | None = None) -> Array:
    from scipy.special import expit

    return np.asarray(expit(t, out=out))


def _relu(t: Array, out: Array | None = None) -> Array:
    return np.maximum(t, 0, out=out)


def _leaky_relu(t: Array, out: Array | None = None) -> Array:
    """Slope 0.01 below zero."""
    return np.maximum(t, 0.01 * t, out=out)


def _elu(t: Array, out: Array | None = None) -> Array:
    """t above zero, e^t - 1 below."""
    below = np.expm1(np.minimum(t, 0))
    return np.add(np.maximum(t, 0), below, out=out)


def _gelu(t: Array, out: Array | None = None) -> Array:
    """t times the normal distribution function (the exact form, not the tanh one)."""
    from scipy.special import ndtr

    return np.multiply(t, ndtr(t), out=out)


def _silu(t: Array, out: Array | None = None) -> Array:
    from scipy.special import expit

    return np.multiply(t, expit(t), out=out)


def _softplus(t: Array, out: Array | None = None) -> Array:
    return np.logaddexp(t, 0, out=out)


def _relu2(t: Array, out: Array | None = None) -> Array:
    positive = np.maximum(t, 0, out=out)
    return np.square(positive, out=positive)


def _hermite2(t: Array, out: Array | None = None) -> Array:
    square = np.square(t, out=out)
    return np.subtract(square, 1, out=square)


def _cubic(t: Array, out: Array | None = None) -> Array:
    return np.asarray(np.multiply(t, t * t, out=out))


def _hermite3(t: Array, out: Array | None = None) -> Array:
    return np.asarray(np.multiply(t, t * t - 3, out=out))


FUNCTIONS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "identity": (_identity, ()),
    "tanh": (np.tanh, ()),
    "erf": (_erf, ()),
    "sigmoid": (_sigmoid, ()),
    "relu": (_relu, (0.0,)),
    "leaky_relu": (_leaky_relu, (0.0,)),
    "elu": (_elu, (0.0,)),
    "gelu": (_gelu, ()),
    "silu": (_silu, ()),
    "softplus": (_softplus, ()),
    "relu2": (_relu2, (0.0,)),
    "abs": (np.abs, (0.0,)),
    "sign": (np.sign, (0.0,)),
    "sin": (np.sin, ()),
    "cos": (np.cos, ()),
    "exp": (np.exp, ()),
    "hermite2": (_hermite2, ()),
    "hermite3": (_hermite3, ()),
    "quadratic": (np.square, ()),
    "cubic": (_cubic, ()),
}
"""Name to (function, breakpoints)."""
