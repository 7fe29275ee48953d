"""Moments of f at every pair of classes, interpolated from few exact ones.
 m0, m1 and E f^2 of f(delta + tau xi) are convolutions with a Gaussian of width tau: entire functions of
delta, smooth on the scale tau, and of log tau. So delta is cut into cells four tau wide and tau into half
octaves, and each cell that holds enough pairs gets one tensor Chebyshev grid, on which `Nonlinearity.moments`
integrates f itself. Interpolation is local, so values that range over many orders of magnitude (exp, high
powers) keep their relative accuracy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.nonlinearity import Nonlinearity

CELL = 4.0  # width of a cell in units of the smallest tau
DEGREE = 20  # Chebyshev nodes over a cell
SPREAD_DEGREE = 14  # and over half an octave of tau
FEW = 8  # so many distinct tau or fewer need no interpolation


def pair_moments(f: Nonlinearity, delta: Array, tau: Array) -> tuple[Array, Array, Array]:
    """m0, m1 = E[xi f]/tau and E f^2, in the shape of delta and tau."""
    out = np.empty((3, delta.size))
    flat, spread = delta.ravel(), tau.ravel()
    octave = np.floor(2.0 * np.log2(spread / spread.min()) + 1e-9)
    for part in np.unique(octave):
        members = np.flatnonzero(octave == part)
        out[:, members] = _in_octave(f, flat[members], spread[members])
    m0, m1, second = out.reshape(3, *delta.shape)
    return m0, m1, second


def _in_octave(f: Nonlinearity, delta: Array, tau: Array) -> Array:
    nodes, spread_weights = _spread_nodes(tau)
    cell = np.floor(delta / (CELL * nodes.min()))
    out = np.empty((3, delta.size))
    exact = np.zeros(delta.size, dtype=bool)
    for place in np.unique(cell):
        members = np.flatnonzero(cell == place)
        if members.size <= DEGREE * nodes.size:
            exact[members] = True
            continue
        width = CELL * nodes.min()
        grid = (place + 0.5 * (1.0 + _chebyshev(DEGREE))) * width
        values = np.stack(f.moments(grid[:, None], nodes[None, :]))
        along = _lagrange(_chebyshev(DEGREE), 2.0 * (delta[members] / width - place) - 1.0)
        table = along @ values.transpose(1, 0, 2).reshape(DEGREE, -1)
        out[:, members] = (table.reshape(members.size, 3, -1) @ spread_weights[members][..., None])[..., 0].T
    if exact.any():
        out[:, exact] = _distinct(f, delta[exact], tau[exact])
    return out


def _distinct(f: Nonlinearity, delta: Array, tau: Array) -> Array:
    """Exact moments, once for pairs that repeat."""
    pairs, index = np.unique(np.stack([delta, tau]), axis=1, return_inverse=True)
    return np.stack(f.moments(pairs[0], pairs[1]))[:, index.ravel()]


def _spread_nodes(tau: Array) -> tuple[Array, Array]:
    """Values of tau to compute at, and the weights (pairs, nodes) that interpolate from them."""
    rounded = np.round(tau / tau.max(), 13)
    values, first, index = np.unique(rounded, return_index=True, return_inverse=True)
    if values.size <= FEW:
        return tau[first], np.eye(values.size)[index.ravel()]
    low, high = np.log(tau.min()), np.log(tau.max())
    x = _chebyshev(SPREAD_DEGREE)
    return np.exp(low + 0.5 * (high - low) * (1.0 + x)), _lagrange(
        x, 2.0 * (np.log(tau) - low) / (high - low) - 1.0
    )


def _chebyshev(count: int) -> Array:
    return np.asarray(np.cos(np.pi * (np.arange(count) + 0.5) / count))


def _lagrange(nodes: Array, x: Array) -> Array:
    """Values (points, nodes) at x of the polynomials that are 1 at one Chebyshev node and 0 at the others."""
    count = nodes.size
    degrees: NDArray[np.int64] = np.arange(count)
    basis = np.polynomial.chebyshev.chebvander(x, count - 1) * np.where(degrees == 0, 1.0, 2.0) / count
    return np.asarray(basis @ np.cos(np.pi * degrees[:, None] * (np.arange(count) + 0.5) / count))
