"""Conversion and range checks of a setting's numbers: one line that names the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import numbers, require

Array = NDArray[np.float64]


class Range(NamedTuple):
    """An interval, its bounds included or not."""

    low: float
    high: float
    low_included: bool = True
    high_included: bool = True

    def __str__(self) -> str:
        if np.isinf(self.high):
            bound = "zero or positive" if self.low_included else "positive"
            return bound if self.low == 0.0 else f"at least {self.low:g}"
        words = "" if self.low_included and self.high_included else " (bounds excluded)"
        return f"between {self.low:g} and {self.high:g}{words}"

    def holds(self, value: Array) -> NDArray[np.bool_]:
        """Which entries lie inside."""
        above = value >= self.low if self.low_included else value > self.low
        below = value <= self.high if self.high_included else value < self.high
        return above & below


POSITIVE = Range(0.0, np.inf, low_included=False)
NON_NEGATIVE = Range(0.0, np.inf)
COSINE = Range(-1.0, 1.0)
LARGEST = 1e15  # beyond it double precision loses the noise, whose size is one


def number(name: str, value: ArrayLike, allowed: Range | None = None) -> Array | float:
    """value as a float or read-only float64 array, finite and in range; ValueError or TypeError otherwise."""
    array = numbers(name, value).copy()
    require(name, array, np.abs(array) <= LARGEST, f"at most {LARGEST:g} in size")
    if allowed is not None:
        require(name, array, allowed.holds(array), str(allowed))
    array.flags.writeable = False
    return array if array.ndim else float(array)


def common_shape(numbers: Mapping[str, Array | float]) -> tuple[int, ...]:
    """The shape that named numbers broadcast to; ValueError names the arrays that do not."""
    try:
        return np.broadcast_shapes(*(np.shape(value) for value in numbers.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in numbers.items() if np.ndim(value))
        raise ValueError(f"the numbers of a setting must broadcast together, got {shapes}") from None


def integer(name: str, value: object, low: int) -> int:
    """value as an int of at least low; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """value as a bool; TypeError for anything else."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)
