"""Who wins, by how much, why, and when the limit is not to be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from resolvent.compare import Comparison, compare
from resolvent.compare.verdict import ahead, reason
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens, Weights
from resolvent.setting.cautions import cautions
from resolvent.simulate import Average, Measurement, simulate

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("mean", "se", "winner"),
    [
        (-1.0, 0.4, "attention"),
        (1.0, 0.4, "linear"),
        (-1.0, 0.6, "tie"),
        (1.0, 0.6, "tie"),
        (-1.0, 0.5, "attention"),  # exactly two standard errors
        (0.0, 0.0, "tie"),
        (-1e-9, 0.0, "attention"),
        (1e-9, 0.0, "linear"),
        (NAN, 0.1, "tie"),
        (-1.0, NAN, "tie"),
        (NAN, NAN, "tie"),
        (INF, 1.0, "linear"),
        (INF, NAN, "tie"),
        (-1.0, INF, "tie"),
    ],
)
def test_a_lead_below_two_standard_errors_is_a_tie(mean, se, winner):
    assert ahead(Average(mean, se)) == winner


def measured(values, setting=None):
    """A comparison whose draws (draw, method, error) are given."""
    setting = setting or Setting()
    record = Measurement(setting, 32, 16, len(values), 0, np.array(values, dtype=float))
    return Comparison(predict(setting, p=16), record)


def test_the_winner_is_paired_by_draw():
    """Draws that differ by 1 while attention stays 0.1 lower in each: a win, though the means overlap."""
    levels = np.arange(5.0)
    draws = np.stack([levels, levels + 0.1 + 0.01 * (levels % 2)], axis=1)
    comparison = measured(np.stack([draws, draws[:, ::-1]], axis=2))
    assert comparison.winner == {"train": "attention", "test": "linear"}


def test_z_is_the_gap_in_standard_errors():
    values = np.random.default_rng(3).uniform(0.1, 1.0, (6, 2, 2))
    comparison = measured(values)
    predicted = comparison.prediction
    for i, method in enumerate(("attention", "linear")):
        for j, error in enumerate(("train", "test")):
            x = values[:, i, j]
            limit = getattr(getattr(predicted, method), error)
            naive = (sum(x) / 6 - limit) / (np.sqrt(sum((x - sum(x) / 6) ** 2) / 5) / np.sqrt(6))
            assert comparison.z[method][error] == pytest.approx(naive, rel=1e-12)


def test_draws_that_agree_have_no_z_and_failed_ones_no_winner():
    same = measured(np.full((4, 2, 2), 0.5))
    assert np.isnan(same.z["attention"]["train"])
    assert same.winner == {"train": "tie", "test": "tie"}
    assert "nan" not in str(same)
    failed = measured(np.full((4, 2, 2), NAN))
    assert failed.winner == {"train": "tie", "test": "tie"}
    assert np.isnan(failed.z["linear"]["test"])


ON_SIGNAL = Weights.aligned(1.0)


@pytest.mark.parametrize(
    ("setting", "winner", "words"),
    [
        (Setting(), "tie", "neither method is ahead by more than two standard errors"),
        (Setting(nonlinearity="hermite2"), "linear", "hermite2 has no linear component (a1 = 0)"),
        (Setting(nonlinearity="t^3 - 3*t", weights=ON_SIGNAL), "linear", "has no linear component"),
        (Setting(), "linear", "attention loses: its weights do not point at the signal"),
        (Setting(), "linear", "7.0 % of the power of tanh is noise"),
        (Setting(weights=Weights.aligned(0.1)), "linear", "do not point at the signal"),
        (Setting(weights=ON_SIGNAL), "linear", "although its weights point at the signal"),
        (Setting(weights=ON_SIGNAL), "linear", "tanh adds (7.0 % of its power)"),
        (Setting(weights=Weights.aligned(-1.0)), "linear", "although its weights point at the signal"),
        (Setting(weights=ON_SIGNAL), "attention", "aligned weights amplify the signal"),
        (Setting(weights=ON_SIGNAL, nonlinearity="-tanh(t)"), "attention", "aligned weights amplify"),
        (Setting(weights=ON_SIGNAL, nonlinearity="hermite3"), "attention", "fit these labels better"),
        (Setting(), "attention", "at this ridge attention's features fit these labels better"),
        (Setting(Tokens(snr=0.0)), "linear", "do not point at the signal"),
        (
            Setting(
                weights=Weights.from_angles(key_norm=1, query_norm=1, key_cos=0.9, query_cos=-0.9),
            ),
            "attention",
            "fit these labels better",
        ),
    ],
)
def test_the_reason(setting, winner, words):
    sentence = reason(setting, {"train": winner, "test": winner})
    assert words in sentence
    assert sentence.startswith("On both errors ")
    assert ". " not in sentence


def test_each_error_has_its_reason_when_they_differ():
    first, second = reason(Setting(), {"train": "linear", "test": "attention"}).split(". ")
    assert first.startswith("On the training error attention loses: its weights")
    assert second.startswith("On the test error linear regression loses: at this ridge")


def test_attention_that_is_negated_measures_the_same():
    """What `reason` takes for granted: the sign of f, and so of a1, changes no error."""
    for weights in (Weights.none(), ON_SIGNAL):
        values = [
            simulate(Setting(weights=weights, nonlinearity=f), n=32, draws=2).values
            for f in ("tanh", "-tanh(t)")
        ]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("setting", "score"),
    [
        (Setting(Tokens(snr=2.0)), 2.0),
        (Setting(Tokens(snr=2.0), Weights.aligned(0.5)), 2.0 + (0.5 * 2.0) ** 2 + 0.25 * 2.0),
        (Setting(weights=Weights.from_angles(key_norm=2, query_norm=3)), 1.0 + 6.0),
        (
            Setting(weights=Weights.from_angles(key_norm=2, query_norm=3, key_cos=-0.5, query_cos=0.5)),
            1.0 + 1.0 * 1.5 + 6.0,
        ),
    ],
)
def test_large_scores_are_flagged(setting, score):
    """Beyond 0.3 in |mu|^2 + |mu'w_K mu'w_Q| + |w_K||w_Q| over sqrt p (section 11)."""
    p = (score / 0.3) ** 2
    assert cautions(setting, int(p) + 1) == []
    (line,) = cautions(setting, int(p) - 1)
    assert f"At p = {int(p) - 1} " in line
    assert f"{score / np.sqrt(int(p) - 1):.2f}" in line


def test_the_caution_is_printed():
    near = compare(Setting(Tokens(snr=2.0), ON_SIGNAL), n=64, draws=2)
    assert near.cautions[0] in str(near)
    assert near.as_dict()["cautions"] == near.cautions


@pytest.mark.parametrize("weights", [Weights.none(), Weights.aligned(0.5)], ids=["off", "aligned"])
@pytest.mark.parametrize("f", ["tanh", "relu"])
def test_measured_agrees_with_predicted(f, weights):
    found = compare(Setting(weights=weights, nonlinearity=f), n=600, draws=8, seed=1)
    for method in ("attention", "linear"):
        for error in ("train", "test"):
            average = getattr(getattr(found.measurement, method), error)
            limit = getattr(getattr(found.prediction, method), error)
            assert abs(average.mean - limit) < 4 * average.se + 0.03 * limit
    assert found.winner["train"] == "linear"  # at ratio 0.5, snr 1 and ridge 0.1, by the limits too
    assert found.prediction.linear.train < found.prediction.attention.train


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"^compare takes one setting, got arrays of shape \(2,\)$"):
        compare(Setting(ridge=np.array([0.1, 1.0])))
    with pytest.raises(ValueError, match=r"^draws must be at least 2, got 1$"):
        compare(Setting(), draws=1)
