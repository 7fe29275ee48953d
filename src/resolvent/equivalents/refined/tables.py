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
from resolvent.equivalents.refined.score_law import ScoreLaw
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


def tables(
    classes: Classes, f: Nonlinearity | Softmax, skip: float, keep_diagonal: bool, paired: bool = True
) -> Tables:
    """The tables of f; skip adds to the diagonal, and so does f(S_ii)/sqrt p with keep_diagonal.

    Where no score is paired with its transpose, as for fresh tokens, kap is of no use and not computed.
    """
    m0, m1, v, kap = softmax_moments(classes, f) if isinstance(f, Softmax) else _moments(classes, f, paired)
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


def _moments(classes: Classes, f: Nonlinearity, paired: bool) -> tuple[Array, Array, Array, Array]:
    delta, rests = classes.scores(), classes.rests()
    symmetric = np.abs(delta - delta.T).max(initial=0.0) <= 1e-12 * np.abs(delta).max(initial=0.0)
    variance = rests.spread() ** 2
    m0, m1, second = _means(f, delta, rests, symmetric)
    m1 /= variance
    v = np.maximum(second - m0**2 - m1**2 * variance, 0.0)
    if symmetric or not paired:
        return m0, m1, v, v
    cross = np.diag(np.diag(second))
    row, column = np.triu_indices(delta.shape[0], 1)
    for begin in range(0, row.size, PAIRS_AT_ONCE):
        pair = row[begin : begin + PAIRS_AT_ONCE], column[begin : begin + PAIRS_AT_ONCE]
        for share, centre, width in rests.at(*pair):
            cross[pair] += share * _cross_moment(f, delta[pair] + centre, delta.T[pair] + centre, width)
    cross = np.triu(cross) + np.triu(cross, 1).T
    return m0, m1, v, cross - m0 * m0.T - m1 * m1.T * variance


def _means(f: Nonlinearity, delta: Array, rests: ScoreLaw, symmetric: bool) -> Array:
    """E f, E[x f] and E f^2 (3, A, A), in half of the pairs where the other half has the same."""
    pair = np.triu_indices(delta.shape[0]) if symmetric else np.indices(delta.shape).reshape(2, -1)
    row, column = pair
    values = np.zeros((3, row.size))
    for share, centre, width in rests.at(row, column):
        mean, slope, square = pair_moments(f, delta[row, column] + centre, width)
        values += share * np.stack([mean, centre * mean + width**2 * slope, square])
    out = np.empty((3, *delta.shape))
    out[:, row, column] = values
    if symmetric:
        out[:, column, row] = values
    return out


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
