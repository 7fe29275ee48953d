"""The refined prediction of a setting: the kernel's numbers, beside simulation, and where there is none."""

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict, simulate
from resolvent.refine import refine

STRONG = Setting(Tokens(0.2, 2.0), Weights.aligned(1.41), "hermite3")


def test_it_is_right_where_the_limit_is_not() -> None:
    measured = simulate(STRONG, n=300, draws=12, seed=0)
    predicted = predict(STRONG, p=measured.p)
    for error in ("train", "test"):
        mean, se = getattr(measured.attention, error)
        refined = getattr(predicted.refined.attention, error)
        assert abs(refined - mean) < 4.0 * se + 0.03 * mean
    mean, se = measured.attention.train
    assert abs(predicted.attention.train - mean) > 10.0 * se


def test_the_curve_holds_the_single_ridges_and_the_json_has_the_shape_of_the_limit() -> None:
    ridges = np.array([0.05, 0.5])
    curve = predict(Setting(ridge=ridges), p=64).refined
    for k, ridge in enumerate(ridges):
        one = predict(Setting(ridge=ridge), p=64)
        assert curve.attention.test[k] == pytest.approx(one.refined.attention.test, rel=2e-3)
        assert set(one.as_dict()["refined"]) == {"attention", "linear"}
    assert predict(Setting()).refined is None
    assert "refined" not in predict(Setting()).as_dict()


def test_three_dimensions_are_good_to_a_fifth_of_a_per_cent() -> None:
    skewed = Weights.from_angles(key_norm=1.0, query_norm=1.5, key_cos=0.5, query_cos=-0.5, key_query_cos=0.2)
    found = refine(Setting(weights=skewed), 128)
    assert found.attention.train == pytest.approx(0.364571, rel=2e-3)  # with 750 classes
    assert found.attention.test == pytest.approx(0.903272, rel=2e-3)


@pytest.mark.parametrize(
    ("setting", "p", "reason"),
    [
        (Setting(ridge=0.0), 64, "positive ridge"),
        (Setting(Tokens(snr=[1.0, 2.0])), 64, "one setting"),
        (Setting(weights=Weights.aligned(1.0)), 2, "p above 2"),
    ],
)
def test_where_there_is_none_it_says_why(setting: Setting, p: int, reason: str) -> None:
    found = refine(setting, p)
    assert found.attention is None
    assert reason in found.missing
    assert found.as_dict() is None
