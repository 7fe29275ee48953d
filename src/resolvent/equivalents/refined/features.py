"""Couplings between classes as sums over few features.

A table that varies smoothly with the classes, seen through their weights, has singular values that fall fast:

    sqrt(pi_a) t_ab sqrt(pi_b) = sum_k u_ak S_k v_bk.

With t in block (2,1), its transpose in (1,2) and c x_a x_b' in (3,3), the coupling of classes a and b is w_a C w_b' where

    w_a = [[v_a, 0, 0], [0, u_a, 0], [0, 0, x_a]] (u and v over sqrt pi),    C = [[0, S, 0], [S, 0, 0], [0, 0, c I]].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array

NEGLIGIBLE = 1e-11  # singular values below this share of the largest are left out


class Features(NamedTuple):
    """w (A, 3, K), C (K, K), and which of the K belong to block 3."""

    w: Array
    C: Array
    third: NDArray[np.bool_]


def features(weight: Array, table: Array, third: Array, c: float) -> Features:
    """The features of `table` (A, A) and of `third`, the x_a (A, r)."""
    root = np.sqrt(weight)[:, None]
    U, S, Vh = np.linalg.svd(root * table * root.T)
    k, r = int(np.count_nonzero(S > NEGLIGIBLE * S[0])), third.shape[1]
    w = np.zeros((weight.size, 3, 2 * k + r))
    w[:, 0, :k] = Vh[:k].T / root
    w[:, 1, k : 2 * k] = U[:, :k] / root
    w[:, 2, 2 * k :] = third
    C = np.zeros((2 * k + r, 2 * k + r))
    C[:k, k : 2 * k] = C[k : 2 * k, :k] = np.diag(S[:k])
    C[2 * k :, 2 * k :] = c * np.eye(r)
    return Features(w, C, np.arange(2 * k + r) >= 2 * k)
