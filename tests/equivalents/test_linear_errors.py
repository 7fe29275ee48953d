"""Linear regression: published values, the theory page's section 6 retyped, limits and invariances."""

import numpy as np
import pytest

from resolvent.equivalents import linear_errors


@pytest.mark.parametrize(("snr", "published"), [(0.0, 0.75), (1.0, 0.375), (10.0, 0.0682)])
def test_published_values(snr: float, published: float) -> None:
    """Figure of arXiv 2506.18656: p = 512, n = 2048, ridge 1e-5."""
    assert linear_errors(ratio=0.25, ridge=1e-5, snr=snr).train == pytest.approx(published, abs=5e-5)


def quadratic_forms(c: float, gamma: float, snr: float) -> tuple[float, float, float]:
    """m, A = y'Qy/n and r, from the roots as the theory page gives them."""
    m = max(np.roots([gamma, gamma + c - 1.0, -1.0]).real)
    mt = max(np.roots([c * gamma, gamma + 1.0 - c, -1.0]).real)
    r = snr * gamma * m * mt
    return m, m / (1.0 + r), r


def naive(c: float, gamma: float, snr: float, kappa: float) -> tuple[float, float]:
    def A(at: float) -> float:
        m, form, _ = quadratic_forms(c, at, snr)
        return (1.0 - kappa**2) * m + kappa**2 * form

    h = 1e-3 * gamma
    slope = (8.0 * (A(gamma + h) - A(gamma - h)) - (A(gamma + 2 * h) - A(gamma - 2 * h))) / (12.0 * h)
    r = quadratic_forms(c, gamma, snr)[2]
    learnt = r / (1.0 + r)
    bias = 1.0 - 2.0 * kappa**2 * learnt + kappa**2 * learnt**2
    return -(gamma**2) * slope, bias + A(gamma) + gamma * slope


@pytest.mark.parametrize("kappa", [1.0, 0.6, 0.0, -1.0])
@pytest.mark.parametrize("snr", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("gamma", [0.01, 0.3, 20.0])
@pytest.mark.parametrize("c", [0.1, 0.7, 1.0, 4.0])
def test_agrees_with_the_naive_formulas(c: float, gamma: float, snr: float, kappa: float) -> None:
    mine = linear_errors(ratio=c, ridge=gamma, snr=snr, target_overlap=kappa)
    train, test = naive(c, gamma, snr, kappa)
    assert mine.train == pytest.approx(train, rel=1e-8)
    assert mine.test == pytest.approx(test, rel=1e-8)


@pytest.mark.parametrize("snr", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("c", [1e-3, 0.25, 0.999])
def test_ridgeless_below_ratio_one(c: float, snr: float) -> None:
    assert linear_errors(ratio=c, ridge=0.0, snr=snr).train == pytest.approx(
        (1.0 - c) / (1.0 + snr), rel=1e-13
    )


@pytest.mark.parametrize("c", [1.001, 2.0, 1e3])
def test_beyond_ratio_one_the_training_error_falls_like_the_ridge_squared(c: float) -> None:
    ridge = 1e-6 * (c - 1.0) ** 2 / c
    e = linear_errors(ratio=c, ridge=[0.0, ridge, 2.0 * ridge], snr=1.0)
    assert e.train[0] == 0.0
    assert e.train[2] / e.train[1] == pytest.approx(4.0, rel=1e-3)
    assert e.test[0] == pytest.approx(e.test[1], rel=1e-3)


def test_at_ratio_one_the_ridgeless_test_error_is_infinite() -> None:
    e = linear_errors(ratio=1.0, ridge=0.0, snr=1.0)
    assert (e.train, e.test) == (0.0, np.inf)


def test_extremes_stay_finite_and_monotone() -> None:
    ratio, snr = np.logspace(-3.0, 3.0, 31)[:, None, None], np.logspace(-2.0, 4.0, 7)[:, None]
    e = linear_errors(ratio=ratio, ridge=np.logspace(-10.0, 4.0, 57), snr=snr, target_overlap=0.9)
    assert np.all(np.isfinite(e.test) & (e.train >= 0.0) & (e.train <= 1.0))
    assert np.all(np.diff(e.train, axis=-1) > -1e-15)


def test_the_sign_of_the_overlap_does_not_matter_and_numbers_stay_plain() -> None:
    one, two = (linear_errors(ratio=0.5, ridge=0.1, snr=1.0, target_overlap=k) for k in (0.4, -0.4))
    assert one == two
    assert type(one.train) is float
