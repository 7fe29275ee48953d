"""Corners of the allowed ranges: 50-digit values, and properties that hold everywhere."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.equivalents import AttentionErrors, attention_errors

CORNERS = json.loads((Path(__file__).parent / "corners.json").read_text())
"""The theory page's equations, with averages from the roots of Delta, in 110-digit arithmetic (mpmath),
rounded to 17 digits. Ridge down to 1e-10 at ratio 1e-3 to 1e3, skip connections, shifts and snr 1e4."""

GIVEN = ("train", "test", "t", "u", "alpha")


@pytest.fixture(scope="module")
def corners() -> AttentionErrors:
    arguments = [name for name in CORNERS[0] if name not in (*GIVEN, "f")]
    return attention_errors(**{name: np.array([corner[name] for corner in CORNERS]) for name in arguments})


@pytest.mark.parametrize("name", GIVEN)
def test_corners_agree_with_fifty_digits(corners: AttentionErrors, name: str) -> None:
    assert np.all(corners.converged)
    exact = np.array([corner[name] for corner in CORNERS])
    error = np.abs(getattr(corners, name) - exact) / np.where(exact != 0.0, np.abs(exact), 1.0)
    diverging = np.array([name == "test" and corner["sigma2"] == 0.0 for corner in CORNERS])
    assert np.all(error <= np.where(diverging, 1e-6, 1e-8))
    assert (error[~diverging] > 1e-9).sum() <= 1


def zero_or(low: float, high: float) -> st.SearchStrategy[float]:
    size = st.floats(np.log10(low), np.log10(high)).map(lambda e: 10.0**e)
    return st.one_of(st.just(0.0), size, size.map(lambda v: -v))


def positive(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(np.log10(low), np.log10(high)).map(lambda e: 10.0**e)


DIRECTIONS = [
    (1, 0, 0),
    (-1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (1, 1, 0),
    (1, -1, 0.5),
    (0.3, -0.2, -1),
    (1, 1e-6, 0),
]


@st.composite
def anywhere(draw: st.DrawFn) -> dict:
    """Every argument over its whole range, in units in which the attention matrix is of order one."""
    a1 = draw(zero_or(1e-6, 3.0))
    sizes = np.sqrt([draw(st.one_of(st.just(0.0), positive(1e-3, top))) for top in (1e4, 1e2, 1e2)])
    directions = np.array([draw(st.sampled_from(DIRECTIONS)) for _ in range(3)])
    vectors = sizes[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return {
        "ratio": draw(st.one_of(st.just(1.0), positive(1e-3, 1e3))),
        "ridge": draw(positive(1e-10, 1e4)),
        "a1": a1,
        "sigma2": draw(st.one_of(st.just(0.0), positive(1e-6, 10.0))),
        "gram": vectors @ vectors.T,
        "shift": draw(st.one_of(st.just(a1), zero_or(1e-6, 1e3))),
        "skip": draw(zero_or(1e-3, 1e2)),
        "mean_spike": draw(zero_or(1e-3, 1e6)),
        "a2": draw(zero_or(1e-3, 3.0)),
        "norm_variance": draw(st.one_of(st.just(0.0), positive(1e-2, 10.0))),
        "label_mean": draw(st.floats(-0.999, 0.999)),
        "target_overlap": draw(st.floats(-1.0, 1.0)),
    }


@settings(max_examples=200, deadline=None, derandomize=True)
@given(anywhere())
def test_every_setting_converges_to_possible_errors(setting: dict) -> None:
    e = attention_errors(**setting)
    assert e.converged
    assert e.residual <= 1e-9
    assert 0.0 <= e.train <= 1.0
    assert 0.0 <= e.test < np.inf
    assert e.t >= 0.0
    assert e.alpha >= setting["ridge"] * (1.0 - 1e-12)
    assert 0.0 < e.m <= 1.0 / setting["ridge"] * (1.0 + 1e-12)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(anywhere())
def test_training_error_grows_with_the_ridge(setting: dict) -> None:
    train = attention_errors(**{**setting, "ridge": np.logspace(-10.0, 4.0, 57)}).train
    assert np.all(np.diff(train) >= -1e-9 * train[1:])
    assert train[0] >= attention_errors(**{**setting, "ridge": 0.0}).train * (1.0 - 1e-6)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(anywhere())
def test_training_error_is_the_slope_of_the_quadratic_form(setting: dict) -> None:
    """For a random target y'Qy/n = m, so E = -ridge^2 dm/dridge: a derivative checked by a difference."""
    h = 1e-4
    setting = {**setting, "target_overlap": 0.0}
    ridge = setting["ridge"] * np.exp(h * np.arange(-2, 3))
    e = attention_errors(**{**setting, "ridge": ridge})
    difference = (8.0 * (e.m[3] - e.m[1]) - (e.m[4] - e.m[0])) / (12.0 * h)
    expected = -setting["ridge"] * difference
    assert abs(e.train[2] - expected) <= 1e-6 * expected + 1e-10


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.3, 1.0, 1e3, -1e6])
@pytest.mark.parametrize("sigma2", [0.0, 1e-12, 1e-4, 1e4])
def test_grid_of_ratio_and_ridge(shift: float, sigma2: float) -> None:
    e = attention_errors(
        ratio=np.append(np.logspace(-3.0, 3.0, 25), [1.0, 1.0 + 1e-9, 1.0 - 1e-9])[:, None],
        ridge=np.logspace(-10.0, 4.0, 29),
        a1=0.3,
        sigma2=sigma2,
        gram=np.array([[1e4, -20.0, 30.0], [-20.0, 1.0, 0.5], [30.0, 0.5, 2.0]]),
        shift=shift,
        label_mean=0.5,
        mean_spike=100.0,
        a2=0.2,
    )
    assert np.all(e.converged)
    assert np.all((e.train >= 0.0) & (e.train <= 1.0))
    assert np.all(np.isfinite(e.test))
    assert np.all(np.diff(e.train, axis=1) >= -1e-9 * e.train[:, 1:])


def test_no_value_without_convergence() -> None:
    """Far outside double precision the record says so; one such row leaves its neighbours alone."""
    ridge = np.array([0.1, 1e-40, 1e-3])
    e = attention_errors(ratio=7.0, ridge=ridge, a1=1e4, sigma2=0.2, gram=np.eye(3))
    assert e.converged.tolist() == [True, False, True]
    for name in ("train", "test", "t", "u", "alpha", "m"):
        assert np.isnan(getattr(e, name)).tolist() == [False, True, False]


def test_beyond_double_precision_a_value_is_right_or_missing() -> None:
    """f = identity at ridges where nothing is left of K's smallest eigenvalues: train is about 1 - ratio."""
    e = attention_errors(
        ratio=np.linspace(0.3, 0.8, 40)[:, None],
        ridge=np.logspace(-36.0, -12.0, 97),
        a1=1.0,
        sigma2=0.0,
        gram=np.zeros((3, 3)),
    )
    assert np.all(np.isnan(e.train) == ~e.converged)
    assert not np.all(e.converged)
    expected = np.broadcast_to(1.0 - np.linspace(0.3, 0.8, 40)[:, None], e.train.shape)
    np.testing.assert_allclose(e.train[e.converged], expected[e.converged], atol=1e-5)
    assert np.all(e.test[e.converged] > 1e3)


@pytest.mark.parametrize(
    ("ratio", "ridge", "a1", "sigma2", "shift"),
    [
        (1.657910770683478, 5769.675755602583, -7.197851802262552e-05, 0.18706, -0.8824218084074271),
        (
            0.2879964856682742,
            66.15053498936771,
            0.0020986118334510888,
            0.053541892013489245,
            1.080245827859982,
        ),
        (1.0, 5.626169152148847, 2.2805516257097916e-05, 0.0009597143194105346, 0.07037143869547689),
        (
            425.47621056686705,
            753.514858619908,
            -0.0012478445366472166,
            2.5990644687307736,
            -0.20574047255270458,
        ),
        (
            4.144108530283738,
            0.5812975112103619,
            -0.0010092805212395404,
            0.00381865997676713,
            -0.065436663231106,
        ),
        (10.110317639106663, 0.019218147647444096, -4.225925987926024e-06, 1.3078e-05, -0.002831556747633245),
    ],
)
def test_small_slopes_with_a_shift_converge(
    ratio: float, ridge: float, a1: float, sigma2: float, shift: float
) -> None:
    """alpha(rho) has a crest below the ridge: Newton's method circled between its two sides."""
    e = attention_errors(ratio=ratio, ridge=ridge, a1=a1, sigma2=sigma2, gram=np.eye(3), shift=shift)
    assert e.converged
    assert e.iterations < 30


def test_the_bulk_converges_wherever_alpha_has_a_crest() -> None:
    rng = np.random.default_rng(0)
    rows = 30_000
    ratio, shift = 10.0 ** rng.uniform(-3.0, 3.0, rows), rng.normal(size=rows)
    a1 = shift * 10.0 ** rng.uniform(-5.0, 0.2, rows)
    e = attention_errors(
        ratio=ratio,
        ridge=np.clip(ratio * np.abs(shift**3 / a1) * 10.0 ** rng.normal(0.0, 1.5, rows), 1e-10, 1e4),
        a1=a1,
        sigma2=np.minimum(ratio * shift**2 * 10.0 ** rng.uniform(-6.0, 1.0, rows), 100.0),
        gram=np.eye(3),
        shift=shift,
    )
    assert np.all(e.converged)
    assert e.iterations.mean() < 5.0
