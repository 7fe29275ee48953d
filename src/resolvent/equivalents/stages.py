"""How the elementwise functions are run over rows.

Called directly on arrays they are NumPy; `compiled` has the same functions as loops over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import WORK
from resolvent.equivalents.equations import Linearised, Noise, Parameters, Point, linearised, newton, solution
from resolvent.equivalents.fresh import Errors, Rows, errors
from resolvent.equivalents.matrices import Vector
from resolvent.equivalents.spikes import Gram

BLOCK = 8192  # rows at once in the longest function, for its temporaries to stay in cache


class Stages(NamedTuple):
    """The four functions that the drivers in `bulk` and `errors` call."""

    linearised: Callable[[Parameters, Point], Linearised]
    newton: Callable[[Linearised, Array, Array], Vector]
    solution: Callable[[Parameters, Point], Noise]
    errors: Callable[[Rows, Gram, Noise], Errors]


def _errors(rows: Rows, gram: Gram, noise: Noise) -> Errors:
    size = rows.ratio.size
    result = Errors(*np.empty((len(Errors._fields), size)))
    work = np.empty((*WORK, min(size, BLOCK)))
    for start in range(0, size, BLOCK):
        part = slice(start, min(start + BLOCK, size))
        some = (
            Rows(*(v[part] for v in rows)),
            Gram(*(v[part] for v in gram)),
            Noise(*(v[part] for v in noise)),
        )
        for whole, value in zip(result, errors(*some, work[..., : part.stop - start]), strict=True):
            whole[part] = value
    return result


DIRECT = Stages(linearised, newton, solution, _errors)
