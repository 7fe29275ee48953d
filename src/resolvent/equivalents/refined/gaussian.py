"""Classes of Gaussian tokens: Gauss quadrature over the span and over the norm.
 With mu, w_K, w_Q in coordinates of their span (r <= 3) a token has the label y = +-1 with probability (1 +-
label_mean)/2, the coordinates P = y mu + h with h standard normal, and p R^2 chi-square with p - r degrees of
freedom. Gauss-Hermite nodes replace h, Gauss-Laguerre nodes R^2. Where h feeds large scores more nodes are
needed: `gaussian_classes` takes the number, `adapted_classes` finds it. Theory page, section 12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import gram_matrix, numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes

NODES = 7
NORM_NODES = 3
SPANNED = 1e-12  # share of the largest eigenvalue of the Gram matrix below which a direction is none


def gaussian_classes(
    *,
    p: float,
    n: float,
    gram: ArrayLike,
    label_mean: float = 0.0,
    nodes: int | tuple[int, ...] = NODES,
    norm_nodes: int = NORM_NODES,
) -> Classes:
    """Classes of X = mu y' + Z with Gaussian noise, weights I + w_K w_Q', n tokens in dimension p.

    gram (3, 3) holds the inner products of (mu, w_K, w_Q); nodes is the number per direction of their span,
    largest eigenvalue of the Gram matrix first, or one number for all; norm_nodes the number of norms. That
    makes 2 prod(nodes) norm_nodes classes. Raises ValueError for what is out of range.

    Source: theory page, section 12.

    >>> print(gaussian_classes(p=64, n=128, gram=[[1, 1, 1], [1, 1, 1], [1, 1, 1]]))
    42 classes, span 1, p = 64, n = 128, label mean 0
    """
    inner = gram_matrix(gram)
    if inner.ndim != 2:
        raise ValueError(f"gram must have shape (3, 3), got {inner.shape}")
    mean = float(numbers("label_mean", label_mean))
    if not abs(mean) < 1.0:
        raise ValueError(f"label_mean must be between -1 and 1, got {mean:g}")
    mu, key, query = directions(inner)
    counts = tuple(int(k) for k in np.broadcast_to(nodes, mu.shape))
    if min((*counts, norm_nodes)) < 1:
        raise ValueError(f"nodes and norm_nodes must be at least 1, got {nodes} and {norm_nodes}")
    if not p > mu.size:
        raise ValueError(f"p must be above the dimension {mu.size} of the span, got {p:g}")
    h, share = _normal_grid(counts)
    R2, norm_share = _chi_square(float(p) - mu.size, norm_nodes)
    label, label_share = np.array([1.0, -1.0]), np.array([1.0 + mean, 1.0 - mean]) / 2.0
    y, token, size = (
        i.ravel() for i in np.meshgrid(range(2), range(share.size), range(R2.size), indexing="ij")
    )
    position = label[y][:, None] * mu + h[token]
    return Classes(
        weight=label_share[y] * share[token] * norm_share[size],
        label=label[y],
        position=position,
        norm=np.sqrt(R2[size] / float(p)),
        left=np.column_stack([position, position @ key]),
        right=np.column_stack([position, position @ query]),
        p=float(p),
        n=float(n),
    )


def directions(gram: Array) -> tuple[Array, Array, Array]:
    """mu, w_K, w_Q in coordinates of their span, in the axes of the Gram matrix, the longest first."""
    value, vector = np.linalg.eigh(gram)
    spanned = value > SPANNED * max(float(value[-1]), np.finfo(float).tiny)
    mu, key, query = (vector[:, spanned] * np.sqrt(value[spanned]))[:, ::-1]
    return mu, key, query


def _normal_grid(counts: tuple[int, ...]) -> tuple[Array, Array]:
    """Nodes (N, r) and shares (N,) of a tensor Gauss-Hermite rule."""
    axes = [np.polynomial.hermite_e.hermegauss(count) for count in counts]
    h = np.stack(np.meshgrid(*(x for x, _ in axes), indexing="ij"), axis=-1) if axes else np.empty((1, 0))
    share = np.ones(1)
    for _, w in axes:
        share = np.outer(share, w / w.sum()).ravel()
    return h.reshape(share.size, len(counts)), share


def _chi_square(degrees: float, count: int) -> tuple[Array, Array]:
    """Gauss nodes and shares of the chi-square law, from the Jacobi matrix of the Laguerre polynomials."""
    k, order = np.arange(count), 0.5 * degrees - 1.0
    off = np.sqrt(k[1:] * (k[1:] + order))
    x, vector = np.linalg.eigh(np.diag(2.0 * k + 1.0 + order) + np.diag(off, 1) + np.diag(off, -1))
    return 2.0 * x, vector[0] ** 2
