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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, gram_matrix, numbers, plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.bulk import ACCEPTED, solve_bulk
from resolvent.equivalents.equations import Noise
from resolvent.equivalents.fresh import Errors, Rows, pivoted_errors
from resolvent.equivalents.spikes import Gram
from resolvent.equivalents.stages import DIRECT, Stages

ROWS_AT_ONCE = 16384  # keeps a chunk near the cache, and the cost of its last few rows to converge small
COMPILED_ROWS = 4_000_000  # from here on the seconds that loading the compiled loops takes are won back
WARM_ROWS = 1_000  # the same once they are loaded
CERTAIN = 1e-9  # refinements above this come from rows that need pivoting or more digits
ACCEPTED_DEFECT = 1e-3  # of the identity that sets the size of the derivatives
INFINITE = 1e12  # the mean_spike that stands for the fixed column sums of softmax
ROUNDING = 1e-9  # by which a training error may exceed one


@dataclass(frozen=True)
class AttentionErrors:
    """Limits of the attention probe, with the bulk's scalars and the certificate of the fixed point.

    `residual` is the largest of the three equations' relative residuals. `converged` says that it is below
    1e-9, that rounding left the errors possible (train in [0, 1], test not negative), and that the
    derivatives satisfy t'Qt/n = ridge t'Q^2 t/n + |w|^2 to 1e-3 before they are scaled to do so exactly.
    Elsewhere every value is NaN.
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
    intercept: ArrayLike = False,
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
    intercept
        True where the columns of K have a fixed sum (softmax: `softmax_coefficients`), which acts like a free
        intercept: mean_spike is infinite then, and what is given for it and a2 has no effect.
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
    ValueError, TypeError
        For an argument that is not finite, out of range, of the wrong shape or not a real number, in one
        line naming it.
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
    free = np.asarray(intercept, dtype=bool)
    args = checked(
        ratio=ratio,
        ridge=ridge,
        a1=a1,
        sigma2=sigma2,
        shift=shift,
        skip=skip,
        mean_spike=np.where(free, INFINITE, numbers("mean_spike", mean_spike)),
        a2=np.where(free, 0.0, numbers("a2", a2)),
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


class _Values(NamedTuple):
    """The fields of `AttentionErrors` as the solver leaves them, and the defect of the derivatives."""

    train: Array
    test: Array
    t: Array
    u: Array
    alpha: Array
    m: Array
    residual: Array
    iterations: NDArray[np.int64]
    defect: Array


def _attention_errors(rows: Rows, gram: Gram, stages: Stages) -> tuple[NDArray[Any], ...]:
    """`attention_errors` on flat arrays: the fields of its result."""
    zero = np.flatnonzero(rows.ridge == 0.0)
    values = _at_positive_ridge(
        rows._replace(ridge=np.where(rows.ridge > 0.0, rows.ridge, 1.0)), gram, stages
    )
    if zero.size:
        limit = _ridgeless(Rows(*(v[zero] for v in rows)), Gram(*(v[zero] for v in gram)), stages)
        for whole, value in zip(values, limit, strict=True):
            whole[zero] = value
    train, test = values.train, values.test
    possible = (train >= 0.0) & (train <= 1.0 + ROUNDING) & (test >= 0.0)
    converged = possible & (values.residual <= ACCEPTED) & (values.defect <= ACCEPTED_DEFECT)
    known = (np.where(converged, value, np.nan) for value in (np.minimum(train, 1.0), *values[1:6]))
    return (*known, values.residual, values.iterations, converged)


def _ridgeless(rows: Rows, gram: Gram, stages: Stages) -> _Values:
    """Values at a vanishing ridge; the test error is infinite where it still grows as the ridge falls on.

    It grows at least like ridge^(-1/3) where it diverges, and the adjoint system is singular only there.
    """
    scale = rows.sigma2 + rows.a1**2 + (rows.shift + rows.skip) ** 2
    scale = np.where(scale > 0.0, scale, 1.0)
    coarse = _at_positive_ridge(rows._replace(ridge=1e-12 * scale), gram, stages)
    fine = _at_positive_ridge(rows._replace(ridge=1e-16 * scale), gram, stages)
    with np.errstate(invalid="ignore"):
        diverges = (fine.test > 3.0 * coarse.test) | (fine.defect > ACCEPTED_DEFECT)
    return fine._replace(
        test=np.where(diverges, np.inf, fine.test),
        train=np.where((rows.ratio >= 1.0) & ~_empty(rows), 0.0, fine.train),
        defect=np.zeros_like(scale),
    )


def _empty(rows: Rows) -> NDArray[np.bool_]:
    """Where K has no bulk, so that the averages have no cubic."""
    nothing: NDArray[np.bool_] = (rows.a1 == 0.0) & (rows.sigma2 == 0.0) & (rows.shift + rows.skip == 0.0)
    return nothing


def _at_positive_ridge(rows: Rows, gram: Gram, stages: Stages) -> _Values:
    sigma2 = np.where(_empty(rows), 1e-20 * rows.ridge, rows.sigma2)  # too little to show
    c = rows.ratio
    with np.errstate(all="ignore"):
        bulk = solve_bulk(c, rows.ridge, rows.a1, sigma2, rows.shift + rows.skip, stages)
        at = _certain(rows._replace(sigma2=sigma2), gram, bulk.noise, stages)
        t, u = at.m * rows.sigma2 / c, np.sqrt(rows.sigma2 / c) * bulk.noise.V
    return _Values(at.train, at.test, t, u, bulk.noise.alpha, at.m, bulk.residual, bulk.iterations, at.defect)


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
