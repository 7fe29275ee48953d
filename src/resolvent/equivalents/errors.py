"""Training and test error of the ridge probe on nonlinear attention features.

From the blocks, the spikes and one adjoint solve Lambda (`blocks.response`), which holds every derivative
at once:

    E_train = gamma^2 c Lambda_11,      v'v/p = Lambda_22      (v = X'w)

for the target t = kappa y + (what is orthogonal to the labels). On a fresh token y0 mu + z0 the prediction
has a mean, a constant and a variance. Theorem 1 of arXiv 2506.18656 is E_train, the rest is section 7 of the
theory page, rearranged: its v'Gv, v'Gq3 and q2'q3 are those of the vectors Xv/p and w, which split into
parts along mu, w_K, w_Q and noise.
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
from resolvent.equivalents.spikes import CONSTANT, KEY, LABELS, MU, NORM, QUERY, Directions, Spikes, spikes

Values = dict[str, NDArray[Any]]

ROWS_AT_ONCE = 4096  # keeps every temporary in cache
ACCEPTED_DEFECT = 1e-3  # of the identity that sets the size of the derivatives
ROUNDING = 1e-9  # by which a training error may exceed one


@dataclass(frozen=True)
class AttentionErrors:
    """Limits of the attention probe, with the bulk's scalars and the certificate of the fixed point.

    `residual` is the largest of the three equations' relative residuals, `converged` says that it is below
    1e-9 and that rounding left the errors possible (train in [0, 1], test not negative). Where it is not,
    every value is NaN.
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
    """Limits of the training and test error of the ridge probe on nonlinear attention features.

    The probe w = (HH' + n ridge)^-1 H t reads H = X (K + skip I), K = f(X' (I + w_K w_Q') X/sqrt p)/sqrt p,
    of tokens X = mu y' + Z, p/n -> ratio. Everything broadcasts; gram counts as one value per (..., 3, 3).

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
    ValueError, TypeError
        For an argument that is not finite, out of range, of the wrong shape or not a real number, in one
        line naming it.

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
    )
    grams = gram_matrix(gram)
    scalars = next(iter(args.values())).shape
    try:
        shape = np.broadcast_shapes(scalars, grams.shape[:-2])
    except ValueError:
        raise ValueError(f"arguments must broadcast together, got {scalars} and gram {grams.shape}") from None
    rows = _Rows(**{name: np.broadcast_to(value, shape).reshape(-1) for name, value in args.items()})
    flat = np.broadcast_to(grams, (*shape, 3, 3)).reshape(-1, 3, 3)
    result = _in_chunks(_attention_errors, rows, flat)
    values: dict[str, Any] = {name: plain(value.reshape(shape)) for name, value in result.items()}
    return AttentionErrors(**values)


def _in_chunks(kernel: Callable[[_Rows, Array], Values], rows: _Rows, gram: Array) -> Values:
    """Run the kernel over chunks of rows on the cores; the split does not depend on their number."""
    size = gram.shape[0]
    starts = range(0, max(size, 1), ROWS_AT_ONCE)

    def chunk(start: int) -> Values:
        part = slice(start, start + ROWS_AT_ONCE)
        return kernel(_Rows(*(v[part] for v in rows)), gram[part])

    if len(starts) == 1:
        return chunk(0)
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(chunk, starts))
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _attention_errors(rows: _Rows, gram: Array) -> Values:
    """`attention_errors` on flat arrays."""
    result = _at_positive_ridge(rows._replace(ridge=np.where(rows.ridge > 0.0, rows.ridge, 1.0)), gram)
    zero = np.flatnonzero(rows.ridge == 0.0)
    if zero.size:
        limit = _ridgeless(_Rows(*(v[zero] for v in rows)), gram[zero])
        for name, value in limit.items():
            result[name][zero] = value
    possible = (result["train"] >= 0.0) & (result["train"] <= 1.0 + ROUNDING) & (result["test"] >= 0.0)
    accurate = (result["residual"] <= ACCEPTED) & (result.pop("defect") <= ACCEPTED_DEFECT)
    result["train"] = np.minimum(result["train"], 1.0)
    for name in ("train", "test", "t", "u", "alpha", "m"):
        result[name] = np.where(accurate & possible, result[name], np.nan)
    return result | {"converged": accurate & possible}


def _ridgeless(rows: _Rows, gram: Array) -> Values:
    """Values at a vanishing ridge; the test error is infinite where it still grows as the ridge falls on.

    It grows at least like ridge^(-1/3) where it diverges, and the adjoint system is singular only there.
    """
    scale = rows.sigma2 + rows.a1**2 + (rows.shift + rows.skip) ** 2
    scale = np.where(scale > 0.0, scale, 1.0)
    coarse, fine = (_at_positive_ridge(rows._replace(ridge=ridge * scale), gram) for ridge in (1e-12, 1e-16))
    with np.errstate(invalid="ignore"):
        diverges = (fine["test"] > 3.0 * coarse["test"]) | (fine["defect"] > ACCEPTED_DEFECT)
    fine["test"] = np.where(diverges, np.inf, fine["test"])
    fine["train"] = np.where((rows.ratio >= 1.0) & ~_empty(rows), 0.0, fine["train"])
    return fine | {"defect": np.zeros_like(scale)}


def _at_positive_ridge(rows: _Rows, gram: Array) -> Values:
    """Values, residual, iterations and defect as the solver leaves them."""
    sigma2 = np.where(_empty(rows), 1e-20 * rows.ridge, rows.sigma2)  # too little to show
    with np.errstate(all="ignore"):
        bulk = solve_bulk(rows.ratio, rows.ridge, rows.a1, sigma2, rows.shift + rows.skip)
        block = blocks(rows.ratio, rows.a1, bulk)
        directions = Directions(gram, rows.mean_spike, rows.a2, rows.norm_variance, rows.label_mean)
        forms = spikes(rows.ratio, rows.a1, block, directions)
        train, test, defect = _errors(rows._replace(sigma2=sigma2), gram, bulk, block, forms)
        m = block.N[:, 0, 0] / bulk.averages.alpha
    return {
        "train": train,
        "test": test,
        "t": m * rows.sigma2 / rows.ratio,
        "u": np.sqrt(rows.sigma2 / rows.ratio) * bulk.V,
        "alpha": bulk.averages.alpha,
        "m": m,
        "residual": bulk.residual,
        "iterations": bulk.iterations,
        "defect": defect,
    }


def _empty(rows: _Rows) -> NDArray[np.bool_]:
    """Where K has no bulk, so that the averages have no cubic."""
    nothing: NDArray[np.bool_] = (rows.a1 == 0.0) & (rows.sigma2 == 0.0) & (rows.shift + rows.skip == 0.0)
    return nothing


def _errors(rows: _Rows, gram: Array, bulk: Bulk, block: Blocks, forms: Spikes) -> tuple[Array, Array, Array]:
    """Training and test error from the forms and their derivatives, and the defect of the latter."""
    c, kappa = rows.ratio, rows.target_overlap
    share = (kappa * kappa)[:, None, None]
    source = _weighted(forms.token_source, forms.token_gram) + _weighted(forms.feature_source, gram)
    source = share * source / c[:, None, None]
    source[:, 0, 0] += (1.0 - kappa * kappa) / c
    rough = response(c, rows.sigma2, block, source)
    Lambda, defect = _normalised(rows, gram, bulk.averages.alpha, block, forms, rough)
    train = (rows.ridge / bulk.averages.alpha) ** 2 * c * Lambda[:, 0, 0]
    return train, _test_error(rows, gram, block, forms, Lambda), defect


def _normalised(
    rows: _Rows, gram: Array, alpha: Array, block: Blocks, forms: Spikes, Lambda: Array
) -> tuple[Array, Array]:
    """Lambda in the size that makes t'Qt/n = ridge t'Q^2 t/n + |w|^2 exact, and the relative defect before.

    At small ridge the adjoint system is nearly singular and rounding goes into the size of its solution.
    """
    c, kappa = rows.ratio, rows.target_overlap
    whole = kappa**2 * c * forms.token[:, LABELS, 0] + (1.0 - kappa**2) * block.N[:, 0, 0]
    along = alpha * kappa**2 * _square(forms.probe, gram)
    across = rows.ridge / alpha * c * Lambda[:, 0, 0] + alpha * c**2 * _square(block.Y[:, :, 2], Lambda)
    factor = (whole - along) / across
    return factor[:, None, None] * Lambda, np.abs(whole - along - across) / whole


def _weighted(vectors: Array, gram: Array) -> Array:
    """sum_ij gram_ij v_i v_j' over directions: (rows, blocks, blocks)."""
    total: Array = np.swapaxes(vectors, -1, -2) @ gram @ vectors
    return total


def _test_error(rows: _Rows, gram: Array, block: Blocks, forms: Spikes, Lambda: Array) -> Array:
    """E (t0 - prediction)^2 on a fresh token x0 = y0 mu + z0 with label y0 and target t0.

    The prediction is r'x0 + constant + norm fluctuation + noise of power sigma2 |v|^2/p, where r = a1 M'Xv/p
    + skip w. Part of r lies along mu, w_K and w_Q, the rest is noise of power k' Lambda k with k = a1 X e2 -
    skip c Y e3. In `forms` the target is y, hence the factors kappa = target_overlap.
    """
    a1, a2, kappa, skip, ybar = rows.a1, rows.a2, rows.target_overlap, rows.skip, rows.label_mean
    one_v, s_v = kappa * forms.token[:, CONSTANT, 1], kappa * forms.token[:, NORM, 1]
    moved = forms.seen.copy()  # M' = I + w_Q w_K' acts on X v
    moved[:, QUERY] += _dot(gram[:, KEY], forms.seen)
    along = kappa[:, None] * (a1[:, None] * moved + skip[:, None] * forms.probe)
    across = a1[:, None] * block.X[:, :, 1] - (skip * rows.ratio)[:, None] * block.Y[:, :, 2]
    mean = _dot(gram[:, MU], along)
    constant = rows.mean_spike * one_v + a2 / np.sqrt(2.0) * s_v
    variance = _square(along, gram) + _square(across, Lambda)
    variance += rows.sigma2 * Lambda[:, 1, 1] + 0.5 * rows.norm_variance * (a2 * one_v) ** 2
    bias = 1.0 - 2.0 * kappa * (mean + ybar * constant) + mean**2 + 2.0 * ybar * mean * constant + constant**2
    error: Array = bias + variance
    return error


def _dot(u: Array, v: Array) -> Array:
    product: Array = (u * v).sum(axis=-1)
    return product


def _square(v: Array, matrix: Array) -> Array:
    """v' matrix v, row by row."""
    return _dot(v, (matrix @ v[..., None])[..., 0])
