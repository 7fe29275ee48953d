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
from resolvent.simulate.attentions import attentions
from resolvent.simulate.draws import stream
from resolvent.simulate.features import Attention, Reader
from resolvent.simulate.measure import sizes
from resolvent.simulate.sampling import Sample, draw

Array = NDArray[np.float64]

LARGEST_N = 8192  # an n x n matrix takes half a GiB


class Draw(NamedTuple):
    """The attention of a setting, the signal mu and one sample of tokens."""

    attention: Attention
    mu: Array
    sample: Sample


def first_draw(setting: Setting, n: int | None, seed: int) -> Draw:
    """Draw 0 of a seed.

    Raises ValueError for a size out of range, several heads, or a setting with arrays (its ridge aside).
    """
    if replace(setting, ridge=0.0).shape:
        raise ValueError(f"one draw takes one setting, got arrays of shape {setting.shape}")
    if len(setting.heads) > 1:
        raise ValueError(f"one draw of K takes one head, got {len(setting.heads)}")
    n, p = sizes(setting, n)
    if n > LARGEST_N:
        raise ValueError(f"n must be at most {LARGEST_N} where n x n matrices are held, got {n}")
    rng = stream(integer("seed", seed, 0), 0)
    mu, (attention,) = attentions(setting, p, rng)
    return Draw(attention, mu, draw(setting.tokens, mu, n, rng))


def attention_matrix(attention: Attention, tokens: Array) -> Array:
    """K (n x n) of the tokens (p x n). Raises OverflowError when f overflows on their scores."""
    return Reader(attention, tokens).weights(tokens, diagonal=0)
