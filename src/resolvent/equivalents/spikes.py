"""The low-rank directions of signal and weights, on top of the noise-only blocks.

Tokens X = mu y' + Z with weights I + w_K w_Q' perturb the pencil along y, the constant vector 1, the norm
fluctuation s (token side) and Z'mu, Z'w_K, Z'w_Q (feature side). Eliminated one after the other, each is a
3x3 inverse or a 2x2 system:

    1 and s   N1   = (c R + T)^-1,   T = mean_spike E - eta S(N),   eta = norm_variance a2^2/(2 c)
    y         Nc   = (1 - ybar^2) N/c + ybar^2 N1
    signal    Psi  = (Nc^-1 + snr P)^-1                                                     (y with y)
    weights   Phi(v, v') = (v'v') Bv + (mu'v)(mu'v') X' Psi X                               (X'v with X'v')

with E = [[0, 1], [1, 0]] and S(N) = [[N22, N12], [N12, N11]] on the first two blocks. K' stands in the first
row of the pencil and K in the second, so the last step solves for the forms of X'w_Q on the first block and
of X'w_K on the second. Theory page, sections 3 and 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import Blocks
from resolvent.equivalents.matrices import (
    Symmetric,
    Vector,
    along,
    dot,
    inverse,
    plus,
    plus_along,
    scaled,
    times,
    transposed,
)

Gram = Symmetric  # inner products of mu, w_K, w_Q in this order


class Directions(NamedTuple):
    """What the directions are made of."""

    mean_spike: Array
    a2: Array
    norm_variance: Array
    label_mean: Array


class Spikes(NamedTuple):
    """Bilinear forms F of each direction with (y, block 1), and the sources g = e_y - C F behind them.

    The forms of the tokens y, 1, s are vectors over the blocks. The matrices are indexed by block, then by
    direction; for the features Z'mu, Z'w_K, Z'w_Q what is kept is X g, which stays finite as the ridge
    vanishes. `probe` and `seen` are the coefficients of the probe w = -X q3/n and of X q2/p along mu, w_K
    and w_Q. Those of w have their own formula: in Bv g they cancel like the ridge.
    """

    y: Vector
    one: Vector
    s: Vector
    token_source: tuple[Vector, Vector, Vector]
    feature_source: tuple[Vector, Vector, Vector]
    probe: Vector
    seen: Vector


def spikes(c: Array, a1: Array, block: Blocks, gram: Gram, directions: Directions) -> Spikes:
    """Solve for the forms of every direction with y."""
    mean_spike, a2, norm_variance, ybar = directions
    snr, mu_key, mu_query = gram.m00, gram.m01, gram.m02
    N = scaled(1.0 / c, block.N)
    eta = 0.5 * norm_variance * a2 * a2
    T00, T01, T11 = -eta * N.m11, mean_spike - eta * N.m01, -eta * N.m00
    R = scaled(c, block.R)
    N1 = inverse(Symmetric(R.m00 + T00, R.m01 + T01, R.m02, R.m11 + T11, R.m12, R.m22))
    Nc = plus(scaled(1.0 - ybar * ybar, N), scaled(ybar * ybar, N1))
    Psi = inverse(plus(inverse(Nc), scaled(snr, block.P)))

    key_2, query_1 = _weights(c, a1, block, Psi, gram)
    key_source, query_source = along(-a1 * query_1, block.X1), along(-a1 * key_2, block.X0)
    pulled = plus_along(along(mu_key, key_source), mu_query, query_source)
    dressed = (1.0 + pulled[0], pulled[1], pulled[2])
    y = times(Psi, dressed)
    mu_source = along(-1.0, times(block.P, y))
    y_source = plus_along(dressed, snr, mu_source)
    one = along(ybar, times(N1, y_source))
    half, zero = -a2 / np.sqrt(2.0), 0.0 * c
    one_source = (-(T00 * one[0] + T01 * one[1]), -(T01 * one[0] + T11 * one[1]), zero)
    s_source = (half * one[1], half * one[0], zero)
    weighed = times(block.N, block.Y2)
    row = (N.m01, N.m11, N.m12)
    return Spikes(
        y,
        one,
        along(norm_variance, times(N, s_source)),
        transposed(y_source, one_source, s_source),
        transposed(mu_source, key_source, query_source),
        (-c * dot(block.Y2, y), a1 * weighed[1] * query_1, a1 * weighed[0] * key_2),
        (y[1] + dot(row, mu_source), dot(row, key_source), dot(row, query_source)),
    )


def _weights(c: Array, a1: Array, block: Blocks, Psi: Symmetric, gram: Gram) -> tuple[Array, Array]:
    """The forms of X'w_K on block 2 and of X'w_Q on block 1, from their 2x2 system."""
    mu_key, mu_query = gram.m01, gram.m02
    x0, x1 = block.X0, block.X1
    N = block.N
    row0, row1 = (N.m00, N.m01, N.m02), (N.m01, N.m11, N.m12)
    Bv00, Bv01, Bv11 = dot(row0, x0) / c, dot(row0, x1) / c, dot(row1, x1) / c
    psi0, psi1 = times(Psi, x0), times(Psi, x1)
    mixed = 1.0 + a1 * (mu_key * mu_query * dot(x0, psi1) + gram.m12 * Bv01)
    key = a1 * (mu_key * mu_key * dot(x1, psi1) + gram.m11 * Bv11)
    query = a1 * (mu_query * mu_query * dot(x0, psi0) + gram.m22 * Bv00)
    right_key, right_query = mu_key * psi1[0], mu_query * psi0[0]
    determinant = mixed * mixed - key * query
    return (
        (mixed * right_key - key * right_query) / determinant,
        (mixed * right_query - query * right_key) / determinant,
    )
