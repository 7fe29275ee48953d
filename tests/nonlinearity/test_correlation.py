"""Noise covariances on correlated scores against closed forms and the Hermite series."""

import numpy as np
import pytest

from resolvent.nonlinearity import noise_covariance, nonlinearity


@pytest.mark.parametrize("rho", [-1.0, -0.8, -0.3, 0.0, 0.5, 0.7, 0.99, 1.0])
def test_relu_is_the_arc_cosine_kernel(rho):
    # E[relu relu'] = (sqrt(1 - rho^2) + (pi - arccos rho) rho)/(2 pi), less its degrees 0 and 1
    relu = nonlinearity("relu")
    second = (np.sqrt(1 - rho**2) + (np.pi - np.arccos(rho)) * rho) / (2 * np.pi)
    assert noise_covariance(relu, relu, rho) == pytest.approx(second - 1 / (2 * np.pi) - rho / 4, abs=1e-8)


@pytest.mark.parametrize("rho", [-1.0, -0.5, 0.3, 0.9, 1.0])
def test_sign_is_an_arc_sine(rho):
    sign = nonlinearity("sign")
    assert noise_covariance(sign, sign, rho) == pytest.approx(2 / np.pi * (np.arcsin(rho) - rho), abs=1e-7)


@pytest.mark.parametrize("rho", [-1.0, -0.75, 0.59, 0.61, 1.0])
def test_two_functions_at_two_scales_follow_the_series(rho):
    f, g = nonlinearity("exp(t/2)"), nonlinearity("tanh(t + 1/2)")
    series = sum(f.hermite(k, 0.8) * g.hermite(k, 1.3) * rho**k for k in range(2, 120))
    assert noise_covariance(f, g, rho, scale_f=0.8, scale_g=1.3) == pytest.approx(series, abs=1e-10)
    assert noise_covariance(g, f, rho, scale_f=1.3, scale_g=0.8) == pytest.approx(series, abs=1e-10)


def test_kinks_meet_at_full_correlation():
    # relu = (t + |t|)/2, so its noise is half that of |t|
    relu, absolute = nonlinearity("relu"), nonlinearity("abs")
    power = absolute.coefficients().sigma2
    assert noise_covariance(relu, absolute, 1.0) == pytest.approx(power / 2, rel=1e-12)
    assert noise_covariance(relu, absolute, -1.0) == pytest.approx(power / 2, rel=1e-12)


def test_impossible_correlation_is_refused():
    f = nonlinearity("tanh")
    with pytest.raises(ValueError, match=r"rho must be between -1 and 1, got 1\.2"):
        noise_covariance(f, f, 1.2)
