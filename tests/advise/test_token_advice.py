"""Advice on given tokens: estimated, ranked with intervals, measured, and the broken assumption named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict
from resolvent.advise import advise_tokens
from resolvent.advise.own_tokens import Checked
from resolvent.compare import compare_tokens
from resolvent.dataset import LabelledTokens, demo_tokens


def tokens_of(seed, *, p=40, n=400, snr=2.0, spread=0.0):
    """Two Gaussian classes, norms of log standard deviation `spread`."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    noise = rng.standard_normal((p, n)) * np.exp(spread * rng.standard_normal(n) - spread**2)
    return LabelledTokens.from_arrays(np.outer(np.full(p, np.sqrt(snr / p)), y) + noise, y)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Rank few names: all of them take a while."""
    monkeypatch.setattr("resolvent.advise.advice.known_names", lambda: ("tanh", "identity", "cos"))


@pytest.fixture(scope="module")
def white():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("resolvent.advise.advice.known_names", lambda: ("tanh", "identity", "cos"))
        return advise_tokens(tokens_of(0), nonlinearities=["2*tanh(t)"], draws=6)


def test_the_setting_is_the_estimated_one(white):
    assert white.estimate.snr == pytest.approx(2.0, abs=4 * white.estimate.snr_se)
    assert white.setting.tokens.ratio == pytest.approx(40 / 320)
    assert white.setting.tokens.snr == white.estimate.snr


def test_the_ranking_carries_the_error_of_the_snr(white):
    for r in (*white.ranking[:3], white.linear):
        low, high = r.interval
        assert low < r.candidate.best.test < high
    ends = [
        predict(
            replace(
                white.setting,
                tokens=replace(white.setting.tokens, snr=white.estimate.snr + z * white.estimate.snr_se),
                nonlinearity="identity",
                ridge=np.geomspace(1e-3, 1e3, 400),
            )
        ).attention.test.min()
        for z in (1.96, -1.96)
    ]
    identity = next(r for r in white.ranking if r.candidate.name == "identity")
    scale = identity.candidate.best.test / identity.candidate.limit[1].test
    assert identity.interval == pytest.approx(tuple(scale * np.array(ends)), rel=1e-3)


def test_what_is_close_is_tied_and_what_is_not_is_not(white):
    by_name = {r.candidate.name: r for r in white.ranking}
    assert white.ranking[0].tied
    assert by_name["tanh"].tied
    assert by_name["2*tanh(t)"].tied
    assert not by_name["cos"].tied


def test_the_first_choices_are_measured_by_splits_of_the_tokens(white):
    assert [c.name for c in white.checked[:-1]] == [r.candidate.name for r in white.ranking[:2]]
    first = white.checked[0]
    again = compare_tokens(tokens_of(0), Setting(nonlinearity=first.name, ridge=first.ridge), draws=6, seed=0)
    np.testing.assert_allclose(first.test, again.test[:, 0])
    linear = compare_tokens(tokens_of(0), Setting(ridge=white.checked[-1].ridge), draws=6, seed=0)
    np.testing.assert_allclose(white.checked[-1].test, linear.test[:, 1])


def test_on_tokens_of_the_model_prediction_and_measurement_agree(white):
    assert all(c.agrees for c in white.checked)
    assert white.checked[0].why == "within error, the limit too"


def test_the_record_can_be_read(white):
    values = white.as_dict()
    assert values["checked"][0]["measured"]["mean"] == white.checked[0].measured.mean
    for word in ("95 % by snr", "measured", "limit", "linear regression", white.verdict):
        assert word in str(white)


@pytest.mark.parametrize(
    ("limit", "at_p", "tokens", "words"),
    [
        (0.5, 0.5, 0.5, "the limit too"),
        (0.8, 0.5, 0.5, "finite size counts"),
        (0.8, 0.8, 0.5, "covariance of these tokens count"),
        (0.8, 0.8, 0.8, "measured below the prediction"),
        (0.2, 0.2, 0.2, "measured above the prediction"),
    ],
)
def test_the_step_that_helps_names_the_broken_assumption(limit, at_p, tokens, words):
    test = 0.5 + 0.01 * np.random.default_rng(0).standard_normal(20)
    found = Checked("tanh", 1.0, limit, at_p, tokens, (0.49, 0.51), test, 2000)
    assert words in found.why
    assert found.agrees is (tokens == 0.5)


def test_unequal_norms_are_named():
    found = advise_tokens(tokens_of(1, n=120, p=20, spread=0.4), draws=2, top=1)
    assert any("Unequal norms" in line for line in found.assumptions)
    assert "Unequal norms" in str(found)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Setting(ridge=[0.1, 1.0]), "advise takes one setting"),
        (Setting(Tokens(noise="laplace")), "white Gaussian tokens"),
        (Setting(nonlinearity=["tanh", "relu"]), "one head"),
    ],
)
def test_settings_that_advice_is_not_for(setting, message):
    with pytest.raises(ValueError, match=message):
        advise_tokens(tokens_of(2), setting)


def test_where_prediction_and_measurement_part_the_verdict_says_by_how_much(white):
    ours, theirs = white.checked[0], white.checked[-1]
    worse = replace(ours, test=theirs.test + 0.1 + 1e-3 * np.arange(theirs.test.size))
    found = replace(white, checked=(worse, theirs))
    assert found.measured == "linear"
    gap = abs(worse.tokens - theirs.tokens)
    assert f"The predicted difference is {gap:.4f}" in found.verdict


@pytest.mark.slow
@pytest.mark.parametrize(("align", "measured"), [(1.0, "attention"), (0.0, "linear")])
def test_on_real_words_the_verdicts_are_those_of_the_page(align, measured):
    found = advise_tokens(demo_tokens(), Setting(weights=Weights.aligned(align)), draws=8, top=3)
    assert found.predicted == "attention"
    assert found.measured == measured
    assert found.checked[-1].agrees
