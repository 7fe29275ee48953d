"""The heads of a setting as they act on tokens in dimension p: mu, and the weights of each head."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Softmax
from resolvent.setting import Setting
from resolvent.setting.heads import Head
from resolvent.setting.matrix import MatrixWeights
from resolvent.simulate.features import Attention
from resolvent.simulate.sampling import vectors

Array = NDArray[np.float64]


def attentions(
    setting: Setting, p: int, rng: np.random.Generator, *, single: bool = False, causal: bool = False
) -> tuple[Array, list[Attention]]:
    """The signal mu (p,) and one `Attention` for each head."""
    mu, pairs = _vectors(setting, p, rng)
    heads = zip(setting.heads, pairs, strict=True)
    return mu, [acting(setting, head, *pair)._replace(single=single, causal=causal) for head, pair in heads]


def acting(setting: Setting, head: Head, key: Array, query: Array) -> Attention:
    """A head with these weights beyond the identity (p,) or (p, r); those of a matrix are its own."""
    f, weights = head.f, head.weights
    if isinstance(weights, MatrixWeights):
        key, query = weights.factors.left * weights.factors.values, weights.factors.right
    return Attention(
        np.exp if isinstance(f, Softmax) else partial(f.evaluate, scale=head.scale),
        key,
        query,
        float(setting.skip),
        setting.keep_diagonal,
        identity=not isinstance(weights, MatrixWeights),
        beta=float(f.beta) if isinstance(f, Softmax) else None,
    )


def _vectors(setting: Setting, p: int, rng: np.random.Generator) -> tuple[Array, list[tuple[Array, Array]]]:
    """mu (p,), and keys and queries (p, r) of each head."""
    none = np.empty((p, 0))
    if setting.dimension is not None:
        matrices = [head.weights for head in setting.heads if isinstance(head.weights, MatrixWeights)]
        return matrices[0].signal * np.sqrt(float(setting.tokens.snr)), [(none, none)] * len(matrices)
    owners = np.array(setting.owners)
    mu, *rows = vectors(setting.gram, p, None if setting.tokens.isotropic else rng)
    keys, queries = np.array(rows[: owners.size]).T, np.array(rows[owners.size :]).T
    return mu, [(keys[:, owners == h], queries[:, owners == h]) for h in range(len(setting.heads))]
