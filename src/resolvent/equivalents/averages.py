"""Marchenko-Pastur averages over a cubic denominator, in closed form and in real arithmetic.

Glossary: g an eigenvalue of G = Z'Z/p (ratio n/p, atom 1 - c at 0 when c < 1), b(g) = a1 g + b0 and

    Delta(g) = alpha + c g (x + b(g)^2),   alpha, x >= 0,

which has a negative real root g1 = -rho and a pair g2, g3. Writing h(r) = E[g/(g - r)], the small root of
h + c/h = 1 + c - c r, divided differences of the inverse function r(h) give E[g P(g)/Delta(g)] as

    h[r1, r2, r3] = c^3 h1 h2 h3 / ((c - h1 h2)(c - h1 h3)(c - h2 h3)),      h[r2, r3] = c h2 h3 / (c - h2 h3).

Only h1, S = h2 + h3 and P = h2 h3 enter. The last two are real functions of the sum and product of the pair, so
nothing is singular where roots meet and no complex number or branch is met. Parametrised by rho instead of alpha,
no cubic has to be solved either. Theory page, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Averages(NamedTuple):
    """Averages at (rho, b0, x), with the intermediate quantities that their derivatives reuse.

    j0, j1, j2 = E[g b^k / Delta] for k = 0, 1, 2 and i0 = alpha E[1/Delta].
    """

    alpha: Array
    j0: Array
    j1: Array
    j2: Array
    i0: Array
    b1: Array
    pair_product: Array
    root_gap: Array
    h1: Array
    beta: Array
    delta2: Array
    modulus: Array
    P: Array
    S: Array
    gap_pair: Array
    gap_cross: Array


def averages(c: Array, a1: Array, rho: Array, b0: Array, x: Array) -> Averages:
    """E[g b^k/Delta] (k = 0, 1, 2) and alpha E[1/Delta] with Delta's real root at -rho.

    P and S are h2 h3/a1^2 and (h2 + h3)/a1, which stay finite as a1 -> 0.
    """
    y1 = -a1 * rho
    b1 = b0 + y1
    pair_product = b1 * b1 + x  # a1^2 g2 g3
    alpha = c * rho * pair_product

    below = 1.0 - c - c * rho
    root_gap = np.sqrt((1.0 - c) ** 2 + c * rho * (2.0 * (1.0 + c) + c * rho))  # c/h1 - h1
    h1 = 2.0 * c / (1.0 + c + c * rho + root_gap)
    large = 0.5 * (np.abs(below) + root_gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        one_minus_h1 = np.where(below > 0.0, large, c * rho / large)
        c_minus_h1 = h1 * np.where(below > 0.0, c * rho / large, large)

    # (beta +- i delta)/a1 are the two values of 1 + c - c r; Q - 2c = (c - h2 h3)^2 / (h2 h3) without cancellation.
    ca = c * a1 * a1
    beta = a1 * (1.0 + c) + c * (b0 - 0.5 * a1 * rho)
    delta2 = c * c * (x + b0 * y1 + 0.75 * y1 * y1)
    beta2 = beta * beta
    F = beta2 - delta2 - 4.0 * ca
    cross = 2.0 * beta2 * delta2
    modulus = np.sqrt(F * F + 2.0 * cross)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = delta2 + np.where(F < 0.0, cross / (modulus - F), 0.5 * (F + modulus))
        q = np.maximum(q, 0.0)
        P = 2.0 * c * c / (q + 2.0 * ca + np.sqrt(q * (q + 4.0 * ca)))
        product = a1 * a1 * P
        S = 2.0 * beta * P / (product + c)
        total = a1 * S
        gap_pair = np.sqrt(P * q)  # c - h2 h3
        gap_cross = c * c - c * h1 * total + h1 * h1 * product  # (c - h1 h2)(c - h1 h3)
        denominator = gap_pair * gap_cross
        j0 = c * c * h1 * P / denominator
        kappa = P / gap_pair
        j1 = b1 * j0 + a1 * kappa
        j2 = b1 * b1 * j0 + a1 * (b1 - 0.5 * y1) * kappa + 0.5 * total / c
        # s = E[1/(g - r)] = (h - 1)/r = c h/(c - h); the product s2 s3 in the form that does not cancel.
        s_pair = np.where(
            c <= 1.0, (1.0 - total + product) / pair_product, c * c * P / (c * c - c * total + product)
        )
        i0 = one_minus_h1 * c * pair_product * s_pair * (c * gap_pair + product * c_minus_h1) / denominator
    return Averages(
        alpha,
        j0,
        j1,
        j2,
        i0,
        b1,
        pair_product,
        root_gap,
        h1,
        beta,
        delta2,
        modulus,
        P,
        S,
        gap_pair,
        gap_cross,
    )


class Slopes(NamedTuple):
    """Derivatives of log alpha, j0, j1 and j2 along one direction."""

    log_alpha: Array
    j0: Array
    j1: Array
    j2: Array


def slopes(
    av: Averages, c: Array, a1: Array, rho: Array, drho: Array | float, db0: Array | float, dx: Array | float
) -> Slopes:
    """Derivative of `averages` along (drho, db0, dx), by the chain rule through h1, P and S; drho is d log rho."""
    dy1 = -a1 * rho * drho
    db1 = db0 + dy1
    dh1 = -c * av.h1 / av.root_gap * (rho * drho)
    dbeta = c * (db0 + 0.5 * dy1)
    ddelta2 = c * c * (dx - a1 * rho * db0 + (av.b1 - 0.5 * a1 * rho) * dy1)

    ca = c * a1 * a1
    product = a1 * a1 * av.P
    size = av.beta * av.beta + av.delta2
    dq = (1.0 + (size - 4.0 * ca) / av.modulus) * av.beta * dbeta
    dq += 0.5 * (1.0 + (size + 4.0 * ca) / av.modulus) * ddelta2
    dP = -av.P * av.P / (av.gap_pair * (product + c)) * dq
    dS = (2.0 * av.P * dbeta + 2.0 * c * av.beta / (product + c) * dP) / (product + c)
    dcross = (
        (2.0 * av.h1 * product - c * a1 * av.S) * dh1 - c * av.h1 * a1 * dS + av.h1 * av.h1 * a1 * a1 * dP
    )

    dj0 = av.j0 * (dh1 / av.h1 + dP * c / (av.P * av.gap_pair) - dcross / av.gap_cross)
    kappa = av.P / av.gap_pair
    dkappa = c * dP / (av.gap_pair * av.gap_pair)
    dj1 = db1 * av.j0 + av.b1 * dj0 + a1 * dkappa
    dj2 = 2.0 * av.b1 * db1 * av.j0 + av.b1 * av.b1 * dj0 + 0.5 * a1 * dS / c
    dj2 += a1 * ((db1 - 0.5 * dy1) * kappa + (av.b1 + 0.5 * a1 * rho) * dkappa)
    dlog_alpha = drho + (2.0 * av.b1 * db1 + dx) / av.pair_product
    return Slopes(dlog_alpha, dj0, dj1, dj2)
