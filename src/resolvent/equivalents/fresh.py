"""Training error, and test error on a fresh token, from the blocks and the spikes.

One adjoint solve Lambda (`blocks.response`) holds every derivative at once:

    E_train = gamma^2 c Lambda_11,      v'v/p = Lambda_22      (v = X'w)

for the target t = kappa y + (what is orthogonal to the labels). The prediction on a fresh token
x0 = y0 mu + z0 is

    r'x0 + constant + norm fluctuation + noise of power sigma2 |v|^2/p,    r = a1 M'Xv/p + skip w.

Part of r lies along mu, w_K and w_Q, the rest is noise of power k' Lambda k with k = a1 X e2 - skip c Y e3.
Theorem 1 of arXiv 2506.18656 is E_train, the rest is section 7 of the theory page, rearranged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import Blocks, blocks, pivoted_response, response
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.matrices import Symmetric, Vector, along, dot, plus_along, scaled, times
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
    """Training and test error, m = tr Q/n, defect of the derivatives and doubt of `blocks.response`."""

    train: Array
    test: Array
    m: Array
    defect: Array
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
    rows: Rows, gram: Gram, noise: Noise, block: Blocks, forms: Spikes, rough: Symmetric, doubt: Array
) -> Errors:
    Lambda, defect = _normalised(rows, gram, noise.alpha, block, forms, rough)
    ridge = rows.ridge / noise.alpha
    train = ridge * ridge * rows.ratio * Lambda.m00
    return Errors(train, _test(rows, gram, block, forms, Lambda), block.N.m00 / noise.alpha, defect, doubt)


def _normalised(
    rows: Rows, gram: Gram, alpha: Array, block: Blocks, forms: Spikes, Lambda: Symmetric
) -> tuple[Symmetric, Array]:
    """Lambda in the size that makes t'Qt/n = ridge t'Q^2 t/n + |w|^2 exact, and the relative defect before.

    At small ridge the adjoint system is nearly singular and rounding goes into the size of its solution.
    """
    c, kappa2 = rows.ratio, rows.target_overlap * rows.target_overlap
    whole = kappa2 * c * forms.y[0] + (1.0 - kappa2) * block.N.m00
    along_features = alpha * kappa2 * dot(forms.probe, times(gram, forms.probe))
    across = rows.ridge / alpha * c * Lambda.m00
    across = across + alpha * c * c * dot(block.Y2, times(Lambda, block.Y2))
    rest = whole - along_features
    return scaled(rest / across, Lambda), np.abs(rest - across) / whole


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


def _test(rows: Rows, gram: Gram, block: Blocks, forms: Spikes, Lambda: Symmetric) -> Array:
    """E (t0 - prediction)^2 on a fresh token with target t0; in `forms` the target is y, hence the kappas."""
    a1, a2, kappa, skip, ybar = rows.a1, rows.a2, rows.target_overlap, rows.skip, rows.label_mean
    one_v, s_v, seen = kappa * forms.one[1], kappa * forms.s[1], forms.seen
    key_seen = gram.m01 * seen[0] + gram.m11 * seen[1] + gram.m12 * seen[2]
    moved = (seen[0], seen[1], seen[2] + key_seen)  # M' = I + w_Q w_K' acts on X v
    held = along(kappa, plus_along(along(a1, moved), skip, forms.probe))
    across = plus_along(along(a1, block.X1), -skip * rows.ratio, block.Y2)
    pulled = times(gram, held)
    mean = pulled[0]
    constant = rows.mean_spike * one_v + a2 / np.sqrt(2.0) * s_v
    fluctuation = a2 * one_v
    variance = dot(held, pulled) + dot(across, times(Lambda, across))
    variance = variance + rows.sigma2 * Lambda.m11 + 0.5 * rows.norm_variance * fluctuation * fluctuation
    miss = kappa - mean
    bias = (1.0 - kappa) * (1.0 + kappa) + miss * miss + constant * (constant - 2.0 * ybar * miss)
    total: Array = bias + variance
    return total
