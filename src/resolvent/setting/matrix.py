"""Key-query weights M given as a matrix, or as the factors W_K'W_Q of a head."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents import Factors, reduce_factors, reduce_matrix
from resolvent.setting.ranges import POSITIVE, Array, number

LARGEST = 8192  # rows of a matrix whose singular vectors are wanted
PLACES = ("random", "top-key", "top-query")


@dataclass(frozen=True, eq=False)
class MatrixWeights:
    """M = left diag(values) right', and the unit direction of the signal in R^p.

    Build with `Weights.matrix` or `Weights.factors`. `place` says where the direction comes from.
    """

    factors: Factors
    signal: Array
    place: str
    digest: str = field(repr=False)

    @classmethod
    def build(cls, factors: Factors, tau: float | None, signal: str | ArrayLike) -> MatrixWeights:
        """Scaled to |M|_F = tau sqrt p, or as they are, with the signal where it is asked for."""
        if tau is not None:
            factors = factors.scaled(float(number("tau", tau, POSITIVE)))
        direction, place = _direction(factors, signal)
        parts = (factors.left, factors.values, factors.right, direction)
        digest = sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]
        return cls(factors, direction, place, digest)

    @classmethod
    def from_matrix(cls, M: ArrayLike, tau: float | None, signal: str | ArrayLike) -> MatrixWeights:
        """From a square matrix."""
        if np.ndim(M) == 2 and np.shape(M)[0] > LARGEST:
            raise ValueError(
                f"weights must be at most {LARGEST} x {LARGEST}, got shape {np.shape(M)}: "
                "use Weights.factors for a head of low rank"
            )
        return cls.build(reduce_matrix(M), tau, signal)

    @classmethod
    def from_factors(
        cls, key: ArrayLike, query: ArrayLike, tau: float | None, signal: str | ArrayLike
    ) -> MatrixWeights:
        """From W_K and W_Q of shape (d, p)."""
        return cls.build(reduce_factors(key, query), tau, signal)

    @property
    def dimension(self) -> int:
        """p."""
        return self.factors.dimension

    def as_dict(self) -> dict[str, object]:
        """What the theory sees of M, and a digest that tells matrices apart."""
        f = self.factors
        return {
            "weights": "matrix",
            "p": f.dimension,
            "rank": f.rank,
            "tau": f.tau,
            "stable_rank": f.stable_rank,
            "trace": f.trace,
            "rho": f.rho,
            "signal": self.place,
            "digest": self.digest,
        }


def _direction(factors: Factors, signal: str | ArrayLike) -> tuple[Array, str]:
    if isinstance(signal, str):
        top = int(np.argmax(np.abs(factors.values)))
        match signal:
            case "random":
                vector = np.random.default_rng(0).standard_normal(factors.dimension)
            case "top-key":
                vector = factors.left[:, top]
            case "top-query":
                vector = factors.right[:, top]
            case _:
                raise ValueError(f"signal must be {', '.join(PLACES)} or a vector, got {signal!r}")
        return vector / np.linalg.norm(vector), signal
    vector = np.atleast_1d(number("signal", signal))
    if vector.shape != (factors.dimension,):
        raise ValueError(f"signal must have shape ({factors.dimension},), got {vector.shape}")
    length = float(np.linalg.norm(vector))
    if length == 0.0:
        raise ValueError("signal must not be zero: it gives the direction of mu")
    return vector / length, "given"
