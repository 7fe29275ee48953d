"""Whitening by a background covariance C = D R D, D the standard deviations and R the correlations:

    W = R^(-1/2) D^(-1),    W C W' = I

C comes from tokens outside the labelled set, so W does not look at the labels. (The background mean drops
out: the class midpoint is removed afterwards.) Any other W with W C W' = I differs by a rotation, which the
model does not see; this one does not depend on the units of the dimensions, and neither does its guard.

Guard: an eigenvalue of R below 1e-7 of the largest is rounding in single precision. It is raised to that
floor and a note says so; if the tokens vary along such a direction, C does not describe them and whitening
is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-7
NEGATIVE = -1e-3  # below this share of the largest eigenvalue, C is no covariance: half precision leaves less
TOLERATED = 100.0  # token variance along a raised direction, in units of the floor


def inverse_root(
    cov: NDArray[np.float64], tokens: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The p x p matrix W for a covariance with positive diagonal, and notes on what was guarded.

    Raises ValueError if C has a negative eigenvalue, or is singular along a direction in which tokens vary.
    """
    deviation = np.sqrt(np.diagonal(cov))
    values, vectors = np.linalg.eigh(cov / np.outer(deviation, deviation))
    if values[0] < NEGATIVE * values[-1]:
        raise ValueError(
            f"background_cov is no covariance: the correlations have eigenvalues from {values[0]:.3g} "
            f"to {values[-1]:.3g}"
        )
    floor = FLOOR * values[-1]
    whitener = (vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T / deviation
    low = vectors[:, values < floor]
    if not low.shape[1]:
        return whitener, ()
    if ((low.T / deviation) @ tokens).var(axis=1).max() > TOLERATED * floor:
        raise ValueError(
            f"background_cov is singular along {low.shape[1]} of {values.size} directions in which tokens "
            "vary; take more background tokens than dimensions, or whiten='none'"
        )
    return whitener, (
        f"{low.shape[1]} of {values.size} background correlation eigenvalues were below {FLOOR:g} of the "
        "largest and raised to it.",
    )
