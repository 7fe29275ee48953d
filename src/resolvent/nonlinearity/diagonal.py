"""A kept diagonal: S_ii is about sqrt p, so K gains f(sqrt p)/sqrt p times the identity.

(The theory page, section 1.) That shift has a limit only when f grows at most linearly. Growth is judged by
comparing the largest |f(t)|/t on [T, 2T] at T = 1e8 and T = 1e16, where constants and lower orders no longer
count.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_FAR, _FARTHER = 1e8, 1e16
_WINDOW = np.linspace(1.0, 2.0, 65)


class GrowthError(ValueError):
    """f grows faster than linearly: its diagonal cannot be kept."""


def checked_slope(function: Callable[..., Array], name: str) -> Array:
    """f(t)/t far out, at 65 points; raises GrowthError, naming f, when f grows faster than linearly."""
    far, farther = _slopes(function, _FAR), _slopes(function, _FARTHER)
    if not np.isfinite(far).all():
        raise GrowthError(f"the diagonal cannot be kept: {name} grows faster than linearly or overflows")
    if not np.abs(farther).max() <= 1.5 * np.abs(far).max():
        raise GrowthError(f"the diagonal cannot be kept: {name} grows faster than linearly")
    return farther


def limit_slope(function: Callable[..., Array], name: str) -> float | None:
    """Limit of f(sqrt p)/sqrt p as p grows, None when it keeps moving; raises as `checked_slope`."""
    slopes = checked_slope(function, name)
    if np.abs(slopes).max() < 1e-7:
        return 0.0
    return float(slopes[0]) if np.ptp(slopes) <= 1e-6 * np.abs(slopes).max() else None


def _slopes(function: Callable[..., Array], scale: float) -> Array:
    t = scale * _WINDOW
    with np.errstate(all="ignore"):
        return function(t) / t
