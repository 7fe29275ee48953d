"""Any two label values to the model's -1 and +1.

The larger number, the later string in alphabetical order, or True becomes +1: (0, 1), ("neg", "pos") and
(False, True) all map as one expects. Strings that all spell numbers are compared as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LabelValue = bool | int | float | str
SHOWN = 3


def signs(labels: ArrayLike) -> tuple[NDArray[np.float64], tuple[LabelValue, LabelValue]]:
    """Labels in {-1.0, +1.0} and the pair of original values (the one at -1, the one at +1).

    Raises ValueError if the labels are not a vector of booleans, real numbers or strings, if one is missing,
    or if they do not take exactly two values.
    """
    values = np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(f"labels must be a vector with one value a token, got shape {values.shape}")
    if values.dtype.kind == "U":
        values = _as_numbers(values)
    if values.dtype.kind not in "biufU":
        raise ValueError(f"labels must be booleans, real numbers or strings, got {values.dtype}")
    _refuse_missing(values)
    distinct = np.unique(values)
    if distinct.size < 2:
        held = f"all {values.size} tokens have {_shown(distinct[0])}" if distinct.size else "there are none"
        raise ValueError(f"labels must take two values, {held}")
    if distinct.size > 2:
        first = ", ".join(_shown(value) for value in distinct[:SHOWN]) + (
            ", ..." if distinct.size > SHOWN else ""
        )
        raise ValueError(
            f"labels must take two values, got {distinct.size} ({first}); set one against the rest, "
            f"e.g. labels == {_shown(distinct[0])}, and read once for each"
        )
    return np.where(values == distinct[1], 1.0, -1.0), (distinct[0].item(), distinct[1].item())


def _as_numbers(strings: NDArray[Any]) -> NDArray[Any]:
    for kind in (int, float):
        try:
            return np.array([kind(value) for value in strings.tolist()])
        except (ValueError, OverflowError):
            continue
    return strings


def _refuse_missing(values: NDArray[Any]) -> None:
    if values.dtype.kind == "f":
        missing: Sequence[int] = np.flatnonzero(~np.isfinite(values)).tolist()
    elif values.dtype.kind == "U":
        missing = np.flatnonzero(np.char.strip(values) == "").tolist()
    else:
        missing = []
    if missing:
        raise ValueError(
            f"{len(missing)} labels are missing (empty, NaN or infinite), the first at token {missing[0]}, "
            "counting from 0"
        )


def _shown(value: Any) -> str:
    text = repr(value.item())
    return text if len(text) <= 40 else text[:37] + "..."
