"""Does a head look where the user's signal is?

The signal direction of tokens x_j with labels y_j = +-1 is mu = (mean of x_j with y_j = 1 - mean with y_j =
-1)/2. Its share on a head's leading key space U (left singular vectors of M) or query space V (right) is
|U'mu|^2/|mu|^2. Under the null hypothesis that labels have nothing to do with tokens, permuting the labels
gives shares of the same law, also where tokens spread unevenly; so

    p = (1 + number of permutations with a share at least as large)/(1 + number of permutations).

Every head and side is one more test. They share their permutations, so the law of the largest score among
them is known under the null, and an adjusted p-value compares with that maximum: the chance of any false
alarm among all heads is at most the level (Westfall and Young, "Resampling-Based Multiple Testing", 1993,
single-step maximum). A score must be alike for all heads for the maximum to be fair to each; it is
log(share/(1 - share)), standardised over the head's own permutations: how much the tokens spread along a
head's space only shifts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.checkpoints.analysis import singular_directions
from resolvent.checkpoints.head import Head

Array = NDArray[np.float64]
BATCH = 64  # permutations made at once
CLOSEST = 1e-12  # of a share to 0 and 1, where its log odds end


@dataclass(frozen=True)
class SignalShare:
    """How much of the signal lies in one head's leading key (left) and query (right) spaces.

    `expected_*` is the mean share under permuted labels, `p_*` the p-value of this head alone, `adjusted_*`
    the one corrected over every head and both sides.
    """

    layer: int
    head: int
    count: int
    key: float
    query: float
    expected_key: float
    expected_query: float
    p_key: float
    p_query: float
    adjusted_key: float
    adjusted_query: float

    def __str__(self) -> str:
        return (
            f"layer {self.layer} head {self.head}: signal in the top {self.count} keys {self.key:.2%} "
            f"(by chance {self.expected_key:.2%}, p {self.p_key:.3g}, over all {self.adjusted_key:.3g}), "
            f"queries {self.query:.2%} ({self.expected_query:.2%}, {self.p_query:.3g}, "
            f"{self.adjusted_query:.3g})"
        )


def signal_shares(
    heads: Iterable[Head],
    tokens: ArrayLike | Mapping[int, ArrayLike],
    labels: ArrayLike,
    *,
    count: int = 4,
    gain: bool = False,
    permutations: int = 999,
    seed: int = 0,
) -> tuple[SignalShare, ...]:
    """Shares of the signal in the leading `count` key and query directions of every head, with p-values.

    `tokens` is d_model x n as the heads read them (with `gain`: as they are before the norm's gain), or a
    mapping from each layer to its own; `labels` are n values -1 and 1.

    Raises ValueError for tokens that don't fit the heads or aren't finite, labels other than both of -1 and
    1, and numbers that aren't positive.
    """
    for name, value in (("count", count), ("permutations", permutations)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    cases: list[tuple[Head, Array]] = []
    highest = np.full(permutations + 1, -np.inf)
    for layer, members in groupby(heads, key=lambda head: head.layer):
        if not cases or isinstance(tokens, Mapping):
            directions = _directions(*_tokens(tokens, labels, layer), permutations, seed)
        for head in members:
            if head.d_model != len(directions):
                raise ValueError(f"tokens must have {head.d_model} rows for {head}, got {len(directions)}")
            left, _, right = singular_directions(head, min(count, head.d_head), gain=gain)
            shares = np.stack([np.sum((space.T @ directions) ** 2, axis=0) for space in (left, right)])
            highest = np.maximum(highest, _scores(shares).max(axis=0))
            cases.append((head, shares))
    return tuple(_result(head, shares, highest, min(count, head.d_head)) for head, shares in cases)


def signal_direction(tokens: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The unit vector (d_model,) along half the difference of the class means of tokens (d_model, n).

    Raises ValueError as `signal_shares` does.

    >>> signal_direction([[3.0, 1.0, -2.0], [0.0, 1.0, 0.5]], [1, 1, -1])
    array([1., 0.])
    """
    direction: Array = _directions(*_tokens(tokens, labels, 0), 0, 0)[:, 0]
    return direction


def _tokens(
    tokens: ArrayLike | Mapping[int, ArrayLike], labels: ArrayLike, layer: int
) -> tuple[Array, Array]:
    if isinstance(tokens, Mapping):
        if layer not in tokens:
            raise ValueError(f"tokens must have an entry for layer {layer}, got {sorted(tokens)[:8]}")
        tokens = tokens[layer]
    X, y = np.asarray(tokens, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if X.ndim != 2 or y.shape != (X.shape[1],):
        raise ValueError(f"tokens must be d_model x n and labels n long, got shapes {X.shape} and {y.shape}")
    if not np.isfinite(X).all():
        raise ValueError("tokens must be finite")
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise ValueError(f"labels must be -1 and 1, both present, got {np.unique(y)[:5].tolist()}")
    return X, y


def _directions(X: Array, y: Array, permutations: int, seed: int) -> Array:
    """Unit signal directions, of the labels as given and then permuted: d_model x (1 + permutations)."""
    rng = np.random.default_rng(seed)
    weights = np.where(y > 0, 0.5 / np.sum(y > 0), -0.5 / np.sum(y < 0))
    columns = [X @ weights[:, None]]
    for start in range(0, permutations, BATCH):
        batch = [rng.permutation(weights) for _ in range(min(BATCH, permutations - start))]
        columns.append(X @ np.stack(batch, axis=1))
    directions = np.concatenate(columns, axis=1)
    lengths = np.linalg.norm(directions, axis=0)
    if not lengths.all():
        raise ValueError("tokens must differ between labels: a signal direction is zero")
    normalised: Array = directions / lengths
    return normalised


def _scores(shares: NDArray[Any]) -> Array:
    """Log odds in standard deviations over the labels as given and permuted, which treats all of them
    alike."""
    inside = np.clip(shares, CLOSEST, 1 - CLOSEST)
    odds = np.log(inside / (1 - inside))
    spread = odds.std(axis=1, keepdims=True)
    centred: Array = odds - odds.mean(axis=1, keepdims=True)
    scores: Array = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > CLOSEST)
    return scores


def _result(head: Head, shares: Array, highest: Array, count: int) -> SignalShare:
    scored = _scores(shares)[:, :1]
    # The labels as given are column 0 and count themselves: (1 + exceedances)/(1 + permutations).
    # Rounding must not break a tie in the signal's favour.
    p = np.mean(shares >= shares[:, :1] * (1 - 1e-12), axis=1)
    adjusted = np.mean(highest[None, :] >= scored - 1e-9, axis=1)
    expected = shares[:, 1:].mean(axis=1)
    columns = zip(shares[:, 0], expected, p, adjusted, strict=True)
    (key, e_key, p_key, a_key), (query, e_query, p_query, a_query) = (
        map(float, column) for column in columns
    )
    return SignalShare(
        head.layer, head.head, count, key, query, e_key, e_query, p_key, p_query, a_key, a_query
    )
