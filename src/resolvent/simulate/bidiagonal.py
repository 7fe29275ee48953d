"""The probe's ridge curve by Golub-Kahan bidiagonalisation, without factorising a matrix.

Started at the target, H' V_k = U_k+1 B_k with orthonormal U, V and a lower bidiagonal B_k (k + 1 x k). The
probe of the Krylov space, w = V_k y with (B_k'B_k + n ridge) y = B_k' |t| e_1, serves every ridge from the
same U, V; its training error |n ridge (B_k B_k' + n ridge)^-1 |t| e_1|^2/n is Gauss quadrature of the curve,
exact for polynomials of degree 2k. A step costs two products of the features with a vector.

The residual of the normal equations is a multiple of v_k+1, of length alpha_k+1 beta_k+1 |y_k|. By it the
outputs H'w are wrong by at most |residual|/(2 sqrt(n ridge)), which certifies the errors; it falls with the
ridge, so the smallest ridge decides. Golub and Kahan, SIAM Journal on Numerical Analysis 2, 1965; Paige and
Saunders, ACM Transactions on Mathematical Software 8, 1982; theory page, section 10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ACCURACY = 1e-9  # of the outputs H'w, relative to the target's length
EDGE = 12.0  # largest eigenvalue of H'H/n expected, in units of their mean; outliers beyond cost few steps
SLOWNESS = 10.0  # of a product with a vector, which waits for memory, beside one of matrices, a flop
EIGENPAIRS = 9.0  # flops of an eigendecomposition over m^3
SOLVE = 1.0  # flops of one linear solve over m^3, at the same speed
SHARE = 0.6  # of the steps worth a factorisation that may be expected at the start


def curve(features: Array, target: Array, ridge: Array) -> tuple[Array, Array] | None:
    """Training errors (ridges,) and w (ridges, p) where this is expected to be quicker than a factorisation
    and turns out to be; None elsewhere.
    """
    p, n = features.shape
    mean = float(np.vdot(features, features)) / (n * min(p, n))
    if not quicker(p, n, ridge, mean):
        return None
    found = bidiagonal(features, target, float(ridge.min()), worth(p, n, ridge.size))
    return None if found is None else found.solve(ridge)


def quicker(p: int, n: int, ridge: Array, mean_eigenvalue: float) -> bool:
    """Whether the curve is expected to take fewer steps than are worth a factorisation."""
    aspect = min(p, n) / max(p, n)
    expected = steps_needed(mean_eigenvalue, aspect, float(ridge.min()))
    return expected < SHARE * worth(p, n, ridge.size)


def worth(p: int, n: int, ridges: int) -> int:
    """Steps that cost what one factorisation does: m^2 max(p, n) flops to form the smaller of HH' and H'H,
    m = min(p, n), and its eigenpairs (for a single ridge, a solve).
    """
    small, large = min(p, n), max(p, n)
    other = small**2 * large + (EIGENPAIRS if ridges > 1 else SOLVE) * small**3
    return int(other / (SLOWNESS * 4.0 * p * n))


def steps_needed(mean_eigenvalue: float, aspect: float, ridge: float) -> float:
    """Steps of the conjugate gradient bound, 2 ((sqrt k - 1)/(sqrt k + 1))^steps, to reach ACCURACY.

    The condition number k is at most that of the ridge, and at most about that of a product of two Gaussian
    matrices of this aspect min(p, n)/max(p, n), the square of Marchenko and Pastur's.
    """
    if ridge <= 0.0:
        return np.inf
    edges = ((1.0 - np.sqrt(aspect)) / (1.0 + np.sqrt(aspect))) ** 4
    condition = 1.0 / (1.0 / (1.0 + EDGE * mean_eigenvalue / ridge) + edges)
    return float(0.5 * np.sqrt(condition) * np.log(2.0 / ACCURACY))


class Bidiagonal(NamedTuple):
    """V (k x p), the diagonal alpha and the subdiagonal beta of B_k, and the target's length."""

    right: Array
    alpha: Array
    beta: Array
    length: float
    n: int

    def solve(self, ridge: Array) -> tuple[Array, Array]:
        """Training errors and w at each ridge."""
        k = self.alpha.size
        if k == 0:
            return np.full(ridge.size, self.length**2 / self.n), np.zeros((ridge.size, self.right.shape[1]))
        matrix = np.zeros((k + 1, k))
        matrix[np.arange(k), np.arange(k)], matrix[np.arange(1, k + 1), np.arange(k)] = self.alpha, self.beta
        left, values, right = np.linalg.svd(matrix)
        squares, first = np.append(values, 0.0) ** 2, self.length * left[0]
        kept = self.n * ridge[:, None] / (squares + self.n * ridge[:, None])
        y = first[:k] * values / (values**2 + self.n * ridge[:, None]) @ right
        return (kept * first) ** 2 @ np.ones(k + 1) / self.n, y @ self.right


def bidiagonal(features: Array, target: Array, ridge: float, most: int) -> Bidiagonal | None:
    """Steps until the probe at this ridge is accurate; None after `most` of them."""
    p, n = features.shape
    left, right = np.empty((most + 1, n)), np.empty((most + 1, p))
    alpha, beta = np.zeros(most + 1), np.zeros(most)
    length = float(np.linalg.norm(target))
    if length == 0.0:
        return Bidiagonal(right[:0], alpha[:0], beta[:0], length, n)
    left[0] = target / length
    alpha[0] = _next(right, features @ left[0], 0)
    pivot, forward = (
        np.inf,
        1.0,
    )  # of the Cholesky factor of B'B + n ridge, and its solve with |t| alpha_1 e_1
    coupling = length * alpha[0]
    for k in range(most):
        if alpha[k] == 0.0:
            return Bidiagonal(right[:k], alpha[:k], beta[:k], length, n)
        beta[k] = _next(left, right[k] @ features - alpha[k] * left[k], k + 1)
        forward = coupling if k == 0 else -coupling / pivot * forward
        pivot = alpha[k] ** 2 + beta[k] ** 2 + n * ridge - (0.0 if k == 0 else coupling**2 / pivot)
        alpha[k + 1] = _next(right, features @ left[k + 1] - beta[k] * right[k], k + 1) if beta[k] else 0.0
        coupling = alpha[k + 1] * beta[k]
        if coupling * abs(forward / pivot) <= ACCURACY * length * 2.0 * np.sqrt(n * ridge):
            return Bidiagonal(right[: k + 1], alpha[: k + 1], beta[: k + 1], length, n)
    return None


def _next(basis: Array, vector: Array, k: int) -> float:
    """Make the vector orthogonal to the first k, twice since once leaves rounding, and append it: its length,
    0 where nothing is left.
    """
    before = float(np.linalg.norm(vector))
    for _ in range(2):
        vector = vector - (basis[:k] @ vector) @ basis[:k]
    length = float(np.linalg.norm(vector))
    if length <= 1e-14 * before or length == 0.0:
        return 0.0
    basis[k] = vector / length
    return length
