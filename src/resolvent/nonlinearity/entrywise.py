"""A user's callable, checked once to act entry by entry on arrays: what theory and simulation both assume."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Entrywise:
    """A callable whose values are cast to the dtype of its argument; equal and hashed by the callable.

    Raises ValueError, naming it, when it fails on an array, changes its argument, returns another shape or
    something not real, or lets an entry's value depend on the other entries.
    """

    function: Callable[[Array], Any]
    name: str

    def __post_init__(self) -> None:
        try:
            hash(self.function)
        except TypeError:
            raise ValueError(f"{self.name} must be hashable, so that its coefficients can be kept") from None
        probe = np.linspace(-2.9, 3.1, 12).reshape(3, 4)
        given = probe.copy()
        whole, part = self._try(given), self._try(probe[::-2, 1:])
        if not np.array_equal(given, probe):
            raise ValueError(f"{self.name} must not change its argument")
        if not np.allclose(whole[::-2, 1:], part, rtol=1e-6, atol=1e-12, equal_nan=True):
            raise ValueError(
                f"{self.name} must act entry by entry, but its values depend on the other entries"
            )

    def _try(self, t: Array) -> Array:
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.function(t))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{self.name} must act on NumPy arrays, but raised {type(error).__name__}: {reason}"
            ) from None
        if values.dtype.kind not in "biuf" or values.shape != t.shape:
            raise ValueError(
                f"{self.name} must return a real array of the shape of its argument, {t.shape}, "
                f"got {values.dtype} of shape {values.shape}"
            )
        return values.astype(np.float64)

    def __call__(self, t: Array) -> Array:
        """Values at t."""
        return np.asarray(self.function(t), dtype=t.dtype)
