"""Drawing labels, targets and tokens X = mu y' + Z, and the signal and weight vectors of a setting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.laws import Population
from resolvent.setting import Tokens

Array = NDArray[np.float64]


class Sample(NamedTuple):
    """Tokens (p x n), the labels they carry and the targets of the probe (both n)."""

    tokens: Array
    labels: Array
    targets: Array


def vectors(gram: Array, p: int, rng: np.random.Generator | None = None) -> Array:
    """mu, keys and queries as rows of an array (.., p) with this Gram matrix.

    They lie on the first axes, which loses nothing where the noise is invariant under rotation, or in a
    random frame drawn from `rng`. Raises ValueError when p is smaller than the dimension that they span.
    """
    values, basis = np.linalg.eigh(gram)
    kept = values > 1e-14 * values.max()
    if kept.sum() > p:
        raise ValueError(
            f"p = round(ratio n) must be at least {kept.sum()}, the dimension that mu, w_K and w_Q span, "
            f"got {p}: raise ratio or n"
        )
    coordinates = basis[:, kept] * np.sqrt(values[kept])
    if rng is not None:
        frame, _ = np.linalg.qr(rng.standard_normal((p, int(kept.sum()))))
        return np.asarray(coordinates @ frame.T)
    out = np.zeros((gram.shape[0], p))
    out[:, : kept.sum()] = coordinates
    return out


def draw(tokens: Tokens, mu: Array, n: int, rng: np.random.Generator) -> Sample:
    """n tokens around mu; labels have the given mean, targets flip with probability label_noise."""
    labels = np.where(rng.random(n) < 0.5 * (1.0 + float(tokens.label_mean)), 1.0, -1.0)
    targets = np.where(rng.random(n) < float(tokens.label_noise), -labels, labels)
    X = tokens.entries.sample(rng, (mu.size, n))
    if tokens.population is not None:
        X *= np.sqrt(_levels(tokens.population, mu.size))[:, None]
    X += np.outer(mu, labels)
    if tokens.norm_spread:
        X *= np.exp(tokens.norm_spread * rng.standard_normal(n) - tokens.norm_spread**2)
    if tokens.normalise == "layer":
        X -= X.mean(axis=0)
    if tokens.normalise is not None:
        X *= np.sqrt(mu.size) / np.linalg.norm(X, axis=0)
    return Sample(X, labels, targets)


def _levels(population: Population, p: int) -> Array:
    """p eigenvalues at the middle of equal shares of the population, scaled to mean 1."""
    ends = np.cumsum(population.shares)
    place = np.searchsorted(ends, (np.arange(p) + 0.5) / p)
    levels = population.levels[np.minimum(place, population.levels.size - 1)]
    return np.asarray(levels / levels.mean())
