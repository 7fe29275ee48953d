"""What the kernels refuse: one line that names the argument, what was given and what is allowed."""

import numpy as np
import pytest

from resolvent import equivalents
from resolvent.equivalents import attention_errors, linear_errors

GOOD = {"ratio": 0.5, "ridge": 0.1, "a1": 0.6, "sigma2": 0.1, "gram": np.eye(3)}
BAD = [
    ("ratio", 0.0, "ratio must be positive, got 0"),
    ("ratio", -1.0, "ratio must be positive, got -1"),
    ("ridge", -0.1, "ridge must be zero or positive, got -0.1"),
    ("ridge", [0.1, np.nan], "ridge must be finite, got nan"),
    ("ridge", np.inf, "ridge must be finite, got inf"),
    ("sigma2", -1e-9, "sigma2 must be zero or positive, got -1e-09"),
    ("a1", "tanh", "a1 must be a real number, got 'tanh'"),
    ("a1", 1j, "a1 must be a real number, got 1j"),
    ("a1", [[1.0], 2.0], "a1 must be a real number or an array of them, got a ragged sequence"),
    ("a1", np.array([["a"] * 9] * 9), "a1 must be a real number, got an array of <U1"),
    ("a1", True, "a1 must be a real number, got True"),
    ("skip", None, "skip must be a real number, got None"),
    ("norm_variance", -2.0, "norm_variance must be zero or positive, got -2"),
    ("label_mean", 1.0, "label_mean must be between -1 and 1 (bounds excluded), got 1"),
    ("label_mean", -1.5, "label_mean must be between -1 and 1 (bounds excluded), got -1.5"),
    ("target_overlap", 1.1, "target_overlap must be between -1 and 1, got 1.1"),
    ("gram", np.eye(2), r"gram must have shape (..., 3, 3), got (2, 2)"),
    ("gram", 1.0, r"gram must have shape (..., 3, 3), got ()"),
    ("gram", np.full((3, 3), np.nan), "gram must be finite, got nan"),
    ("gram", np.array([[1.0, 1, 0], [0, 1, 0], [0, 0, 1]]), "gram must be symmetric"),
    ("gram", np.diag([1.0, -1.0, 1.0]), "gram must be positive semi-definite"),
    ("gram", np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]), "gram must be positive semi-definite"),
    ("gram", np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]), "gram must be positive semi-definite"),
    (
        "gram",
        np.array([[1.0, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]),
        "gram must be positive semi-definite",
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "message"), BAD, ids=lambda v: None if isinstance(v, np.ndarray) else str(v)
)
def test_bad_arguments(name: str, value: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        attention_errors(**{**GOOD, name: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("ratio", 0.0), ("ridge", -1.0), ("snr", -1.0), ("target_overlap", 2.0)]
)
def test_bad_linear_arguments(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be "):
        linear_errors(**{"ratio": 0.5, "ridge": 0.1, "snr": 1.0, name: value})


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ValueError, match=r"must broadcast together, got ratio \(2,\), ridge \(3,\)"):
        attention_errors(**{**GOOD, "ratio": [0.5, 1.0], "ridge": [0.1, 0.2, 0.3]})
    with pytest.raises(ValueError, match=r"must broadcast together, got \(2,\) and gram \(3, 3, 3\)"):
        attention_errors(**{**GOOD, "ratio": [0.5, 1.0], "gram": np.stack([np.eye(3)] * 3)})


def test_degenerate_grams_are_accepted() -> None:
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-8.0, 4.0, (200, 3))
    one = direction[:, :, None] * direction[:, None, :]
    assert np.all(attention_errors(**{**GOOD, "gram": one}).converged)
    vectors = rng.normal(size=(200, 3, 2)) * 10.0 ** rng.uniform(-4.0, 4.0, (200, 3, 1))
    assert np.all(attention_errors(**{**GOOD, "gram": vectors @ np.swapaxes(vectors, 1, 2)}).converged)


def test_arguments_are_keywords_and_never_changed() -> None:
    with pytest.raises(TypeError):
        attention_errors(0.5, 0.1, 0.6, 0.1, np.eye(3))
    gram, ridge = np.eye(3), np.array([0.0, 1.0])
    attention_errors(**{**GOOD, "gram": gram, "ridge": ridge})
    np.testing.assert_array_equal(gram, np.eye(3))
    np.testing.assert_array_equal(ridge, [0.0, 1.0])


def test_public_names() -> None:
    assert sorted(equivalents.__all__) == [
        "AttentionErrors",
        "Factors",
        "LinearErrors",
        "ProbeErrors",
        "SoftmaxCoefficients",
        "Spectrum",
        "attention_errors",
        "attention_spectrum",
        "covariance_linear_errors",
        "features_spectrum",
        "heads_errors",
        "law_errors",
        "law_linear_errors",
        "linear_errors",
        "reduce_factors",
        "reduce_matrix",
        "score_variance",
        "softmax_coefficients",
        "weighted_heads_errors",
        "weights_errors",
    ]
    assert all(hasattr(equivalents, name) for name in equivalents.__all__)
