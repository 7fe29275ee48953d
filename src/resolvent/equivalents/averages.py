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

    # v = 1 - h1 is the positive root of v^2 - below v = c rho, and w = c/h1 - 1 that of w^2 + below w = c rho
    below = 1.0 - c - c * rho
    root = np.sqrt((1.0 - c) ** 2 + c * rho * (2.0 * (1.0 + c) + c * rho))
    h1 = 2.0 * c / (1.0 + c + c * rho + root)
    smaller = 2.0 * c * rho / (np.abs(below) + root)
    one_minus_h1 = smaller + np.maximum(below, 0.0)
    c_minus_h1 = h1 * (smaller + np.maximum(-below, 0.0))

    # q = a1^2 (Q - 2c) for Q = P + c^2/P, so that c - h2 h3 = sqrt(P q) does not cancel where P nears c
    ca = c * a1 * a1
    beta = a1 * (1.0 + c) + c * (b0 + 0.5 * y1)
    delta2 = c * c * (x + b0 * y1 + 0.75 * y1 * y1)
    beta2 = beta * beta
    F = beta2 - delta2 - 4.0 * ca
    product = 2.0 * beta2 * delta2
    modulus = np.sqrt(F * F + 2.0 * product)
    q = np.maximum(delta2 + (product / (np.abs(F) + modulus) + np.maximum(F, 0.0)), 0.0)
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
    # (1 - h2)(1 - h3) from its product with (c - h2)(c - h3) and their difference, as 1 - h1 above
    larger = np.maximum(1.0 - total + h23, c * c - c * total + h23)
    one_minus_h23 = c * c * pair * P / larger + np.maximum((1.0 - c) * (1.0 + c - total), 0.0)
    i0 = one_minus_h1 * c * one_minus_h23 * (c * gap + h23 * c_minus_h1) / (gap * cross)
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
    half, square = 0.5 * y1, a1 * a1
    h23, kappa = square * av.P, av.P / av.gap
    per_sum, per_modulus, per_pair = 1.0 / (h23 + c), 1.0 / av.modulus, 1.0 / av.pair
    size, edge = av.beta * av.beta + av.delta2, 4.0 * c * square
    P_q = -av.P * kappa * per_sum
    P_beta = P_q * av.beta * (1.0 + (size - edge) * per_modulus)
    P_delta2 = 0.5 * P_q * (1.0 + (size + edge) * per_modulus)
    S_beta = 2.0 * av.P * per_sum
    S_P = 2.0 * c * av.beta * per_sum * per_sum
    kappa_P = c / (av.gap * av.gap)
    share = av.j0 / av.cross
    j0_h1 = av.j0 / av.h1 - share * (2.0 * av.h1 * h23 - c * a1 * av.S)
    j0_P = av.j0 * kappa_P / kappa - share * av.h1 * av.h1 * square
    j0_S = share * c * av.h1 * a1

    dP = c * c * P_delta2
    dS = S_P * dP
    dj0 = j0_P * dP + j0_S * dS
    dj1, dj2 = _next_slopes(av, a1, half, kappa_P * dP, dS / c, dj0)
    in_x = Slopes(per_pair, dj0, dj1, dj2)

    dP_c = P_beta + c * y1 * P_delta2
    dP, dS_c = c * dP_c, S_P * dP_c + S_beta
    dj0 = j0_P * dP + j0_S * c * dS_c
    dj1, dj2 = _next_slopes(av, a1, half, kappa_P * dP, dS_c, dj0)
    j2_b1 = 2.0 * av.b1 * av.j0
    in_b0 = Slopes(2.0 * av.b1 * per_pair, dj0, dj1 + av.j0, dj2 + (j2_b1 + a1 * kappa))

    dP_c = half * (P_beta + 2.0 * c * (av.b1 + half) * P_delta2)
    dP, dS_c = c * dP_c, S_P * dP_c + half * S_beta
    dj0 = j0_P * dP + j0_S * c * dS_c - j0_h1 * (c * rho * av.h1 / av.root)
    dj1, dj2 = _next_slopes(av, a1, half, kappa_P * dP, dS_c, dj0)
    in_rho = Slopes(
        1.0 + 2.0 * av.b1 * y1 * per_pair, dj0, dj1 + y1 * av.j0, dj2 + y1 * (j2_b1 + 0.5 * a1 * kappa)
    )
    return in_rho, in_b0, in_x


def _next_slopes(
    av: Averages, a1: Array, half: Array, dkappa: Array, dS_c: Array, dj0: Array
) -> tuple[Array, Array]:
    """Derivatives of j1 and j2 at fixed b1 and y1 = 2 half; dS_c is that of S/c."""
    dj1 = av.b1 * dj0 + a1 * dkappa
    dj2 = av.b1 * av.b1 * dj0 + a1 * ((av.b1 - half) * dkappa + 0.5 * dS_c)
    return dj1, dj2
