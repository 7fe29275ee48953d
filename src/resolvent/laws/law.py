"""A spectral law as a table: nodes and weights that average any function, atoms included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

MASS_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Law:
    """The law of an eigenvalue g of G = Z'Z/p, one of n: weights at nodes.

    `support` (k, 2) holds the intervals of positive density, `atoms` the pairs (place, mass), which are nodes
    as well. The weights sum to 1 to 1e-6; `mass_error` says by how much they do not. Raises ValueError for
    nodes or weights that are negative, not finite or of different lengths.
    """

    nodes: Array
    weights: Array
    support: Array
    atoms: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        shapes = self.nodes.shape, self.weights.shape
        if self.nodes.ndim != 1 or shapes[0] != shapes[1] or self.nodes.size == 0:
            raise ValueError(
                f"nodes and weights must be lists of one length, got {shapes[0]} and {shapes[1]}"
            )
        for name, values in (("nodes", self.nodes), ("weights", self.weights)):
            if not (np.isfinite(values).all() and (values >= 0.0).all()):
                raise ValueError(f"{name} must be finite and not negative")
        if self.mass_error > MASS_TOLERANCE:
            raise ValueError(f"weights must sum to 1, got {self.weights.sum():.8g}")

    @property
    def mass_error(self) -> float:
        """|sum of the weights - 1|."""
        return float(abs(self.weights.sum() - 1.0))

    def mean(self, function: Callable[[Array], NDArray[Any]]) -> Any:
        """E function(g); further axes of the values are kept."""
        return np.tensordot(self.weights, function(self.nodes), axes=(0, 0))

    def stieltjes(self, z: ArrayLike) -> NDArray[np.complex128]:
        """E 1/(g - z) for z away from the nodes."""
        points = np.asarray(z, dtype=np.complex128)
        return np.asarray((1.0 / (self.nodes - points[..., None])) @ self.weights)


def empirical(eigenvalues: ArrayLike) -> Law:
    """Equal weights on the n eigenvalues of G = Z'Z/p of data at hand, zeros included.

    Rounding below zero is cut off. Raises ValueError for eigenvalues that are not finite, or clearly
    negative.

    >>> float(empirical([0.0, 1.0, 2.0]).mean(lambda g: g))
    1.0
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64).ravel())
    if values.size and -1e-9 * np.abs(values).max() <= values[0] < 0.0:
        values = np.maximum(values, 0.0)
    return Law(values, np.full(values.size, 1.0 / max(values.size, 1)), np.empty((0, 2)))
