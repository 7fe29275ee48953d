"""Coefficients against closed forms, 40-digit quadrature and naive sums; exact parity; what is refused."""

from math import acos, asin, exp, pi, sqrt

import numpy as np
import pytest
from closed_forms import CLOSED_FORMS
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from resolvent.nonlinearity import Coefficients, Nonlinearity, known_names, nonlinearity, polynomial

RELATIVE = 1e-10

# a0, a1, a2, sigma2 of the uncentred function under N(0, s^2), by 40-digit quadrature
FORTY_DIGITS = {
    ("tanh", 0.01): (0, 0.009999000199943354, 0, 6.6613368776301243e-13),
    ("tanh", 1): (0, 0.60570550960215883, 0, 0.027415326035430257),
    ("tanh", 2.5): (0, 0.7514485442798347, 0, 0.13474566758778342),
    ("sigmoid", 0.01): (0.5, 0.0024999375031247787, 0, 2.6036459199074027e-15),
    ("sigmoid", 1): (0.5, 0.20662096414190704, 0, 0.00068681303516172904),
    ("sigmoid", 2.5): (0.5, 0.3276877110604952, 0, 0.011545679595735328),
    ("silu", 0.01): (2.4999375031247787e-5, 0.005, 3.5353571424944411e-5, 1.2498750135400002e-9),
    ("silu", 1): (0.20662096414190704, 0.5, 0.24808519283030007, 0.063083296994420923),
    ("silu", 2.5): (0.81921927765123801, 1.25, 0.75788706430845956, 0.63878488768366825),
    ("softplus", 0.01): (0.69315968040370052, 0.005, 1.7677227610020968e-5, 3.1248437604157879e-10),
    ("softplus", 1): (0.80605918334743978, 0.5, 0.14610308488004494, 0.021514501800558732),
    ("softplus", 2.5): (1.2257668005474323, 1.25, 0.57927550650593548, 0.35168085081338884),
}

EVEN = ["abs", "cos", "hermite2", "quadratic", "t*tanh(t)", "abs(sin(5*t))", "exp(-t^2)", "abs(t)^0.5"]
ODD = ["identity", "tanh", "erf", "sign", "sin", "hermite3", "cubic", "t/(1+t^2)", "sign(t)*sqrt(abs(t))"]


def scales_for(name: str) -> list[float]:
    return [0.2, 1.0, 2.5] if name.startswith(("exp", "elu")) else [0.05, 0.7, 1.0, 3.0, 40.0]


@pytest.mark.parametrize(("name", "scale"), [(name, s) for name in CLOSED_FORMS for s in scales_for(name)])
def test_closed_form(name: str, scale: float) -> None:
    a0, a1, a2, nu = CLOSED_FORMS[name](scale)
    got = nonlinearity(name, centred=False).coefficients(scale)
    # t^2 - 1 at scale near 1 and the like: a difference is judged by its terms
    size = 1e-14 * sqrt(nu)
    assert got.a0 == pytest.approx(a0, rel=RELATIVE, abs=size)
    assert got.a1 == pytest.approx(a1, rel=RELATIVE, abs=size)
    assert got.a2 == pytest.approx(a2, rel=RELATIVE, abs=size)
    assert got.nu == pytest.approx(nu, rel=RELATIVE)
    assert got.sigma2 == pytest.approx(nu - a0**2 - a1**2, rel=RELATIVE, abs=1e-14 * nu)


@pytest.mark.parametrize(("name", "scale"), FORTY_DIGITS)
def test_forty_digits(name: str, scale: float) -> None:
    a0, a1, a2, sigma2 = FORTY_DIGITS[name, scale]
    got = nonlinearity(name, centred=False).coefficients(scale)
    # what is left of f after a0 and a1 carries the rounding of f itself
    rounding = 2 * np.finfo(float).eps * abs(a0) / sqrt(sigma2)
    assert got.a0 == pytest.approx(a0, rel=RELATIVE)
    assert got.a1 == pytest.approx(a1, rel=RELATIVE)
    assert got.a2 == pytest.approx(a2, rel=max(RELATIVE, rounding))
    assert got.sigma2 == pytest.approx(sigma2, rel=max(RELATIVE, rounding))


def test_values_of_the_theory_page() -> None:
    relu = nonlinearity("relu").coefficients()
    assert (relu.a1, relu.a2) == pytest.approx((1 / 2, 1 / (2 * sqrt(pi))), rel=1e-14)
    raw = nonlinearity("relu", centred=False).coefficients()
    assert (raw.a0, raw.nu) == pytest.approx((1 / sqrt(2 * pi), 1 / 2), rel=1e-14)
    tilted = nonlinearity("exp(t - 1/2)", centred=False).coefficients()
    assert (tilted.a0, tilted.a1, tilted.a2, tilted.nu) == pytest.approx(
        (1, 1, 1 / sqrt(2), exp(1)), rel=1e-14
    )
    hermite3 = nonlinearity("t^3 - 3*t").coefficients()
    assert hermite3.a1 == 0.0
    assert hermite3.nu == pytest.approx(6, rel=1e-14)


@pytest.mark.parametrize("name", ["t", "2*t - 3", "identity", "-t/3", "1e6 + t", "0.1*t + t"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 7.3])
def test_no_noise_in_a_linear_function(name: str, scale: float) -> None:
    coefficients = nonlinearity(name).coefficients(scale)
    assert coefficients.sigma2 == 0.0
    assert coefficients.a2 == 0.0
    assert coefficients.linear_share == 1.0


@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_even_functions_have_no_linear_part(name: str, scale: float) -> None:
    f = nonlinearity(name, centred=False)
    assert f.parity(scale) == "even"
    assert [f.hermite(k, scale) for k in (1, 3, 5, 7)] == [0.0] * 4


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_odd_functions_have_no_even_part(name: str, scale: float) -> None:
    f = nonlinearity(name, centred=False)
    assert f.parity(scale) == "odd"
    assert [f.hermite(k, scale) for k in (0, 2, 4, 6)] == [0.0] * 4


def test_parity_is_of_f_less_its_mean() -> None:
    assert nonlinearity("sigmoid").parity() == "odd"
    assert nonlinearity("relu").parity() == "neither"


@pytest.mark.parametrize("name", known_names())
def test_centring_removes_the_mean_only(name: str) -> None:
    raw, centred = (nonlinearity(name, centred=c).coefficients(0.8) for c in (False, True))
    assert centred.a0 == 0.0
    assert (centred.a1, centred.a2, centred.sigma2) == (raw.a1, raw.a2, raw.sigma2)
    assert centred.nu == pytest.approx(raw.nu - raw.a0**2, rel=1e-10)


@pytest.mark.parametrize("name", ["tanh", "sin", "gelu", "exp", "hermite3"])
def test_smooth_functions_agree_with_gauss_hermite(name: str) -> None:
    x, w = hermegauss(200)
    w = w / w.sum()
    f = nonlinearity(name)
    values = f.evaluate(x)
    got = f.coefficients()
    naive = [w @ values, w @ (x * values), w @ ((x**2 - 1) * values) / sqrt(2), w @ values**2]
    assert [got.a0, got.a1, got.a2, got.nu] == pytest.approx(naive, abs=1e-9 * got.nu)


MEHLER = {
    "relu": lambda r: (sqrt(1 - r**2) + r * (pi - acos(r))) / (2 * pi),
    "abs": lambda r: 2 / pi * (sqrt(1 - r**2) + r * asin(r)),
    "sign": lambda r: 2 / pi * asin(r),
    "erf": lambda r: 2 / pi * asin(2 * r / 3),
    "exp": lambda r: exp(1 + r),
    "cubic": lambda r: 9 * r + 6 * r**3,
}


@pytest.mark.parametrize("name", MEHLER)
@pytest.mark.parametrize("r", [-0.6, 0.3, 0.8])
def test_all_degrees_by_the_mehler_sum(name: str, r: float) -> None:
    """E f(xi) f(xi') at correlation r is sum_k a_k^2 r^k."""
    f = nonlinearity(name, centred=False)
    series = sum(f.hermite(k) ** 2 * r**k for k in range(150))
    assert series == pytest.approx(MEHLER[name](r), rel=1e-12)


def test_hermite_coefficients_of_relu_to_high_degree() -> None:
    """a_2k = (-1)^(k-1) (2k - 3)!! / sqrt(2 pi (2k)!)."""
    f = nonlinearity("relu", centred=False)
    product = 1 / sqrt(2 * pi)
    for k in range(1, 41):
        product *= max(2 * k - 3, 1) / sqrt((2 * k) * (2 * k - 1))
        assert f.hermite(2 * k) == pytest.approx((-1) ** (k - 1) * product, rel=1e-10)


def test_oscillation_and_sharp_steps() -> None:
    b = 0.77
    step = nonlinearity("tanh(10000*(t - 0.77))", centred=False).coefficients()
    density = exp(-(b**2) / 2) / sqrt(2 * pi)
    # a step smoothed over 1e-4 differs from sign(t - b) at second order
    assert step.a1 == pytest.approx(2 * density, rel=1e-7)
    fast = nonlinearity("sin(100*t + 1)", centred=False).coefficients()
    assert fast.nu == pytest.approx(0.5, rel=1e-12)
    folded = nonlinearity("abs(sin(5*t))", centred=False).coefficients()
    assert folded.a0 == pytest.approx(2 / pi - 4 / (3 * pi) * exp(-50), rel=1e-12)
    assert folded.nu == pytest.approx((1 - exp(-50)) / 2, rel=1e-12)


def test_a_kink_that_is_not_told_costs_no_digits() -> None:
    b = 0.4321
    told = nonlinearity(lambda t: np.where(t > b, t * t, np.exp(t)), breakpoints=(b,)).coefficients()
    found = nonlinearity(lambda t: np.where(t > b, t * t, np.exp(t))).coefficients()
    for name, value in told.as_dict().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-11)


@given(
    coefficients=st.lists(st.floats(-5, 5).map(lambda c: round(c, 6)), min_size=2, max_size=6),
    scale=st.floats(0.1, 3),
)
@settings(max_examples=60, deadline=None)
def test_polynomials_against_exact_moments(coefficients: list[float], scale: float) -> None:
    if not any(coefficients[1:]):
        coefficients[1] = 1.0
    scaled = [c * scale**k for k, c in enumerate(coefficients)]
    moment = [1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945, 0, 10395]
    a0 = sum(c * moment[k] for k, c in enumerate(scaled))
    a1 = sum(c * moment[k + 1] for k, c in enumerate(scaled))
    nu = sum(c * d * moment[j + k] for j, c in enumerate(scaled) for k, d in enumerate(scaled))
    size = sum(abs(c) * moment[2 * k] ** 0.5 for k, c in enumerate(scaled))
    got = polynomial(*coefficients, centred=False).coefficients(scale)
    assert got.a0 == pytest.approx(a0, abs=1e-13 * size)
    assert got.a1 == pytest.approx(a1, abs=1e-13 * size)
    assert got.nu == pytest.approx(nu, abs=1e-13 * size**2)
    assert got.sigma2 >= 0


@given(
    shift=st.floats(-4, 4),
    scale=st.floats(0.05, 20),
    kind=st.sampled_from(["relu(t - {})", "sign(t - {})", "abs(t - {})", "tanh(t - {})", "maximum(t, {})"]),
)
@settings(max_examples=60, deadline=None)
def test_invariants(shift: float, scale: float, kind: str) -> None:
    c = nonlinearity(kind.format(repr(shift)), centred=False).coefficients(scale)
    assert c.sigma2 >= 0
    assert c.sigma2 + 1e-14 * c.nu >= c.a2**2 * (1 - 1e-10)
    assert 0 <= c.linear_share <= 1
    assert all(np.isfinite(list(c.as_dict().values())))


@pytest.mark.parametrize(
    ("expression", "scale", "words"),
    [
        ("log(t)", 1, "not finite at t = 0"),
        ("1/t", 1, "not finite at t = 0"),
        ("sqrt(t + 1)", 1, "not finite at t = -1.0"),
        ("1/abs(t)^0.6", 1, "not finite at t = 0"),
        ("1/(t - 1)", 1, "not finite at t = 1|near .t. = 1"),
        ("1/abs(t - 1.5)^0.6", 1, "not finite at t = 1.5|near .t. = 1.5"),
        ("exp(t^2)", 1, "not square-integrable"),
        ("exp(t^2/3)", 1, "not square-integrable"),
        ("exp(t^2/4)", 1, "not square-integrable"),
        ("exp(-t^2/3)*exp(2*t^2/3)", 1, "not square-integrable"),
        ("exp(t^2/5)", 1.2, "not square-integrable"),
        ("exp(t^2)", 0.5, "not square-integrable"),
        ("1e-200*exp(t^2/3)", 1, "not square-integrable"),
        ("exp(t)", 30, "not square-integrable"),
        ("1e200*t", 1, "overflows"),
        ("where(t > 1, log(t - 2), t)", 1, "not finite at t = 1"),
        ("sin(1/(t - 0.3))", 1, "too irregular to integrate"),
    ],
)
def test_refused(expression: str, scale: float, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        nonlinearity(expression).coefficients(scale)
    assert str(caught.value).startswith(expression)
    assert "\n" not in str(caught.value)


def test_square_integrable_by_a_little_is_accepted() -> None:
    """E exp(2 t^2/k) = (1 - 4/k)^(-1/2)."""
    got = nonlinearity("exp(t^2/4.3)", centred=False).coefficients()
    assert got.nu == pytest.approx((1 - 4 / 4.3) ** -0.5, rel=1e-10)


def test_a_weak_singularity_where_f_is_defined() -> None:
    """E |xi|^(1/5) = 2^(1/10) Gamma(3/5)/sqrt(pi); the slope of f is infinite at 0."""
    got = nonlinearity("abs(t)^0.1", centred=False).coefficients()
    assert got.nu == pytest.approx(2**0.1 * 1.4891922488128171 / sqrt(pi), rel=1e-10)


def test_a_noisy_callable_is_refused_and_not_averaged() -> None:
    coarse = nonlinearity(lambda t: np.tanh(t).astype(np.float16).astype(float))
    with pytest.raises(ValueError, match="too irregular"):
        coarse.coefficients()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be positive and finite, got"):
        nonlinearity("tanh").coefficients(scale)


@pytest.mark.parametrize("degree", [-1, 257])
def test_degree_is_bounded(degree: int) -> None:
    with pytest.raises(ValueError, match="degree must be between 0 and 256"):
        nonlinearity("tanh").hermite(degree)


def test_records_read_well() -> None:
    text = str(nonlinearity("relu").coefficients())
    assert text == "a0 = 0  a1 = 0.5  a2 = 0.282095  nu = 0.340845  sigma2 = 0.0908451"
    assert Coefficients(0, 0, 0, 0, 0).linear_share == 0
    assert isinstance(nonlinearity("relu"), Nonlinearity)
