"""Tokens, Weights and Setting: what they hold, what they refuse, and that the ways to build them agree."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, setting
from resolvent.nonlinearity import nonlinearity


def expect(kind: type[Exception], message: str, build, *args: object, **kwargs: object) -> None:
    with pytest.raises(kind) as caught:
        build(*args, **kwargs)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("ratio", 0.0, "ratio must be positive, got 0"),
        ("ratio", -2, "ratio must be positive, got -2"),
        ("ratio", [0.5, np.nan], "ratio must be finite, got nan"),
        ("ratio", np.inf, "ratio must be finite, got inf"),
        ("snr", -0.5, "snr must be zero or positive, got -0.5"),
        ("snr", [1.0, -np.inf], "snr must be finite, got -inf"),
        ("label_mean", 1.0, "label_mean must be between -1 and 1 (bounds excluded), got 1"),
        ("label_mean", -1, "label_mean must be between -1 and 1 (bounds excluded), got -1"),
        ("label_noise", 0.51, "label_noise must be between 0 and 0.5, got 0.51"),
        ("label_noise", -0.1, "label_noise must be between 0 and 0.5, got -0.1"),
    ],
)
def test_tokens_out_of_range(field: str, value: object, message: str) -> None:
    expect(ValueError, message, Tokens, **{field: value})


@pytest.mark.parametrize("value", ["0.5", None, True, 1j, [[1.0], "a"], len], ids=repr)
@pytest.mark.parametrize("field", ["ratio", "snr", "label_mean", "label_noise"])
def test_tokens_of_the_wrong_type(field: str, value: object) -> None:
    expect(TypeError, f"{field} must be a real number", Tokens, **{field: value})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"key_norm": -1.0}, "key_norm must be zero or positive, got -1"),
        ({"query_norm": np.nan}, "query_norm must be finite, got nan"),
        ({"key_cos": 1.5}, "key_cos must be between -1 and 1, got 1.5"),
        ({"query_cos": -1.01}, "query_cos must be between -1 and 1, got -1.01"),
        ({"key_query_cos": [0.0, 2.0]}, "key_query_cos must be between -1 and 1, got 2"),
        ({"align": np.inf}, "align must be finite, got inf"),
        ({"align": 1.0, "key_norm": 2.0}, "align already fixes the weights, so key_norm cannot be given"),
        (
            {"align": 1.0, "key_query_cos": [0.0, 0.5]},
            "align already fixes the weights, so key_query_cos cannot",
        ),
        (
            {"key_cos": [0.5, 0.9], "query_cos": 0.9, "key_query_cos": -0.5},
            "key_cos, query_cos and key_query_cos must be the cosines of three vectors: "
            "key_query_cos cannot be -0.5 when they are 0.5 and 0.9",
        ),
        (
            {"key_norm": [1.0, 2.0], "key_cos": [0.0, 0.1, 0.2]},
            "the numbers of a setting must broadcast together",
        ),
    ],
)
def test_impossible_weights(kwargs: dict, message: str) -> None:
    expect(ValueError, message, Weights, **kwargs)


def test_the_impossible_triple_is_named_wherever_it_stands_in_the_array() -> None:
    message = "key_query_cos cannot be -0.9 when they are 0.5 and 0.8"
    with pytest.raises(ValueError, match=message):
        Weights(key_cos=[0.0, 0.5], query_cos=[0.0, 0.8], key_query_cos=[[0.2], [-0.9]])


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        (TypeError, {"tokens": 0.5}, "tokens must be a Tokens, got 0.5"),
        (TypeError, {"weights": Weights}, "weights must be a Weights, got <class"),
        (TypeError, {"centred": 1}, "centred must be True or False, got 1"),
        (TypeError, {"keep_diagonal": "no"}, "keep_diagonal must be True or False, got 'no'"),
        (TypeError, {"ridge": "0.1"}, "ridge must be a real number, got '0.1'"),
        (
            TypeError,
            {"nonlinearity": 3},
            "nonlinearity must be a name, an expression in t or a callable, got int",
        ),
        (ValueError, {"ridge": -0.1}, "ridge must be zero or positive, got -0.1"),
        (ValueError, {"skip": np.nan}, "skip must be finite, got nan"),
        (ValueError, {"nonlinearity": "tnah"}, "unknown nonlinearity 'tnah', did you mean tanh?"),
        (ValueError, {"nonlinearity": "exp(t^2)"}, "exp(t^2)"),
        (ValueError, {"nonlinearity": "exp", "keep_diagonal": True}, "the diagonal cannot be kept: exp"),
        (
            ValueError,
            {"nonlinearity": "quadratic", "keep_diagonal": True},
            "the diagonal cannot be kept: quad",
        ),
    ],
)
def test_bad_settings(kind: type[Exception], kwargs: dict, message: str) -> None:
    expect(kind, message, Setting, **kwargs)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Setting(Tokens(ratio=[0.5, 1.0]), ridge=[0.1, 0.2, 0.3]),
        lambda: Setting(Tokens(snr=[1.0, 2.0]), Weights.aligned([1.0, 2.0, 3.0])),
        lambda: Setting(Tokens(snr=[1.0, 2.0]), Weights(key_norm=[1.0, 2.0, 3.0])),
    ],
)
def test_arrays_that_do_not_broadcast_are_named(build) -> None:
    expect(ValueError, "the numbers of a setting must broadcast together, got ", build)


def test_arrays_broadcast_over_every_field() -> None:
    tokens = Tokens(ratio=np.ones((2, 1, 1)), snr=[1.0, 2.0, 3.0], label_noise=[0.1, 0.2, 0.3])
    weights = Weights(key_norm=np.ones((4, 1)), key_query_cos=0.5)
    assert Setting(tokens, weights, ridge=0.1).shape == (2, 4, 3)
    assert Setting(tokens, weights).gram.shape == (4, 3, 3, 3)
    assert Setting(weights=Weights.aligned([0.0, 1.0])).shape == (2,)
    assert Setting(Tokens(ratio=[])).shape == (0,)
    np.testing.assert_allclose(tokens.target_overlap, [0.8, 0.6, 0.4])


def gram(key, query, mu) -> np.ndarray:
    vectors = np.array([mu, key, query])
    return vectors @ vectors.T


def test_from_vectors_gives_back_the_inner_products() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e6):
        key, query, mu = rng.normal(size=(3, 7)) * np.array([1.0, scale, 3.0])[:, None]
        weights = Weights.from_vectors(key, query, mu)
        np.testing.assert_allclose(
            weights.gram(mu @ mu), gram(key, query, mu), rtol=1e-12, atol=1e-13 * scale
        )
    mu, zero = np.array([3.0, 4.0]), np.zeros(2)
    assert Weights.from_vectors(zero, zero, mu) == Weights.none()
    assert Weights.from_vectors(mu, mu, zero).key_query_cos == 1.0
    np.testing.assert_allclose(Weights.from_vectors(mu, -2.0 * mu, mu).gram(25.0), gram(mu, -2.0 * mu, mu))


def test_from_vectors_refuses_other_shapes() -> None:
    message = "key, query and mu must be vectors of one length, got "
    expect(ValueError, message, Weights.from_vectors, [1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0])
    expect(ValueError, message, Weights.from_vectors, *(np.eye(2),) * 3)
    expect(ValueError, "query must be finite, got nan", Weights.from_vectors, [1.0], [np.nan], [1.0])


@pytest.mark.parametrize("align", [0.0, 1.0, -0.7, 3.0])
def test_constructors_agree(align: float) -> None:
    mu = np.array([0.6, 0.0, 0.8]) * np.sqrt(2.0)
    aligned = Weights.aligned(align).gram(2.0)
    np.testing.assert_allclose(aligned, gram(align * mu, align * mu, mu), atol=1e-15)
    np.testing.assert_allclose(
        aligned, Weights.from_vectors(align * mu, align * mu, mu).gram(2.0), atol=1e-14
    )
    norm, sign = abs(align) * np.sqrt(2.0), np.sign(align)
    angles = Weights.from_angles(key_norm=norm, query_norm=norm, key_cos=sign, query_cos=sign)
    np.testing.assert_allclose(aligned, angles.gram(2.0), atol=1e-14)
    assert Weights.none() == Weights() == Weights(None, 0.0, 0.0)


def test_angles_leave_the_parts_outside_mu_orthogonal() -> None:
    weights = Weights.from_angles(key_norm=2.0, query_norm=3.0, key_cos=0.6, query_cos=[0.5, -1.0])
    np.testing.assert_allclose(weights.key_query_cos, [0.3, -0.6])
    mu, k, q = 1.5, 2.0, 3.0
    expected = [[mu * mu, 0.6 * mu * k, 0.5 * mu * q], [0.6 * mu * k, k * k, 0.3 * k * q]]
    np.testing.assert_allclose(weights.gram(2.25)[0, :2], expected)
    explicit = Weights.from_angles(key_norm=1.0, query_norm=1.0, key_query_cos=-1.0)
    assert explicit.gram(0.0)[1, 2] == -1.0


def test_settings_are_frozen_and_keep_their_own_arrays() -> None:
    ridge = np.array([0.1, 0.2])
    whole = Setting(ridge=ridge)
    ridge[0] = -1.0
    assert whole.ridge[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        whole.ridge[0] = -1.0
    for record, name in ((whole, "ridge"), (whole.tokens, "snr"), (whole.weights, "align")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, name, 1.0)
    assert replace(Setting(), ridge=0.5) == Setting(ridge=0.5) != Setting()
    assert hash(Setting()) == hash(Setting())


def test_repr_shows_what_was_set() -> None:
    text = repr(Setting(Tokens(snr=2), Weights.aligned(1), "relu", centred=False, ridge=1))
    assert "snr=2.0" in text
    assert "align=1.0" in text
    assert "nonlinearity='relu', centred=False, ridge=1.0, skip=0.0" in text
    assert eval(text) == Setting(Tokens(snr=2), Weights.aligned(1), "relu", centred=False, ridge=1)


def test_centring_is_explicit_and_a_nonlinearity_keeps_its_own() -> None:
    assert Setting(nonlinearity="relu").f.coefficients().a0 == 0.0
    for uncentred in (False, np.False_):
        assert Setting(nonlinearity="relu", centred=uncentred).f.coefficients().a0 > 0.3
    own = nonlinearity("relu", centred=False)
    assert Setting(nonlinearity=own).centred is False
    assert Setting(nonlinearity=own, centred=True).f.centred is True


def test_as_dict_is_plain_for_json() -> None:
    fields = Setting(
        Tokens(snr=2.0), Weights.aligned(1.0), "t*tanh(t)", ridge=0.2, keep_diagonal=True
    ).as_dict()
    assert json.loads(json.dumps(fields)) == {
        "f": "t*tanh(t)",
        "centred": True,
        "ratio": 0.5,
        "snr": 2.0,
        "label_mean": 0.0,
        "label_noise": 0.0,
        "ridge": 0.2,
        "skip": 0.0,
        "align": 1.0,
        "keep_diagonal": True,
    }
    angles = Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0)).as_dict()
    assert {"key_norm", "query_norm", "key_cos", "query_cos", "key_query_cos"} <= set(angles)
    assert "align" not in angles


def test_public_names() -> None:
    assert sorted(setting.__all__) == ["LowRankWeights", "MatrixWeights", "Setting", "Tokens", "Weights"]


@pytest.mark.parametrize(
    ("weights", "snr", "name"),
    [
        (Weights.aligned(1e7), 1.0, "align"),
        (Weights.from_angles(key_norm=1.0, query_norm=1e7), 1.0, "query_norm"),
        (Weights.none(), 1e13, "snr"),
    ],
    ids=["align", "query_norm", "snr"],
)
def test_vectors_too_long_for_double_precision_are_refused(weights: Weights, snr: float, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must keep vectors at most 1e6 long, got length "):
        Setting(Tokens(snr=snr), weights)
