"""Couplings between classes as sums over few features.

A table that varies smoothly with the classes, seen through their weights, has singular values that fall fast:

    sqrt(pi_a) t_ab sqrt(pi_b) = sum_k u_ak S_k v_bk.
 With t in block (2,1), its transpose in (1,2) and c x_a x_b' in (3,3), the coupling of classes a and b is w_a
C w_b' where

    w_a = [[v_a, 0, 0], [0, u_a, 0], [0, 0, x_a]],    C = [[0, S, 0], [S, 0, 0], [0, 0, c I]],

u and v being divided by sqrt pi.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array


class Features(NamedTuple):
    """w, the (A, K_i) parts of blocks i = 1, 2, 3, and C (K, K) with K the sum of the K_i."""

    w: tuple[Array, Array, Array]
    C: Array

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each block stands among the K."""
        ends = np.cumsum([0, *(part.shape[1] for part in self.w)])
        return tuple(slice(begin, end) for begin, end in pairwise(ends.tolist()))

    def gathered(self, H: Array) -> Array:
        """sum_a w_a' H_a w_a for H (B, A, 3, 3): (B, K, K)."""
        out = np.empty((H.shape[0], *self.C.shape))
        for i, rows in enumerate(self.slices):
            for j, columns in enumerate(self.slices):
                if i <= j:
                    out[:, rows, columns] = (self.w[i].T * H[:, None, :, i, j]) @ self.w[j]
                    out[:, columns, rows] = np.swapaxes(out[:, rows, columns], -1, -2)
        return out

    def spread(self, inner: Array) -> Array:
        """w_a inner w_a' for symmetric inner (B, K, K): (B, A, 3, 3)."""
        out = np.empty((inner.shape[0], self.w[0].shape[0], 3, 3))
        for i, rows in enumerate(self.slices):
            for j, columns in enumerate(self.slices):
                if i <= j:
                    out[:, :, i, j] = out[:, :, j, i] = (
                        (self.w[i] @ inner[:, rows, columns]) * self.w[j]
                    ).sum(axis=-1)
        return out

    def read(self, vectors: Array) -> Array:
        """sum_a w_a' v_a for vectors (B, A, 3): (B, K)."""
        return np.concatenate([vectors[:, :, i] @ part for i, part in enumerate(self.w)], axis=1)

    def written(self, coefficients: Array) -> Array:
        """w_a x for coefficients x (B, K): (B, A, 3)."""
        return np.stack(
            [coefficients[:, s] @ part.T for s, part in zip(self.slices, self.w, strict=True)], axis=-1
        )


def features(weight: Array, table: Array, third: Array, c: float, negligible: float) -> Features:
    """The features of `table` (A, A) and of `third` (A, r), the x_a.

    Singular values below negligible times the largest are left out.
    """
    root = np.sqrt(weight)[:, None]
    U, S, Vh = np.linalg.svd(root * table * root.T)
    k, r = int(np.sum(S / S[0] > negligible)) if S[0] > 0.0 else 0, third.shape[1]
    C = np.zeros((2 * k + r, 2 * k + r))
    C[:k, k : 2 * k] = C[k : 2 * k, :k] = np.diag(S[:k])
    C[2 * k :, 2 * k :] = c * np.eye(r)
    return Features((Vh[:k].T / root, U[:, :k] / root, third), C)
