"""Expressions: what they mean, and that nothing but a one-line ValueError comes of a bad one."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resolvent.nonlinearity import known_names, nonlinearity, polynomial
from resolvent.nonlinearity.expression import NAMES, Expression

T = np.linspace(-3, 3, 41)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("t", T),
        ("-t + +2", 2 - T),
        ("t*tanh(t)", T * np.tanh(T)),
        ("t^3 - 3*t", T**3 - 3 * T),
        ("-t^2", -(T**2)),
        ("2^-t", 2.0**-T),
        ("(t + 4)**-2 * (t + 4)**4", (T + 4) ** 2),
        ("(t^2 + 1)^0.5", np.sqrt(T**2 + 1)),
        ("2^0.5*t", np.sqrt(2) * T),
        ("pi*t/e", np.pi * T / np.e),
        ("where(t >= 0.123, t, -1)", np.where(T >= 0.123, T, -1)),
        ("where(1 < t, t^2, where(t < -1, 0, 3))", np.where(T > 1, T**2, np.where(T < -1, 0, 3))),
        ("maximum(t, 0) - minimum(t, 0)", np.abs(T)),
        ("log1p(t^2) + expm1(t) + arctan(t)", np.log1p(T**2) + np.expm1(T) + np.arctan(T)),
        ("exp(t - 1/2)", np.exp(T - 0.5)),
        ("1e3*t + 1_000", 1000 * T + 1000),
        ("t^11", T**11),
    ],
)
def test_meaning(source: str, values: np.ndarray) -> None:
    np.testing.assert_allclose(Expression(source)(T), values, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", known_names())
def test_every_name_is_a_function_too(name: str) -> None:
    np.testing.assert_array_equal(Expression(f"{name}(t)")(T), nonlinearity(name, centred=False)(T))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "cannot be read"),
        ("t +", "cannot be read"),
        ("t t", "cannot be read"),
        ("2t", "cannot be read"),
        ("t\x00", "cannot be read"),
        ("(" * 400 + "t" + ")" * 10, "cannot be read"),
        ("x + t", "unknown name 'x'"),
        ("tahn(t)", "unknown name 'tahn' in the expression, did you mean 'tanh'"),
        ("gleu(t)*2", "did you mean 'gelu'"),
        ("t*tanh", "tanh is a function: write tanh\\(t\\)"),
        ("tanh(t, 2)", "tanh takes 1 argument, got 'tanh\\(t, 2\\)'"),
        ("tanh()", "tanh takes 1 argument"),
        ("maximum(t)", "maximum takes 2 arguments"),
        ("where(t > 0, t)", "where takes 3 arguments"),
        ("where(t, 1, 2)", "where needs a condition such as t > 0, got 't'"),
        ("where(0 < t < 1, 1, 2)", "where needs a condition"),
        ("where(t == 0, 1, 2)", "where needs a condition"),
        ("t > 0", "'t > 0' is not allowed"),
        ("t(2)", "t is not a function"),
        ("3", "must depend on t"),
        ("pi", "must depend on t"),
        ("sin(1) + 2", "must depend on t"),
        ("t + True", "True is not a real number"),
        ("t + 2j", "2j is not a real number"),
        ("t + 'a'", "'a' is not a real number"),
        ("t + None", "None is not a real number"),
        ("t + 1e999", "too large for double precision"),
        ("t + 1" + "0" * 400, "too large for double precision"),
        ("t + 9**9**9", "exponents must lie in"),
        ("t**9**9", "exponents must lie in"),
        ("t**65", "exponents must lie in \\[-64, 64\\], got 65"),
        ("t + 1/0", "'1 / 0' is not a finite number"),
        ("t + log(-1)", "'log\\(-1\\)' is not a finite number"),
        ("t + (-1)**0.5", "is not a finite number"),
        ("t // 2", "'t // 2' is not allowed"),
        ("t % 2", "'t % 2' is not allowed"),
        ("t @ t", "is not allowed"),
        ("~t", "'~t' is not allowed"),
        ("not t", "is not allowed"),
        ("t and t", "is not allowed"),
        ("t if t else t", "is not allowed"),
        ("lambda t: t", "is not allowed"),
        ("[t for t in t]", "is not allowed"),
        ("t.__class__", "'t.__class__' is not allowed"),
        ("t[0]", "is not allowed"),
        ("(t, t)", "is not allowed"),
        ("tanh(x=t)", "is not allowed"),
        ("tanh(*t)", "is not allowed"),
        ("(t := 3)", "is not allowed"),
        ("f'{t}'", "is not allowed"),
        ("__import__('os').system('x')", "is not allowed"),
        ("eval('t')", "unknown name 'eval'"),
        ("-" * 100 + "t", "nested too deeply"),
        ("t" + "+t" * 300, "too long: 601 characters"),
        ("t" + "+t" * 100, "nested too deeply"),
        ("[" + "-" * 498 + "t]", "too long"),
        ("[" + "-" * 490 + "t]", "is not allowed"),
    ],
)
def test_refused(source: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Expression(source)
    assert "\n" not in str(caught.value)


def values_or_message(source: str) -> np.ndarray | str:
    try:
        return Expression(source)(T)
    except ValueError as error:
        return str(error)


SYMBOLS = "( ) + - * / ** ^ , < >= == 0 1 2.5 9 1e300 1j [ ] . : = ' \" lambda if else not and # \\ { } t t t"
PIECES = st.sampled_from([*NAMES, "foo", " ", "\n", *SYMBOLS.split()])


@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60)))
@example("1or t")
@example("1(t)")
@example("t\n\n+1")
@example("\ud800")
@example("1_0_0__0*t")
@settings(max_examples=1500, deadline=None)
def test_any_text_gives_values_or_a_one_line_value_error(source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = values_or_message(source)
    assert (
        "\n" not in values if isinstance(values, str) else (values.shape, values.dtype) == (T.shape, T.dtype)
    )


@given(st.integers(-64, 64), st.floats(0.1, 3))
def test_integer_powers(exponent: int, value: float) -> None:
    got = Expression(f"t^{exponent}" if exponent >= 0 else f"t^({exponent})")(np.array([value]))[0]
    assert got == pytest.approx(value**exponent, rel=1e-13)


def test_pickled_copied_and_compared_by_source() -> None:
    f = nonlinearity("t*tanh(t)", centred=False)
    for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), nonlinearity(" t*tanh(t) ", centred=False)):
        assert twin == f
        assert hash(twin) == hash(f)
        np.testing.assert_array_equal(twin(T), f(T))


def test_polynomial() -> None:
    np.testing.assert_allclose(
        polynomial(1, -2, 0, 0.5, centred=False)(T), 1 - 2 * T + T**3 / 2, rtol=1e-14, atol=1e-14
    )
    with pytest.raises(ValueError, match="non-zero coefficient above degree 0"):
        polynomial(1, 0)


@pytest.mark.parametrize("shape", [(), (0,), (5, 0), (100_003,), (7, 30_011), (40_000, 3), (3, 4, 9_001)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_slabs_cover_every_shape_and_layout(shape: tuple[int, ...], order: str) -> None:
    t = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    f = Expression("where(t > 0.1, t^2, -1)")
    naive = np.where(t > 0.1, t * t, -1.0)
    np.testing.assert_array_equal(f(t), naive)
    assert f(t, out=t) is t
    np.testing.assert_array_equal(t, naive)
