"""A head: a nonlinearity on the scores of its weights. A setting has one, or several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Nonlinearity, Softmax, nonlinearity
from resolvent.nonlinearity.softmax import SELF_SCORE
from resolvent.setting.low_rank import LowRankWeights
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.ranges import Array
from resolvent.setting.weights import Weights

AnyWeights = Weights | LowRankWeights | MatrixWeights
Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Spec = str | Nonlinearity | Softmax | Function


class Head(NamedTuple):
    """f, the weights, and the standard deviation of the scores that f sees."""

    f: Nonlinearity | Softmax
    weights: AnyWeights
    scale: float

    @property
    def softmax(self) -> bool:
        """Whether the columns of K are normalised."""
        return isinstance(self.f, Softmax)

    @property
    def strength(self) -> float:
        """Largest standard deviation of beta S under softmax, 0 for an entry-wise f."""
        return float(np.max(self.f.beta)) * self.scale if isinstance(self.f, Softmax) else 0.0


def checked_heads(
    specs: Spec | Sequence[Spec],
    weights: AnyWeights | Sequence[AnyWeights],
    centred: bool | None,
    beta: Array | float | None,
    keep_diagonal: bool,
    score_scale: float,
) -> tuple[Head, ...]:
    """One head for each f and each weights, or one of them for all; ValueError or TypeError otherwise."""
    fs = tuple(specs) if isinstance(specs, (tuple, list)) else (specs,)
    ws = tuple(weights) if isinstance(weights, (tuple, list)) else (weights,)
    for w in ws:
        if not isinstance(w, AnyWeights):
            raise TypeError(f"weights must be a Weights, got {w!r}")
    count = max(len(fs), len(ws))
    if min(len(fs), len(ws)) == 0 or {len(fs), len(ws)} - {1, count}:
        raise ValueError(
            f"heads must have as many nonlinearities as weights, or one for all, got {len(fs)} and {len(ws)}"
        )
    if beta is not None and not any(f == "softmax" for f in fs):
        raise ValueError(f"beta must be left out, it belongs to softmax, got {beta!r} with {fs[0]!r}")
    found = tuple(_function(f, centred, beta, keep_diagonal) for f in fs)
    ws = _of_one_kind(ws)
    pairs = zip(found * (count // len(found)), ws * (count // len(ws)), strict=True)
    heads = tuple(Head(f, w, _scale(w, score_scale)) for f, w in pairs)
    for head in heads:
        head.f.coefficients(head.scale)
    return heads


def _function(
    spec: Spec, centred: bool | None, beta: Array | float | None, keep_diagonal: bool
) -> Nonlinearity | Softmax:
    if isinstance(spec, str) and spec.strip() == "softmax":
        spec = Softmax(1.0 if beta is None else beta)
    if isinstance(spec, Softmax):
        if keep_diagonal:
            raise ValueError(SELF_SCORE)
        if centred is False:
            raise ValueError("centred must be left out with softmax, whose columns have a fixed sum")
        return spec
    f = nonlinearity(spec, centred=centred)
    f.coefficients()
    if keep_diagonal:
        f.kept_diagonal(1)
    return f


def _of_one_kind(weights: tuple[AnyWeights, ...]) -> tuple[AnyWeights, ...]:
    """Matrices with matrices of one dimension and one signal, where I stands for its matrix; else none."""
    matrices = [w for w in weights if isinstance(w, MatrixWeights)]
    if not matrices:
        return weights
    first = matrices[0]
    out: list[AnyWeights] = []
    for w in weights:
        if not isinstance(w, MatrixWeights):
            if w != Weights.none():
                raise ValueError("weights of heads must all be matrices, or none, once one is a matrix")
            w = Weights.matrix(np.eye(first.dimension), signal=first.signal)
        if w.dimension != first.dimension or not np.allclose(w.signal, first.signal, atol=1e-9):
            raise ValueError(
                "weights of heads must share the dimension and the direction of the signal: "
                "give the same signal to each"
            )
        out.append(w)
    return tuple(out)


def _scale(weights: AnyWeights, score_scale: float) -> float:
    return weights.factors.tau if isinstance(weights, MatrixWeights) else score_scale


def joint_gram(heads: Sequence[Head], snr: Array | float) -> tuple[Array, list[int]]:
    """Inner products of mu, all keys and all queries, and the head that each term belongs to.

    Weights of different heads are orthogonal outside the signal.
    """
    parts = [head.weights.gram(snr) for head in heads if not isinstance(head.weights, MatrixWeights)]
    owners = [h for h, part in enumerate(parts) for _ in range(part.shape[-1] // 2)]
    if len(parts) == 1:
        return parts[0], owners
    T, shape = len(owners), np.broadcast_shapes(*(part.shape[:-2] for part in parts))
    power = np.asarray(snr, dtype=float)
    along = np.zeros((*shape, 1 + 2 * T))
    along[..., 0] = power
    inner = np.zeros((*shape, 1 + 2 * T, 1 + 2 * T))
    start = 0
    for part in parts:
        r = part.shape[-1] // 2
        rows = np.r_[1 + start : 1 + start + r, 1 + T + start : 1 + T + start + r]
        shared = _divided(part[..., 1:, :1] * part[..., :1, 1:], power)
        inner[..., rows[:, None], rows] = part[..., 1:, 1:] - shared
        along[..., rows] = part[..., 0, 1:]
        start += r
    return inner + _divided(along[..., :, None] * along[..., None, :], power), owners


def _divided(values: Array, power: Array) -> Array:
    """values/power, zero where there is no signal."""
    shaped = power[..., None, None]
    return np.divide(
        values, shaped, out=np.zeros(np.broadcast_shapes(values.shape, shaped.shape)), where=shaped > 0
    )
