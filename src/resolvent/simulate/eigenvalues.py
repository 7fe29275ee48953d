"""Eigenvalues of one sampled K, or of H'H/n with H = X (K + skip I)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.setting import Setting
from resolvent.simulate.features import features
from resolvent.simulate.matrix import Draw, attention_matrix, first_draw

Array = NDArray[np.float64]
Of = Literal["attention", "features"]


def eigenvalues(setting: Setting, *, of: Of = "features", n: int = 1024, seed: int = 0) -> Array:
    """The n eigenvalues, in increasing order, of K ("attention") or of H'H/n ("features") in one draw.

    Of H'H/n at p < n, n - p are exactly zero. Raises ValueError for sizes out of range, a setting with arrays
    and a K that is not symmetric, OverflowError when f overflows on the scores.

    >>> from resolvent import Setting
    >>> eigenvalues(Setting(), n=64).shape
    (64,)
    """
    check_of(of, setting)
    with threadpool_limits(1, user_api="blas"):
        one = first_draw(setting, n, seed)
        return _of_attention(one) if of == "attention" else _of_features(one)


def check_of(of: str, setting: Setting) -> None:
    """ValueError unless `of` names a matrix that is symmetric for this setting."""
    if of not in ("attention", "features"):
        raise ValueError(f"of must be attention or features, got {of!r}")
    gram = setting.gram.reshape(-1, 3, 3)[0]
    apart = gram[1, 1] + gram[2, 2] - 2.0 * gram[1, 2]  # |w_K - w_Q|^2
    if of == "attention" and apart > 1e-9 * (1.0 + gram[1, 1]):
        raise ValueError(
            "of must be features where w_K and w_Q differ: K is then not symmetric and has no real spectrum"
        )


def _of_attention(one: Draw) -> Array:
    return np.asarray(np.linalg.eigvalsh(attention_matrix(one.attention, one.sample.tokens)))


def _of_features(one: Draw) -> Array:
    H = features(one.attention, one.sample.tokens)
    p, n = H.shape
    values = np.maximum(np.linalg.eigvalsh((H @ H.T if p <= n else H.T @ H) / n), 0.0)
    return np.concatenate([np.zeros(n - values.size), values])
