"""Moments of the attention scores between every pair of classes.

With f acting on S = delta + tau xi, written in terms of x = tau xi,

    m0 = E f,   m1 = E[xi f]/tau,   rest = f - m0 - m1 x,   v = E rest^2,   kap_ab = E[rest_ab rest_ba],

where rest_ab and rest_ba see the same xi. Theory page, section 12.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.interpolation import pair_moments
from resolvent.equivalents.refined.softmax import softmax_moments
from resolvent.nonlinearity import Nonlinearity, Softmax

PANELS = np.linspace(-9.0, 9.0, 13)  # of xi, for `_cross_moment`
PANEL_NODES = 8
PAIRS_AT_ONCE = 4096


class Tables(NamedTuple):
    """(A, A) tables m0, m1, v, kap; and diagonal (A,), what K has on its diagonal beyond them."""

    m0: Array
    m1: Array
    v: Array
    kap: Array
    diagonal: Array


def tables(classes: Classes, f: Nonlinearity | Softmax, skip: float, keep_diagonal: bool) -> Tables:
    """The tables of f; skip adds to the diagonal, and so does f(S_ii)/sqrt p with keep_diagonal."""
    m0, m1, v, kap = softmax_moments(classes, f) if isinstance(f, Softmax) else _moments(classes, f)
    diagonal = skip - np.diag(m1) * classes.norm**2 - np.diag(m0) / np.sqrt(classes.p)
    if keep_diagonal:
        diagonal += _self_attention(classes, f)
    return Tables(m0, m1, v, kap, diagonal)


def _self_attention(classes: Classes, f: Nonlinearity | Softmax) -> Array:
    """f(S_ii)/sqrt p, which the class determines."""
    if isinstance(f, Softmax):
        raise ValueError(
            "keep_diagonal must be off for a softmax: a token's own score would take nearly all the weight"
        )
    root = np.sqrt(classes.p)
    values = f(np.diag(classes.scores()) + root * classes.norm**2)
    if not np.isfinite(values).all():
        raise ValueError(f"the diagonal cannot be kept: {f.name} overflows at a token's score with itself")
    return np.asarray(values / root)


def _moments(classes: Classes, f: Nonlinearity) -> tuple[Array, Array, Array, Array]:
    delta, tau = classes.scores(), classes.spreads()
    m0, m1, second = pair_moments(f, delta, tau)
    v = np.maximum(second - m0**2 - (m1 * tau) ** 2, 0.0)
    if np.abs(delta - delta.T).max(initial=0.0) <= 1e-12 * np.abs(delta).max(initial=0.0):
        return m0, m1, v, v
    kap = np.diag(np.diag(v))
    row, column = np.triu_indices(delta.shape[0], 1)
    for begin in range(0, row.size, PAIRS_AT_ONCE):
        pair = row[begin : begin + PAIRS_AT_ONCE], column[begin : begin + PAIRS_AT_ONCE]
        cross = _cross_moment(f, delta[pair], delta.T[pair], tau[pair])
        kap[pair] = cross - (m0[pair] * m0.T[pair] + m1[pair] * m1.T[pair] * tau[pair] ** 2)
    return m0, m1, v, np.triu(kap) + np.triu(kap, 1).T


def _cross_moment(f: Nonlinearity, one: Array, other: Array, tau: Array) -> Array:
    """E[f(one + tau xi) f(other + tau xi)] by Gauss-Legendre panels, split where either factor breaks."""
    breaks = [(b - shift) / tau for b in f.breakpoints or () for shift in (one, other)]
    grid = np.broadcast_to(PANELS, (one.size, PANELS.size))
    edges = np.sort(
        np.concatenate([grid, *(np.clip(b, PANELS[0], PANELS[-1])[:, None] for b in breaks)], axis=1), axis=1
    )
    x, weight = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = 0.5 * np.diff(edges)[..., None]
    xi = edges[:, :-1, None] + half * (1.0 + x)
    density = weight * half * np.exp(-0.5 * xi**2) / np.sqrt(2.0 * np.pi)
    step = tau[:, None, None] * xi
    return np.asarray(
        (density * f(one[:, None, None] + step) * f(other[:, None, None] + step)).sum(axis=(1, 2))
    )
