"""Training and test error of the ridge probe on nonlinear attention features.

The bulk's fixed point (`bulk`), the blocks, spikes and errors at it (`fresh`), over chunks of rows on the
available cores. Theorem 1 of arXiv 2506.18656 and sections 4 to 7 of the theory page.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, gram_matrix, plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.bulk import ACCEPTED, solve_bulk
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.fresh import Errors, Rows, pivoted_errors
from resolvent.equivalents.spikes import Gram
from resolvent.equivalents.stages import DIRECT, Stages

ROWS_AT_ONCE = 16384  # keeps a chunk near the cache, and the cost of its last few rows to converge small
COMPILED_ROWS = 4_000_000  # from here on the seconds that loading the compiled loops takes are won back
WARM_ROWS = 1_000  # the same once they are loaded
CERTAIN = 1e-6  # a refinement below this leaves about its square as error


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
    compiled: bool | None = None,
) -> AttentionErrors:
    """Limits of the training and test error of a ridge probe on attention features.

    The probe is w = (HH' + n ridge)^-1 H t on H = X (K + skip I), with p/n -> ratio, tokens X = mu y' + Z and
    K = f(X' (I + w_K w_Q') X/sqrt p)/sqrt p. Everything broadcasts; gram counts as one value per (..., 3, 3).

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
    compiled
        Run the loops compiled by Numba (the `fast` extra): the same numbers, sooner. Loading them takes
        a second, compiling them the first time on a machine about ten. Where Numba is installed None does
        so for 4 million settings or more, and for a thousand or more once they are loaded.

    Returns
    -------
    AttentionErrors
        Arrays of the broadcast shape, or plain numbers. `t`, `u`, `alpha` solve the bulk, `m` = tr Q/n.
        Test errors are on a fresh token whose target carries the same noise.

    Raises
    ------
    ValueError
        For an argument that is not finite, out of range or of the wrong shape, in one line naming it.
    ModuleNotFoundError
        For compiled=True without Numba.

    Source: Theorem 1 of arXiv 2506.18656 for the training error with balanced labels and centred f; theory
    page, sections 4 to 7, for the rest.

    Examples
    --------
    >>> e = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=[[1.0] * 3] * 3)
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
    rows = Rows(**{name: np.broadcast_to(value, shape).reshape(-1) for name, value in args.items()})
    flat = np.broadcast_to(grams, (*shape, 3, 3)).reshape(-1, 3, 3)
    result = _in_chunks(rows, flat, _stages(compiled, flat.shape[0]))
    return AttentionErrors(*(plain(value.reshape(shape)) for value in result))


def _stages(compiled: bool | None, size: int) -> Stages:
    """NumPy or the compiled loops; see `attention_errors`."""
    if compiled is None:
        loaded = "resolvent.equivalents.compiled" in sys.modules
        enough = size >= (WARM_ROWS if loaded else COMPILED_ROWS)
        compiled = enough and importlib.util.find_spec("numba") is not None
    if not compiled:
        return DIRECT
    try:
        from resolvent.equivalents.compiled import LOOPS
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("compiled=True needs Numba: pip install 'resolvent[fast]'") from error
    return LOOPS


def _in_chunks(rows: Rows, gram: Array, stages: Stages) -> tuple[NDArray[Any], ...]:
    """Solve chunks of rows on the available cores; the split does not depend on their number."""
    size = gram.shape[0]
    result: tuple[NDArray[Any], ...] = (
        *np.empty((7, size)),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.bool_),
    )

    def chunk(start: int) -> None:
        part = slice(start, start + ROWS_AT_ONCE)
        some = Rows(*(v[part].copy() for v in rows))
        inner = Gram(*(0.5 * (gram[part, i, j] + gram[part, j, i]) for i in range(3) for j in range(i, 3)))
        for whole, value in zip(result, _attention_errors(some, inner, stages), strict=True):
            whole[part] = value

    starts = range(0, size, ROWS_AT_ONCE)
    workers = min(len(starts), _cores())
    if workers <= 1:
        for start in starts:
            chunk(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in pool.map(chunk, starts):
                del done  # raises what the chunk raised
    return result


def _cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _attention_errors(rows: Rows, gram: Gram, stages: Stages) -> tuple[NDArray[Any], ...]:
    """`attention_errors` on flat arrays: the fields of its result."""
    with np.errstate(all="ignore"):
        ridgeless = rows.ridge == 0.0
        if ridgeless.any():
            rows = rows._replace(ridge=np.where(ridgeless, _vanishing_ridge(rows), rows.ridge))
        bulk = solve_bulk(rows.ratio, rows.ridge, rows.a1, rows.sigma2, rows.shift + rows.skip, stages)
        at = _certain(rows, gram, bulk.noise, stages)
        train = np.where(ridgeless & (rows.ratio >= 1.0), 0.0, at.train)
        test = np.where(ridgeless & (at.test > 1e9), np.inf, at.test)
        u = np.sqrt(rows.sigma2 / rows.ratio) * bulk.noise.V
        converged = (bulk.residual <= ACCEPTED) & np.isfinite(train) & ~np.isnan(test)
    values = (train, test, at.t, u, bulk.noise.alpha, at.m)
    known = (np.where(converged, value, np.nan) for value in values)
    return (*known, bulk.residual, bulk.iterations, converged)


def _certain(rows: Rows, gram: Gram, noise: Noise, stages: Stages) -> Errors:
    """The errors, with pivoting where elimination without it leaves doubt."""
    values = stages.errors(rows, gram, noise)
    doubtful = np.flatnonzero(~(values.doubt <= CERTAIN))
    if doubtful.size:
        some = (
            Rows(*(v[doubtful] for v in rows)),
            Gram(*(v[doubtful] for v in gram)),
            Noise(*(v[doubtful] for v in noise)),
        )
        for whole, value in zip(values, pivoted_errors(*some), strict=True):
            whole[doubtful] = value
    return values


def _vanishing_ridge(rows: Rows) -> Array:
    """A ridge small enough to stand for zero in double precision.

    With a skip connection the variance on a fresh token is a difference that loses digits like 1/ridge, so
    the ridge stays where bias and rounding are both near 1e-8.
    """
    scale = rows.sigma2 + rows.a1**2 + (rows.shift + rows.skip) ** 2
    return np.where(rows.skip == 0.0, 1e-30, 1e-8) * np.where(scale > 0.0, scale, 1.0)
