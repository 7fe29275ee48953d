"""One draw on a device: the same algorithm as `features` and `probe`, without writing into an array.

H = X (f(X'MX/sqrt p)/sqrt p + skip I) by blocks of columns, one eigendecomposition for the whole ridge curve,
and what is small (eigenvalues, coefficients) in NumPy. Theory page, section 10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Nonlinearity, Softmax
from resolvent.simulate.device import Device, Foreign
from resolvent.simulate.features import Attention
from resolvent.simulate.probe import Probe, without_rounding
from resolvent.simulate.sampling import Sample

Array = NDArray[np.float64]

BLOCK = 2048  # columns of K held at a time
LOWEST = 1e30  # stands for minus an infinite score


class Model(NamedTuple):
    """f, the scale of its scores, and the weights and conventions of K."""

    f: Nonlinearity | Softmax
    scale: float
    attention: Attention


def draw_errors(device: Device, models: list[Model], context: Sample, fresh: Sample, ridge: Array) -> Array:
    """Errors of one draw: (method, error, ridge); NaN without fresh tokens."""
    out = np.full((2, 2, ridge.size), np.nan)
    tokens, new = device.array(context.tokens), device.array(fresh.tokens)
    sides = (
        device.xp.concat([_attended(device, model, tokens, queries, own) for model in models], axis=0)
        for queries, own in ((tokens, True), (new, False))
    )
    for method, (given, asked) in enumerate((tuple(sides), (tokens, new))):
        probe = _fit(device, given, context.targets)
        out[method, 0] = probe.train(ridge)
        if fresh.targets.size:
            outputs = device.numpy(_weights(device, probe, ridge) @ asked)
            out[method, 1] = np.mean((outputs - fresh.targets) ** 2, axis=1)
    return out


def _attended(device: Device, model: Model, tokens: Foreign, queries: Foreign, own: bool) -> Foreign:
    """Features (p x queries) of queries that attend to the tokens, which are the queries when `own`."""
    xp, p = device.xp, tokens.shape[0]
    a = model.attention
    key, query = (device.array(np.reshape(v, (p, -1))) for v in (a.key, a.query))
    moved = key @ (xp.matrix_transpose(query) @ queries)
    moved = (moved + queries if a.identity else moved) / float(np.sqrt(p))
    parts = []
    for start in range(0, queries.shape[1], BLOCK):
        stop = min(start + BLOCK, queries.shape[1])
        scores = xp.matrix_transpose(tokens) @ moved[:, start:stop]
        seen = _seen(device, a, scores.shape[0], start, stop) if own else None
        weights = _weights_of(device, model, scores, seen)
        parts.append(tokens @ weights / float(np.sqrt(p)) + a.skip * queries[:, start:stop])
    return xp.concat(parts, axis=1) if parts else queries


def _seen(device: Device, a: Attention, n: int, start: int, stop: int) -> Foreign:
    """Which tokens (rows) the queries (columns) look at."""
    xp = device.xp
    rows = xp.reshape(xp.arange(n, device=device.place), (n, 1))
    columns = xp.reshape(xp.arange(start, stop, device=device.place), (1, stop - start))
    if a.causal:
        return rows <= columns if a.keep_diagonal else rows < columns
    return (rows == rows) & (columns == columns) if a.keep_diagonal else rows != columns


def _weights_of(device: Device, model: Model, scores: Foreign, seen: Foreign | None) -> Foreign:
    """Columns of sqrt p K: f of the scores, or n times their softmax."""
    xp = device.xp
    if not isinstance(model.f, Softmax):
        values = device.entrywise(model.f, scores, model.scale)
        return values if seen is None else xp.where(seen, values, 0.0 * values)
    scores = float(model.f.beta) * scores
    visible = scores if seen is None else xp.where(seen, scores, 0.0 * scores - LOWEST)
    powers = xp.exp(visible - xp.max(visible, axis=0, keepdims=True))
    powers = powers if seen is None else xp.where(seen, powers, 0.0 * powers)
    total = xp.sum(powers, axis=0, keepdims=True)
    return scores.shape[0] * powers / xp.where(total > 0.0, total, 1.0 + 0.0 * total)


def _fit(device: Device, features: Foreign, target: Array) -> Probe:
    """The probe's factorisation: features and eigenvectors on the device, eigenvalues and target in NumPy."""
    xp, (p, n) = device.xp, features.shape
    other = xp.matrix_transpose(features)
    values, vectors = xp.linalg.eigh((features @ other if p <= n else other @ features) / n)
    on_device = device.array(target[:, None])
    seen = features @ on_device / n if p <= n else on_device
    projected = device.numpy(xp.matrix_transpose(vectors) @ seen)[:, 0]
    return Probe(features, without_rounding(device.numpy(values)), vectors, projected)


def _weights(device: Device, probe: Probe, ridge: Array) -> Foreign:
    """w at each ridge: (ridges, p)."""
    solved = device.array(probe.coefficients(ridge)) @ device.xp.matrix_transpose(probe.vectors)
    p, n = probe.features.shape
    return solved if p <= n else solved @ device.xp.matrix_transpose(probe.features) / n
