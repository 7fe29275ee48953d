"""Key-query weights M = I + sum_t w_K,t w_Q,t' of any low rank (LoRA's), by inner products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from resolvent.setting.ranges import Array, number

MOST_TERMS = 64


@dataclass(frozen=True, eq=False)
class LowRankWeights:
    """M = I + K'Q for keys K and queries Q of shape (r, p). Build with `Weights.low_rank`.

    `inner` (1 + 2r, 1 + 2r) holds the inner products of the unit vector along mu, the keys and the queries:
    all that white noise lets through.
    """

    inner: Array

    @classmethod
    def from_vectors(cls, keys: ArrayLike, queries: ArrayLike, mu: ArrayLike) -> LowRankWeights:
        """From keys and queries (r, p) and a vector along mu (p,)."""
        K, Q = (np.atleast_2d(number(name, v)) for name, v in (("keys", keys), ("queries", queries)))
        signal = np.atleast_1d(number("mu", mu))
        if K.ndim != 2 or K.shape != Q.shape or signal.shape != K.shape[1:]:
            raise ValueError(
                "keys and queries must be matrices (r, p) and mu a vector (p,), "
                f"got {K.shape}, {Q.shape} and {signal.shape}"
            )
        if K.shape[0] > MOST_TERMS:
            raise ValueError(
                f"keys must have at most {MOST_TERMS} rows, got {K.shape[0]}: use Weights.matrix"
            )
        length = float(np.linalg.norm(signal))
        if length == 0.0:
            raise ValueError("mu must not be zero: it gives the direction of the signal")
        rows = np.vstack([signal / length, K, Q])
        return cls(rows @ rows.T)

    @property
    def rank(self) -> int:
        """r."""
        return int(self.inner.shape[0] // 2)

    def gram(self, snr: Array | float) -> Array:
        """Inner products of (mu, keys, queries) for |mu|^2 = snr, shape (..., 1 + 2r, 1 + 2r)."""
        size = np.ones((*np.shape(snr), self.inner.shape[0]))
        size[..., 0] = np.sqrt(snr)
        return np.asarray(size[..., :, None] * size[..., None, :] * self.inner)

    def as_dict(self) -> dict[str, object]:
        """The rank and the inner products."""
        return {"weights": "low rank", "rank": self.rank, "inner": self.inner.tolist()}
