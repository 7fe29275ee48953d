"""Spectral laws with a closed form: the engine, and a simulation of the same expression, reproduce each."""

from __future__ import annotations

import numpy as np
import pytest
from engine_zoo import agrees
from scipy.optimize import brentq

from resolvent.engine import (
    Diagonal,
    Dim,
    Elliptic,
    Gaussian,
    Given,
    Symbol,
    Wigner,
    entrywise,
    equivalent,
    eye,
    inv,
    sqrt,
    symbols,
)

N, P, Q = Dim("n"), Dim("p"), Dim("q")
GAMMA = Symbol("gamma")


def root(function, low=1e-12, high=1.0 - 1e-12):
    return brentq(function, low, high, xtol=1e-15, rtol=1e-15)


def test_semicircle():
    eq = equivalent(Wigner("W", N, 1 / N))
    x = np.linspace(-1.99, 1.99, 41)
    assert eq.density(x).value == pytest.approx(np.sqrt(4 - x**2) / (2 * np.pi), abs=1e-12)
    assert eq.density([-2.5, 2.1]).value == pytest.approx([0, 0], abs=1e-12)
    spectrum = eq.spectrum()
    assert spectrum.edges == pytest.approx(np.array([[-2.0, 2.0]]), abs=1e-9)
    assert spectrum.mass == pytest.approx(1, abs=1e-6)
    assert not spectrum.atoms
    agrees(equivalent(inv(GAMMA * eye(N) + Wigner("W", N, 1 / N))), 300, gamma=3.0)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 3.0])
def test_marchenko_pastur(ratio):
    Z = Gaussian("Z", P, N)
    eq = equivalent(inv(GAMMA * eye(N) + Z.T @ Z / N), {P / N: ratio})
    gamma = np.logspace(-6, 2, 30)
    b = gamma + ratio - 1
    disc = np.sqrt(b**2 + 4 * gamma)
    # the root of gamma m^2 + b m = 1 that does not cancel
    exact = np.where(b > 0, 2 / (disc + b), (disc - b) / (2 * gamma))
    found = eq.trace(gamma=gamma)
    assert found.converged.all()
    assert found.value == pytest.approx(exact, rel=1e-9)
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2
    x = np.linspace(low, high, 12)[1:-1]
    assert eq.density(x).value == pytest.approx(np.sqrt((x - low) * (high - x)) / (2 * np.pi * x), rel=1e-9)
    agrees(eq, 300, gamma=0.1)


def test_marchenko_pastur_edges_and_atom():
    Z = Gaussian("Z", P, N)
    found = equivalent(Z.T @ Z / N, {P / N: 0.25}).spectrum()
    assert found.edges == pytest.approx(np.array([[0.25, 2.25]]), abs=1e-9)
    assert found.atoms == pytest.approx({0.0: 0.75}, abs=1e-6)
    assert found.mass == pytest.approx(1, abs=1e-6)


def test_free_sum_of_wisharts():
    X, Y = Gaussian("X", N, P), Gaussian("Y", N, Q)
    eq = equivalent(inv(GAMMA * eye(N) + X @ X.T / P + Y @ Y.T / Q), {N / P: 0.5, N / Q: 2.0})
    m = root(lambda m: 1 / m - 0.3 - 1 / (1 + 0.5 * m) - 1 / (1 + 2.0 * m), high=10)
    assert float(eq.trace(gamma=0.3)) == pytest.approx(m, rel=1e-12)
    agrees(eq, 200, gamma=0.3)


def test_free_product_of_wisharts():
    X, Y = Gaussian("X", N, P), Gaussian("Y", N, Q)
    eq = equivalent(inv(GAMMA * eye(P) + X.T @ Y @ Y.T @ X / (P * Q)), {N / P: 0.5, N / Q: 2.0})
    w = root(lambda w: 0.3 * w - (1 - w) * (1 - 0.5 * w) * (1 - 2.0 * w), high=0.5)
    # the P x P matrix has the nonzero eigenvalues of the N x N one, and 1 - N/P zeros besides
    assert float(eq.trace(gamma=0.3)) == pytest.approx((1 - 0.5 * w) / 0.3, rel=1e-12)
    agrees(eq, 300, gamma=0.3)


@pytest.mark.parametrize("kind", ["diagonal", "given"])
def test_generalised_sample_covariance(kind):
    Z = Gaussian("Z", P, N)
    values, weights = np.array([0.2, 1.0, 5.0, 5.0]), np.full(4, 0.25)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    sigma = (
        Diagonal("S", P, values[:3], [0.25, 0.25, 0.5])
        if kind == "diagonal"
        else Given("S", P, P, rotation @ np.diag(values) @ rotation.T)
    )
    eq = equivalent(inv(GAMMA * eye(N) + Z.T @ sigma @ Z / N), {P / N: 0.5})
    m = root(lambda m: 1 / m - 0.1 - 0.5 * np.sum(weights * values / (1 + values * m)), high=20)
    assert float(eq.trace(gamma=0.1)) == pytest.approx(m, rel=1e-11)
    agrees(eq, 400, gamma=0.1)


def test_rectangular_given_matrix_plus_noise():
    A = Given("A", P, N, np.hstack([np.diag([0.5, 1.0, 2.0]), np.zeros((3, 3))]))
    Z = Gaussian("Z", P, N)
    eq = equivalent(inv(GAMMA * eye(P) + (A + Z / sqrt(N)) @ (A + Z / sqrt(N)).T), {P / N: 0.5})
    # information-plus-noise equations of Dozier and Silverstein 2007
    s = np.array([0.5, 1.0, 2.0])

    def gap(m):
        b = 1 + 0.5 * m
        return np.mean(1 / (0.2 * b + s**2 / b + (1 - 0.5))) - m

    assert float(eq.trace(gamma=0.2)) == pytest.approx(root(gap, high=50), rel=1e-11)
    agrees(eq, 300, gamma=0.2)


def test_inner_product_kernel_law():
    Z, W = Gaussian("Z", P, N), Wigner("W", N, 1 / P)
    a1, sigma = symbols("a1 sigma")
    eq = equivalent(a1 * (Z.T @ Z / P - eye(N)) + sigma * W, {P / N: 0.25})
    x = np.linspace(-1.0, 4.0, 23)
    m = np.full(x.shape, 1j)
    for _ in range(20000):
        new = -1 / (x + 1e-12j + 0.25 * m / (0.25 + 0.5 * m) + 0.04 * m / 0.25)
        m = 0.5 * (m + new)
    inside = m.imag > 1e-3
    found = eq.density(x, a1=0.5, sigma=0.2)
    assert inside.sum() > 15
    assert found.value[inside] == pytest.approx(m.imag[inside] / np.pi, rel=1e-6)


def test_kernel_of_a_nonlinearity_is_its_linearisation():
    Z = Gaussian("Z", P, N)
    kernel = entrywise(np.tanh, Z.T @ Z / sqrt(P)) / sqrt(P)
    eq = equivalent(inv(GAMMA * eye(N) + kernel), {P / N: 2.0})
    a1, nu = 0.6057055096021587, 0.3942944903978413
    m = root(lambda m: 1 / m - 2.0 - (-a1 + 2.0 * a1 / (2.0 + a1 * m) - (nu - a1**2) * m / 2.0), high=3)
    assert float(eq.trace(gamma=2.0)) == pytest.approx(m, rel=1e-8)
    agrees(eq, 400, gamma=2.0)


@pytest.mark.parametrize("correlation", [0.5, -0.3, 0.0])
def test_elliptic_law(correlation):
    X, z = Elliptic("X", N, correlation, 1 / N), Symbol("z")
    outside = equivalent(inv(z * eye(N) - X))
    scale = 2 * correlation
    m = (2 - np.sqrt(4 - 4 * correlation)) / scale if correlation else 0.5
    assert float(outside.trace(z=2.0)) == pytest.approx(m, rel=1e-12)
    agrees(outside, 200, z=2.0)
    # inside the ellipse X - z has no bounded inverse; the regularised one tends to z/(1 + correlation)
    A = z * eye(N) - X
    inside = equivalent(A.T @ inv(A @ A.T + GAMMA * eye(N)))
    assert float(inside.trace(z=0.4, gamma=1e-10)) == pytest.approx(0.4 / (1 + correlation), rel=1e-4)
    assert not outside.trace(z=0.4).converged


def test_product_of_three_has_fuss_catalan_moments():
    X = Gaussian("X", N, N, 1 / N) @ Gaussian("Y", N, N, 1 / N) @ Gaussian("V", N, N, 1 / N)
    eq = equivalent(inv(GAMMA * eye(N) + X.T @ X))
    w = root(lambda w: 0.2 * w - (1 - w) ** 4)
    assert float(eq.trace(gamma=0.2)) == pytest.approx((1 - w) / 0.2, rel=1e-12)
    assert float(equivalent(X.T @ X).trace()) == pytest.approx(1, rel=1e-12)
    assert float(equivalent(X.T @ X @ X.T @ X).trace()) == pytest.approx(4, rel=1e-12)
    agrees(eq, 200, gamma=0.2)
