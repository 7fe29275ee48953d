from fractions import Fraction

import numpy as np
import pytest

from resolvent.engine import Dim, Symbol, sqrt, symbols
from resolvent.engine.scalar import number, scalar

N, P = Dim("n"), Dim("p")
A, B = symbols("a b")


def test_equal_scalars_compare_equal():
    assert A * B / P == B / P * A
    assert sqrt(P) * sqrt(P) == scalar(P)
    assert number(0.0) == A - A
    assert (A + B) ** 2 == A**2 + 2 * A * B + B**2
    assert 2 * A / 2 == A


@pytest.mark.parametrize(
    ("value", "degree"),
    [(P / N, 0), (1 / sqrt(P), Fraction(-1, 2)), (N + P, 1), (A * 3.0, 0), (1 / (N + P), -1)],
)
def test_degree_is_the_power_of_the_size(value, degree):
    assert value.degree == degree


def test_degrees_must_agree_within_a_scalar():
    with pytest.raises(ValueError, match="different powers"):
        _ = (N + A).degree


@pytest.mark.parametrize(
    "value", [A**3 + 2 * A * B, 1 / (A + B), sqrt(A + B**2) / A, (A + 1) ** -2 * B], ids=str
)
def test_derivative_is_exact(value):
    at = {"a": 1.3, "b": 0.7}
    step = 1e-6
    up, down = value({**at, "a": 1.3 + step}), value({**at, "a": 1.3 - step})
    assert value.derivative("a")(at) == pytest.approx((up - down) / (2 * step), rel=1e-8)


def test_substitution_and_arrays():
    size = (N / P).substitute({P: A * 2, N: number(1.0)})
    assert size == 1 / (2 * A)
    assert size({"a": np.array([0.5, 1.0])}) == pytest.approx([1.0, 0.5])


def test_what_is_not_a_scalar():
    with pytest.raises(TypeError, match="must be a real number, a Symbol or a Dim, got str"):
        scalar("x")
    with pytest.raises(ValueError, match="Python identifier, got 'a b'"):
        Symbol("a b")
    with pytest.raises(ValueError, match="cannot be named n, draws, seed, vectors"):
        Symbol("seed")
    with pytest.raises(ZeroDivisionError):
        _ = A / 0
    with pytest.raises(ValueError, match="root of a negative number, got -2"):
        sqrt(-2)
