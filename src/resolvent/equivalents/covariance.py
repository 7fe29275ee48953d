"""Noise of a given covariance: its eigenvalues, and linear regression on such tokens.

Whitened, Z = Sigma^1/2 W, the pencil of linear regression is L = ridge + c Ws'(Sigma) Ws: the probe of
`probe` without heads, on one eigenspace of Sigma per level. Theory page, sections 6 and 8b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import checked, numbers, require
from resolvent.equivalents.averages import Array
from resolvent.equivalents.features import bulk_only
from resolvent.equivalents.probe import Heads, ProbeErrors, Target, probe_errors


def covariance_linear_errors(
    *,
    ratio: float,
    ridge: ArrayLike,
    snr: float,
    levels: ArrayLike,
    shares: ArrayLike,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
) -> ProbeErrors:
    """Limits of ridge regression on the tokens themselves, for noise of a given covariance.

    levels and shares as in `heads_errors`; snr = |mu|^2, mu spread evenly over the eigenvectors. The probe
    without heads: L = ridge + X'X/n. Raises ValueError for an argument out of range.

    Source: Proposition 2 of arXiv 2506.18656 for white noise; theory page, sections 6 and 8b.

    >>> from resolvent.equivalents import linear_errors
    >>> white = linear_errors(ratio=0.5, ridge=0.1, snr=2.0)
    >>> same = covariance_linear_errors(ratio=0.5, ridge=0.1, snr=2.0, levels=1.0, shares=1.0)
    >>> bool(abs(white.train - same.train) < 1e-12 and abs(white.test - same.test) < 1e-12)
    True
    """
    level, share = spectrum_of_covariance(levels, shares)
    args = checked(ratio=ratio, snr=snr, label_mean=label_mean, target_overlap=target_overlap)
    c = float(args["ratio"])
    none = np.empty(0)
    square = np.empty((0, 0))
    heads = Heads(square, square, none, none, none, none, square, np.empty(0, dtype=bool))
    features = bulk_only((c * level)[:, None, None], share, float(args["snr"]) * share / level)
    target = Target(float(args["label_mean"]), float(args["target_overlap"]))
    return probe_errors(c, checked(ridge=ridge)["ridge"], heads, target, features)


def spectrum_of_covariance(levels: ArrayLike, shares: ArrayLike) -> tuple[Array, Array]:
    """Positive eigenvalues of mean 1 with shares that sum to 1, or ValueError."""
    level, share = (np.atleast_1d(numbers(name, v)) for name, v in (("levels", levels), ("shares", shares)))
    if level.ndim != 1 or level.shape != share.shape:
        raise ValueError(
            f"levels and shares must be lists of one length, got {level.shape} and {share.shape}"
        )
    require("levels", level, level > 0.0, "positive")
    require("shares", share, share > 0.0, "positive")
    for name, value in (("shares must sum to 1", share.sum()), ("levels must have mean 1", share @ level)):
        if abs(value - 1.0) > 1e-6:
            raise ValueError(f"{name}, got {value:.6g}")
    return level, share
