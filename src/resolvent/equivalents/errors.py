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

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, gram_matrix, plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.bulk import ACCEPTED, solve_bulk
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.fresh import Errors, Rows, pivoted_errors
from resolvent.equivalents.matrices import Symmetric
from resolvent.equivalents.stages import DIRECT, Stages

WORKERS=2
ROWS_AT_ONCE = 4096  # keeps every temporary in cache
CERTAIN = 1e-6  # a refinement below this leaves its square as error


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
) -> AttentionErrors:
    """Limits of the training and test error of w = (HH' + n ridge)^-1 H t on attention features H = X (K +
    skip I).

    K = f(X' (I + w_K w_Q') X/sqrt p)/sqrt p on tokens X = mu y' + Z, p/n -> ratio. Everything broadcasts;
    gram counts as one value per (..., 3, 3).

    Parameters
    ----------
    ratio, ridge
        p/n > 0 and the ridge >= 0; ridge 0 is the ridgeless limit, whose test error can be infinite.
    a1, a2, sigma2
        Hermite coefficients E[xi f], E[(xi^2 - 1) f]/sqrt 2 and the noise power E f^2 - a0^2 - a1^2 of the
        nonlinearity.
    gram
        (..., 3, 3) inner products of (mu, w_K, w_Q); gram[..., 0, 0] is the SNR |mu|^2.
    shift, skip
        Kept diagonal f(sqrt p)/sqrt p and weight of a residual connection. Only the latter acts on a fresh
        token.
    mean_spike
        a0 sqrt p of an uncentred f.
    norm_variance
        p Var(|z|^2/p), 2 for Gaussian noise.
    label_mean, target_overlap
        Mean of the labels, and t'y/n of the target (1: the labels, 0: random labels).

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
    >>> e = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=[[1, 1, 1], [1, 1, 1], [1, 1,
    1]]) >>> round(e.train, 4), round(e.test, 4), e.converged (..., ..., True)
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
    )
    grams = gram_matrix(gram)
    scalars = next(iter(args.values())).shape
    try:
        shape = np.broadcast_shapes(scalars, grams.shape[:-2])
    except ValueError:
        raise ValueError(f"arguments must broadcast together, got {scalars} and gram {grams.shape}") from None
    rows = Rows(**{name: np.broadcast_to(value, shape).reshape(-1) for name, value in args.items()})
    flat = np.broadcast_to(grams, (*shape, 3, 3)).reshape(-1, 3, 3)
    result = _in_chunks(rows, flat)
    return AttentionErrors(*(plain(value.reshape(shape)) for value in result))


def _in_chunks(rows: Rows, gram: Array) -> AttentionErrors:
    """Solve chunks of rows on the available cores; the split does not depend on their number."""
    size = gram.shape[0]
    starts = range(0, size, ROWS_AT_ONCE)
    result=tuple(np.empty(size) for _ in range(7))+(np.empty(size,dtype=np.int64),np.empty(size,dtype=bool))

    def chunk(start: int) -> None:
        part = slice(start, start + ROWS_AT_ONCE)
        some = Rows(*(np.ascontiguousarray(v[part]) for v in rows))
        forms = Symmetric(*(np.ascontiguousarray(gram[part, i, j]) for i in range(3) for j in range(i, 3)))
        for all_rows, value in zip(result, _attention_errors(some, forms, DIRECT), strict=True):
            all_rows[part] = value

    workers = min(len(starts), WORKERS)
    if workers < 2:
        for start in starts: chunk(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(chunk, starts))
    return result


def _attention_errors(rows: Rows, gram: Symmetric, stages: Stages):
    """`attention_errors` on flat arrays."""
    with np.errstate(all="ignore"):
        ridgeless = rows.ridge == 0.0
        if ridgeless.any():
            rows = rows._replace(ridge=np.where(ridgeless, _vanishing_ridge(rows), rows.ridge))
        bulk = solve_bulk(rows.ratio, rows.ridge, rows.a1, rows.sigma2, rows.shift + rows.skip, stages)
        train, test, t, m, _ = _certain_errors(rows, gram, bulk.noise, stages)
        if ridgeless.any():
            train = np.where(ridgeless & (rows.ratio >= 1.0), 0.0, train)
            test = np.where(ridgeless & (test > 1e9), np.inf, test)
        u = np.sqrt(rows.sigma2 / rows.ratio) * bulk.noise.V
        converged = (bulk.residual <= ACCEPTED) & np.isfinite(train) & ~np.isnan(test)
    values = (train, test, t, u, bulk.noise.alpha, m)
    if not converged.all():
        values = tuple(np.where(converged, value, np.nan) for value in values)
    return (*values, bulk.residual, bulk.iterations, converged)


def _certain_errors(rows: Rows, gram: Symmetric, noise: Noise, stages: Stages) -> Errors:
    """The errors, by pivoting where elimination without it leaves doubt."""
    values = stages.errors(rows, gram, noise)
    doubtful = np.flatnonzero(~(values.doubt <= CERTAIN))
    if doubtful.size:
        some = (Rows(*(v[doubtful] for v in rows)), Symmetric(*(v[doubtful] for v in gram)), Noise(*(v[doubtful] for v in noise)))
        for all_rows, value in zip(values, pivoted_errors(*some), strict=True):
            all_rows[doubtful] = value
    return values


def _vanishing_ridge(rows: Rows) -> Array:
    """A ridge small enough to stand for zero in double precision.

    With a skip connection the variance on a fresh token is a difference that loses digits like 1/ridge, so
    the ridge stays where bias and rounding are both near 1e-8.
    """
    scale = rows.sigma2 + rows.a1**2 + (rows.shift + rows.skip) ** 2
    return np.where(rows.skip == 0.0, 1e-30, 1e-8) * np.where(scale > 0.0, scale, 1.0)
