"""The theory page, sections 4, 5 and 7, retyped as plainly as it is written: slow, general, independent.

Quadrature for the Marchenko-Pastur law, half-damped iteration for the three scalars, a 21 x 21 matrix of
bilinear forms over (y, 1, s, t, Z'mu, Z'w_K, Z'w_Q), and the complex step for every derivative.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Y, ONE, S, T, MU, KEY, QUERY = range(7)
STEP = 1e-30


def marchenko_pastur(c: float, nodes: int) -> tuple[Array, Array]:
    """Eigenvalues of G = Z'Z/p and their weights, by midpoint nodes; the first is the atom at 0."""
    lam = 1.0 / c
    mid, half = 1.0 + lam, 2.0 * np.sqrt(lam)
    theta = np.pi * (np.arange(1, nodes + 1) - 0.5) / nodes
    g = mid + half * np.cos(theta)
    weights = half**2 * np.sin(theta) ** 2 / (2.0 * nodes * lam * g)
    return np.append(0.0, g), np.append(max(1.0 - c, 0.0), weights)


class Pencil:
    """One setting: the noise-only inverse Gamma(g) of L and the forms F, with s I and s G where asked."""

    def __init__(self, *, ratio: float, ridge: float, a1: float, sigma2: float, shift: float, nodes: int):
        self.c, self.ridge, self.a1, self.sigma2, self.d = ratio, ridge, a1, sigma2, shift
        self.g, self.weights = marchenko_pastur(ratio, nodes)

    def scalars(self, gamma: complex, in22: Array | float = 0.0, in23: Array | float = 0.0) -> Array:
        """(t, u, alpha) by half-damped iteration from (0, 0, gamma)."""
        t, u, alpha = 0.0 + 0j, 0.0 + 0j, complex(gamma)
        for _ in range(100_000):
            G11, G12, G22 = self._three(t, u, alpha, in22, in23)
            new = (
                self.sigma2 / self.c * (self.weights @ G11),
                self.sigma2 / self.c * (self.weights @ G12),
                gamma - self.sigma2 / self.c * (self.weights @ G22),
            )
            moves = [
                abs(x.real - y.real) / (abs(y.real) + 1e-9) for x, y in zip(new, (t, u, alpha), strict=True)
            ]
            turns = [
                abs(x.imag - y.imag) / (abs(y.imag) + 1e-9 * STEP)
                for x, y in zip(new, (t, u, alpha), strict=True)
            ]
            t, u, alpha = (0.5 * (x + y) for x, y in zip(new, (t, u, alpha), strict=True))
            if max(moves) < 1e-14 and max(turns) < 1e-11:
                return np.array([t, u, alpha])
        raise AssertionError("the naive iteration did not settle")

    def _three(self, t, u, alpha, in22, in23):
        """Entries (1,1), (1,2) and (2,2) of Gamma at every node."""
        b = self.a1 * (self.g - 1.0) + self.d - u
        second, edge, third = -t + in22, 1.0 + in23, self.c * self.g
        det = alpha * (second * third - edge**2) - b**2 * third
        return (second * third - edge**2) / det, -b * third / det, alpha * third / det

    def gamma(self, t, u, alpha, in22, in23) -> Array:
        """Gamma(g): (nodes, 3, 3)."""
        one = np.ones_like(self.g)
        b = self.a1 * (self.g - 1.0) + self.d - u
        rows = [
            [alpha * one, b, 0.0 * one],
            [b, (-t + in22) * one, (1.0 + in23) * one],
            [0.0 * one, (1.0 + in23) * one, self.c * self.g],
        ]
        return np.linalg.inv(np.moveaxis(np.array(rows), -1, 0))


def naive_errors(
    *,
    ratio: float,
    ridge: float,
    a1: float,
    sigma2: float,
    gram: Array,
    shift: float = 0.0,
    skip: float = 0.0,
    mean_spike: float = 0.0,
    a2: float = 0.0,
    norm_variance: float = 2.0,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
    nodes: int = 400,
) -> dict[str, float]:
    """train, test, t, u, alpha and m of one setting."""
    gram = np.asarray(gram, dtype=float)
    pencil = Pencil(ratio=ratio, ridge=ridge, a1=a1, sigma2=sigma2, shift=shift + skip, nodes=nodes)
    c, g, ybar, kappa, rho = ratio, pencil.g, label_mean, target_overlap, skip
    snr, mk, mq, qq = gram[0, 0], gram[0, 1], gram[0, 2], gram[2, 2]

    tokens = np.zeros((4, 4))
    tokens[[Y, ONE, T], [Y, ONE, T]] = 1.0
    tokens[S, S] = norm_variance
    for i, j, value in ((Y, ONE, ybar), (Y, T, kappa), (ONE, T, kappa * ybar)):
        tokens[i, j] = tokens[j, i] = value

    K = np.zeros((7, 7))  # coefficients of the low-rank part of K
    K[Y, Y] = a1 * (snr + mk * mq)
    K[Y, MU] = K[MU, Y] = K[KEY, QUERY] = a1
    K[Y, QUERY], K[KEY, Y] = a1 * mk, a1 * mq
    K[ONE, ONE] = mean_spike
    K[S, ONE] = K[ONE, S] = a2 / np.sqrt(2.0)
    XX = np.zeros((7, 7))
    XX[Y, Y], XX[Y, MU], XX[MU, Y] = c * snr, c, c
    C = np.zeros((3, 7, 3, 7))
    C[1, :, 0, :], C[0, :, 1, :], C[2, :, 2, :] = K, K.T, XX
    C = C.reshape(21, 21)

    def forms(gamma: complex = ridge, in22: Array | float = 0.0, in23: Array | float = 0.0) -> Array:
        """F as (block, direction, block, direction)."""
        t, u, alpha = pencil.scalars(gamma, in22, in23)
        inverse = pencil.gamma(t, u, alpha, in22, in23)
        plain = np.einsum("k,kab->ab", pencil.weights, inverse) / c
        tilted = np.einsum("k,k,kab->ab", pencil.weights, g, inverse) / c
        B = np.zeros((3, 7, 3, 7), dtype=complex)
        B[:, :4, :, :4] = np.einsum("ab,ij->aibj", plain, tokens)
        B[:, 4:, :, 4:] = np.einsum("ab,ij->aibj", tilted, gram)
        B = B.reshape(21, 21)
        return (B @ np.linalg.inv(np.eye(21) + C @ B)).reshape(3, 7, 3, 7)

    def slope(**changed: complex | Array) -> float:
        """Derivative of F[(1,t),(1,t)] along what is changed by i STEP."""
        return float(forms(**changed)[0, T, 0, T].imag / STEP)

    step, one = 1j * STEP, np.ones_like(g)
    F = forms()[:, :, 0, T].real
    train = -(ridge**2) * c * slope(gamma=ridge + step)
    vv, vGv = -slope(in22=step * one), -slope(in22=step * g)
    q2q3, vGq3 = -0.5 * slope(in23=step * one), -0.5 * slope(in23=step * g)

    yv, ov, sv, mv, kv, qv = (F[1, i] for i in (Y, ONE, S, MU, KEY, QUERY))
    Y3, M3, Q3 = F[2, Y], F[2, MU], F[2, QUERY]
    b = mk * yv + kv
    mean = a1 * (yv * (snr + mk * mq) + mv + mq * kv) - rho * c * (M3 + snr * Y3)
    b0 = mean_spike * ov + a2 / np.sqrt(2.0) * sv
    u2 = vGv + snr * yv**2 + qq * b**2 + 2.0 * (mv * yv + qv * b + mq * yv * b)
    uw = -c * (vGq3 + Y3 * mv + yv * M3 + snr * yv * Y3 + b * (Q3 + mq * Y3))
    w2 = -c * q2q3
    variance = a1**2 * u2 + 2.0 * a1 * rho * uw + rho**2 * w2
    variance += sigma2 * vv + norm_variance / 2.0 * a2**2 * ov**2
    test = 1.0 - 2.0 * kappa * (mean + ybar * b0) + mean**2 + 2.0 * ybar * mean * b0 + b0**2 + variance

    t, u, alpha = pencil.scalars(ridge).real
    inverse = pencil.gamma(t, u, alpha, 0.0, 0.0)
    return {
        "train": train,
        "test": test,
        "t": t,
        "u": u,
        "alpha": alpha,
        "m": float(pencil.weights @ inverse[:, 0, 0]),
    }
