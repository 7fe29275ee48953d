"""Heads as weights of a setting: scale, place of the signal, predictions beside measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resolvent.checkpoints import Head
from resolvent.compare import GainTable, compare_head, head_gains, head_setting, query_signal
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens
from resolvent.simulate import Interrupted, simulate

D, D_HEAD = 48, 16
BASE = Setting(Tokens(ratio=0.5, snr=2.0), nonlinearity="tanh", ridge=0.3)


def head_at_random(layer=0, head=0, seed=0, gain=None):
    W = np.random.default_rng([layer, head, seed]).normal(size=(2, D_HEAD, D))
    return Head(layer, head, *W, None, None, "toy", gain, "memory")


def test_a_setting_holds_the_heads_own_weights():
    head = head_at_random()
    M = head.matrix()
    setting = head_setting(head, BASE, tau=0.7, signal="top-query")
    weights = setting.head.weights
    kept = weights.factors.left * weights.factors.values @ weights.factors.right.T
    np.testing.assert_allclose(kept, M * 0.7 * np.sqrt(D) / np.linalg.norm(M), atol=1e-12)
    _, _, Vt = np.linalg.svd(M)
    assert abs(weights.signal @ Vt[0]) == pytest.approx(1.0)
    assert (setting.ridge, setting.tokens) == (BASE.ridge, BASE.tokens)
    # W_Q comes first in a Head, and the left side of M belongs to keys
    U = np.linalg.svd(head.W_K.T @ head.W_Q)[0]
    assert abs(head_setting(head, signal="top-key").head.weights.signal @ U[:, 0]) == pytest.approx(1.0)


def test_the_gain_of_the_norm_is_folded_in():
    gain = np.linspace(0.5, 2.0, D)
    factors = head_setting(head_at_random(gain=gain), gain=True).head.weights.factors
    M = gain[:, None] * head_at_random().matrix() * gain
    np.testing.assert_allclose(
        factors.values, np.linalg.svd(M)[1][:D_HEAD] * np.sqrt(D) / np.linalg.norm(M), rtol=1e-10
    )


def test_the_signal_in_the_scores():
    head, mu = head_at_random(), np.arange(D) - 3.0
    M = head.matrix() * np.sqrt(D) / np.linalg.norm(head.matrix())
    unit = np.sqrt(2.0) * mu / np.linalg.norm(mu)
    q = query_signal(head_setting(head, BASE, signal=mu))
    assert q == pytest.approx(np.sum((M @ unit) ** 2) / D)
    rng = np.random.default_rng(0)  # (M mu)'z/sqrt p is the signal's part in a score
    assert np.var(rng.normal(size=(20000, D)) @ (M @ unit) / np.sqrt(D)) == pytest.approx(q, rel=0.05)


def test_a_comparison_is_predict_and_simulate():
    head, own = head_at_random(), np.arange(D) - 3.0
    found = compare_head(head, BASE, signals={"top-key": "top-key", "mine": own}, draws=3, seed=5)
    assert [case.place for case in found.cases] == ["top-key", "mine"]
    np.testing.assert_allclose(found.x, 0.3 * np.logspace(-2, 2, 9))
    assert found.n == 2 * D
    for case, signal in zip(found.cases, ("top-key", own), strict=True):
        setting = head_setting(head, BASE, signal=signal)
        wanted = predict(replace(setting, ridge=found.x))
        measured = simulate(replace(setting, ridge=found.x), draws=3, seed=5)
        assert case.query_signal == query_signal(setting)
        for method in ("attention", "linear"):
            for error in ("train", "test"):
                expected = getattr(getattr(wanted, method), error)
                np.testing.assert_allclose(case.predicted(method, error), expected, rtol=1e-9)
                average = getattr(getattr(measured, method), error)
                np.testing.assert_array_equal(case.measured(method, error), average)
        ratio = measured.values[:, 0, 0, 4] / wanted.attention.train[4]
        deviation = found.deviations[case.place]
        assert deviation.mean == pytest.approx(ratio.mean() - 1)
        assert deviation.se == pytest.approx(ratio.std(ddof=1) / np.sqrt(3))


def test_over_snr_each_value_is_its_own_setting():
    head = head_at_random()
    found = compare_head(head, BASE, signals={"random": "random"}, over="snr", draws=2)
    np.testing.assert_allclose(found.x, [0.0, 0.5, 1.0, 2.0, 4.0])
    for i, snr in enumerate(found.x):
        setting = head_setting(head, replace(BASE, tokens=replace(BASE.tokens, snr=snr)))
        (case,) = found.cases
        assert case.predicted("attention", "test")[i] == pytest.approx(predict(setting).attention.test)
        np.testing.assert_array_equal(case.values[..., i], simulate(setting, draws=2).values)
    text = str(found)
    assert "tanh, ridge 0.3, n = 96, p = 48, 2 draws" in text
    assert "training error of attention at snr 2" in text


def test_a_gaussian_head_is_as_predicted():
    # stable rank about 60: scores are nearly Gaussian, and the signal's part in them is small
    W = np.random.default_rng(0).normal(size=(2, 150, 240))
    head = Head(0, 0, *W, None, None, "toy", None, "memory")
    setting = head_setting(head, BASE, signal="top-key")
    assert query_signal(setting) < 0.02
    measured = simulate(setting, draws=12, seed=1).attention
    predicted = predict(setting).attention
    for error in ("train", "test"):
        average = getattr(measured, error)
        assert abs(average.mean - getattr(predicted, error)) < 4 * average.se
        assert average.se < 0.02


def test_gains_of_all_heads():
    heads = [head_at_random(layer, head) for layer in range(2) for head in range(2)]
    dead = Head(1, 2, np.zeros((D_HEAD, D)), heads[0].W_K, None, None, "toy", None, "memory")
    rows = list(head_gains([*heads, dead], BASE))
    linear = predict(BASE).linear
    for row, head in zip(rows, heads, strict=False):
        wanted = predict(head_setting(head, BASE, signal="top-key"))
        assert (row.layer, row.head) == (head.layer, head.head)
        assert row.attention == pytest.approx((wanted.attention.train, wanted.attention.test))
        assert row.linear == pytest.approx((linear.train, linear.test))
        assert row.gain.test == pytest.approx(linear.test - wanted.attention.test)
        assert row.query_signal == query_signal(wanted.setting)
    assert np.isnan([*rows[-1].attention, *rows[-1].gain, rows[-1].query_signal]).all()
    text = str(GainTable("toy", BASE, "top-key", rows))
    assert text.startswith("toy: tanh, ratio 0.5, snr 2, ridge 0.3, signal top-key\n")
    assert f"Linear regression: train {linear.train:.4f}, test {linear.test:.4f}" in text


def test_an_interrupt_keeps_the_places_that_are_done(monkeypatch):
    calls = []

    def stopping(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise Interrupted(np.empty((0, 2, 2, 9)), options["draws"])
        return simulate(*args, **options)

    monkeypatch.setattr("resolvent.compare.heads.simulate", stopping)
    with pytest.raises(Interrupted) as stop:
        compare_head(head_at_random(), BASE, draws=2)
    assert [case.place for case in stop.value.record.cases] == ["random"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 1}, "draws must be at least 2, got 1"),
        ({"setting": replace(BASE, ridge=[0.1, 0.2])}, r"takes one setting, got arrays of shape \(2,\)"),
        ({"setting": replace(BASE, ridge=0.0)}, "ridge must be positive"),
        ({"signals": {"up": "up"}}, "signal must be random, top-key, top-query or a vector, got 'up'"),
        ({"signals": {"mine": np.ones(3)}}, r"signal must have shape \(48,\), got \(3,\)"),
        ({"tau": 0.0}, "tau must be positive, got 0"),
        ({"gain": True}, "no norm gain is known"),
    ],
)
def test_wrong_input_is_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        compare_head(head_at_random(), **({"setting": BASE, "draws": 2} | change))
