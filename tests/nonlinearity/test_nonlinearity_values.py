"""Resolving a nonlinearity and evaluating it: dtype, shape, work in place, centring, callables."""

import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf, expit, ndtr

from resolvent.nonlinearity import Nonlinearity, known_names, nonlinearity

T = np.linspace(-6, 6, 60).reshape(5, 12)

NAIVE = {
    "identity": lambda t: t,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": expit,
    "relu": lambda t: t * (t > 0),
    "leaky_relu": lambda t: np.where(t > 0, t, 0.01 * t),
    "elu": lambda t: np.where(t > 0, t, np.exp(t) - 1),
    "gelu": lambda t: t * ndtr(t),
    "silu": lambda t: t / (1 + np.exp(-t)),
    "softplus": lambda t: np.log(1 + np.exp(t)),
    "relu2": lambda t: (t * (t > 0)) ** 2,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "hermite2": lambda t: t**2 - 1,
    "hermite3": lambda t: t**3 - 3 * t,
    "quadratic": lambda t: t**2,
    "cubic": lambda t: t**3,
}


def test_every_name_has_its_naive_twin() -> None:
    assert set(NAIVE) == set(known_names())


@pytest.mark.parametrize("name", NAIVE)
def test_values(name: str) -> None:
    np.testing.assert_allclose(nonlinearity(name, centred=False)(T), NAIVE[name](T), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spec", [*NAIVE, "t*tanh(t) + 2", "where(t > 1, 3, 0)", np.tanh, lambda t: t > 0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("centred", [True, False])
def test_in_place_and_dtype(spec: object, dtype: type, centred: bool) -> None:
    f = nonlinearity(spec, centred=centred)
    t = T.astype(dtype)
    given = t.copy()
    values = f.evaluate(t, 1.5)
    assert values.dtype == dtype
    assert values.shape == t.shape
    assert not np.may_share_memory(values, t)
    np.testing.assert_array_equal(t, given)
    out = np.empty_like(t)
    assert f.evaluate(t, 1.5, out=out) is out
    np.testing.assert_array_equal(out, values)
    assert f.evaluate(t, 1.5, out=t) is t
    np.testing.assert_array_equal(t, values)
    wide = f.evaluate(given.astype(float), 1.5)
    np.testing.assert_allclose(values, wide, rtol=1e-5, atol=2e-5)


def test_columns_of_a_larger_array_in_place() -> None:
    block = np.asfortranarray(T.copy())
    nonlinearity("gelu").evaluate(block[:, 2:5], out=block[:, 2:5])
    np.testing.assert_allclose(block[:, 2:5], nonlinearity("gelu")(T[:, 2:5]), rtol=1e-15)
    np.testing.assert_array_equal(block[:, 5:], T[:, 5:])


@pytest.mark.parametrize("t", [0.5, 1, [1, 2], np.int64(3), np.array(0.25), np.float16(1.5)])
def test_anything_that_is_an_array(t: object) -> None:
    values = nonlinearity("tanh")(t)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, np.tanh(np.asarray(t, float)))


def test_out_must_fit() -> None:
    with pytest.raises(
        ValueError, match=r"out must have shape \(5, 12\) and dtype float64, got \(5, 12\) and float32"
    ):
        nonlinearity("tanh").evaluate(T, out=np.empty_like(T, dtype=np.float32))


@given(st.floats(0.1, 5))
def test_centred_values_have_mean_zero(scale: float) -> None:
    f = nonlinearity("abs")
    np.testing.assert_allclose(f.evaluate(0.0, scale), -scale * np.sqrt(2 / np.pi), rtol=1e-12)
    assert nonlinearity("abs", centred=False).offset(scale) == 0.0


def test_a_nonlinearity_keeps_its_centring_unless_told() -> None:
    raw = nonlinearity("relu", centred=False)
    assert nonlinearity(raw) is raw
    assert nonlinearity(raw, centred=True).centred
    assert nonlinearity("relu").centred


@pytest.mark.parametrize("name", known_names())
def test_names_are_pickled(name: str) -> None:
    f = nonlinearity(name)
    assert pickle.loads(pickle.dumps(f)) == f


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tnah", "unknown nonlinearity 'tnah', did you mean tanh?"),
        ("ReLU", "unknown nonlinearity 'ReLU', did you mean relu?"),
        ("swish", "unknown nonlinearity 'swish', known names: identity, tanh"),
        ("sqrt", "sqrt is a function: write"),
        ("", "cannot be read"),
        (lambda t: t.sum(), "must return a real array of the shape"),
        (lambda t: t[:1], "must return a real array of the shape"),
        (lambda t: t + 1j, "must return a real array"),
        (lambda _t: "a", "must return a real array"),
        (lambda t: t - t.mean(), "must act entry by entry"),
        (lambda t: np.cumsum(t, axis=0), "must act entry by entry"),
        (lambda t: np.multiply(t, 2, out=t), "must not change its argument"),
        (lambda t: 1 if t > 0 else 0, "must act on NumPy arrays, but raised ValueError"),
        (lambda: 0, "must act on NumPy arrays, but raised TypeError"),
    ],
)
def test_refused(spec: object, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")) as caught:
        nonlinearity(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", [None, 3, ["tanh"], np.ones(3)])
def test_wrong_types(spec: object) -> None:
    with pytest.raises(TypeError, match="must be a name, an expression in t or a callable, got"):
        nonlinearity(spec)


def test_unhashable_callables_are_refused() -> None:
    class Half:
        __hash__ = None

        def __call__(self, t: np.ndarray) -> np.ndarray:
            return t / 2

    with pytest.raises(ValueError, match="Half must be hashable"):
        nonlinearity(Half())


def test_names_of_callables() -> None:
    assert nonlinearity(np.tanh).name == "tanh"
    assert nonlinearity(lambda t: t).name == "lambda"
    assert nonlinearity(partial(np.maximum, 0)).name == "partial"


def test_a_callable_agrees_with_the_name() -> None:
    assert nonlinearity(np.tanh).coefficients() == nonlinearity("tanh").coefficients()


def test_kept_diagonal() -> None:
    assert nonlinearity("relu", centred=False).kept_diagonal(49) == 1.0
    assert nonlinearity("tanh").kept_diagonal(400) == pytest.approx(1 / 20, rel=1e-15)
    centred = nonlinearity("relu").kept_diagonal(100)
    assert centred == pytest.approx(1 - 1 / np.sqrt(2 * np.pi) / 10, rel=1e-12)
    for linear in ("silu", "gelu", "softplus", "leaky_relu", "t - 5", "sqrt(1 + t^2)", "t*sin(t)", "exp(-t)"):
        assert np.isfinite(nonlinearity(linear).kept_diagonal(64))


@pytest.mark.parametrize(
    "spec",
    [
        "exp",
        "quadratic",
        "cubic",
        "hermite2",
        "hermite3",
        "relu2",
        "t*log1p(t^2)",
        "t + 1e-6*t^2",
        "t*abs(t)^0.1",
    ],
)
def test_a_diagonal_that_grows_faster_than_linearly_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=r"the diagonal cannot be kept: .* grows faster than linearly"):
        nonlinearity(spec).kept_diagonal(64)


@pytest.mark.parametrize("p", [0, -3])
def test_kept_diagonal_needs_a_dimension(p: int) -> None:
    with pytest.raises(ValueError, match="p must be at least 1, got"):
        nonlinearity("tanh").kept_diagonal(p)


def test_scipy_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, resolvent.nonlinearity as r; r.nonlinearity('tanh').coefficients(); "
        "assert not [m for m in sys.modules if m.startswith('scipy')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_record_is_frozen() -> None:
    f = nonlinearity("tanh")
    assert isinstance(f, Nonlinearity)
    with pytest.raises(AttributeError):
        f.name = "sin"  # type: ignore[misc]
