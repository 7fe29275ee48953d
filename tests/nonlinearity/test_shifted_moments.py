"""Moments at many shifts and scales: against coefficients, closed forms and a brute-force sum."""

from math import pi, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from resolvent.nonlinearity import known_names, nonlinearity

RNG = np.random.default_rng(0)
SHIFT = RNG.normal(size=(6, 7)) * 2
SCALE = RNG.uniform(0.05, 3, size=(6, 7))


def density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / sqrt(2 * pi)


@pytest.mark.parametrize("name", [*known_names(), "relu(t - 0.3)", "where(t > 0.1, t^2, -1)"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("centred", [True, False])
def test_no_shift_gives_the_coefficients(name: str, scale: float, centred: bool) -> None:
    f = nonlinearity(name, centred=centred)
    c = f.coefficients(scale)
    m = f.moments(0.0, scale, reference=scale)
    size = sqrt(c.nu)
    assert m.m0 == pytest.approx(c.a0, abs=1e-10 * size)
    assert m.m1 * scale == pytest.approx(c.a1, abs=1e-10 * size)
    assert m.second == pytest.approx(c.nu, rel=1e-10)


@pytest.mark.parametrize("name", ["tanh", "gelu", "cos", "exp", "cubic", "silu", "tanh(8*t)"])
def test_smooth_functions_against_a_brute_force_sum(name: str) -> None:
    """The trapezium rule converges geometrically for smooth f."""
    f = nonlinearity(name)
    x = np.linspace(-20, 20, 8001)
    w = density(x) * (x[1] - x[0])
    values = f.evaluate(SHIFT[..., None] + SCALE[..., None] * x)
    m = f.moments(SHIFT, SCALE)
    size = np.sqrt(m.second)
    assert np.abs(m.m0 - values @ w).max() <= 1e-10 * size.max()
    assert (np.abs(m.m0 - values @ w) <= 1e-10 * size).all()
    assert (np.abs(m.m1 - values @ (w * x) / SCALE) <= 1e-10 * size / SCALE).all()
    np.testing.assert_allclose(m.second, values**2 @ w, rtol=1e-10)


def test_relu_and_sign_in_closed_form() -> None:
    b = SHIFT / SCALE
    relu = nonlinearity("relu", centred=False).moments(SHIFT, SCALE)
    size = np.sqrt(relu.second)
    assert (np.abs(relu.m0 - (SHIFT * ndtr(b) + SCALE * density(b))) <= 1e-10 * size).all()
    assert (np.abs(relu.m1 - ndtr(b)) <= 1e-10 * size / SCALE).all()
    second = (SHIFT**2 + SCALE**2) * ndtr(b) + SHIFT * SCALE * density(b)
    np.testing.assert_allclose(relu.second, second, rtol=1e-9, atol=1e-14)
    sign = nonlinearity("sign", centred=False).moments(SHIFT, SCALE)
    np.testing.assert_allclose(sign.m0, 2 * ndtr(b) - 1, atol=1e-10)
    np.testing.assert_allclose(sign.m1 * SCALE, 2 * density(b), atol=1e-10)
    np.testing.assert_allclose(sign.second, 1, rtol=1e-10)


def test_kinks_that_are_not_told() -> None:
    b = (SHIFT - 0.3) / SCALE
    step = nonlinearity("where(t > 0.3, 1, 0*t)", centred=False).moments(SHIFT, SCALE)
    np.testing.assert_allclose(step.m0, ndtr(b), atol=1e-10)
    np.testing.assert_allclose(step.m1 * SCALE, density(b), atol=1e-10)
    bend = nonlinearity("relu(t - 0.3)", centred=False).moments(SHIFT, SCALE)
    np.testing.assert_allclose(bend.m1, ndtr(b), atol=1e-9)


def test_linear_functions_are_exact_at_every_size() -> None:
    f = nonlinearity("2*t + 1", centred=False)
    shift, scale = np.array([0.0, 1e3, -7.0, 1e-9]), np.array([1e-6, 1e4, 1e-2, 1.0])
    m = f.moments(shift, scale)
    np.testing.assert_allclose(m.m0, 2 * shift + 1, rtol=1e-13)
    np.testing.assert_allclose(m.m1, 2, rtol=1e-7)
    np.testing.assert_allclose(m.second, (2 * shift + 1) ** 2 + 4 * scale**2, rtol=1e-12)


def test_exponentials_need_a_wider_window() -> None:
    """E e^(m + s xi) = e^(m + s^2/2), and the square's mass lies 2 s deviations out."""
    m = nonlinearity("exp", centred=False).moments([0.0, 2.0], [4.0, 6.0])
    np.testing.assert_allclose(m.m0, np.exp([8, 2 + 18]), rtol=1e-9)
    np.testing.assert_allclose(m.second, np.exp([32, 4 + 72]), rtol=1e-9)


def test_centring_uses_the_reference_and_not_the_pair() -> None:
    raw, centred = nonlinearity("relu", centred=False), nonlinearity("relu")
    mean = 2 / sqrt(2 * pi)
    a, b = raw.moments(SHIFT, SCALE), centred.moments(SHIFT, SCALE, reference=2.0)
    np.testing.assert_allclose(b.m0, a.m0 - mean, atol=1e-10)
    np.testing.assert_allclose(b.m1, a.m1, atol=1e-9)
    np.testing.assert_allclose(b.second, a.second - 2 * mean * a.m0 + mean**2, atol=1e-9)


def test_shapes_broadcast() -> None:
    f = nonlinearity("tanh")
    m = f.moments(SHIFT[:, :1], SCALE[:1])
    assert m.m0.shape == m.m1.shape == m.second.shape == (6, 7)
    one = f.moments(SHIFT[2, 0], SCALE[0, 3])
    assert one.m0.shape == ()
    assert one.m0 == pytest.approx(m.m0[2, 3], rel=1e-12)
    assert f.moments(np.empty(0), 1.0).m0.shape == (0,)


@pytest.mark.parametrize(
    ("spec", "shift", "scale", "words"),
    [
        ("tanh", np.nan, 1.0, "shift must be finite"),
        ("tanh", 0.0, 0.0, "scale must be positive and finite"),
        ("tanh", 0.0, -1.0, "scale must be positive and finite"),
        ("tanh", 0.0, np.inf, "scale must be positive and finite"),
        ("exp(t^2/6)", 0.0, [1.0, 2.0], r"exp\(t\^2/6\) is not square-integrable under N\(0, 2\^2\)"),
        ("exp(t^2/6)", 3.0, [1.3], "is not square-integrable"),
        ("log(t + 20)", [0.0, 20.0], 3.0, r"log\(t \+ 20\) is not finite at t = -"),
        ("sin(1/(t - 20))", 20.0, 1.0, "too irregular to integrate near t = 20"),
    ],
)
def test_refused(spec: str, shift: float, scale: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        nonlinearity(spec, centred=False).moments(shift, scale)
