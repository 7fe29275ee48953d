"""How many nodes Gaussian classes need: double them direction by direction until the errors no longer change.

Theory page, section 12.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import gram_matrix, numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.errors import refined_errors
from resolvent.equivalents.refined.gaussian import directions, gaussian_classes
from resolvent.nonlinearity import Nonlinearity, Softmax

TOLERANCE = 1e-3
FEWEST, FEWEST_NORMS = 3, 2
MOST = 48  # nodes per direction
MOST_CLASSES = 1200


class Adapted(NamedTuple):
    """The classes, and the largest relative change of an error when one direction gets twice the nodes."""

    classes: Classes
    change: float


def adapted_classes(
    *,
    p: float,
    n: float,
    gram: ArrayLike,
    label_mean: float = 0.0,
    ridge: ArrayLike,
    f: Nonlinearity | Softmax,
    skip: float = 0.0,
    keep_diagonal: bool = False,
    tolerance: float = TOLERANCE,
) -> Adapted:
    """Gaussian classes with as many nodes per direction, and norms, as the errors at these ridges need.

    The arguments are those of `gaussian_classes` and `refined_errors`. Nodes are doubled in one direction at
    a time until that changes neither error by more than `tolerance`, at the smallest and the largest ridge.
    `change` says what is left: it exceeds the tolerance where the nodes or classes allowed were not enough,
    as for a rapidly growing f at strongly aligned weights, whose errors hang on a few extreme tokens.

    Source: theory page, section 12.

    >>> from resolvent.nonlinearity import nonlinearity
    >>> gram = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
    >>> classes, change = adapted_classes(p=64, n=128, gram=gram, ridge=0.1, f=nonlinearity("tanh"))
    >>> classes.weight.size, change < 1e-3
    (..., True)
    """
    ends = np.array([np.min(numbers("ridge", ridge)), np.max(numbers("ridge", ridge))])

    def build(counts: tuple[int, ...]) -> Classes:
        return gaussian_classes(
            p=p, n=n, gram=gram, label_mean=label_mean, nodes=counts[:-1], norm_nodes=counts[-1]
        )

    def errors(counts: tuple[int, ...]) -> Array:
        both = refined_errors(build(counts), ridge=ends, f=f, skip=skip, keep_diagonal=keep_diagonal)
        return np.stack([both.train, both.test])

    counts = (FEWEST,) * directions(gram_matrix(gram))[0].size + (FEWEST_NORMS,)
    current, left = errors(counts), np.zeros(len(counts))
    waiting = list(range(len(counts)))
    while waiting:
        axis = waiting.pop(0)
        finer = tuple(2 * k if i == axis else k for i, k in enumerate(counts))
        if finer[axis] > MOST or 2 * np.prod(finer) > MOST_CLASSES:
            continue
        changed = errors(finer)
        left[axis] = np.nanmax(np.abs(changed / current - 1.0))
        if not left[axis] <= tolerance:
            counts, current = finer, changed
            waiting.append(axis)
    return Adapted(build(counts), float(left.max()))
