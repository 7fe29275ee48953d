"""Training and test error of the attention probe, class by class, from one adjoint solve.

With C_m the coupling of the means (sqrt p m0_ab in block (2,1), c P_a.P_b in (3,3)), the vector

    g = (I + C_m TT)^-1 (y, 0, 0)

holds in g_1a = y_a - M_a the error of the mean prediction M_a on a fresh token of class a, and in g_3a what
a residual connection adds to that prediction. (If the weights were fitted to the tokens, a fresh one has its
own m0, m1 and v, and M_b = sqrt p sum_a m0_ab pi_a (T_a g_a)_2/c.) The adjoint of the fixed point,

    Lambda - T coupling(Lambda) T = T S T,    S_a = (kappa^2 g_a g_a' + (1 - kappa^2) e_1 e_1')/c,

turns every derivative of y'Qy/n into a sum over classes:

    E_train = gamma^2 c sum_a pi_a Lambda_a11
    E_test  = kappa^2 sum_b pi_b (g_1b - skip g_3b)^2 + 1 - kappa^2     error of the mean
            + sum_ab pi_a pi_b v_ab Lambda_a22                          noise of the scores
            + phi sum_a pi_a tr(Lambda_a w_a Xi w_a')                   the token outside of the span
 where Xi = mean_l of l^2 (I + l C Theta)^-1 Gamma (I + l Theta C)^-1 and Gamma = sum_b pi_b gamma_b gamma_b'
with gamma_b what class b reads, v m1 in block 2 and -skip c in block 3. Theory page, section 12 (the residual
connection and the forms through g are an extension of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.equation import Couplings, Equation
from resolvent.equivalents.refined.newton import ACCEPTED, newton_solve, solve
from resolvent.equivalents.refined.tables import tables
from resolvent.nonlinearity import Nonlinearity, Softmax

ADJOINT_ACCURACY = 1e-11


@dataclass(frozen=True)
class RefinedErrors:
    """Errors at finite size, with the certificate of the fixed point.

    `residual` is the largest entry of T - T R T relative to that of T, `iterations` the evaluations of R
    spent, `converged` says that the residual is below 1e-8. Where it is not, every value is NaN.
    """

    train: Array | float
    test: Array | float
    residual: Array | float
    iterations: NDArray[np.int64] | int
    converged: NDArray[np.bool_] | bool

    def __str__(self) -> str:
        if np.ndim(self.train):
            return f"{np.sum(self.converged)} of {np.size(self.train)} refined errors converged"
        state = "" if self.converged else f" (not converged, residual {self.residual:.1e})"
        return f"train {self.train:.6g}, test {self.test:.6g}{state}"


def refined_errors(
    classes: Classes | Sequence[Classes],
    *,
    ridge: ArrayLike,
    f: Nonlinearity | Softmax,
    skip: float = 0.0,
    keep_diagonal: bool = False,
    target_overlap: ArrayLike = 1.0,
) -> RefinedErrors:
    """Training and test error of w = (HH' + n ridge)^-1 H t on H = X (K + skip I), for tokens in the given
    classes.

    K = f(X'MX/sqrt p)/sqrt p, or (n/sqrt p) times a column-wise softmax.

    Parameters
    ----------
    classes
        The tokens, from `gaussian_classes`, `token_classes` or by hand; a sequence adds a leading axis to the
        result.
    ridge
        Positive; any shape, solved together.
    f
        The nonlinearity, or a `Softmax`.
    skip
        Weight of a residual connection.
    keep_diagonal
        Whether a token's score with itself stays in K; False sets the diagonal of K to zero.
    target_overlap
        t'y/n of target and labels (1: the labels, 0: random labels), broadcast against ridge. Test errors are
        on a fresh token whose target carries the same noise.

    Returns
    -------
    RefinedErrors
        Arrays of the broadcast shape of ridge and target_overlap, or plain numbers.

    Raises
    ------
    ValueError
        For an argument out of range, f not square-integrable, or a diagonal that cannot be kept.

    Source: theory page, section 12; the model is that of Liao et al., arXiv 2506.18656.

    Examples
    --------
    >>> from resolvent.equivalents.refined import gaussian_classes
    >>> from resolvent.nonlinearity import nonlinearity
    >>> classes = gaussian_classes(p=64, n=128, gram=[[1, 1, 1], [1, 1, 1], [1, 1, 1]])
    >>> print(refined_errors(classes, ridge=0.1, f=nonlinearity("tanh")))
    train 0.3105..., test 0.757...
    """
    args = checked(ridge=ridge, target_overlap=target_overlap)
    if not np.all(args["ridge"] > 0.0):
        raise ValueError(f"ridge must be positive, got {args['ridge'].min():g}")
    if numbers("skip", skip).ndim:
        raise ValueError(f"skip must be one number, got {skip!r}")
    shape, flat = args["ridge"].shape, {name: value.reshape(-1) for name, value in args.items()}

    def one(classes: Classes) -> dict[str, Array]:
        return _refined_errors(classes, flat["ridge"], f, float(skip), keep_diagonal, flat["target_overlap"])

    if isinstance(classes, Classes):
        values = one(classes)
    else:
        each = [one(each_classes) for each_classes in classes]
        values = {name: np.stack([part[name] for part in each]) for name in each[0]}
        shape = (len(each), *shape)
    return RefinedErrors(**{name: _shaped(value, shape) for name, value in values.items()})


def _shaped(value: Array, shape: tuple[int, ...]) -> Any:
    """The array in that shape, or a plain number."""
    return value.reshape(shape) if shape else value.item()


def _refined_errors(
    classes: Classes, ridge: Array, f: Nonlinearity | Softmax, skip: float, keep_diagonal: bool, kappa: Array
) -> dict[str, Array]:
    """`refined_errors` on flat arrays."""
    own = tables(classes, f, skip, keep_diagonal)
    fresh = own if classes.fresh is None else tables(classes.for_a_fresh_token(), f, skip, False)
    couplings = Couplings.of(classes, own, fresh)
    distinct, index = np.unique(ridge, return_inverse=True)
    with np.errstate(all="ignore"):
        equation, solution = solve(couplings, distinct)
        equation, T = equation.at(index), solution.T[index]
        train, test = _errors(equation, T, skip, kappa)
    converged = (solution.residual[index] <= ACCEPTED) & np.isfinite(train) & np.isfinite(test)
    return {
        "train": np.where(converged, train, np.nan),
        "test": np.where(converged, test, np.nan),
        "residual": solution.residual[index],
        "iterations": solution.iterations[index],
        "converged": converged,
    }


def _errors(equation: Equation, T: Array, skip: float, kappa: Array) -> tuple[Array, Array]:
    """Training and test error at the solution T."""
    classes, omega = equation.classes, equation.resolvents(T)
    weight, c = classes.weight, classes.ratio
    d1, d3 = equation.scale.T
    g = _unexplained(equation, T)
    signal = kappa * kappa
    S = signal[:, None, None, None] * g[..., :, None] * g[..., None, :]
    S[:, :, 0, 0] += (1.0 - signal)[:, None]
    Lambda = newton_solve(equation, T, omega, T @ S @ T / c, ADJOINT_ACCURACY)
    train = (equation.ridge * d1 * d1) ** 2 * c * (Lambda[:, :, 0, 0] @ weight)
    fresh = equation.couplings.fresh
    read = (T @ g[..., None])[:, :, 1, 0] * weight / c
    missed = classes.label - np.sqrt(classes.p) * read @ fresh.m0 - skip * (d1 / d3)[:, None] * g[:, :, 2]
    test = signal * (missed**2 @ weight) + 1.0 - signal
    test += Lambda[:, :, 1, 1] @ (weight * (fresh.v @ weight))
    return train, test + _variance_outside(equation, T, Lambda, skip)


def _unexplained(equation: Equation, T: Array) -> Array:
    """g (B, A, 3), scaled: its blocks stand for g_1, g_2/d1^2 and g_3 d3/d1."""
    classes, means = equation.classes, equation.couplings.means
    read = T[:, :, :, 0] * (classes.weight * classes.label / classes.ratio)[:, None]
    system = means.C @ equation.inner(means, T) + equation.balance(means)[:, :, None] * np.eye(
        means.C.shape[0]
    )
    pulled = np.linalg.solve(system, (means.read(read) @ means.C)[..., None])[..., 0]
    g = -means.written(np.asarray(pulled, np.float64))
    g[:, :, 0] += classes.label
    return g


def _variance_outside(equation: Equation, T: Array, Lambda: Array, skip: float) -> Array:
    """The variance of the prediction that comes from the fresh token's part outside of the span."""
    classes, noise = equation.classes, equation.couplings.noise
    d1, d3 = equation.scale.T
    _, second, third = noise.slices
    slopes = equation.couplings.fresh.m1 * np.outer(classes.norm, classes.norm) / classes.share_outside
    gamma = np.zeros((d1.size, classes.weight.size, noise.C.shape[0]))
    gamma[:, :, second] = (slopes * classes.weight[:, None]).T @ noise.w[1]
    gamma[:, :, third] = -skip * classes.ratio * (d1 / d3)[:, None, None] * noise.w[2]
    Gamma = np.einsum("a,bai,baj->bij", classes.weight, gamma, gamma)
    system = classes.eigenvalues[:, None, None] * (noise.C @ equation.inner(noise, T))[:, None]
    system += equation.balance(noise)[:, None, :, None] * np.eye(noise.C.shape[0])
    left = np.linalg.solve(system, np.broadcast_to(Gamma[:, None], system.shape))
    Xi = np.swapaxes(np.linalg.solve(system, np.swapaxes(left, -1, -2)), -1, -2)
    Theta = classes.ratio * equation.inner(noise, Lambda)
    power = classes.share_outside * classes.shares * classes.eigenvalues**2
    return np.asarray(np.einsum("l,blij,bij->b", power, Xi, Theta))
