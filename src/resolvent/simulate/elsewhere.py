"""One draw on a device: the same algorithm as `features` and `probe`, without writing into an array.

H = X (f(X'MX/sqrt p)/sqrt p + skip I) by blocks of columns; one eigendecomposition for the whole ridge curve,
or one solve for a single ridge; and what is small (eigenvalues, coefficients) in NumPy. Theory page, section
10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Nonlinearity
from resolvent.simulate.device import Device, Foreign
from resolvent.simulate.probe import Probe, without_rounding
from resolvent.simulate.sampling import Sample

Array = NDArray[np.float64]

BLOCK = 2048  # columns of K held at a time


class Model(NamedTuple):
    """f, the weight vectors and the conventions of K."""

    f: Nonlinearity
    key: Array
    query: Array
    skip: float
    keep_diagonal: bool


def draw_errors(device: Device, model: Model, context: Sample, fresh: Sample, ridge: Array) -> Array:
    """Errors of one draw: (method, error, ridge); NaN without fresh tokens."""
    out = np.full((2, 2, ridge.size), np.nan)
    tokens, new = device.array(context.tokens), device.array(fresh.tokens)
    features = _attended(device, model, tokens, tokens, own=True)
    attended = _attended(device, model, tokens, new, own=False)
    for method, (given, asked) in enumerate(((features, attended), (tokens, new))):
        out[method, 0], w = _fitted(device, given, context.targets, ridge)
        if fresh.targets.size:
            outputs = device.numpy(w @ asked)
            out[method, 1] = np.mean((outputs - fresh.targets) ** 2, axis=1)
    return out


def _attended(device: Device, model: Model, tokens: Foreign, queries: Foreign, own: bool) -> Foreign:
    """Features (p x queries) of queries that attend to the tokens, which are the queries when `own`."""
    xp, (p, n) = device.xp, tokens.shape
    key, query = device.array(model.key[:, None]), device.array(model.query[None, :])
    moved = (queries + key @ (query @ queries)) / float(np.sqrt(p))
    rows = xp.reshape(xp.arange(n, device=device.place), (n, 1))
    parts = []
    for start in range(0, queries.shape[1], BLOCK):
        stop = min(start + BLOCK, queries.shape[1])
        scores = device.entrywise(model.f, xp.matrix_transpose(tokens) @ moved[:, start:stop])
        if own and not model.keep_diagonal:
            columns = xp.reshape(xp.arange(start, stop, device=device.place), (1, stop - start))
            scores = xp.where(rows == columns, 0.0 * tokens[0, 0], scores)
        parts.append(tokens @ scores / float(np.sqrt(p)) + model.skip * queries[:, start:stop])
    return xp.concat(parts, axis=1) if parts else queries


def _fitted(device: Device, features: Foreign, target: Array, ridge: Array) -> tuple[Array, Foreign]:
    """Training errors, and w (ridges, p) on the device; a single ridge is solved for, as in `probe`."""
    if ridge.size == 1 and ridge[0] > 0.0:
        return _solved(device, features, target, float(ridge[0]))
    probe = _fit(device, features, target)
    return probe.train(ridge), _weights(device, probe, ridge)


def _solved(device: Device, features: Foreign, target: Array, ridge: float) -> tuple[Array, Foreign]:
    xp, (p, n) = device.xp, features.shape
    other, wanted = xp.matrix_transpose(features), device.array(target[:, None])
    ridges = device.array(n * ridge * np.eye(min(p, n)))
    if p <= n:
        w = xp.linalg.solve(features @ other + ridges, features @ wanted)
        rest = device.numpy(wanted - other @ w)[:, 0]
    else:
        dual = xp.linalg.solve(other @ features + ridges, wanted)
        w, rest = features @ dual, n * ridge * device.numpy(dual)[:, 0]
    return np.array([rest @ rest / n]), xp.matrix_transpose(w)


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
