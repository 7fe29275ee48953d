"""Marchenko-Pastur averages over a cubic denominator, in closed form and in real arithmetic.

Glossary: g an eigenvalue of G = Z'Z/p (ratio n/p, atom 1 - c at 0 when c < 1), b(g) = a1 g + b0 and

    Delta(g) = alpha + c g (x + b(g)^2),   alpha, x >= 0,

which has a negative real root g1 = -rho and a pair g2, g3. Writing h(r) = E[g/(g - r)], the small root of
h + c/h = 1 + c - c r, divided differences of the inverse function r(h) give E[g b^k/Delta]:

    h[r1, r2, r3] = c^3 h1 h2 h3 / ((c - h1 h2)(c - h1 h3)(c - h2 h3)),   h[r2, r3] = c h2 h3 / (c - h2 h3).

Only h1, S = h2 + h3 and P = h2 h3 enter. The last two are real functions of the sum and product of the
pair, so nothing is singular where roots meet, and no complex number or branch is met. Parametrised by rho
instead of alpha, no cubic has to be solved either. Theory page, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Averages(NamedTuple):
    """j0, j1, j2 = E[g b^k/Delta] for k = 0, 1, 2, i0 = alpha E[1/Delta], and what their slopes reuse."""

    alpha: Array
    j0: Array
    j1: Array
    j2: Array
    i0: Array
    b1: Array  # b(-rho)
    pair: Array  # a1^2 g2 g3
    root: Array  # c/h1 - h1
    h1: Array
    beta: Array  # (beta +- i delta)/a1 = 1 + c - c r at the pair
    delta2: Array
    modulus: Array
    P: Array  # h2 h3/a1^2
    S: Array  # (h2 + h3)/a1
    gap: Array  # c - h2 h3
    cross: Array  # (c - h1 h2)(c - h1 h3)


def averages(c: Array, a1: Array, rho: Array, b0: Array, x: Array) -> Averages:
    """E[g b^k/Delta] (k = 0, 1, 2) and alpha E[1/Delta] where Delta's real root is -rho.

    P and S are scaled by a1 so that they stay finite as a1 -> 0. Rows that overflow give NaN.
    """
    y1 = -a1 * rho
    b1 = b0 + y1
    pair = b1 * b1 + x
    alpha = c * rho * pair

    below = 1.0 - c - c * rho
    root = np.sqrt((1.0 - c) ** 2 + c * rho * (2.0 * (1.0 + c) + c * rho))
    h1 = 2.0 * c / (1.0 + c + c * rho + root)
    larger = 0.5 * (np.abs(below) + root)  # the root of v^2 - below v = c rho that does not cancel
    smaller = c * rho / larger
    one_minus_h1 = np.where(below > 0.0, larger, smaller)
    c_minus_h1 = h1 * np.where(below > 0.0, smaller, larger)

    # q = a1^2 (Q - 2c) for Q = P + c^2/P, so that c - h2 h3 = sqrt(P q) does not cancel where P nears c
    ca = c * a1 * a1
    beta = a1 * (1.0 + c) + c * (b0 + 0.5 * y1)
    delta2 = c * c * (x + b0 * y1 + 0.75 * y1 * y1)
    beta2 = beta * beta
    F = beta2 - delta2 - 4.0 * ca
    product = 2.0 * beta2 * delta2
    modulus = np.sqrt(F * F + 2.0 * product)
    q = np.maximum(delta2 + np.where(F < 0.0, product / (modulus - F), 0.5 * (F + modulus)), 0.0)
    P = 2.0 * c * c / (q + 2.0 * ca + np.sqrt(q * (q + 4.0 * ca)))
    h23 = a1 * a1 * P
    S = 2.0 * beta * P / (h23 + c)
    total = a1 * S
    gap = np.sqrt(P * q)
    cross = c * c - c * h1 * total + h1 * h1 * h23

    kappa = P / gap
    j0 = c * c * h1 * kappa / cross
    j1 = b1 * j0 + a1 * kappa
    j2 = b1 * b1 * j0 + a1 * (b1 - 0.5 * y1) * kappa + 0.5 * total / c
    # E[1/(g - r)] = (h - 1)/r = c h/(c - h); its product over the pair, in the form that does not cancel
    s23 = np.where(c <= 1.0, (1.0 - total + h23) / pair, c * c * P / (c * c - c * total + h23))
    i0 = one_minus_h1 * c * pair * s23 * (c * gap + h23 * c_minus_h1) / (gap * cross)
    return Averages(alpha, j0, j1, j2, i0, b1, pair, root, h1, beta, delta2, modulus, P, S, gap, cross)


class Slopes(NamedTuple):
    """Derivatives of log alpha, j0, j1 and j2 along one direction."""

    log_alpha: Array
    j0: Array
    j1: Array
    j2: Array


def slopes(av: Averages, c: Array, a1: Array, rho: Array) -> tuple[Slopes, Slopes, Slopes]:
    """Derivatives of `averages` in log rho, b0 and x, by the chain rule through h1, P, S and b1."""
    y1 = -a1 * rho
    h23 = a1 * a1 * av.P
    size = av.beta * av.beta + av.delta2
    P_q = -av.P * av.P / (av.gap * (h23 + c))
    P_beta = P_q * av.beta * (1.0 + (size - 4.0 * c * a1 * a1) / av.modulus)
    P_delta2 = 0.5 * P_q * (1.0 + (size + 4.0 * c * a1 * a1) / av.modulus)
    S_beta = 2.0 * av.P / (h23 + c)
    S_P = 2.0 * c * av.beta / (h23 + c) ** 2
    share = av.j0 / av.cross
    j0_h1 = av.j0 / av.h1 - share * (2.0 * av.h1 * h23 - c * a1 * av.S)
    j0_P = av.j0 * c / (av.P * av.gap) - share * av.h1 * av.h1 * a1 * a1
    j0_S = share * c * av.h1 * a1
    kappa = av.P / av.gap
    kappa_P = c / (av.gap * av.gap)

    def along(dP: Array, dS: Array, dj0: Array, db1: Array | float, dy1: Array | float) -> tuple[Array, ...]:
        dkappa = kappa_P * dP
        dj1 = db1 * av.j0 + av.b1 * dj0 + a1 * dkappa
        dj2 = 2.0 * av.b1 * db1 * av.j0 + av.b1 * av.b1 * dj0 + 0.5 * a1 * dS / c
        dj2 = dj2 + a1 * ((db1 - 0.5 * dy1) * kappa + (av.b1 - 0.5 * y1) * dkappa)
        return dj0, dj1, dj2

    dP = c * c * P_delta2
    dS = S_P * dP
    in_x = Slopes(1.0 / av.pair, *along(dP, dS, j0_P * dP + j0_S * dS, 0.0, 0.0))

    dP = c * P_beta + c * c * y1 * P_delta2
    dS = S_P * dP + c * S_beta
    in_b0 = Slopes(2.0 * av.b1 / av.pair, *along(dP, dS, j0_P * dP + j0_S * dS, 1.0, 0.0))

    dh1 = -c * rho * av.h1 / av.root
    dP = 0.5 * c * y1 * P_beta + c * c * (av.b1 + 0.5 * y1) * y1 * P_delta2
    dS = S_P * dP + 0.5 * c * y1 * S_beta
    in_rho = Slopes(
        1.0 + 2.0 * av.b1 * y1 / av.pair, *along(dP, dS, j0_P * dP + j0_S * dS + j0_h1 * dh1, y1, y1)
    )
    return in_rho, in_b0, in_x
