"""Which equivalent a setting takes.

One head with weights I + w_K w_Q' on white noise: the scalar route, all values of a setting at once. Heads
with weights I + low rank, and noise of a covariance: `heads_errors`. Weights given as matrices:
`weighted_heads_errors`. The last two go through a setting of arrays point by point, whole ridge curves at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import (
    AttentionErrors,
    LinearErrors,
    ProbeErrors,
    attention_errors,
    covariance_linear_errors,
    heads_errors,
    linear_errors,
    weighted_heads_errors,
)
from resolvent.equivalents.arguments import plain
from resolvent.laws import UNEQUAL_NORMS
from resolvent.nonlinearity import Nonlinearity, noise_covariance
from resolvent.setting import Setting
from resolvent.setting.heads import Head
from resolvent.setting.low_rank import LowRankWeights
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.points import points

Array = NDArray[np.float64]

FIELDS = ("train", "test", "residual", "iterations", "converged")


def attention_limits(setting: Setting, size: int) -> AttentionErrors | ProbeErrors:
    """Errors of the probe on attention features; `size` is p where it matters."""
    refuse_unequal_norms(setting)
    if setting.dimension is not None:
        return _pointwise(setting, _matrix_errors)
    if (
        len(setting.heads) > 1
        or setting.tokens.population
        or isinstance(setting.head.weights, LowRankWeights)
    ):
        return _pointwise(setting, lambda point: _identity_errors(point, size))
    return _scalar_errors(setting, size)


def linear_limits(setting: Setting) -> LinearErrors | ProbeErrors:
    """Errors of linear regression."""
    refuse_unequal_norms(setting)
    if setting.tokens.population is not None:
        return _pointwise(setting, _covariance_errors)
    tokens = setting.tokens
    return linear_errors(
        ratio=np.broadcast_to(tokens.ratio, setting.shape),
        ridge=setting.ridge,
        snr=tokens.snr,
        target_overlap=tokens.target_overlap,
    )


def refuse_unequal_norms(setting: Setting) -> None:
    """ValueError where the tokens have norms of their own, which have no universal limit."""
    if setting.tokens.norm_spread > 0.0 and setting.tokens.normalise is None:
        raise ValueError(f"norm_spread must be 0 or come with normalise: {UNEQUAL_NORMS}")


def _scalar_errors(setting: Setting, size: int) -> AttentionErrors:
    tokens, head = setting.tokens, setting.head
    a = head.f.coefficients(head.scale)
    return attention_errors(
        ratio=tokens.ratio,
        ridge=setting.ridge,
        a1=a.a1,
        sigma2=a.sigma2,
        gram=setting.gram,
        shift=_kept_diagonal(setting, head, size),
        skip=setting.skip,
        mean_spike=a.a0 * np.sqrt(float(size)),
        a2=a.a2,
        norm_variance=tokens.norm_variance,
        label_mean=tokens.label_mean,
        target_overlap=tokens.target_overlap,
        intercept=head.softmax,
    )


def _identity_errors(setting: Setting, size: int) -> ProbeErrors:
    tokens = setting.tokens
    gram, levels = setting.gram, tokens.population
    colour: dict[str, Any] = {} if levels is None else {"levels": levels.levels, "shares": levels.shares}
    return heads_errors(
        **_common(setting),
        **_per_head(setting, size),
        **colour,
        noise=_noise(setting.heads, lambda *_: 1.0),
        gram=gram,
        owners=setting.owners,
        norm_variance=tokens.norm_variance,
    )


def _matrix_errors(setting: Setting) -> ProbeErrors:
    weights = [_matrix(head) for head in setting.heads]
    factors = [w.factors for w in weights]
    mu = weights[0].signal * float(np.sqrt(setting.tokens.snr))

    def correlation(which: int) -> Callable[[Head, Head], float]:
        def of(one: Head, other: Head) -> float:
            a, b = _matrix(one).factors, _matrix(other).factors
            return (1.0, a.rho)[which] if a is b else float(np.clip(a.correlation(b)[which], -1.0, 1.0))

        return of

    return weighted_heads_errors(
        factors,
        mu=mu,
        **_common(setting),
        **_per_head(setting, weights[0].dimension),
        noise=_noise(setting.heads, correlation(0)),
        twin=_noise(setting.heads, correlation(1)),
        normalised=setting.tokens.normalise is not None,
    )


def _covariance_errors(setting: Setting) -> ProbeErrors:
    levels = setting.tokens.population
    assert levels is not None
    common = _common(setting)
    return covariance_linear_errors(
        snr=float(setting.tokens.snr), levels=levels.levels, shares=levels.shares, **common
    )


def _common(setting: Setting) -> dict[str, Any]:
    tokens = setting.tokens
    return {
        "ratio": float(tokens.ratio),
        "ridge": setting.ridge,
        "label_mean": float(tokens.label_mean),
        "target_overlap": float(tokens.target_overlap),
    }


def _per_head(setting: Setting, size: int) -> dict[str, Any]:
    a = [head.f.coefficients(head.scale) for head in setting.heads]
    return {
        "a1": [k.a1 for k in a],
        "a2": [k.a2 for k in a],
        "mean_spike": [k.a0 * np.sqrt(float(size)) for k in a],
        "shift": [_kept_diagonal(setting, head, size) for head in setting.heads],
        "skip": float(setting.skip),
        "intercept": [head.softmax for head in setting.heads],
    }


def _kept_diagonal(setting: Setting, head: Head, size: int) -> float:
    """f(S_ii)/sqrt p, S_ii = sqrt p tr M/p."""
    if not setting.keep_diagonal:
        return 0.0
    assert isinstance(head.f, Nonlinearity)
    if not isinstance(head.weights, MatrixWeights):
        return head.f.kept_diagonal(size, head.scale)
    root = np.sqrt(float(size))
    return float(head.f.evaluate(root * head.weights.factors.trace, head.scale) / root)


def _noise(heads: tuple[Head, ...], correlation: Callable[[Head, Head], float]) -> Array:
    """(H, H) covariances of the heads' noise at correlated scores."""
    return np.array(
        [
            [noise_covariance(a.f, b.f, correlation(a, b), scale_f=a.scale, scale_g=b.scale) for b in heads]
            for a in heads
        ]
    )


def _matrix(head: Head) -> MatrixWeights:
    assert isinstance(head.weights, MatrixWeights)
    return head.weights


def _pointwise(setting: Setting, errors: Callable[[Setting], ProbeErrors]) -> ProbeErrors:
    """errors at every point, in the shape of the setting."""
    if np.any(np.asarray(setting.ridge) <= 0.0):
        raise ValueError("ridge must be positive for these weights or this noise, got 0")
    count = int(np.prod(setting.shape))
    out = {name: np.empty(count) for name in FIELDS[:3]}
    out |= {"iterations": np.empty(count, dtype=np.int64), "converged": np.empty(count, dtype=bool)}
    for here, point in points(setting):
        found = errors(point)
        for name in FIELDS:
            out[name][here] = getattr(found, name)
    return ProbeErrors(**{name: plain(values.reshape(setting.shape)) for name, values in out.items()})
