"""GMRES for several right-hand sides and operators at once.
 The operators H - T coupling(H) T sum over classes with smooth kernels, so they are the identity plus a
compact part: a few tens of steps do, however many classes there are. The norm weighs class a by pi_a, hence
rare classes do not hold it up. Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from resolvent.equivalents.averages import Array

MAX_STEPS = 80


def gmres(apply: Callable[[Array], Array], right: Array, weight: Array, tolerance: float) -> Array:
    """x with |apply(x) - right| <= tolerance |right| in each row of (B, A, 3, 3), the norm weighing classes
    by weight (A,).

    Rows take the same number of steps, at most `MAX_STEPS`; the caller checks what it needs of x.
    """
    root = np.sqrt(weight)[:, None, None]
    first = (root * right).reshape(right.shape[0], -1)
    norm = np.linalg.norm(first, axis=1)
    basis = np.empty((right.shape[0], MAX_STEPS + 1, first.shape[1]))
    basis[:, 0] = first / _positive(norm)[:, None]
    hessenberg = np.zeros((right.shape[0], MAX_STEPS + 1, MAX_STEPS))
    for k in range(MAX_STEPS):
        image = (root * apply(basis[:, k].reshape(right.shape) / root)).reshape(first.shape)
        basis[:, k + 1], hessenberg[:, : k + 2, k] = _orthogonalised(basis[:, : k + 1], image)
        y, misfit = _least_squares(hessenberg[:, : k + 2, : k + 1])
        if np.all(misfit <= tolerance):
            break
    x = (norm[:, None, None] * y[:, None, :] @ basis[:, : y.shape[1]]).reshape(right.shape)
    return np.asarray(x / root)


def _orthogonalised(basis: Array, image: Array) -> tuple[Array, Array]:
    """The next basis vector (B, N) and the coefficients (B, k + 2) of the image, by Gram-Schmidt twice."""
    coefficients = np.zeros((image.shape[0], basis.shape[1]))
    for _ in range(2):
        overlap = (basis @ image[..., None])[..., 0]
        image = image - (overlap[:, None, :] @ basis)[:, 0]
        coefficients += overlap
    length = np.linalg.norm(image, axis=1)
    return image / _positive(length)[:, None], np.concatenate([coefficients, length[:, None]], axis=1)


def _least_squares(hessenberg: Array) -> tuple[Array, Array]:
    """The minimiser y of |e_1 - hessenberg y| and that minimum."""
    Q, R = np.linalg.qr(hessenberg)
    y = np.linalg.solve(R, Q[:, 0, :, None])[..., 0]
    rest = -(hessenberg @ y[..., None])[..., 0]
    rest[:, 0] += 1.0
    return y, np.linalg.norm(rest, axis=1)


def _positive(length: Array) -> Array:
    return np.where(length > 0.0, length, 1.0)
