"""Where attention wins, against predict point by point, against scipy, and in cases that are known."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from resolvent import Setting, Tokens, Weights, phase, predict, simulate
from resolvent.setting.variation import varied

ALIGNED = Setting(weights=Weights.aligned(1.0))
RATIOS, SNRS = np.geomspace(0.2, 4.0, 9), np.linspace(0.0, 6.0, 7)


def at(ratio, snr, ridge=0.1, align=1.0):
    return predict(Setting(Tokens(ratio, snr), Weights.aligned(align), ridge=ridge))


def test_errors_are_those_of_every_point():
    p = phase(ALIGNED, ("ratio", RATIOS), ("snr", SNRS))
    assert p.difference.shape == (2, 7, 9)
    assert p.converged.all()
    for j, snr in enumerate(SNRS):
        for i, ratio in enumerate(RATIOS):
            one = at(ratio, snr)
            got = [p.attention[0, j, i], p.attention[1, j, i], p.linear[0, j, i], p.linear[1, j, i]]
            want = [one.attention.train, one.attention.test, one.linear.train, one.linear.test]
            np.testing.assert_allclose(got, want, rtol=1e-9)
            assert p.wins["train"][j, i] == (one.attention.train < one.linear.train)
            assert p.wins["test"][j, i] == (one.attention.test < one.linear.test)


@pytest.mark.parametrize("error", ["train", "test"])
def test_errors_are_equal_on_the_boundary(error):
    p = phase(ALIGNED, ("ratio", np.geomspace(0.1, 4.0, 200)), ("snr", np.linspace(0.5, 6.0, 40)))
    assert p.boundary[error]

    def gap(ratio, snr):
        one = at(ratio, snr)
        return abs(getattr(one.attention, error) - getattr(one.linear, error))

    for curve in p.boundary[error]:
        for ratio, snr in curve[:: max(1, len(curve) // 10)]:
            a_step_away = [gap(1.02 * ratio, snr), gap(ratio / 1.02, snr), gap(ratio, snr + 0.15)]
            assert gap(ratio, snr) < 0.05 * max(a_step_away)


def test_the_boundary_has_the_winners_on_its_sides():
    p = phase(ALIGNED, ("ratio", RATIOS), ("snr", SNRS))
    for error in ("train", "test"):
        assert 0.0 < p.shares[error] < 1.0
        assert len(p.boundary[error]) >= 1


def test_without_signal_tanh_loses_in_training_at_small_ridges():
    """The paper's comparison. Not at every setting: see the next test."""
    p = phase(
        Setting(Tokens(snr=0.0)), ("ratio", np.geomspace(0.2, 5.0, 20)), ("ridge", np.geomspace(1e-4, 0.1, 9))
    )
    assert not p.wins["train"].any()
    assert p.boundary["train"] == []


def test_without_signal_a_large_ridge_weighs_less_on_attention_features():
    p = phase(Setting(Tokens(snr=0.0)), ("ratio", [0.3, 0.4]), ("ridge", [0.01, 10.0]))
    assert p.wins["train"].tolist() == [[False, False], [True, True]]
    m = simulate(Setting(Tokens(0.4, 0.0), ridge=np.array([0.01, 10.0])), n=300, draws=80, seed=0)
    z = m.difference.train.mean / m.difference.train.se
    assert z[0] > 4.0
    assert z[1] < -4.0


def test_a_signal_does_not_pass_an_even_f():
    p = phase(Setting(nonlinearity="abs"), ("ratio", RATIOS), ("snr", SNRS[1:]), best_ridge=True)
    assert not p.wins["test"].any()
    assert p.boundary["test"] == []


def test_alignment_makes_attention_win_on_fresh_tokens():
    p = phase(Setting(Tokens(0.5, 2.0)), ("align", [0.0, 0.5, 1.0]), ("ridge", [0.5, 1.0, 2.0]))
    measured = [
        simulate(Setting(Tokens(0.5, 2.0), Weights.aligned(a), ridge=1.0), n=400, draws=20, seed=1)
        for a in (0.0, 0.5, 1.0)
    ]
    winners = [m.difference.test.mean < -4.0 * m.difference.test.se for m in measured]
    losers = [m.difference.test.mean > 4.0 * m.difference.test.se for m in measured]
    assert all(w or lost for w, lost in zip(winners, losers, strict=True))
    assert p.wins["test"][1].tolist() == winners


def test_the_best_ridge_is_that_of_scipy_for_each_method():
    p = phase(ALIGNED, ("ratio", [0.3, 1.0, 3.0]), ("snr", [0.5, 2.0]), best_ridge=True)
    for j, snr in enumerate((0.5, 2.0)):
        for i, ratio in enumerate((0.3, 1.0, 3.0)):
            for k, method in enumerate(("attention", "linear")):

                def test(power, ratio=ratio, snr=snr, method=method):
                    return getattr(at(ratio, snr, 10.0**power), method).test

                want = minimize_scalar(test, bounds=(-5, 5), method="bounded", options={"xatol": 1e-7})
                assert (p.attention, p.linear)[k][1, j, i] == pytest.approx(want.fun, abs=1e-8)
                assert np.log10(p.ridges[k, j, i]) == pytest.approx(want.x, abs=2e-3)
                there = getattr(at(ratio, snr, p.ridges[k, j, i]), method)
                assert (p.attention, p.linear)[k][0, j, i] == pytest.approx(there.train, rel=1e-8)


def test_at_its_best_ridge_a_method_is_no_worse():
    plane = ("ratio", RATIOS), ("snr", SNRS)
    best = phase(ALIGNED, *plane, best_ridge=True)
    for ridge in (1e-3, 0.1, 10.0):
        equal = phase(Setting(weights=Weights.aligned(1.0), ridge=ridge), *plane)
        assert (best.attention[1] <= equal.attention[1] + 1e-9).all()
        assert (best.linear[1] <= equal.linear[1] + 1e-9).all()


def test_without_signal_the_best_ridge_is_infinite_and_nobody_wins():
    p = phase(Setting(Tokens(snr=0.0)), ("ratio", RATIOS), ("label_mean", [0.0, 0.1]), best_ridge=True)
    assert np.isinf(p.ridges[1]).all()
    assert np.isinf(p.ridges[0, 0]).all()
    assert (p.linear == 1.0).all()
    assert not p.wins["test"][0].any()


def test_the_record_is_readable():
    text = str(phase(ALIGNED, ("ratio", RATIOS), ("snr", SNRS)))
    assert text.splitlines()[0] == "tanh, ridge 0.1: ratio 0.2 to 4, snr 0 to 6, 63 of 63 points converged"
    assert "train  attention wins at" in text
    assert "each method's best ridge" in str(
        phase(ALIGNED, ("ratio", [1, 2]), ("snr", [1, 2]), best_ridge=True)
    )


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (("f", [1.0, 2.0]), ("snr", SNRS), {}, "x must vary one of ratio"),
        (("ratio", [2.0, 1.0]), ("snr", SNRS), {}, "x must have at least 2 increasing values"),
        (("ratio", [1.0]), ("snr", SNRS), {}, "x must have at least 2 increasing values"),
        (("ratio", 1.0), ("snr", SNRS), {}, "x must have at least 2 increasing values"),
        (("ratio", RATIOS), ("ratio", RATIOS), {}, "different fields, got ratio twice"),
        ("ratio", ("snr", SNRS), {}, "x must be a name and its values"),
        (("ratio", [-1.0, 1.0]), ("snr", SNRS), {}, "ratio must be positive"),
        (("ratio", RATIOS), ("ridge", [0.1, 1.0]), {"best_ridge": True}, "ridge cannot be an axis"),
        (("align", [0.1, 1.0]), ("key_norm", [0.1, 1.0]), {}, "align already fixes"),
    ],
)
def test_wrong_input_is_one_line(x, y, options, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        phase(Setting(), x, y, **options)
    assert "\n" not in str(caught.value)


def test_a_setting_of_arrays_is_refused():
    with pytest.raises(ValueError, match="one setting"):
        phase(Setting(ridge=[0.1, 1.0]), ("ratio", RATIOS), ("snr", SNRS))


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_figure_of_both_comparisons_is_written(suffix, tmp_path):
    from resolvent.plot import plot_phase

    plane = ("ratio", RATIOS), ("snr", SNRS)
    plot_phase(tmp_path / f"phase{suffix}", phase(ALIGNED, *plane), phase(ALIGNED, *plane, best_ridge=True))
    assert (tmp_path / f"phase{suffix}").stat().st_size > 5000


@pytest.mark.parametrize(
    "setting",
    [
        Setting(Tokens(1.0, 1.0), Weights.matrix(np.diag([1.0, 0.5, -0.5, 0.0]))),
        Setting(Tokens(0.5, 1.0, covariance=np.diag([0.5, 1.0, 1.5]))),
    ],
    ids=["matrix", "covariance"],
)
def test_settings_without_a_ridgeless_limit_have_a_best_ridge(setting):
    p = phase(setting, ("label_noise", [0.0, 0.2]), ("snr", [0.5, 2.0]), best_ridge=True)
    for k, method in enumerate(("attention", "linear")):
        best, ridge = (p.attention, p.linear)[k][1, 1, 1], p.ridges[k, 1, 1]
        at = varied(setting, {"label_noise": 0.2, "snr": 2.0, "ridge": ridge * np.array([0.8, 1.0, 1.25])})
        test = getattr(predict(at), method).test
        assert test[1] == pytest.approx(best, rel=1e-9)
        assert test[1] < min(test[0], test[2])
