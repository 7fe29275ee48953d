"""Training error, and test error on a fresh token, from the blocks and the spikes.

One adjoint solve Lambda (`blocks.response`) holds every derivative at once:

    E_train = gamma^2 c Lambda_11           v'v/p   = Lambda_22       (v = X'w)
    v'Gv/p  = (X' Lambda X + Bv V Bv)_22    q2'q3/p = Lambda_23

for the target t = kappa y + (what is orthogonal to the labels), with V the sum of gram_vw g_v g_w' over the
features. The prediction on a fresh token x0 = y0 mu + z0 is

    y0 mean + constant + (a1 u + skip w)'z0 + norm fluctuation + noise of power sigma2 |v|^2/p,

with u the vector that X'M x0 puts on z0. Theorem 1 of arXiv 2506.18656 is E_train, the rest is section 7 of
the theory page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import Blocks, blocks, pivoted_response, response
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.matrices import Symmetric, Vector, along, dot, times
from resolvent.equivalents.spikes import Directions, Gram, Spikes, spikes


class Rows(NamedTuple):
    """The arguments of `attention_errors`."""

    ratio: Array
    ridge: Array
    a1: Array
    sigma2: Array
    shift: Array
    skip: Array
    mean_spike: Array
    a2: Array
    norm_variance: Array
    label_mean: Array
    target_overlap: Array


class Errors(NamedTuple):
    """Training and test error, t, m = tr Q/n, and the doubt of `blocks.response`."""

    train: Array
    test: Array
    t: Array
    m: Array
    doubt: Array


def errors(rows: Rows, gram: Gram, noise: Noise, work: Array) -> Errors:
    """The errors at a solution of the bulk (elementwise); `work` is that of `blocks.response`."""
    block, forms, source = _prepared(rows, gram, noise)
    Lambda, doubt = response(rows.ratio, rows.sigma2, block, source, work)
    return _collected(rows, gram, noise, block, forms, Lambda, doubt)


def pivoted_errors(rows: Rows, gram: Gram, noise: Noise) -> Errors:
    """`errors` for arrays of rows that need pivoting."""
    block, forms, source = _prepared(rows, gram, noise)
    Lambda = pivoted_response(rows.ratio, rows.sigma2, block, source)
    return _collected(rows, gram, noise, block, forms, Lambda, np.zeros_like(rows.ratio))


def _prepared(rows: Rows, gram: Gram, noise: Noise) -> tuple[Blocks, Spikes, Symmetric]:
    block = blocks(rows.ratio, rows.a1, noise)
    directions = Directions(rows.mean_spike, rows.a2, rows.norm_variance, rows.label_mean)
    forms = spikes(rows.ratio, rows.a1, block, gram, directions)
    return block, forms, _source(rows, gram, forms)


def _collected(
    rows: Rows, gram: Gram, noise: Noise, block: Blocks, forms: Spikes, Lambda: Symmetric, doubt: Array
) -> Errors:
    ridge, m = rows.ridge / noise.alpha, block.N.m00 / noise.alpha
    train = ridge * ridge * rows.ratio * Lambda.m00
    test = _test(rows, gram, noise.alpha, block, forms, Lambda)
    return Errors(train, test, m * rows.sigma2 / rows.ratio, m, doubt)


def _source(rows: Rows, gram: Gram, forms: Spikes) -> Symmetric:
    """(kappa^2 times the sum over all directions of gram_vw g_v g_w' + (1 - kappa^2) e_1 e_1')/c."""
    kappa2 = rows.target_overlap * rows.target_overlap
    g0, g1, g2 = forms.token_source
    h0, h1, h2 = forms.feature_source
    dual0, dual1, dual2 = (_token_dual(rows, g0), _token_dual(rows, g1), _token_dual(rows, g2))
    held0, held1, held2 = times(gram, h0), times(gram, h1), times(gram, h2)
    share = kappa2 / rows.ratio
    return Symmetric(
        share * (dot(g0, dual0) + dot(h0, held0)) + (1.0 - kappa2) / rows.ratio,
        share * (dot(g0, dual1) + dot(h0, held1)),
        share * (dot(g0, dual2) + dot(h0, held2)),
        share * (dot(g1, dual1) + dot(h1, held1)),
        share * (dot(g1, dual2) + dot(h1, held2)),
        share * (dot(g2, dual2) + dot(h2, held2)),
    )


def _token_dual(rows: Rows, g: Vector) -> Vector:
    """The Gram matrix of (y, 1, s)/sqrt n times g."""
    return g[0] + rows.label_mean * g[1], g[1] + rows.label_mean * g[0], rows.norm_variance * g[2]


def _test(rows: Rows, gram: Gram, alpha: Array, block: Blocks, forms: Spikes, Lambda: Symmetric) -> Array:
    """E (t0 - prediction)^2 on a fresh token with target t0; in `forms` the target is y, hence the kappas."""
    a1, a2, kappa, skip, ybar = rows.a1, rows.a2, rows.target_overlap, rows.skip, rows.label_mean
    snr, mu_key, mu_query = gram.m00, gram.m01, gram.m02
    y_v, one_v, s_v = kappa * forms.y[1], kappa * forms.one[1], kappa * forms.s[1]
    read_v = along(kappa, forms.read[1])
    mu_v, key_v, query_v = held_v = times(gram, read_v)
    Lambda_X1 = times(Lambda, block.X[1])

    b = mu_key * y_v + key_v
    label_w = kappa * forms.token_source[2][0]  # mu'w
    mean = a1 * (snr * y_v + mu_v + mu_query * b) + skip * label_w
    constant = rows.mean_spike * one_v + a2 / np.sqrt(2.0) * s_v
    u2 = dot(block.X[1], Lambda_X1) + dot(read_v, held_v)
    u2 = u2 + snr * y_v * y_v + gram.m22 * b * b + 2.0 * (mu_v * y_v + query_v * b + mu_query * y_v * b)
    fluctuation = a2 * one_v
    variance = a1 * a1 * u2 + rows.sigma2 * Lambda.m11 + 0.5 * rows.norm_variance * fluctuation * fluctuation

    # w and its product with u: what a residual connection adds
    y_w, read_w = kappa * forms.y[2], along(kappa, forms.read[2])
    mu_w, _, query_w = times(gram, read_w)
    crossed = dot(block.X[2], Lambda_X1) + dot(read_w, held_v)
    crossed = crossed + y_w * mu_v + y_v * mu_w + snr * y_v * y_w + b * (query_w + mu_query * y_w)
    variance = variance - skip * rows.ratio / alpha * (2.0 * a1 * crossed + skip * Lambda.m12)
    miss = kappa - mean
    bias = (1.0 - kappa) * (1.0 + kappa) + miss * miss + constant * (constant - 2.0 * ybar * miss)
    total: Array = bias + variance
    return total
