"""The Marchenko-Pastur law of G = Z'Z/p, Z white: support (1 +- 1/sqrt c)^2, atom 1 - c at 0 when c < 1.

Midpoint nodes g_k = mid + half cos theta_k, theta_k = pi (k - 1/2)/N, with weights
half^2 sin^2 theta_k c/(2 N g_k): they meet the hard edge at c = 1, where second-kind Chebyshev nodes miss
it by 1/N. Theory page, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.laws.law import Array, Law


def marchenko_pastur(ratio: float, size: int = 1000) -> Law:
    """Table of the law with `size` nodes (and the atom), ratio = c = p/n.

    64 nodes give averages of the kernels to 1e-6 for ridges from 0.1, 1000 nodes to 1e-10 for ridges from
    1e-5. Raises ValueError unless ratio is positive and size at least 1.

    >>> law = marchenko_pastur(0.5)
    >>> round(float(law.mean(lambda g: g)), 12), law.atoms
    (1.0, ((0.0, 0.5),))
    """
    left, right = edges(ratio)
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    half = 0.5 * (right - left)
    theta = np.pi * (np.arange(size) + 0.5) / size
    nodes = (
        left + 2.0 * half * np.cos(0.5 * theta) ** 2
    )  # mid + half cos theta, digits kept near the hard edge
    weights = half**2 * np.sin(theta) ** 2 * ratio / (2.0 * size * nodes)
    atoms = ((0.0, 1.0 - ratio),) if ratio < 1.0 else ()
    if atoms:
        nodes, weights = np.append(nodes, 0.0), np.append(weights, 1.0 - ratio)
    return Law(nodes, weights, np.array([[left, right]]), atoms)


def edges(ratio: float) -> tuple[float, float]:
    """(1 -+ 1/sqrt c)^2; ValueError unless the ratio c is positive.

    >>> edges(0.25)
    (1.0, 9.0)
    """
    if not 0.0 < ratio < np.inf:
        raise ValueError(f"ratio must be positive, got {ratio:.6g}")
    root = 1.0 / float(np.sqrt(ratio))
    return (1.0 - root) ** 2, (1.0 + root) ** 2


def density(ratio: float, g: ArrayLike) -> Array:
    """Density at g, the atom left out: c sqrt((g - left)(right - g))/(2 pi g)."""
    left, right = edges(ratio)
    x = np.asarray(g, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ratio * np.sqrt((x - left) * (right - x)) / (2.0 * np.pi * x)
    return np.where((x > left) & (x < right), value, 0.0)


def stieltjes(ratio: float, z: ArrayLike) -> NDArray[np.complex128]:
    """s(z) = E 1/(g - z) outside the support, with z s^2/c + (z - 1 + 1/c) s + 1 = 0, s(inf) = 0.

    >>> bool(abs(stieltjes(0.5, -0.3) - marchenko_pastur(0.5).stieltjes(-0.3)) < 1e-12)
    True
    """
    left, right = edges(ratio)
    w = np.asarray(z, dtype=np.complex128)
    root = np.sqrt(w - left) * np.sqrt(w - right)  # the branch that behaves like z at infinity
    return np.asarray((-(w - 1.0 + 1.0 / ratio) + root) * ratio / (2.0 * w))
