"""One draw of a setting: its tokens, weights and attention matrix K = f(X'MX/sqrt p)/sqrt p, held in memory.

The tokens are those of the first draw of `simulate(setting, n=n, draws=..., seed=seed)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.setting import Setting
from resolvent.setting.ranges import integer
from resolvent.simulate.draws import stream
from resolvent.simulate.features import Attention, _Reader
from resolvent.simulate.sampling import Sample, draw, vectors

Array = NDArray[np.float64]

LARGEST_N = 8192  # an n x n matrix takes half a GiB


class Draw(NamedTuple):
    """The attention of a setting, the signal mu and one sample of tokens."""

    attention: Attention
    mu: Array
    sample: Sample


def first_draw(setting: Setting, n: int, seed: int) -> Draw:
    """Draw 0 of a seed; ValueError for a size out of range or a setting with arrays (its ridge aside)."""
    if replace(setting, ridge=0.0).shape:
        raise ValueError(f"one draw takes one setting, got arrays of shape {setting.shape}")
    n, seed = integer("n", n, 4), integer("seed", seed, 0)
    if n > LARGEST_N:
        raise ValueError(f"n must be at most {LARGEST_N} where n x n matrices are held, got {n}")
    tokens = setting.tokens
    p = round(float(tokens.ratio) * n)
    if p < 2:
        raise ValueError(f"p = round(ratio n) must be at least 2, got {p}: raise ratio or n")
    mu, key, query = vectors(setting.gram.reshape(3, 3), p)
    attention = Attention(setting.f.evaluate, key, query, float(setting.skip), setting.keep_diagonal)
    sample = draw(mu, n, float(tokens.label_mean), float(tokens.label_noise), stream(seed, 0))
    return Draw(attention, mu, sample)


def attention_matrix(attention: Attention, tokens: Array) -> Array:
    """K (n x n) of the tokens (p x n). Raises OverflowError when f overflows on their scores."""
    return _Reader(attention, tokens).weights(tokens, diagonal=0)
