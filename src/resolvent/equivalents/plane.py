"""Block traces in the complex plane, for many z at once: tr (H'H/n - z)^-1/n and tr (K - z)^-1/n.

With weights I + low rank every feature-side matrix is a small M times the identity, and

    N^-1 = base - z E_00 - S(N) + M (I + N M/c)^-1.

For Im z > 0 the right solution is the one with Im N positive semi-definite, since Im L^-1 = L^-1 (Im z
E_00) L^-1*. At a large Im z it is found by half-damped iteration; Newton's method then follows it down to
the real axis, on every row with steps of its own, refused where that sign is lost. All in balanced
coordinates, as in `traces`. Theory page, sections 4, 8d, 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.traces import ACCEPTED, TOLERANCE, symmetric_basis

Complex = NDArray[np.complex128]

FACTOR = 100.0  # between neighbouring heights above the real axis
SMALLEST_FACTOR = 1.02
LOWEST = 1e-4  # height, relative to |x|, from which the last step goes to the real axis
TINY = 1e-40  # |x|, relative to the scale, that counts as zero
DAMPED_STEPS = 30
NEWTON_STEPS = 16
SIGN_SLACK = 1e-7


@dataclass(frozen=True)
class Plane:
    """base and M (B, B), noise[a, b, c, d] maps N_cd to S(N)_ab, scale is the size of the spectrum."""

    c: float
    base: Array
    M: Array
    noise: Array
    scale: float

    def traces(self, x: Array) -> tuple[Complex, Array]:
        """N (rows, B, B) at x + i0 and its residual, row by row; above ACCEPTED it marks a failure."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(all="ignore"):
            height = np.full(x.shape, 10.0 * self.scale)
            N = self._iterated(x + 1j * height)
            N, residual, good = self._newton(x + 1j * height, N)
            factor = np.full(x.shape, FACTOR)
            going = np.flatnonzero(good)
            residual[~good] = np.inf
            while going.size:
                lower = height[going] / factor[going]
                lower[lower < LOWEST * np.maximum(np.abs(x[going]), TINY * self.scale)] = 0.0
                new, rest, good = self._newton(x[going] + 1j * lower, N[going])
                won = going[good]
                N[won], height[won], residual[won] = new[good], lower[good], rest[good]
                factor[won] = np.minimum(FACTOR, factor[won] ** 2)
                lost = going[~good]
                factor[lost] = np.sqrt(factor[lost])
                stuck = factor < SMALLEST_FACTOR
                residual[stuck & (height > 0.0)] = np.inf
                going = going[(height[going] > 0.0) & ~stuck[going]]
        return N, residual

    def slopes(self, z: Array, N: Array) -> Array:
        """dN/dz at real z outside the spectrum, (rows, B, B)."""
        unit = np.zeros_like(N)
        unit[:, 0, 0] = 1.0
        _, operator, square = self._linearised(z, N)
        return np.asarray(square * _solve(operator, square * unit))

    def dressed(self, N: NDArray[Any]) -> NDArray[Any]:
        """X = (I + M N/c)^-1."""
        return np.asarray(np.linalg.inv(np.eye(self.M.shape[0]) + self.M @ N / self.c))

    def _iterated(self, z: Complex) -> Complex:
        A = np.broadcast_to(self.base.astype(complex), (z.size, *self.base.shape)).copy()
        A[:, 0, 0] -= z
        start = A.copy()
        if self.base.shape[0] == 3:
            start[:, 2, 2] += self.c
        N = np.linalg.inv(start)
        for _ in range(DAMPED_STEPS):
            right = A - np.einsum("abcd,ncd->nab", self.noise, N) + self.dressed(N) @ self.M
            N = 0.5 * (N + np.linalg.inv(right))
        return np.asarray(N)

    def _linearised(self, z: NDArray[Any], N: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], Array]:
        """The residual of the equation and its Jacobian O, balanced, and the scale that balances them."""
        size = np.sqrt(np.abs(np.diagonal(N, axis1=1, axis2=2)))
        square = size[:, :, None] * size[:, None, :]
        R = np.linalg.inv(N / square) / square
        P = self.dressed(N) @ self.M
        error = self.base - np.einsum("abcd,ncd->nab", self.noise, N) + P - R
        error[:, 0, 0] -= z
        R, P = R * square, P * square
        noise = self.noise * square[:, :, :, None, None] * square[:, None, None, :, :]
        operator = np.einsum("nac,ndb->nabcd", R, R) - np.einsum("nac,ndb->nabcd", P, P) / self.c - noise
        return error * square, operator, square

    def _newton(self, z: Complex, N: Complex) -> tuple[Complex, Array, NDArray[np.bool_]]:
        """Newton's method on every row: best points, residuals, and which are the right solution."""
        best, residual = N.copy(), np.full(z.size, np.inf)
        active = np.arange(z.size)
        for _ in range(NEWTON_STEPS):
            error, operator, square = self._linearised(z[active], N)
            rest = np.abs(error).max(axis=(1, 2))
            better = rest < residual[active]
            settled = (rest <= TOLERANCE) | (~better & (residual[active] <= ACCEPTED)) | ~np.isfinite(rest)
            best[active[better]], residual[active[better]] = N[better], rest[better]
            going = ~settled
            active, N = active[going], N[going]
            if not active.size:
                break
            step = _solve(operator[going], -error[going])
            longest = np.abs(step).max(axis=(1, 2))
            N = N + step * (np.minimum(1.0, 1.0 / longest)[:, None, None] * square[going])
        return best, residual, (residual <= ACCEPTED) & _right_sign(best)


def _right_sign(N: Complex) -> NDArray[np.bool_]:
    """Im N is positive semi-definite, up to rounding, in balanced coordinates."""
    size = np.sqrt(np.abs(np.diagonal(N, axis1=1, axis2=2)))
    imaginary = np.nan_to_num(N.imag / (size[:, :, None] * size[:, None, :]), nan=-1.0)
    return np.asarray(np.linalg.eigvalsh(imaginary)[:, 0] >= -SIGN_SLACK)


def _solve(operator: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Symmetric H with operator(H) = right on every row; not finite or far away where that is singular."""
    B = right.shape[-1]
    basis = symmetric_basis(B)
    matrix = basis.T @ operator.reshape(-1, B * B, B * B) @ basis
    matrix = np.where(np.isfinite(matrix), matrix, 1.0)
    matrix = matrix + 1e-300 * np.eye(matrix.shape[-1])
    vector = (right.reshape(-1, B * B) @ basis)[..., None]
    return np.asarray((basis @ np.linalg.solve(matrix, vector)).reshape(right.shape))
