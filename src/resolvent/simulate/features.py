"""Attention features H = X (f(X'MX/sqrt p)/sqrt p + skip I), exactly, without ever holding the n x n matrix
K.

Columns of H depend on columns of K alone, so blocks of columns are independent, softmax over a column
included: memory is O(p n) plus one block per worker, and the cost is that of two products of p n^2 and of f
on n^2 entries. M = I + W_K W_Q' of low rank costs one update of that rank.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = tuple[NDArray[np.intp], NDArray[np.intp]] | NDArray[np.bool_]  # an index

BLOCK = 256  # columns of K held at a time
LARGEST = 1e100  # what f may reach
SUM_LENGTH = 2048  # rows summed in single precision before they are added in double


class Attention(NamedTuple):
    """f (in place, `f(scores, out=scores)`), the weights M = I + key query' and the conventions of K.

    `key` and `query` have shape (p,) or (p, r); without `identity`, M = key query'. `keep_diagonal` lets
    tokens attend to themselves; with `single`, products are in float32 and their sums in float64. With
    `beta`, columns are n/sqrt p times the softmax of beta S, and f is not used. `causal` lets token j attend
    to the tokens before it alone, and fresh tokens to all.
    """

    f: Callable[..., Array]
    key: Array
    query: Array
    skip: float = 0.0
    keep_diagonal: bool = False
    single: bool = False
    identity: bool = True
    beta: float | None = None
    causal: bool = False


def features(attention: Attention, tokens: Array, pool: Executor | None = None) -> Array:
    """H (p x n) of the tokens (p x n). Raises OverflowError when f overflows on their scores."""
    reader = Reader(attention, tokens)
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
    reader = Reader(attention, tokens)
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


class Reader:
    """Columns of K for given context tokens, and what they attend to."""

    def __init__(self, attention: Attention, tokens: Array) -> None:
        self.attention = attention
        self.p = tokens.shape[0]
        self.tokens = tokens.astype(np.float32) if attention.single else tokens

    def weights(self, queries: Array, diagonal: int | None = None) -> Array:
        """Columns f(X'M q/sqrt p)/sqrt p of K; `diagonal` is the row where the first query meets itself."""
        scores: Array = self.tokens.T @ self._moved(queries).astype(self.tokens.dtype, copy=False)
        hidden = None if diagonal is None else self._hidden(scores.shape, diagonal)
        if self.attention.beta is not None:
            _softmax(scores, self.attention.beta, hidden)
        else:
            scores = self.attention.f(scores, out=scores)
            _refuse_overflow(scores)
            if hidden is not None:
                scores[hidden] = 0.0
        scores /= np.sqrt(self.p)
        return scores

    def _moved(self, queries: Array) -> Array:
        """M q/sqrt p."""
        key, query = (v.reshape(self.p, -1) for v in (self.attention.key, self.attention.query))
        moved = key @ (query.T @ queries)
        if self.attention.identity:
            moved += queries
        out: Array = moved / np.sqrt(self.p)
        return out

    def _hidden(self, shape: tuple[int, int], diagonal: int) -> Places | None:
        """Where queries do not look: at themselves, and with a causal mask at what comes after them."""
        n, width = shape
        own = np.arange(width)
        if self.attention.causal:
            last = diagonal + own + (1 if self.attention.keep_diagonal else 0)
            return np.asarray(np.arange(n)[:, None] >= last)
        return None if self.attention.keep_diagonal else (diagonal + own, own)

    def attend(self, weights: Array) -> Array:
        """X times columns of K."""
        if not self.attention.single:
            return self.tokens @ weights
        total = np.zeros((self.p, weights.shape[1]))
        for start in range(0, weights.shape[0], SUM_LENGTH):
            rows = slice(start, start + SUM_LENGTH)
            total += self.tokens[:, rows] @ weights[rows]
        return total


def _softmax(scores: Array, beta: float, hidden: Places | None) -> None:
    """scores to n softmax(beta scores), column by column; a column that sees nothing is zero."""
    scores *= beta
    if hidden is not None:
        scores[hidden] = -np.inf
    top = scores.max(axis=0)
    scores -= np.where(np.isfinite(top), top, 0.0).astype(scores.dtype)
    np.exp(scores, out=scores)
    total = scores.sum(axis=0, dtype=np.float64)
    scores *= (scores.shape[0] / np.where(total > 0.0, total, 1.0)).astype(scores.dtype)


def _refuse_overflow(scores: Array) -> None:
    if not (top := float(max(scores.max(), -scores.min()))) < LARGEST:
        raise OverflowError(
            f"f reaches {top:.1e} on the scores of these tokens, too large to be squared and summed: "
            "lower the signal or the weights"
        )
