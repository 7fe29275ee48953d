"""Training and test error of the ridge probe on nonlinear attention features.

From the blocks, the spikes and one adjoint solve Lambda (`blocks.response`), which holds every derivative
at once:

    E_train = gamma^2 c Lambda_11           v'v/p   = Lambda_22       (v = X'w)
    v'Gv/p  = (X' Lambda X + Bv V Bv)_22    q2'q3/p = Lambda_23

for the target t = kappa y + (what is orthogonal to the labels), with V the sum of gram_vw g_v g_w' over the
features. On a fresh token y0 mu + z0 the prediction has a mean, a constant and a variance. Theorem 1 of
arXiv 2506.18656 is E_train, the rest is section 7 of the theory page.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, gram_matrix, plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.blocks import Blocks, blocks, response
from resolvent.equivalents.bulk import ACCEPTED, Bulk, solve_bulk
from resolvent.equivalents.spikes import CONSTANT, LABELS, MU, Directions, Spikes, keys, queries, spikes

ROWS_AT_ONCE = 4096  # keeps every temporary in cache


@dataclass(frozen=True)
class AttentionErrors:
    """Limits of the attention probe, with the bulk's scalars and the certificate of the fixed point.

    `residual` is the largest of the three equations' relative residuals, `converged` says that it is below
    1e-9. Where it is not, every value is NaN.
    """

    train: Array | float
    test: Array | float
    t: Array | float
    u: Array | float
    alpha: Array | float
    m: Array | float
    residual: Array | float
    iterations: NDArray[np.int64] | int
    converged: NDArray[np.bool_] | bool


class _Rows(NamedTuple):
    """The arguments of `attention_errors`, flat."""

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
    intercept: Array


def attention_errors(
    *,
    ratio: ArrayLike,
    ridge: ArrayLike,
    a1: ArrayLike,
    sigma2: ArrayLike,
    gram: ArrayLike,
    shift: ArrayLike = 0.0,
    skip: ArrayLike = 0.0,
    mean_spike: ArrayLike = 0.0,
    a2: ArrayLike = 0.0,
    norm_variance: ArrayLike = 2.0,
    label_mean: ArrayLike = 0.0,
    target_overlap: ArrayLike = 1.0,
    intercept: ArrayLike = False,
) -> AttentionErrors:
    """Limits of the training and test error of w = (HH' + n ridge)^-1 H t on attention features H = X (K +
    skip I).

    K = f(X' (I + w_K w_Q') X/sqrt p)/sqrt p on tokens X = mu y' + Z, p/n -> ratio. Everything broadcasts;
    gram counts as one value per matrix. Several terms w_K w_Q', r of them, make a larger gram.

    Parameters
    ----------
    ratio, ridge
        p/n > 0 and the ridge >= 0; ridge 0 is the ridgeless limit, whose test error can be infinite.
    a1, a2, sigma2
        Hermite coefficients E[xi f], E[(xi^2 - 1) f]/sqrt 2 and the noise power E f^2 - a0^2 - a1^2 of the
        nonlinearity.
    gram
        (..., 1 + 2r, 1 + 2r) inner products of mu, the r keys, the r queries: (mu, w_K, w_Q) when r = 1;
        gram[..., 0, 0] is the SNR |mu|^2.
    shift, skip
        Kept diagonal f(sqrt p)/sqrt p and weight of a residual connection. Only the latter acts on a fresh
        token.
    mean_spike
        a0 sqrt p of an uncentred f.
    norm_variance
        p Var(|z|^2/p), 2 for Gaussian noise.
    label_mean, target_overlap
        Mean of the labels, and t'y/n of the target (1: the labels, 0: random labels).
    intercept
        True where the columns of K have a fixed sum (softmax: `softmax_coefficients`), which acts like a free
        intercept: mean_spike is infinite then, and what is given for it and a2 has no effect.

    Returns
    -------
    AttentionErrors
        Arrays of the broadcast shape, or plain numbers. `t`, `u`, `alpha` solve the bulk, `m` = tr Q/n.
        Test errors are on a fresh token whose target carries the same noise.

    Raises
    ------
    ValueError
        For an argument that is not finite, out of range or of the wrong shape, in one line naming it.

    Source: Theorem 1 of arXiv 2506.18656 for the training error with balanced labels and centred f; theory
    page, sections 4 to 7, for the rest.

    Examples
    --------
    >>> e = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=np.ones((3, 3)))
    >>> round(e.train, 4), round(e.test, 4), e.converged
    (0.3273, 0.7885, True)
    """
    args = checked(
        ratio=ratio,
        ridge=ridge,
        a1=a1,
        sigma2=sigma2,
        shift=shift,
        skip=skip,
        mean_spike=mean_spike,
        a2=a2,
        norm_variance=norm_variance,
        label_mean=label_mean,
        target_overlap=target_overlap,
        intercept=np.asarray(intercept, dtype=bool).astype(float),
    )
    grams = gram_matrix(gram)
    scalars = next(iter(args.values())).shape
    try:
        shape = np.broadcast_shapes(scalars, grams.shape[:-2])
    except ValueError:
        raise ValueError(f"arguments must broadcast together, got {scalars} and gram {grams.shape}") from None
    rows = _Rows(**{name: np.broadcast_to(value, shape).reshape(-1) for name, value in args.items()})
    flat = np.broadcast_to(grams, (*shape, *grams.shape[-2:])).reshape(-1, *grams.shape[-2:])
    result = _in_chunks(_attention_errors, rows, flat)
    values: dict[str, Any] = {name: plain(value.reshape(shape)) for name, value in result.items()}
    return AttentionErrors(**values)


def _in_chunks(
    kernel: Callable[[_Rows, Array], dict[str, Array]], rows: _Rows, gram: Array
) -> dict[str, Array]:
    """Run the kernel over chunks of rows on the cores; the split does not depend on their number."""
    size = gram.shape[0]
    starts = range(0, max(size, 1), ROWS_AT_ONCE)

    def chunk(start: int) -> dict[str, Array]:
        part = slice(start, start + ROWS_AT_ONCE)
        return kernel(_Rows(*(v[part] for v in rows)), gram[part])

    if len(starts) == 1:
        return chunk(0)
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(chunk, starts))
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _attention_errors(rows: _Rows, gram: Array) -> dict[str, Array]:
    """`attention_errors` on flat arrays."""
    with np.errstate(all="ignore"):
        ridgeless = rows.ridge == 0.0
        rows = rows._replace(ridge=np.where(ridgeless, _vanishing_ridge(rows), rows.ridge))
        bulk = solve_bulk(rows.ratio, rows.ridge, rows.a1, rows.sigma2, rows.shift + rows.skip)
        block = blocks(rows.ratio, rows.a1, bulk)
        intercept = rows.intercept > 0.0
        rows = rows._replace(a2=np.where(intercept, 0.0, rows.a2))
        directions = Directions(
            gram, rows.mean_spike, rows.a2, rows.norm_variance, rows.label_mean, intercept
        )
        forms = spikes(rows.ratio, rows.a1, block, directions)
        train, test = _errors(rows, gram, bulk, block, forms)
    train = np.where(ridgeless & (rows.ratio >= 1.0), 0.0, train)
    test = np.where(ridgeless & (test > 1e9), np.inf, test)
    t = block.N[:, 0, 0] * rows.sigma2 / (rows.ratio * bulk.averages.alpha)
    converged = (bulk.residual <= ACCEPTED) & np.isfinite(train) & ~np.isnan(test)
    values = {
        "train": train,
        "test": test,
        "t": t,
        "u": np.sqrt(rows.sigma2 / rows.ratio) * bulk.V,
        "alpha": bulk.averages.alpha,
        "m": block.N[:, 0, 0] / bulk.averages.alpha,
    }
    return {name: np.where(converged, value, np.nan) for name, value in values.items()} | {
        "residual": bulk.residual,
        "iterations": bulk.iterations,
        "converged": converged,
    }


def _vanishing_ridge(rows: _Rows) -> Array:
    """A ridge small enough to stand for zero in double precision.

    With a skip connection the variance on a fresh token is a difference that loses digits like 1/ridge, so
    the ridge stays where bias and rounding are both near 1e-8.
    """
    scale = rows.sigma2 + rows.a1**2 + (rows.shift + rows.skip) ** 2
    return np.where(rows.skip == 0.0, 1e-30, 1e-8) * np.where(scale > 0.0, scale, 1.0)


def _errors(rows: _Rows, gram: Array, bulk: Bulk, block: Blocks, forms: Spikes) -> tuple[Array, Array]:
    """Training and test error from the forms and their derivatives."""
    c, kappa, alpha = rows.ratio, rows.target_overlap, bulk.averages.alpha
    share = (kappa * kappa)[:, None, None]
    source = _weighted(forms.token_source, forms.token_gram) + _weighted(forms.feature_source, gram)
    source = share * source / c[:, None, None]
    source[:, 0, 0] += (1.0 - kappa * kappa) / c
    Lambda = response(c, rows.sigma2, block, source)
    inner = np.swapaxes(block.X, -1, -2) @ Lambda @ block.X + share * _weighted(forms.read, gram)
    train = (rows.ridge / alpha) ** 2 * c * Lambda[:, 0, 0]
    return train, _test_error(rows, gram, forms, Lambda, inner, alpha)


def _weighted(vectors: Array, gram: Array) -> Array:
    """sum_ij gram_ij v_i v_j' over directions: (rows, blocks, blocks)."""
    total: Array = np.swapaxes(vectors, -1, -2) @ gram @ vectors
    return total


def _test_error(rows: _Rows, gram: Array, forms: Spikes, Lambda: Array, inner: Array, alpha: Array) -> Array:
    """E (t0 - prediction)^2 on a fresh token x0 = y0 mu + z0 with label y0 and target t0.

    The prediction is y0 mean + constant + (a1 u + skip w)'z0 + norm fluctuation + noise of power sigma2
    |v|^2/p, with u the vector that X'M x0 puts on z0. In `forms` the target is y, hence the factors kappa =
    target_overlap.
    """
    a1, a2, kappa, skip, ybar = rows.a1, rows.a2, rows.target_overlap, rows.skip, rows.label_mean
    at_key, at_query = keys(gram), queries(gram)
    snr, mu_key, mu_query = gram[:, MU, MU], gram[:, MU, at_key], gram[:, MU, at_query]
    y_v, one_v = (kappa * forms.token[:, i, 1] for i in (LABELS, CONSTANT))
    mu_v = kappa * forms.feature[:, MU, 1]
    key_v, query_v = (kappa[:, None] * forms.feature[:, at, 1] for at in (at_key, at_query))
    label_w = kappa * forms.token_source[:, LABELS, 2]  # mu'w

    b = mu_key * y_v[:, None] + key_v
    mean = a1 * (snr * y_v + mu_v + (mu_query * b).sum(axis=-1)) + skip * label_w
    constant = -kappa * forms.token_source[:, CONSTANT, 0]
    u2 = inner[:, 1, 1] + snr * y_v**2 + 2.0 * mu_v * y_v
    u2 += (b[:, None, :] @ gram[:, at_query, at_query] @ b[:, :, None])[:, 0, 0]
    u2 += 2.0 * ((query_v + mu_query * y_v[:, None]) * b).sum(axis=-1)
    variance = a1 * a1 * u2 + rows.sigma2 * Lambda[:, 1, 1] + 0.5 * rows.norm_variance * (a2 * one_v) ** 2
    variance += np.where(skip == 0.0, 0.0, skip * _residual_variance(rows, gram, forms, Lambda, inner, alpha))
    bias = 1.0 - 2.0 * kappa * (mean + ybar * constant) + mean**2 + 2.0 * ybar * mean * constant + constant**2
    error: Array = bias + variance
    return error


def _residual_variance(
    rows: _Rows, gram: Array, forms: Spikes, Lambda: Array, inner: Array, alpha: Array
) -> Array:
    """2 a1 u'w + skip |w|^2, what a residual connection adds to the variance on a fresh token (over skip)."""
    c, kappa = rows.ratio, rows.target_overlap
    at_key, at_query = keys(gram), queries(gram)
    snr, mu_key, mu_query = gram[:, MU, MU], gram[:, MU, at_key], gram[:, MU, at_query]
    y_v, y_w = kappa * forms.token[:, LABELS, 1], kappa * forms.token[:, LABELS, 2]
    mu_v, mu_w = kappa * forms.feature[:, MU, 1], kappa * forms.feature[:, MU, 2]
    key_v, query_w = (
        kappa[:, None] * forms.feature[:, at_key, 1],
        kappa[:, None] * forms.feature[:, at_query, 2],
    )
    b = mu_key * y_v[:, None] + key_v
    crossed = inner[:, 1, 2] + y_w * mu_v + y_v * mu_w + snr * y_v * y_w
    crossed += (b * (query_w + mu_query * y_w[:, None])).sum(axis=-1)
    return -c / alpha * (2.0 * rows.a1 * crossed + rows.skip * Lambda[:, 1, 2])
