"""Moments of the attention scores between every pair of classes.

With f acting on S = delta + tau xi, written in terms of x = tau xi,

    m0 = E f,   m1 = E[xi f]/tau,   rest = f - m0 - m1 x,   v = E rest^2,   kap_ab = E[rest_ab rest_ba],

where rest_ab and rest_ba see the same xi. The softmax of a column of class b divides exp(beta S) by its conditional
normaliser Z_b = sum_a pi_a E exp(beta S_ab), so that its moments are closed forms. Theory page, sections 8a and 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.interpolation import pair_moments
from resolvent.nonlinearity import Nonlinearity

REACH = 9  # half-width, in standard deviations, of the window of `_cross_moment`
PANEL_NODES = 10


class Tables(NamedTuple):
    """(A, A) tables m0, m1, v, kap; and diagonal (A,), what K has on its diagonal beyond them."""

    m0: Array
    m1: Array
    v: Array
    kap: Array
    diagonal: Array


@dataclass(frozen=True)
class Softmax:
    """Column-normalised softmax of beta S with the self-score masked, K = (n/sqrt p) softmax(beta S)."""

    beta: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.beta) and self.beta > 0.0):
            raise ValueError(f"beta must be positive, got {self.beta:g}")


def tables(classes: Classes, f: Nonlinearity | Softmax, skip: float, keep_diagonal: bool) -> Tables:
    """The tables of f; a residual connection adds skip to the diagonal, keep_diagonal the self-score f(S_ii)/sqrt p."""
    delta, tau = classes.scores(), classes.spreads()
    moments = _softmax if isinstance(f, Softmax) else _entrywise
    m0, m1, v, kap = moments(classes, f, delta, tau)  # type: ignore[arg-type, operator]
    root = np.sqrt(classes.p)
    diagonal = skip - np.diag(m1) * classes.norm**2 - np.diag(m0) / root
    if keep_diagonal:
        diagonal += _self_attention(classes, f, np.diag(delta) + root * classes.norm**2) / root
    return Tables(m0, m1, v, kap, diagonal)


def _self_attention(classes: Classes, f: Nonlinearity | Softmax, scores: Array) -> Array:
    if isinstance(f, Softmax):
        raise ValueError("keep_diagonal must be off for a softmax: its own score would take nearly all the weight")
    values = f(scores)
    if not np.isfinite(values).all():
        raise ValueError(f"the diagonal cannot be kept: {f.name} overflows at a token's score with itself")
    return values


def _softmax(classes: Classes, f: Softmax, delta: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
    x, power = f.beta * delta, (f.beta * tau) ** 2
    peak = (x + 0.5 * power).max(axis=0)
    log_normaliser = peak + np.log(classes.weight @ np.exp(x + 0.5 * power - peak))
    m0 = np.exp(x + 0.5 * power - log_normaliser)
    growth = np.expm1(power) - power
    return m0, f.beta * m0, m0**2 * growth, m0 * m0.T * growth


def _entrywise(_: Classes, f: Nonlinearity, delta: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
    m0, m1, second = pair_moments(f, delta, tau)
    v = np.maximum(second - m0**2 - (m1 * tau) ** 2, 0.0)
    if np.abs(delta - delta.T).max(initial=0.0) <= 1e-12 * np.abs(delta).max(initial=0.0):
        return m0, m1, v, v
    above = np.triu_indices(delta.shape[0], 1)
    kap = np.diag(np.diag(v))
    kap[above] = _cross_moment(f, delta[above], delta.T[above], tau[above])
    kap[above] -= (m0 * m0.T + m1 * m1.T * tau**2)[above]
    return m0, m1, v, np.triu(kap) + np.triu(kap, 1).T


def _cross_moment(f: Nonlinearity, one: Array, other: Array, tau: Array) -> Array:
    """E[f(one + tau xi) f(other + tau xi)] by Gauss-Legendre panels, split where either factor breaks."""
    breaks = [(b - shift) / tau for b in f.breakpoints or () for shift in (one, other)]
    grid = np.broadcast_to(np.arange(-REACH, REACH + 1.0), (one.size, 2 * REACH + 1))
    inner = np.clip(np.stack(breaks, axis=-1), -REACH, REACH) if breaks else np.empty((one.size, 0))
    edges = np.sort(np.concatenate([grid, inner], axis=1), axis=1)
    x, weight = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = 0.5 * np.diff(edges)[..., None]
    xi = edges[:, :-1, None] + half * (1.0 + x)
    density = weight * half * np.exp(-0.5 * xi**2) / np.sqrt(2.0 * np.pi)
    step = tau[:, None, None] * xi
    return np.asarray((density * f(one[:, None, None] + step) * f(other[:, None, None] + step)).sum(axis=(1, 2)))
