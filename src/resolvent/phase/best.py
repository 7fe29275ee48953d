"""The ridge of the least test error, for many settings at once.

Candidates are 0 (if wanted), powers of ten from LOW to HIGH, and infinity, where the probe is zero and its
error one; the best power is refined between its neighbours. A second minimum much narrower than a decade
would be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.phase.minimum import Bracket, Rows, minimum

Array = NDArray[np.float64]
Error = Callable[[Array, Rows], Array]

LOW, HIGH = -6, 6  # powers of ten
WIDTH = 0.02  # of a bracket, in decades
ZERO_PROBE = 1.0  # its error, in training and on fresh tokens: targets are +-1
ROUNDING = 1e-9  # of an error; what beats the zero probe by less does not


class Best(NamedTuple):
    """The ridge (0 and infinity included) and the test error there."""

    ridge: Array
    test: Array


def best_ridge(test_error: Error, count: int, *, ridgeless: bool = True) -> Best:
    """Minimise test_error(ridge, rows) over the ridge, for rows 0 to count - 1. NaN counts as infinite.

    Without `ridgeless` the ridge 0 is no candidate.
    """
    rows = np.arange(count)

    def error(power: Array, rows: Rows) -> Array:
        return _numbers(test_error(10.0**power, rows))

    powers = np.arange(LOW - 1.0, HIGH + 2.0)
    scan = error(np.repeat(powers, count), np.tile(rows, powers.size)).reshape(powers.size, count)
    least = np.argmin(scan[1:-1], axis=0) + 1
    sides = [(powers[least + i], scan[least + i, rows]) for i in (-1, 0, 1)]
    (a, at_a), (b, at_b), (c, at_c) = sides
    power, test = minimum(error, Bracket(a, b, c, at_a, at_b, at_c), WIDTH)
    at_zero = _numbers(test_error(np.zeros(count), rows)) if ridgeless else np.full(count, np.inf)
    ridge, test = np.where(at_zero < test, 0.0, 10.0**power), np.minimum(at_zero, test)
    useless = test > ZERO_PROBE - ROUNDING
    return Best(np.where(useless, np.inf, ridge), np.where(useless, ZERO_PROBE, test))


def _numbers(values: Array) -> Array:
    return np.where(np.isnan(values), np.inf, values)
