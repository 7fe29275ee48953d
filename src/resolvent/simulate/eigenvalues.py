"""Eigenvalues of one sampled K, or of H'H/n with H = X (K + skip I)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.setting import Setting
from resolvent.simulate.features import features
from resolvent.simulate.matrix import Draw, attention_matrix, first_draw

Array = NDArray[np.float64]
Of = Literal["attention", "features"]

SYMMETRIC = 1e-9  # what rounding leaves of K - K', relative to K


def eigenvalues(setting: Setting, *, of: Of = "features", n: int | None = None, seed: int = 0) -> Array:
    """The n eigenvalues, in increasing order, of K ("attention") or of H'H/n ("features") in one draw.

    Of H'H/n at p < n, n - p are exactly zero. n as in `simulate`. Raises ValueError for sizes out of range, a
    setting with arrays or several heads, and a K that is not symmetric; OverflowError when f overflows.

    >>> from resolvent import Setting
    >>> eigenvalues(Setting(), n=64).shape
    (64,)
    """
    if of not in get_args(Of):
        raise ValueError(f"of must be attention or features, got {of!r}")
    with threadpool_limits(1, user_api="blas"):
        one = first_draw(setting, n, seed)
        return _of_attention(one) if of == "attention" else _of_features(one)


def _of_attention(one: Draw) -> Array:
    K = attention_matrix(one.attention, one.sample.tokens)
    if np.abs(K - K.T).max() > SYMMETRIC * np.abs(K).max():
        raise ValueError("of must be features here: K is not symmetric and has no real spectrum")
    return np.asarray(np.linalg.eigvalsh(K))


def _of_features(one: Draw) -> Array:
    H = features(one.attention, one.sample.tokens)
    p, n = H.shape
    values = np.maximum(np.linalg.eigvalsh((H @ H.T if p <= n else H.T @ H) / n), 0.0)
    return np.concatenate([np.zeros(n - values.size), values])
