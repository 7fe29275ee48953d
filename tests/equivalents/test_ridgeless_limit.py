"""ridge = 0: the limit of small ridges where it exists, an infinite test error where it does not."""

import numpy as np
import pytest

from resolvent.equivalents import attention_errors, linear_errors

GRAM = np.array([[1.0, 0.8, 0.5], [0.8, 1.2, 0.3], [0.5, 0.3, 0.9]])
FUNCTIONS = {
    "tanh": {"a1": 0.6057, "sigma2": 0.0274},
    "hermite3": {"a1": 0.0, "sigma2": 6.0},
    "identity": {"a1": 1.0, "sigma2": 0.0},
    "tanh, skip": {"a1": 0.6057, "sigma2": 0.0274, "skip": 0.5},
    "tanh, far skip": {"a1": 0.6057, "sigma2": 0.0274, "skip": 5.0},
    "tanh, far shift": {"a1": 0.6057, "sigma2": 0.0274, "shift": 5.0},
    "identity, far skip": {"a1": 0.6, "sigma2": 0.0, "skip": 5.0},
    "skip alone": {"a1": 0.0, "sigma2": 0.0, "skip": 1.0},
}
FAR = [name for name in FUNCTIONS if "far" in name or name == "skip alone"]
REST = {"gram": GRAM, "label_mean": 0.3, "a2": 0.2, "mean_spike": 2.0, "target_overlap": 0.7}


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_below_ratio_one_it_is_the_limit_of_small_ridges(name: str, ratio: float) -> None:
    ridge = np.array([0.0, 1e-10, 1e-8])
    e = attention_errors(ratio=ratio, ridge=ridge, **FUNCTIONS[name], **REST)
    assert np.all(e.converged)
    assert e.train[0] > 0.0
    assert np.all(np.diff(e.train) >= -1e-12)
    if e.test[0] < np.inf:
        assert e.train[0] == pytest.approx(e.train[1], rel=1e-6)
        assert abs(e.test[0] - e.test[1]) <= 0.02 * abs(e.test[0] - e.test[2]) + 1e-12
    else:
        assert name == "identity"  # K is singular inside its bulk
        assert e.test[1] / e.test[2] == pytest.approx(10.0, rel=0.3)
        root = (e.train[2] - e.train[1]) / 9e-5  # train = limit + root sqrt(ridge)
        assert e.train[0] == pytest.approx(e.train[1] - root * 1e-5, abs=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 1.01, 2.0, 10.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_from_ratio_one_on_the_training_error_vanishes(name: str, ratio: float) -> None:
    e = attention_errors(ratio=ratio, ridge=[0.0, 1e-8], **FUNCTIONS[name], **REST)
    assert np.all(e.converged)
    assert e.train[0] == 0.0 < e.train[1]


@pytest.mark.parametrize("ratio", [1.01, 2.0, 10.0])
@pytest.mark.parametrize("name", FAR)
def test_beyond_ratio_one_the_test_error_has_a_limit_where_attention_is_invertible(
    name: str, ratio: float
) -> None:
    e = attention_errors(ratio=ratio, ridge=[0.0, 1e-8, 1e-6], **FUNCTIONS[name], **REST)
    assert abs(e.test[0] - e.test[1]) <= 0.02 * abs(e.test[0] - e.test[2])


@pytest.mark.parametrize("ratio", [1.0, 1.01, 2.0, 10.0])
@pytest.mark.parametrize("name", ["tanh", "hermite3", "identity"])
def test_from_ratio_one_on_the_test_error_diverges_where_the_bulk_of_attention_holds_zero(
    name: str, ratio: float
) -> None:
    e = attention_errors(ratio=ratio, ridge=[0.0, 1e-10, 1e-7], **FUNCTIONS[name], **REST)
    assert e.test[0] == np.inf
    assert e.test[1] > 5.0 * e.test[2]


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_skip_alone_is_ridgeless_linear_regression(ratio: float) -> None:
    mine = attention_errors(
        ratio=ratio, ridge=0.0, a1=0.0, sigma2=0.0, skip=3.0, gram=2.0 * np.eye(3), target_overlap=0.5
    )
    linear = linear_errors(ratio=ratio, ridge=0.0, snr=2.0, target_overlap=0.5)
    assert mine.train == pytest.approx(linear.train, rel=1e-12)
    assert mine.test == pytest.approx(linear.test, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1.0])
def test_attention_that_vanishes_explains_nothing(ratio: float, ridge: float) -> None:
    e = attention_errors(ratio=ratio, ridge=ridge, a1=0.0, sigma2=0.0, gram=np.ones((3, 3)))
    assert e.converged
    assert e.train == pytest.approx(1.0, abs=1e-12)
    assert e.test == pytest.approx(1.0, abs=1e-12)
    assert e.t == e.u == 0.0
    mean = attention_errors(
        ratio=ratio, ridge=0.0, a1=0.0, sigma2=0.0, gram=GRAM, mean_spike=9.0, label_mean=0.5
    )
    assert mean.train == pytest.approx(0.75, abs=1e-12)  # the constant is all that can be learnt
    assert mean.test == pytest.approx(0.75, abs=1e-12)
