"""The best ridge over a plane of settings: searched on a coarse grid, interpolated where it is smooth.

Grids are nested, each twice as fine as the one before. A new point takes the ridge that the polynomial
through its nearest 4 x 4 points of the coarser grid says, if that held at the points which were new there;
elsewhere (kinks, jumps between two minima, ends at ridge 0 or infinity) it is searched for. On a smooth
surface each halving divides the error by 16, and only the two coarsest grids are searched. The error that is
kept, d decades of the ridge, adds of order d^2 to the least error. (Deslauriers and Dubuc, Constructive
Approximation 5, 1989; the details decide as in Donoho, Interpolating wavelet transforms, 1992.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resolvent.phase.best import Error, best_ridge
from resolvent.phase.minimum import Rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

COARSEST = 24  # at least so many points a side, or all
STENCIL = 4  # points a side that one is interpolated from
TOLERANCE = 3e-4  # decades, on a detail; the points interpolated from there err by a sixteenth


def best_ridges(test_error: Error, shape: tuple[int, int], *, ridgeless: bool = True) -> Array:
    """The ridge of the least test_error(ridge, rows) over a plane; row y nx + x is the point (y, x)."""
    up, across = (_grids(size, max(map(_halvings, shape))) for size in shape)

    def searched(rows: Rows) -> Array:
        def error(ridge: Array, part: Rows) -> Array:
            return test_error(ridge, rows[part])

        with np.errstate(divide="ignore"):
            return np.log10(best_ridge(error, rows.size, ridgeless=ridgeless).ridge)

    power = searched(np.add.outer(up[0] * shape[1], across[0]).ravel()).reshape(up[0].size, across[0].size)
    rough = np.ones(power.shape, dtype=bool)
    for coarse_y, y, coarse_x, x in zip(up, up[1:], across, across[1:], strict=False):
        rows = np.add.outer(y * shape[1], x)
        new = ~np.logical_and.outer(np.isin(y, coarse_y), np.isin(x, coarse_x))
        weights = _weights(coarse_y, y), _weights(coarse_x, x)
        guess, doubtful = _interpolated(power, weights), _touched(rough, weights) & new
        power = guess.copy()
        power[doubtful] = searched(rows[doubtful])
        with np.errstate(invalid="ignore"):
            rough = doubtful & (power != guess) & ~(np.abs(power - guess) <= TOLERANCE)
    return 10.0**power


def _halvings(size: int) -> int:
    """How often a side can be thinned to its half."""
    return max(0, int(np.log2(max(size - 1, 1) / (COARSEST - 1))))


def _grids(size: int, count: int) -> list[NDArray[np.intp]]:
    """Indices of nested grids, coarsest first, each with both ends."""
    steps = 2 ** np.minimum(np.arange(count, -1, -1), _halvings(size))
    return [np.unique(np.append(np.arange(0, size, step), size - 1)) for step in steps]


def _weights(nodes: NDArray[np.intp], points: NDArray[np.intp]) -> Array:
    """Lagrange weights (points x nodes) of each point's nearest nodes, in a smooth index."""
    size = min(STENCIL, nodes.size)
    first = np.clip(np.searchsorted(nodes, points, "right") - size // 2, 0, nodes.size - size)
    near = first[:, None] + np.arange(size)
    place = nodes[near].astype(float)
    gaps = place[:, :, None] - place[:, None, :] + np.eye(size)
    reach = points[:, None, None] - place[:, None, :] + np.zeros_like(gaps)
    factors = np.where(np.eye(size, dtype=bool), 1.0, reach / gaps)
    weights = np.zeros((points.size, nodes.size))
    np.put_along_axis(weights, near, factors.prod(axis=2), axis=1)
    return weights


def _interpolated(power: Array, weights: tuple[Array, Array]) -> Array:
    """Powers at the finer points; infinite where all around are so alike, NaN where only some are."""
    finite = np.isfinite(power)
    guess: Array = weights[0] @ np.where(finite, power, 0.0) @ weights[1].T
    if not finite.all():
        guess[_touched(~finite, weights)] = np.nan
        for end in (-np.inf, np.inf):
            guess[~_touched(power != end, weights)] = end
    return guess


def _touched(mask: Mask, weights: tuple[Array, Array]) -> Mask:
    """Which finer points are interpolated from a marked one."""
    up, across = ((side != 0.0).astype(np.float32) for side in weights)
    touched: Mask = up @ mask.astype(np.float32) @ across.T > 0.0
    return touched
