"""Sentences on what makes the limit of a setting unreliable (theory page, sections 8, 8a and 11)."""

from __future__ import annotations

import numpy as np

from resolvent.setting.heads import Head
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.setting import Setting

LARGE_SCORE = 0.3  # of the low-rank part of a score, above which linearising f in it is rough
SLOW_BEYOND = 1.5  # beta tau of softmax
LOW_STABLE_RANK = 10.0


def cautions(setting: Setting, p: int | None = None) -> list[str]:
    """Why the limit may be far off, at dimension p where one is given.

    >>> cautions(Setting(nonlinearity="softmax", beta=2.0))[0][:32]
    'softmax at beta tau = 2 approach'
    """
    found = [line for head in setting.heads for line in (_softmax(head), _stable_rank(head)) if line]
    if p is not None and (size := added_score(setting, p)) > LARGE_SCORE:
        found.append(
            f"At p = {p} the scores that signal and weights add reach {size:.2f}, not small against 1: "
            "the limit may be far from the measurement; it gets closer as p grows."
        )
    return list(dict.fromkeys(found))


def added_score(setting: Setting, p: int) -> float:
    """Size of the low-rank part of a score, delta/sqrt p, at the largest values of the setting."""
    if setting.dimension is not None:
        return float(np.max([_along(head, setting) for head in setting.heads]) / np.sqrt(float(p)))
    gram, owners = setting.gram, setting.owners
    T = len(owners)
    keys, queries = np.arange(1, 1 + T), np.arange(1 + T, 1 + 2 * T)
    terms = np.abs(gram[..., 0, keys] * gram[..., 0, queries]) + np.sqrt(
        gram[..., keys, keys] * gram[..., queries, queries]
    )
    per_head = [terms[..., np.array(owners) == h].sum(-1) for h in range(len(setting.heads))]
    return float(np.max(gram[..., 0, 0] + np.max(per_head, axis=0)) / np.sqrt(float(p)))


def _along(head: Head, setting: Setting) -> float:
    assert isinstance(head.weights, MatrixWeights)
    f, mu = head.weights.factors, head.weights.signal * float(np.sqrt(np.max(setting.tokens.snr)))
    left, right = f.left.T @ mu, f.right.T @ mu
    score = abs(float(left * f.values @ right))
    return score + float(np.hypot(np.linalg.norm(f.values * left), np.linalg.norm(f.values * right)))


def _softmax(head: Head) -> str | None:
    if head.strength <= SLOW_BEYOND:
        return None
    return (
        f"softmax at beta tau = {head.strength:.3g} approaches its limit slowly: beyond {SLOW_BEYOND} a few "
        "scores of each column dominate at any size that can be simulated."
    )


def _stable_rank(head: Head) -> str | None:
    if not isinstance(head.weights, MatrixWeights) or head.weights.factors.stable_rank >= LOW_STABLE_RANK:
        return None
    return (
        f"The weights have stable rank {head.weights.factors.stable_rank:.1f}, below {LOW_STABLE_RANK:g}: "
        "their scores are not quite Gaussian, and the limit may be some per cent below the measurement."
    )
