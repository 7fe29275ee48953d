"""The probe's ridge curve against a direct solve for each ridge."""

import numpy as np
import pytest

from resolvent.simulate.probe import Probe, fitted

RIDGE = np.logspace(-6.0, 3.0, 10)


def problem(p: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    target = rng.choice([-1.0, 1.0], n)
    return rng.standard_normal((p, n)) + np.outer(rng.standard_normal(p), target), target


def direct(H: np.ndarray, t: np.ndarray, ridge: float) -> np.ndarray:
    p, n = H.shape
    return np.linalg.solve(H @ H.T + n * ridge * np.eye(p), H @ t)


@pytest.mark.parametrize(("p", "n"), [(30, 70), (50, 50), (90, 40), (2, 9), (9, 4)])
def test_curve_equals_a_solve_for_each_ridge(p: int, n: int) -> None:
    H, t = problem(p, n)
    probe = Probe.fit(H, t)
    w = probe.weights(RIDGE)
    assert w.shape == (RIDGE.size, p)
    for i, ridge in enumerate(RIDGE):
        expected = direct(H, t, ridge)
        np.testing.assert_allclose(w[i], expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        error = np.mean((t - H.T @ expected) ** 2)
        np.testing.assert_allclose(probe.train(RIDGE)[i], error, rtol=1e-6, atol=1e-13)
        Q = np.linalg.inv(H.T @ H / n + ridge * np.eye(n))
        np.testing.assert_allclose(error, ridge**2 / n * t @ Q @ Q @ t, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize(("p", "n"), [(30, 70), (50, 50), (90, 40)])
def test_ridge_zero_is_least_squares_of_least_norm(p: int, n: int) -> None:
    H, t = problem(p, n)
    probe = Probe.fit(H, t)
    expected = np.linalg.lstsq(H.T, t, rcond=None)[0]
    np.testing.assert_allclose(probe.weights(np.zeros(1))[0], expected, rtol=1e-7, atol=1e-8)
    error = np.mean((t - H.T @ expected) ** 2)
    np.testing.assert_allclose(probe.train(np.zeros(1))[0], error, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("p", "n"), [(30, 70), (90, 40)])
def test_ridge_zero_with_features_of_low_rank(p: int, n: int) -> None:
    rng = np.random.default_rng(3)
    H = rng.standard_normal((p, 5)) @ rng.standard_normal((5, n))
    t = rng.choice([-1.0, 1.0], n)
    probe = Probe.fit(H, t)
    expected = np.linalg.lstsq(H.T, t, rcond=1e-10)[0]
    np.testing.assert_allclose(probe.weights(np.zeros(1))[0], expected, atol=1e-10)
    np.testing.assert_allclose(probe.train(np.zeros(1))[0], np.mean((t - H.T @ expected) ** 2), rtol=1e-10)


@pytest.mark.parametrize(("p", "n"), [(3, 8), (8, 3)])
def test_features_that_vanish_explain_nothing(p: int, n: int) -> None:
    probe = Probe.fit(np.zeros((p, n)), np.ones(n))
    np.testing.assert_array_equal(probe.train(np.array([0.0, 1.0])), [1.0, 1.0])
    np.testing.assert_array_equal(probe.weights(np.array([0.0, 1.0])), np.zeros((2, p)))


@pytest.mark.parametrize(("p", "n"), [(30, 80), (50, 50), (80, 30)])
def test_one_ridge_is_the_curve_at_that_ridge(p: int, n: int) -> None:
    rng = np.random.default_rng(3)
    built, target = rng.standard_normal((p, n)), rng.choice([-1.0, 1.0], n)
    train, weights = fitted(built, target, np.array([0.1, 1.0]))
    for k, ridge in enumerate((0.1, 1.0)):
        one, w = fitted(built, target, np.array([ridge]))
        np.testing.assert_allclose(one[0], train[k], rtol=1e-10)
        np.testing.assert_allclose(w[0], weights[k], rtol=1e-8, atol=1e-12)
