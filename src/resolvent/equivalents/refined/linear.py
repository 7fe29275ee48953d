"""Linear regression on the same tokens, by the same route.

Q = (X'X/n + gamma)^-1 needs one number per class and one for all. With kap = p/(p - r),

    T_a = 1/(gamma + c R_a^2 s),    s = mean_l l/(1 + l kap x),    x = sum_b pi_b R_b^2 T_b.
 x falls as s grows and the mean falls as x grows, so the second equation has one root s in (0, 1], found by
bisection. The span enters as in the attention probe: with u = (I + sum_a pi_a T_a P_a P_a')^-1 sum_a pi_a T_a
y_a P_a the weights on it, a fresh token of class a is missed by g_a = y_a - P_a.u on average, and with k =
mean_l kap l^2/(1 + l kap x)^2

    lam_a = T_a^2 (S_a + c k R_a^2 sum_b pi_b R_b^2 lam_b),     S_a = kappa^2 g_a^2 + 1 - kappa^2,
    E_train = gamma^2 sum_a pi_a lam_a,
    E_test  = sum_a pi_a S_a + c k (sum_b pi_b R_b^2) sum_a pi_a R_a^2 lam_a.

Theory page, sections 6 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import checked, plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes

HALVINGS = 200


@dataclass(frozen=True)
class RefinedLinearErrors:
    """Errors of linear regression at finite size; the root behind them is bracketed, hence always found."""

    train: Array | float
    test: Array | float


def refined_linear_errors(
    classes: Classes | Sequence[Classes], *, ridge: ArrayLike, target_overlap: ArrayLike = 1.0
) -> RefinedLinearErrors:
    """Training and test error of w = (XX' + n ridge)^-1 X t, for tokens in the given classes.

    The arguments, the shape of the result and what is raised are those of `refined_errors`.

    Source: theory page, sections 6 and 12.

    >>> from resolvent.equivalents.refined import gaussian_classes
    >>> classes = gaussian_classes(p=64, n=128, gram=[[1, 0, 0], [0, 0, 0], [0, 0, 0]])
    >>> round(refined_linear_errors(classes, ridge=0.1).train, 3)
    0.264
    """
    args = checked(ridge=ridge, target_overlap=target_overlap)
    if not np.all(args["ridge"] > 0.0):
        raise ValueError(f"ridge must be positive, got {args['ridge'].min():g}")
    shape, (flat, kappa) = args["ridge"].shape, (value.reshape(-1) for value in args.values())
    if isinstance(classes, Classes):
        train, test = (value.reshape(shape) for value in _errors(classes, flat, kappa))
        return RefinedLinearErrors(plain(train), plain(test))
    each = [_errors(one, flat, kappa) for one in classes]
    train, test = (np.stack(values).reshape(len(each), *shape) for values in zip(*each, strict=True))
    return RefinedLinearErrors(plain(train), plain(test))


def _errors(classes: Classes, ridge: Array, kappa: Array) -> tuple[Array, Array]:
    """Training and test error for flat ridge and kappa."""
    weight, label, position, c = classes.weight, classes.label, classes.position, classes.ratio
    R2, power = classes.norm**2, classes.weight @ classes.norm**2
    s = _solve(classes, ridge)
    T = 1.0 / (ridge[:, None] + c * s[:, None] * R2)
    damped = classes.eigenvalues / (
        1.0 + classes.eigenvalues / classes.share_outside * (T @ (weight * R2))[:, None]
    )
    k = damped**2 @ classes.shares / classes.share_outside
    gram = np.einsum("ba,ai,aj->bij", T * weight, position, position) + np.eye(position.shape[1])
    u = np.linalg.solve(gram, ((T * weight * label) @ position)[..., None])[..., 0]
    S = (kappa**2)[:, None] * (label - u @ position.T) ** 2 + (1.0 - kappa**2)[:, None]
    z = (T**2 * S) @ (weight * R2) / (1.0 - c * k * (T**2 @ (weight * R2 * R2)))
    lam = T**2 * (S + (c * k * z)[:, None] * R2)
    return ridge**2 * (lam @ weight), S @ weight + c * k * power * z


def _solve(classes: Classes, ridge: Array) -> Array:
    """s by bisection of its logarithm between s(x) at the largest x, sum_b pi_b R_b^2/gamma, and 1."""
    weight, R2 = classes.weight, classes.norm**2

    def image(s: Array) -> Array:
        x = (1.0 / (ridge[:, None] + classes.ratio * s[:, None] * R2)) @ (weight * R2)
        return (
            classes.eigenvalues / (1.0 + classes.eigenvalues / classes.share_outside * x[:, None])
        ) @ classes.shares

    low, high = np.log(image(np.zeros_like(ridge))), np.zeros_like(ridge)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = image(np.exp(middle)) > np.exp(middle)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(1.0, np.abs(low))):
            break
    return np.exp(0.5 * (low + high))
