"""Attention features H = X (f(X'MX/sqrt p)/sqrt p + skip I), exactly, without ever holding the n x n matrix
K.

Columns of H depend on columns of K alone, so blocks of columns are independent: memory is O(p n) plus one
block per worker, and the cost is that of two products of p n^2 and of f on n^2 entries. M = I + w_K w_Q'
costs one rank-one update.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 256  # columns of K held at a time
LARGEST = 1e100  # what f may reach
SUM_LENGTH = 2048  # rows summed in single precision before they are added in double


class Attention(NamedTuple):
    """f (in place, `f(scores, out=scores)`), the weight vectors and the conventions of K.

    `keep_diagonal` lets tokens attend to themselves; with `single`, products are in float32 and their sums
    in float64.
    """

    f: Callable[..., Array]
    key: Array
    query: Array
    skip: float = 0.0
    keep_diagonal: bool = False
    single: bool = False


def features(attention: Attention, tokens: Array, pool: Executor | None = None) -> Array:
    """H (p x n) of the tokens (p x n). Raises OverflowError when f overflows on their scores."""
    reader = _Reader(attention, tokens)
    out = np.empty_like(tokens)

    def block(start: int) -> None:
        columns = slice(start, start + BLOCK)
        weights = reader.weights(tokens[:, columns], diagonal=start)
        out[:, columns] = reader.attend(weights)
        if attention.skip:
            out[:, columns] += attention.skip * tokens[:, columns]

    _run(block, tokens.shape[1], pool)
    return out


def predictions(
    attention: Attention,
    tokens: Array,
    readout: Array,
    probe: Array,
    fresh: Array,
    pool: Executor | None = None,
) -> Array:
    """Probe outputs w'h0 (probes x fresh) for fresh tokens (p x fresh) that attend to the context `tokens`.

    readout (probes x n) is w'X and probe (probes x p) is w, which the residual connection reads directly.
    Raises OverflowError as `features` does.
    """
    reader = _Reader(attention, tokens)
    out = np.empty((readout.shape[0], fresh.shape[1]))

    def block(start: int) -> None:
        columns = slice(start, start + BLOCK)
        out[:, columns] = readout @ reader.weights(fresh[:, columns])
        if attention.skip:
            out[:, columns] += attention.skip * (probe @ fresh[:, columns])

    _run(block, fresh.shape[1], pool)
    return out


def _run(block: Callable[[int], None], columns: int, pool: Executor | None) -> None:
    """Apply block to every column block; the blocks do not depend on who computes them."""
    for _ in (map if pool is None else pool.map)(block, range(0, columns, BLOCK)):
        pass


class _Reader:
    """Columns of K for given context tokens, and what they attend to."""

    def __init__(self, attention: Attention, tokens: Array) -> None:
        self.attention = attention
        self.p = tokens.shape[0]
        self.tokens = tokens.astype(np.float32) if attention.single else tokens

    def weights(self, queries: Array, diagonal: int | None = None) -> Array:
        """Columns f(X'M q/sqrt p)/sqrt p of K; `diagonal` is the row where the first query meets itself."""
        moved = queries + np.outer(self.attention.key, self.attention.query @ queries)
        moved /= np.sqrt(self.p)
        scores = self.tokens.T @ moved.astype(self.tokens.dtype, copy=False)
        scores = self.attention.f(scores, out=scores)
        if not (top := float(max(scores.max(), -scores.min()))) < LARGEST:
            raise OverflowError(
                f"f reaches {top:.1e} on the scores of these tokens, too large to be squared and summed: "
                "lower the signal or the weights"
            )
        if diagonal is not None and not self.attention.keep_diagonal:
            own = np.arange(queries.shape[1])
            scores[diagonal + own, own] = 0.0
        scores /= np.sqrt(self.p)
        return scores

    def attend(self, weights: Array) -> Array:
        """X times columns of K."""
        if not self.attention.single:
            return self.tokens @ weights
        total = np.zeros((self.p, weights.shape[1]))
        for start in range(0, weights.shape[0], SUM_LENGTH):
            rows = slice(start, start + SUM_LENGTH)
            total += self.tokens[:, rows] @ weights[rows]
        return total
