"""Laws of independent noise entries of mean 0 and variance 1: the bulk is the same, only the kurtosis counts.

The norm fluctuation s_i = sqrt p (|z_i|^2/p - 1) has variance kurtosis - 1: 2 for Gaussian entries, 0 for
Rademacher entries, whose norms do not fluctuate. It enters through a2 where labels are unbalanced or f has
a mean. Theory page, 8b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNEQUAL_NORMS = (
    "tokens of unequal norm have no universal limit (each pair has scores of its own variance): normalise "
    "them, or use the refined equivalent, which takes norms as they are"
)


@dataclass(frozen=True)
class EntryLaw:
    """A law of the noise entries: its kurtosis E z^4, and how to draw from it."""

    name: str
    kurtosis: float
    sample: Callable[[np.random.Generator, tuple[int, ...]], Array]

    @property
    def norm_variance(self) -> float:
        """kurtosis - 1, the variance of the norm fluctuations."""
        return self.kurtosis - 1.0


def entry_law(name: str, degrees: float | None = None) -> EntryLaw:
    """The law called gaussian, rademacher, uniform, laplace or student-t (with `degrees` of freedom).

    Raises ValueError for another name, for degrees missing or given where there are none, and for degrees
    up to 4, where the fourth moment, which the limit needs, does not exist.

    >>> entry_law("student-t", degrees=10).kurtosis
    4.0
    >>> entry_law("rademacher").norm_variance
    0.0
    """
    if name == "student-t":
        return _student(degrees)
    if name not in _LAWS:
        raise ValueError(f"noise must be one of {', '.join([*_LAWS, 'student-t'])}, got {name!r}")
    if degrees is not None:
        raise ValueError(f"degrees belong to student-t noise, not to {name}")
    return _LAWS[name]


def _student(degrees: float | None) -> EntryLaw:
    if degrees is None:
        raise ValueError("student-t noise needs its degrees of freedom")
    if not 4.0 < degrees < np.inf:
        raise ValueError(f"degrees must be above 4, where the fourth moment exists, got {degrees:.6g}")
    width = np.sqrt((degrees - 2.0) / degrees)
    return EntryLaw(
        "student-t",
        3.0 * (degrees - 2.0) / (degrees - 4.0),
        lambda rng, shape: width * rng.standard_t(degrees, shape),
    )


_LAWS = {
    "gaussian": EntryLaw("gaussian", 3.0, lambda rng, shape: rng.standard_normal(shape)),
    "rademacher": EntryLaw("rademacher", 1.0, lambda rng, shape: rng.choice(np.array([-1.0, 1.0]), shape)),
    "uniform": EntryLaw("uniform", 1.8, lambda rng, shape: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)),
    "laplace": EntryLaw("laplace", 6.0, lambda rng, shape: rng.laplace(0.0, np.sqrt(0.5), shape)),
}
