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
from resolvent.equivalents.blocks import Blocks, inverse

MU, KEY, QUERY = 0, 1, 2
LABELS, CONSTANT, NORM = 0, 1, 2


class Directions(NamedTuple):
    """What the directions are made of: flat arrays, and gram (rows, 3, 3) of mu, w_K, w_Q."""

    gram: Array
    mean_spike: Array
    a2: Array
    norm_variance: Array
    label_mean: Array


class Spikes(NamedTuple):
    """Bilinear forms F of each direction with (y, block 1), and the sources g = e_y - C F behind them.

    All but the last three are (rows, directions, blocks): `token` over (y, 1, s), the others over the
    features Z'mu, Z'w_K, Z'w_Q. Their sources are kept as X g, which stays finite as the ridge vanishes, and
    `read` = Bv g. `probe` and `seen` (rows, directions) are the coefficients of the probe w = -X q3/n and of
    X q2/p along mu, w_K and w_Q; those of w come from their own formula, not from `read`, in which they
    cancel like the ridge. `token_gram` is the Gram matrix of (y, 1, s)/sqrt n.
    """

    token: Array
    read: Array
    token_source: Array
    feature_source: Array
    probe: Array
    seen: Array
    token_gram: Array


def spikes(c: Array, a1: Array, block: Blocks, directions: Directions) -> Spikes:
    """Solve for the forms of every direction with y."""
    gram, mean_spike, a2, norm_variance, ybar = directions
    snr, mu_key, mu_query = (gram[:, MU, i, None] for i in range(3))
    scaled_N = block.N / c[:, None, None]
    T = _constant_coupling(mean_spike, norm_variance * a2 * a2 / (2.0 * c), block.N)
    N1 = inverse(c[:, None, None] * block.R + T)
    share = (ybar * ybar)[:, None, None]
    Psi = inverse(inverse((1.0 - share) * scaled_N + share * N1) + snr[..., None] * block.P)

    key_2, query_1 = _weights(a1, block, Psi, gram)
    pulled_key = -(a1 * query_1)[:, None] * block.X[:, :, 1]
    pulled_query = -(a1 * key_2)[:, None] * block.X[:, :, 0]
    dressed = np.array([1.0, 0.0, 0.0]) + mu_key * pulled_key + mu_query * pulled_query
    f_y = _apply(Psi, dressed)
    pulled_mu = -_apply(block.P, f_y)
    g_y = dressed + snr * pulled_mu
    f_one = ybar[:, None] * _apply(N1, g_y)
    g_s = -(a2 / np.sqrt(2.0))[:, None] * np.stack([f_one[:, 1], f_one[:, 0], np.zeros_like(c)], axis=-1)
    f_s = norm_variance[:, None] * _apply(scaled_N, g_s)

    feature_source = np.stack([pulled_mu, pulled_key, pulled_query], axis=-2)
    read = feature_source @ scaled_N
    seen = read[:, :, 1] + np.stack([f_y[:, 1], np.zeros_like(c), np.zeros_like(c)], axis=-1)
    third = np.swapaxes(block.Y, -1, -2)[:, 2, None, :]
    weighed = a1[:, None] * (third @ block.N)[:, 0, :]
    probe = [-c * (third @ f_y[..., None])[:, 0, 0], weighed[:, 1] * query_1, weighed[:, 0] * key_2]
    return Spikes(
        token=np.stack([f_y, f_one, f_s], axis=-2),
        read=read,
        token_source=np.stack([g_y, -_apply(T, f_one), g_s], axis=-2),
        feature_source=feature_source,
        probe=np.stack(probe, axis=-1),
        seen=seen,
        token_gram=_token_gram(ybar, norm_variance),
    )


def _constant_coupling(mean_spike: Array, eta: Array, N: Array) -> Array:
    """T: what the constant direction does to itself, directly and through s."""
    T = np.zeros_like(N)
    T[:, 0, 0] = -eta * N[:, 1, 1]
    T[:, 1, 1] = -eta * N[:, 0, 0]
    T[:, 0, 1] = T[:, 1, 0] = mean_spike - eta * N[:, 0, 1]
    return T


def _weights(a1: Array, block: Blocks, Psi: Array, gram: Array) -> tuple[Array, Array]:
    """The forms of X'w_K on block 2 and of X'w_Q on block 1, from their 2x2 system."""
    mu_key, mu_query = gram[:, MU, KEY], gram[:, MU, QUERY]
    pull = np.swapaxes(block.X, -1, -2) @ Psi
    Theta = pull @ block.X
    mixed = 1.0 + a1 * (mu_key * mu_query * Theta[:, 0, 1] + gram[:, KEY, QUERY] * block.Bv[:, 0, 1])
    key = a1 * (mu_key * mu_key * Theta[:, 1, 1] + gram[:, KEY, KEY] * block.Bv[:, 1, 1])
    query = a1 * (mu_query * mu_query * Theta[:, 0, 0] + gram[:, QUERY, QUERY] * block.Bv[:, 0, 0])
    right_key, right_query = mu_key * pull[:, 1, 0], mu_query * pull[:, 0, 0]
    determinant = mixed * mixed - key * query
    return (
        (mixed * right_key - key * right_query) / determinant,
        (mixed * right_query - query * right_key) / determinant,
    )


def _token_gram(ybar: Array, norm_variance: Array) -> Array:
    gram = np.zeros((*ybar.shape, 3, 3))
    gram[:, LABELS, LABELS] = gram[:, CONSTANT, CONSTANT] = 1.0
    gram[:, LABELS, CONSTANT] = gram[:, CONSTANT, LABELS] = ybar
    gram[:, NORM, NORM] = norm_variance
    return gram


def _apply(matrix: Array, vector: Array) -> Array:
    """Matrix times vector, row by row."""
    return (matrix @ vector[..., None])[..., 0]
