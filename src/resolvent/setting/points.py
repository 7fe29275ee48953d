"""A setting of arrays, point by point: for equivalents that vectorise over the ridge alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Softmax
from resolvent.setting.setting import Setting
from resolvent.setting.weights import Weights

Record = TypeVar("Record", bound=Any)


def points(setting: Setting) -> Iterator[tuple[NDArray[np.intp], Setting]]:
    """Positions in the flattened shape, and the setting there, in which only ridge is an array (1-d).

    Positions that differ in the ridge alone come together.

    >>> parts = list(points(Setting(ridge=[0.1, 1.0])))
    >>> len(parts), parts[0][1].ridge
    (1, array([0.1, 1. ]))
    """
    values = {k: np.broadcast_to(v, setting.shape).ravel() for k, v in setting.numbers().items()}
    ridge = values.pop("ridge")
    table = np.column_stack(list(values.values()))
    _, first, member = np.unique(table, axis=0, return_index=True, return_inverse=True)
    for group, at in enumerate(first):
        here = np.flatnonzero(member.ravel() == group)
        yield here, _at(setting, int(at), ridge[here])


def _at(setting: Setting, index: int, ridge: NDArray[np.float64]) -> Setting:
    def pick(record: Record) -> Record:
        arrays = {
            f.name: float(np.broadcast_to(value, setting.shape).flat[index])
            for f in fields(record)
            if f.init and isinstance(value := getattr(record, f.name), np.ndarray)
        }
        return replace(record, **arrays) if arrays else record

    def each(values: Any, kind: type) -> Any:
        if isinstance(values, (list, tuple)):
            return [each(value, kind) for value in values]
        return pick(values) if isinstance(values, kind) else values

    return replace(
        pick(setting),
        tokens=pick(setting.tokens),
        weights=each(setting.weights, Weights),
        nonlinearity=each(setting.nonlinearity, Softmax),
        ridge=ridge,
    )
