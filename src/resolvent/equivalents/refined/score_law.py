"""The law of the scores of real tokens, group by group.
 Scores of Gaussian tokens are Gaussian given the classes. Those of words are not: near-duplicates have scores
of ten standard deviations, the covariance depends on the label, and some tokens have more relatives among
their own label than others. So the tokens are divided into groups, by label and by

    q_j = mean over i of label +1, less that over i of label -1, of x_ij^2,     x_ij = sqrt p u_i.u_j,

with u = z/|z| and i not j, and the law of x_ij is taken from the pairs of each two groups. It is kept as a
mixture of Gaussians, one for each range between quantiles, with the mean and the variance of that range: the
mean (zero) and the variance of all of x are exact then, and moments of f(delta + R_a R_b x) stay smooth in
delta. What depends on the label in them is signal, the rest noise, as for Gaussian scores. Extends the theory
page, section 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array

EDGES = np.array([0.0, 0.02, 0.2, 0.8, 0.98, 0.999, 1.0])  # quantiles between which one Gaussian stands
NARROWEST = 0.2  # width of such a Gaussian, in standard deviations of x
MOST_TOKENS = 2500  # from which the laws are taken


@dataclass(frozen=True)
class ScoreLaw:
    """x between A groups: K Gaussians of weight share, mean centre and deviation width, each (K, A, A)."""

    share: Array
    centre: Array
    width: Array

    def spread(self) -> Array:
        """sqrt(E x^2), (A, A)."""
        return np.asarray(np.sqrt((self.share * (self.centre**2 + self.width**2)).sum(axis=0)))

    def scaled(self, size: Array) -> ScoreLaw:
        """The law of size_ab x."""
        return ScoreLaw(self.share, size * self.centre, size * self.width)

    def between(self, group: NDArray[np.int64]) -> ScoreLaw:
        """The law between classes that belong to the groups (A,)."""
        row, column = group[:, None], group[None, :]
        return ScoreLaw(self.share[:, row, column], self.centre[:, row, column], self.width[:, row, column])

    def at(self, row: NDArray[np.int64], column: NDArray[np.int64]) -> Iterator[tuple[Array, Array, Array]]:
        """share, centre and width for those pairs, of one Gaussian after the other."""
        parts = (part[:, row, column] for part in (self.share, self.centre, self.width))
        return zip(*parts, strict=True)


def similarity(outside: Array, label: Array) -> Array:
    """q (n,) of the columns of outside (p, n)."""
    u = outside / np.linalg.norm(outside, axis=0)
    q = np.zeros(label.size)
    for sign in (1.0, -1.0):
        mine = label == sign
        total = np.einsum("ij,ij->j", u, (u[:, mine] @ u[:, mine].T) @ u)
        q += sign * u.shape[0] * (total - mine) / (np.count_nonzero(mine) - mine)
    return q


def score_law(outside: Array, group: NDArray[np.int64]) -> ScoreLaw:
    """The laws between the groups (n,) of the columns of outside (p, n)."""
    every = max(1, -(-group.size // MOST_TOKENS))
    u = (outside / np.linalg.norm(outside, axis=0))[:, ::every]
    groups = [u[:, group[::every] == g] for g in range(int(group.max()) + 1)]
    out = np.empty((3, EDGES.size - 1, len(groups), len(groups)))
    for g, one in enumerate(groups):
        for h, other in enumerate(groups[: g + 1]):
            x = np.sqrt(u.shape[0]) * (one.T @ other)
            out[:, :, g, h] = out[:, :, h, g] = _mixture(
                x[np.tril_indices(len(x), -1)] if g == h else x.ravel()
            )
    return ScoreLaw(*out)


def _mixture(x: Array) -> Array:
    """share, centre and width (3, K) of the ranges of x."""
    x = np.sort(x - x.mean())
    ends = np.round(EDGES * x.size).astype(np.int64)
    spread = x.std()
    out = np.tile([[0.0], [0.0], [spread]], EDGES.size - 1)
    for k, (begin, end) in enumerate(pairwise(ends.tolist())):
        if end > begin:
            part = x[begin:end]
            out[:, k] = part.size / x.size, part.mean(), max(part.std(), NARROWEST * spread)
    return out
