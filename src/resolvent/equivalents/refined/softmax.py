"""Softmax attention between classes, exact in the number of tokens.
 Column j of K = (n/sqrt p) softmax(beta S), the self-score masked, has the entries f_ij = G_ij/(mean of G_lj
over l) with G = exp(beta S). Given token j, of class b, the other scores are independent, and 1/s = int_0^inf
e^(-t s) dt gives

    E[f | xi] = G int_0^inf e^(-t G/n) L_b(t)^(n-2) dt,
    E[f^2 | xi] = G^2 int_0^inf t e^(-t G/n) L_b(t)^(n-2) dt,
    L_b(t) = sum_c pi_c E e^(-t G_cb/n),
 where G is the score's own weight at delta_ab + tau_ab xi. As n grows, the column is divided by its
conditional mean Z_b = sum_c pi_c E G_cb and the moments are those of exp(beta S)/Z_b; the tail of the
exponential makes that limit a slow one (theory page, section 8a; the form at finite n is an extension of it).
The xi integrals are Gauss-Hermite, those over t Gauss-Laguerre.
"""

from __future__ import annotations

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.nonlinearity.softmax import Softmax

HERMITE = 40
LAGUERRE = 40
COLUMNS_AT_ONCE = 16


def softmax_moments(classes: Classes, f: Softmax) -> tuple[Array, Array, Array, Array]:
    """m0, m1, v and kap (A, A) of the entries sqrt p K_ij."""
    delta, tau = classes.scores(), classes.spreads()
    xi, share = np.polynomial.hermite_e.hermegauss(HERMITE)
    share = share / share.sum()
    first, second = _given_xi(classes, f.beta * delta, f.beta * tau, xi, share)
    m0, m1 = first @ share, first @ (share * xi) / tau
    v = np.maximum(second @ share - m0**2 - (m1 * tau) ** 2, 0.0)
    cross = np.einsum("abk,bak,k->ab", first, first, share)
    return m0, m1, v, cross - m0 * m0.T - m1 * m1.T * tau**2


def _given_xi(classes: Classes, shift: Array, spread: Array, xi: Array, share: Array) -> tuple[Array, Array]:
    """E[f | xi] and E[f^2 | xi], both (A, A, xi)."""
    log_mean = shift + 0.5 * spread**2
    peak = log_mean.max(axis=0)
    log_normaliser = peak + np.log(classes.weight @ np.exp(log_mean - peak))
    G = np.exp(shift[..., None] + spread[..., None] * xi - log_normaliser[:, None])
    t, weight = np.polynomial.laguerre.laggauss(LAGUERRE)
    first, second = np.empty_like(G), np.empty_like(G)
    for begin in range(0, classes.weight.size, COLUMNS_AT_ONCE):
        part = slice(begin, begin + COLUMNS_AT_ONCE)
        below_one = np.expm1(-G[:, part, :, None] * (t / classes.n))
        log_mean_weight = np.log1p(np.einsum("a,abkt,k->bt", classes.weight, below_one, share))
        others = weight * np.exp((classes.n - 2.0) * log_mean_weight + t)
        first[:, part] = G[:, part] * np.einsum("abkt,bt->abk", 1.0 + below_one, others)
        second[:, part] = G[:, part] ** 2 * np.einsum("abkt,bt->abk", 1.0 + below_one, others * t)
    return first, second
