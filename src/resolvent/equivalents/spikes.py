"""The low-rank directions of signal and weights, on top of the noise-only blocks.

Tokens X = mu y' + Z with weights I + r terms w_K w_Q' perturb the pencil along y, the constant vector 1, the
norm fluctuation s (token side) and Z'mu, Z'w_K, Z'w_Q (feature side). Eliminated one after the other, each
is a 3x3 inverse or a 2r x 2r system:

    1 and s   N1   = (c R + T)^-1,   T = mean_spike E - eta S(N),   eta = norm_variance a2^2/(2 c)
    y         Nc   = (1 - ybar^2) N/c + ybar^2 N1
    signal    Psi  = (Nc^-1 + snr P)^-1                                                     (y with y)
    weights   Phi(v, v') = (v'v') Bv + (mu'v)(mu'v') X' Psi X                               (X'v with X'v')

with E = [[0, 1], [1, 0]] and S(N) = [[N22, N12], [N12, N11]] on the first two blocks. K' stands in the first
row of the pencil and K in the second, so the last step solves for the forms of X'w_Q on the first block and
of X'w_K on the second. Where the columns of K have a fixed sum (softmax), mean_spike is infinite: of N1^-1
only the (3, 3) entry c R_33 is left free. Theory page, sections 3, 5 and 8a.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import Blocks, inverse

MU = 0
LABELS, CONSTANT, NORM = 0, 1, 2


def keys(gram: Array) -> slice:
    """Where the r key directions stand among (mu, keys, queries)."""
    return slice(1, (gram.shape[-1] + 1) // 2)


def queries(gram: Array) -> slice:
    """Where the r query directions stand among (mu, keys, queries)."""
    return slice((gram.shape[-1] + 1) // 2, gram.shape[-1])


class Directions(NamedTuple):
    """What the directions are made of: flat arrays, and gram (rows, 1 + 2r, 1 + 2r) of mu, keys,
    queries."""

    gram: Array
    mean_spike: Array
    a2: Array
    norm_variance: Array
    label_mean: Array
    intercept: NDArray[np.bool_]


class Spikes(NamedTuple):
    """Bilinear forms F of each direction with (y, block 1), and the sources g = e_y - C F behind them.

    All are (rows, directions, blocks): `token` over (y, 1, s) and `feature` over Z'(mu, keys, queries). The
    sources of the features are kept as X g, which stays finite as the ridge vanishes; `read` = Bv g = (X g)
    N/c and `feature` = gram `read`. `token_gram` is the Gram matrix of (y, 1, s)/sqrt n.
    """

    token: Array
    feature: Array
    read: Array
    token_source: Array
    feature_source: Array
    token_gram: Array


def spikes(c: Array, a1: Array, block: Blocks, directions: Directions) -> Spikes:
    """Solve for the forms of every direction with y."""
    gram, mean_spike, a2, norm_variance, ybar, intercept = directions
    snr, mu_key, mu_query = gram[:, MU, MU, None], gram[:, MU, keys(gram)], gram[:, MU, queries(gram)]
    scaled_N = block.N / c[:, None, None]
    T = _constant_coupling(mean_spike, norm_variance * a2 * a2 / (2.0 * c), block.N)
    own = c[:, None, None] * block.R
    N1 = inverse(own + T)
    if intercept.any():
        N1[intercept] = 0.0
        N1[intercept, 2, 2] = 1.0 / own[intercept, 2, 2]
    share = (ybar * ybar)[:, None, None]
    Psi = inverse(inverse((1.0 - share) * scaled_N + share * N1) + snr[..., None] * block.P)

    key_2, query_1 = _weights(a1, block, Psi, gram)
    to_key, to_query = -a1[:, None] * query_1, -a1[:, None] * key_2
    dressed = (mu_key * to_key).sum(axis=-1)[:, None] * block.X[:, :, 1]
    dressed += (mu_query * to_query).sum(axis=-1)[:, None] * block.X[:, :, 0]
    dressed[:, 0] += 1.0
    f_y = _apply(Psi, dressed)
    pulled_mu = -_apply(block.P, f_y)
    g_y = dressed + snr * pulled_mu
    f_one = ybar[:, None] * _apply(N1, g_y)
    g_one = _apply(own, f_one) - ybar[:, None] * g_y  # = -T f_one, and finite however large mean_spike
    g_s = -(a2 / np.sqrt(2.0))[:, None] * np.stack([f_one[:, 1], f_one[:, 0], np.zeros_like(c)], axis=-1)
    f_s = norm_variance[:, None] * _apply(scaled_N, g_s)

    pulled_key = to_key[:, :, None] * block.X[:, None, :, 1]
    pulled_query = to_query[:, :, None] * block.X[:, None, :, 0]
    feature_source = np.concatenate([pulled_mu[:, None], pulled_key, pulled_query], axis=-2)
    read = feature_source @ scaled_N
    return Spikes(
        token=np.stack([f_y, f_one, f_s], axis=-2),
        feature=gram @ read,
        read=read,
        token_source=np.stack([g_y, g_one, g_s], axis=-2),
        feature_source=feature_source,
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
    """The forms (rows, r) of X'w_K on block 2 and of X'w_Q on block 1, from their 2r x 2r system."""
    at_key, at_query = keys(gram), queries(gram)
    mu_key, mu_query = gram[:, MU, at_key], gram[:, MU, at_query]
    pull = np.swapaxes(block.X, -1, -2) @ Psi
    Theta = pull @ block.X
    right_key, right_query = mu_key * pull[:, 1, 0, None], mu_query * pull[:, 0, 0, None]

    def form(at_left: slice, at_right: slice, i: int, j: int) -> Array:
        """a1 Phi_ij(v, v') for v in one group and v' in the other."""
        own = gram[:, at_left, at_right] * block.Bv[:, i, j, None, None]
        along_mu = gram[:, MU, at_left, None] * gram[:, MU, None, at_right] * Theta[:, i, j, None, None]
        return np.asarray(a1[:, None, None] * (own + along_mu))

    mixed = form(at_key, at_query, 1, 0)
    key, query = form(at_key, at_key, 1, 1), form(at_query, at_query, 0, 0)
    if mixed.shape[-1] == 1:
        return _two_by_two(mixed[:, 0] + 1.0, key[:, 0], query[:, 0], right_key, right_query)
    unit = np.eye(mixed.shape[-1])
    upper = np.concatenate([unit + mixed, key], axis=-1)
    lower = np.concatenate([query, unit + np.swapaxes(mixed, -1, -2)], axis=-1)
    right = np.concatenate([right_key, right_query], axis=-1)[..., None]
    solution = np.linalg.solve(np.concatenate([upper, lower], axis=-2), right)[..., 0]
    return solution[:, : unit.shape[0]], solution[:, unit.shape[0] :]


def _two_by_two(
    mixed: Array, key: Array, query: Array, right_key: Array, right_query: Array
) -> tuple[Array, Array]:
    """Cramer's rule for [[mixed, key], [query, mixed]]."""
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
