"""How far a size is from the limit, beforehand: the low-rank part of a score against its noise of size one.

The limit linearises f in the part delta that signal and weights add to a score. Where delta, of size

    ( |mu|^2 + |mu'w_K mu'w_Q| + |w_K| |w_Q| ) / sqrt p,

is not small, the limit may be far off. Theory page, section 11.
"""

from __future__ import annotations

import numpy as np

from resolvent.setting import Setting

LARGE_SCORE = 0.3  # above it, linearising f is rough


def low_rank_score(setting: Setting, p: int) -> float:
    """The size of delta at dimension p, for one setting.

    >>> from resolvent import Weights
    >>> low_rank_score(Setting(weights=Weights.aligned(1.0)), p=100)
    0.3
    """
    gram = setting.gram.reshape(-1, 3, 3)[0]
    score = gram[0, 0] + abs(gram[0, 1] * gram[0, 2]) + np.sqrt(gram[1, 1] * gram[2, 2])
    return float(score / np.sqrt(p))
