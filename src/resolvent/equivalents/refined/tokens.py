"""Classes of real tokens: label x similarity x quantiles of the projections x quantiles of the norm.
 The span holds the direction of the class means mu, the weights and one discriminant direction. Where the
noise is not white the signal is stronger in the noise's own metric than |mu|^2 says: given its projection on
mu, a token's remainder has a mean, along Sigma mu, Sigma^2 mu, and so on. Of these Krylov directions the
combination (Sigma + 1)^-1 mu holds most of the gain. The sample overfits twice, and both are undone:

- a sample covariance correlates any two projections of its own tokens, so the discriminant direction is
  computed from other tokens than those it is read on (cross-fitting in `FOLDS` parts);
- along the class means the sample's noise adds to the signal, so their distance is brought to the unbiased
  |mu|^2 = |mu_hat|^2 - tr(Sigma) (1/n+ + 1/n-)/4. The scores, which see the tokens as they are, keep the
  sample's.
 The similarity to either label, in halves, makes groups, between which scores have laws of their own
(`score_law`). Cells are represented by their means, spread out about the mean of their group so that
variances are kept. Theory page, section 12 (the discriminant direction, cross-fitting, scores as they are and
their laws extend it).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.score_law import score_law, similarity
from resolvent.equivalents.refined.spectrum import shrunk_eigenvalues, spectral_nodes

FIRST, OTHER, NORMS, GROUPS = 5, 3, 3, 2
FOLDS = 8
DISTINCT = 1e-6  # share of a direction that must lie outside of the span of those before it


def token_classes(
    tokens: ArrayLike,
    labels: ArrayLike,
    *,
    key: ArrayLike | None = None,
    query: ArrayLike | None = None,
    quantiles: tuple[int, ...] | None = None,
    discriminant: bool = True,
    gaussian: bool = False,
    white: bool = False,
) -> Classes:
    """Classes that stand for the columns of tokens (p, n) with labels (n,) of +1 and -1.

    Parameters
    ----------
    tokens, labels
        The model has the tokens centred at the midpoint of the class means and scaled so that the noise has
        variance 1 on average. They are taken as they are.
    key, query
        The vectors (p,) of the weights I + w_K w_Q', zero when left out.
    quantiles
        Number of cells per direction of the span (mu, key, query, discriminant, as far as they differ) and,
        last, for the norm, within each group of tokens; (5, 3, ..., 3, 3) when left out.
    discriminant
        Whether to add the discriminant direction.
    gaussian, white
        Whether to take scores as Gaussian, with one law for all pairs, and whether to take the noise outside
        of the span as white, and scores as Gaussian.

    Raises
    ------
    ValueError
        For labels other than +1 and -1, a label on fewer than two tokens, or shapes that do not match.

    Source: theory page, section 12.

    >>> rng = np.random.default_rng(0)
    >>> y = np.where(np.arange(200) % 2, 1.0, -1.0)
    >>> print(token_classes(rng.normal(size=(50, 200)) + 0.2 * y, y))
    180 classes, span 2, p = 50, n = 200, label mean 0
    """
    X, y = numbers("tokens", tokens), numbers("labels", labels)
    if X.ndim != 2 or y.shape != X.shape[1:]:
        raise ValueError(f"tokens must have shape (p, n) and labels (n,), got {X.shape} and {y.shape}")
    if not np.all(np.abs(y) == 1.0):
        raise ValueError(f"labels must be +1 or -1, got {y[np.abs(y) != 1.0][0]:g}")
    if min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)) < 2:
        raise ValueError("each label must be on at least two tokens")
    weights = tuple(_direction(name, v, X.shape[0]) for name, v in (("key", key), ("query", query)))
    span = _span(X, y, weights, discriminant)
    return _classes(span, y, X.shape[0], quantiles, gaussian or white, white)


def _direction(name: str, value: ArrayLike | None, p: int) -> Array:
    vector = np.zeros(p) if value is None else numbers(name, value)
    if vector.shape != (p,):
        raise ValueError(f"{name} must have shape ({p},), got {vector.shape}")
    return vector


class _Span(NamedTuple):
    """Coordinates (n, r) in the span, without the sample's noise along mu; what is outside of it (p, n).

    The projections (n, 3) are on key and query as the tokens are, and on query without that noise.
    """

    position: Array
    projection: Array
    outside: Array


def _span(X: Array, y: Array, weights: tuple[Array, ...], discriminant: bool) -> _Span:
    plus, minus = X[:, y > 0].mean(axis=1), X[:, y < 0].mean(axis=1)
    mu = 0.5 * (plus - minus)
    noise = X - np.where(y > 0, plus[:, None], minus[:, None])
    basis = _basis([mu, *weights])
    position, outside = (basis.T @ X).T, X - basis @ (basis.T @ X)
    length = float(np.linalg.norm(mu))
    if length > 0.0:
        per_token = 1.0 / np.count_nonzero(y > 0) + 1.0 / np.count_nonzero(y < 0)
        bias = (noise**2).mean() * mu.size * per_token / 4.0
        position[:, 0] += y * (np.sqrt(max(length**2 - bias, 0.0)) - length)
    key, query = weights
    projection = np.column_stack([key @ X, query @ X, position @ (basis.T @ query)])
    if discriminant and length > 0.0:
        along = np.empty(y.size)
        for part in _folds(y):
            step = _discriminant(noise[:, ~part], mu, basis)
            along[part] = step @ outside[:, part]
            outside[:, part] -= np.outer(step, along[part])
        position = np.column_stack([position, along])
    return _Span(position, projection, outside)


def _basis(vectors: list[Array]) -> Array:
    """An orthonormal basis (p, r) of the vectors, in their order."""
    columns = np.empty((vectors[0].size, 0))
    for vector in vectors:
        rest = vector - columns @ (columns.T @ vector)
        if np.linalg.norm(rest) > DISTINCT * np.linalg.norm(vector):
            columns = np.column_stack([columns, rest / np.linalg.norm(rest)])
    return columns


def _folds(y: Array) -> list[NDArray[np.bool_]]:
    """Parts of the tokens with equal shares of both labels."""
    fold = np.empty(y.size, dtype=np.int64)
    for sign in (1.0, -1.0):
        fold[y == sign] = np.arange(np.count_nonzero(y == sign)) % FOLDS
    return [fold == k for k in range(FOLDS)]


def _discriminant(noise: Array, mu: Array, basis: Array) -> Array:
    """The unit vector along (Sigma + mean eigenvalue)^-1 mu outside of the basis."""
    covariance = noise @ noise.T / noise.shape[1]
    direction = np.linalg.solve(covariance + np.trace(covariance) / mu.size * np.eye(mu.size), mu)
    direction -= basis @ (basis.T @ direction)
    return np.asarray(direction / np.linalg.norm(direction))


def _classes(
    span: _Span, y: Array, p: int, quantiles: tuple[int, ...] | None, gaussian: bool, white: bool
) -> Classes:
    norm = np.linalg.norm(span.outside, axis=0) / np.sqrt(p)
    r = span.position.shape[1]
    counts = quantiles or (*(FIRST, *(OTHER,) * r)[:r], NORMS)
    if len(counts) != r + 1 or min(counts) < 1:
        raise ValueError(
            f"quantiles must be {r + 1} positive numbers, one per direction and one for norms, got {counts}"
        )
    group = _groups(y, None if gaussian else similarity(span.outside, y))
    columns = np.column_stack([span.position, norm, span.projection])
    cells = [_cells(columns[group == g], counts) for g in range(int(group.max()) + 1)]
    sizes, centre = (np.concatenate(part) for part in zip(*cells, strict=True))
    home = np.repeat(np.arange(len(cells)), [part.size for part, _ in cells])
    sign = np.array([y[group == g][0] for g in range(len(cells))])
    law = (np.ones(1), np.ones(1)) if white else spectral_nodes(shrunk_eigenvalues(span.outside / norm)[r:])
    position, (_, read, unseen) = centre[:, :r], centre[:, r + 1 :].T
    fresh = None if np.array_equal(read, unseen) else np.column_stack([position, unseen])
    return Classes(
        weight=sizes / y.size,
        label=sign[home],
        position=position,
        norm=centre[:, r],
        left=np.column_stack([position, centre[:, r + 1]]),
        right=np.column_stack([position, centre[:, r + 2]]),
        fresh=fresh,
        p=float(p),
        n=float(y.size),
        eigenvalues=law[0],
        shares=law[1],
        law=None if gaussian else score_law(span.outside, group).between(home),
    )


def _groups(y: Array, q: Array | None) -> NDArray[np.int64]:
    """Groups (n,) of the tokens: label x quantiles of q, or the label alone."""
    group = np.where(y > 0.0, 0, 1)
    if q is None:
        return group
    for k, sign in enumerate((1.0, -1.0)):
        order = np.flatnonzero(y == sign)[np.argsort(q[y == sign], kind="stable")]
        for i, part in enumerate(np.array_split(order, GROUPS)):
            group[part] = GROUPS * k + i
    return group


def _cells(columns: Array, counts: tuple[int, ...]) -> tuple[NDArray[np.int64], Array]:
    """Size and centre of nested quantile cells along the first columns, one per count."""
    parts = [columns]
    for axis, count in enumerate(counts):
        split = [np.array_split(part[np.argsort(part[:, axis], kind="stable")], count) for part in parts]
        parts = [cell for cells in split for cell in cells if cell.size]
    sizes, means = np.array([len(part) for part in parts]), np.array([part.mean(axis=0) for part in parts])
    return sizes, _stretched(means, sizes / sizes.sum(), columns)


def _stretched(means: Array, share: Array, sample: Array) -> Array:
    """Cell means with the spread of the sample, but never beyond its range."""
    middle, spread = sample.mean(axis=0), np.sqrt(share @ (means - sample.mean(axis=0)) ** 2)
    stretch = np.where(spread > 0.0, sample.std(axis=0) / np.where(spread > 0.0, spread, 1.0), 1.0)
    return np.asarray(np.clip(middle + stretch * (means - middle), sample.min(axis=0), sample.max(axis=0)))
