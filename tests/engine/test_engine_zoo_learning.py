"""Ridge regression and random features: bias, variance, optimal ridge, test error, double descent."""

from __future__ import annotations

import numpy as np
import pytest
from engine_zoo import agrees

from resolvent.engine import Dim, Gaussian, Symbol, entrywise, equivalent, eye, inv, sqrt, symbols, vectors

N, P, D = Dim("n"), Dim("p"), Dim("d")
GAMMA = Symbol("gamma")


def test_ridge_bias_variance_and_optimal_ridge():
    """y = X'b + noise: risk gamma^2 b'R^2 b + noise^2 tr(S R^2)/n, R = (S + gamma)^-1, S = XX'/n."""
    ratio, signal, noise = 0.5, 2.0, 0.7
    X = Gaussian("X", P, N)
    (b,) = vectors("b", P, signal)
    S = X @ X.T / N
    R = inv(GAMMA * eye(P) + S)
    bias = equivalent(GAMMA**2 * (R @ R), {P / N: ratio})
    variance = equivalent(S @ R @ R, {P / N: ratio})

    def mp(gamma):
        """tr R/p and its derivative in gamma, from c gamma m^2 + (gamma + 1 - c) m - 1 = 0."""
        k = gamma + 1 - ratio
        m = 2 / (k + np.sqrt(k**2 + 4 * ratio * gamma))
        return m, -(ratio * m**2 + m) / (2 * ratio * gamma * m + k)

    for gamma in (1e-3, 0.3):
        m, slope = mp(gamma)
        assert float(bias.quadratic(b, b, gamma=gamma)) == pytest.approx(
            -signal * gamma**2 * slope, rel=1e-11
        )
        assert float(variance.trace(gamma=gamma)) == pytest.approx(m + gamma * slope, rel=1e-11)

    def risk_slope(gamma):
        moved = float(bias.derivative("gamma", b, b, gamma=gamma))
        return moved + noise**2 * ratio * float(variance.derivative("gamma", gamma=gamma))

    best = ratio * noise**2 / signal
    assert risk_slope(best) == pytest.approx(0, abs=1e-12)
    assert risk_slope(best / 2) < -1e-3
    assert risk_slope(best * 2) > 1e-3
    agrees(variance, 300, gamma=0.3)
    agrees(bias, 300, gamma=0.3, vectors=(b, b))


def mei_montanari(psi1, psi2, ridge, mu1, mu_star):
    """Bias and variance of random-feature ridge regression, Mei and Montanari 2022, Definition 1."""
    zeta = mu1 / mu_star
    z2, lam = zeta**2, ridge / mu_star**2
    xi = 1j * np.sqrt(psi1 * psi2 * lam)
    nu1 = nu2 = 1j
    for _ in range(50000):
        shared = 1 - z2 * nu1 * nu2
        new1 = psi1 / (-xi - nu2 - z2 * nu2 / shared)
        new2 = psi2 / (-xi - nu1 - z2 * nu1 / shared)
        nu1, nu2 = (nu1 + new1) / 2, (nu2 + new2) / 2
    x = (nu1 * nu2).real
    e0 = (
        -(x**5) * z2**3
        + 3 * x**4 * z2**2
        + (psi1 * psi2 - psi2 - psi1 + 1) * x**3 * z2**3
        - 2 * x**3 * z2**2
        - 3 * x**3 * z2
        + (psi1 + psi2 - 3 * psi1 * psi2 + 1) * x**2 * z2**2
        + 2 * x**2 * z2
        + x**2
        + 3 * psi1 * psi2 * x * z2
        - psi1 * psi2
    )
    e1 = psi2 * x**3 * z2**2 - psi2 * x**2 * z2 + psi1 * psi2 * x * z2 - psi1 * psi2
    e2 = (
        x**5 * z2**3
        - 3 * x**4 * z2**2
        + (psi1 - 1) * x**3 * z2**3
        + 2 * x**3 * z2**2
        + 3 * x**3 * z2
        + (-psi1 - 1) * x**2 * z2**2
        - 2 * x**2 * z2
        - x**2
    )
    return e1 / e0, e2 / e0


def random_features(features):
    """F and R of a = R F'y/sqrt(d), the minimiser of |y - sqrt(d) F a|^2 + d gamma |a|^2, y = X b + noise."""
    F = features / sqrt(D)
    return F, inv(GAMMA * eye(P) + F.T @ F)


@pytest.fixture(scope="module")
def features():
    X, theta = Gaussian("X", N, D), Gaussian("theta", P, D)
    mu1, mu = symbols("mu1 mu")
    return X, theta, mu1 * (X @ theta.T) / sqrt(D) + mu * Gaussian("noise", N, P)


@pytest.mark.parametrize(("psi1", "psi2", "ridge"), [(0.5, 2.0, 0.1), (2.0, 2.0, 1e-3), (3.0, 1.5, 0.01)])
def test_random_feature_test_error(features, psi1, psi2, ridge):
    X, theta, plain = features
    mu1, mu = Symbol("mu1"), Symbol("mu")
    F, R = random_features(plain)
    ratios = {P / D: psi1, N / D: psi2}
    weights = R @ F.T @ X / sqrt(D)
    left = eye(D) - mu1 * (theta.T @ weights) / sqrt(D)
    bias = equivalent(left.T @ left + mu**2 * (weights.T @ weights), ratios)
    noisy = R @ F.T @ F @ R / D
    variance = equivalent(mu1**2 * (theta @ theta.T @ noisy) + mu**2 * D * noisy, ratios)
    values = {"gamma": psi1 * psi2 * ridge, "mu1": 0.5, "mu": 0.3}
    exact_bias, exact_variance = mei_montanari(psi1, psi2, ridge, 0.5, 0.3)
    assert float(bias.trace(**values)) == pytest.approx(exact_bias, rel=1e-8)
    assert psi1 * float(variance.trace(**values)) == pytest.approx(exact_variance, rel=1e-8)


def test_random_features_of_relu_against_simulation():
    X, theta = Gaussian("X", N, D), Gaussian("theta", P, D)

    def centred_relu(x):
        return np.maximum(x, 0) - 1 / np.sqrt(2 * np.pi)

    F, R = random_features(entrywise(centred_relu, X @ theta.T / sqrt(D)))
    ratios = {P / D: 2.0, N / D: 3.0}
    agrees(equivalent(inv(eye(N) + F @ F.T / GAMMA), ratios), 300, gamma=0.5)
    agrees(equivalent(R @ F.T @ F @ R, ratios), 200, gamma=0.5)


def test_double_descent_peaks_at_interpolation(features):
    _, _, plain = features
    F, R = random_features(plain)
    ratio = Symbol("psi")
    noisy = equivalent(R @ F.T @ F @ R, {P / D: ratio, N / D: 2.0})
    psi = np.linspace(0.5, 4, 29)
    variance = psi * noisy.trace(psi=psi, gamma=1e-4, mu1=0.5, mu=0.3).value
    assert abs(psi[np.argmax(variance)] - 2.0) < 0.2
    assert variance.max() > 5 * max(variance[0], variance[-1])
