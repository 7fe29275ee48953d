"""Gaps over n: rates that are recovered, noise that is called noise, and sizes that are reproducible."""

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, convergence, predict, simulate
from resolvent.convergence import Convergence, fit_rate
from resolvent.plot import plot_convergence
from resolvent.simulate import Interrupted

SIZES = np.array([100, 200, 400, 800])
ALIGNED = Setting(Tokens(0.5, 2.0), Weights.aligned(1.0))


@pytest.fixture(scope="module")
def aligned():
    return convergence(ALIGNED, sizes=(64, 128, 256), draws=16, seed=3)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("scale", [3.0, -3.0])
def test_an_exact_rate_is_found(exponent, scale):
    rate = fit_rate(SIZES, scale * SIZES**-exponent, 1e-6 * SIZES**-exponent)
    assert rate.exponent == pytest.approx(exponent, abs=1e-9)
    assert rate.scale == pytest.approx(scale)
    assert rate.low <= exponent <= rate.high
    if exponent:
        n = rate.size(0.01)
        assert abs(rate.scale) * n**-rate.exponent == pytest.approx(0.01)
    else:
        assert (rate.size(0.01), rate.size(4.0)) == (np.inf, 1.0)


def test_the_interval_holds_the_rate_as_often_as_it_says():
    rng = np.random.default_rng(0)
    se = np.full(4, 0.0008)
    fits = [fit_rate(SIZES, SIZES**-1.0 + se * rng.standard_normal(4), se) for _ in range(400)]
    assert None not in fits
    held = np.mean([fit.low - 0.005 <= 1.0 <= fit.high + 0.005 for fit in fits])
    assert 0.92 < held < 0.99


def test_noise_is_rarely_called_a_rate():
    rng = np.random.default_rng(1)
    se = np.full(4, 0.01)
    seen = [fit_rate(SIZES, se * rng.standard_normal(4), se) is not None for _ in range(400)]
    assert np.mean(seen) < 0.02


def test_scatter_beyond_the_standard_errors_widens_the_interval():
    gap = 1.0 / SIZES
    good, bad = (fit_rate(SIZES, gap * wobble, 0.02 * gap) for wobble in (np.ones(4), [1.3, 0.8, 1.2, 0.9]))
    assert bad.high - bad.low > 2 * (good.high - good.low)


@pytest.mark.parametrize(
    ("n", "se"), [([100, 200], [0.1, 0.1]), (SIZES, [0.1, 0.1, 0.0, 0.1]), (SIZES, [0.1, np.nan, 0.1, 0.1])]
)
def test_no_rate_without_enough_to_fit(n, se):
    assert fit_rate(n, np.ones(len(n)), se) is None


def test_rows_are_predict_and_simulate(aligned):
    for k, n in enumerate(aligned.n):
        measured = simulate(ALIGNED, n=int(n), draws=16, seed=3)
        limit = predict(ALIGNED, p=measured.p)
        assert aligned.p[k] == measured.p
        for m, method in enumerate(("attention", "linear")):
            for e, error in enumerate(("train", "test")):
                average = getattr(getattr(measured, method), error)
                assert (aligned.mean[k, m, e], aligned.se[k, m, e]) == average
                assert aligned.predicted[k, m, e] == getattr(getattr(limit, method), error)
                assert aligned.refined[k, m, e] == getattr(getattr(limit.refined, method), error)


def test_aligned_weights_are_flagged_and_fall_slowly(aligned):
    # snr + snr^2 align^2 + snr align^2 = 8 over root p
    np.testing.assert_allclose(aligned.added_scores, 8 / np.sqrt(aligned.p))
    (line,) = aligned.cautions
    assert line in str(aligned)
    assert "At n = 64, 128, 256" in line
    rate = aligned.rates["attention"]["train"]
    assert 0.0 < rate.low <= rate.exponent < 1.2
    assert aligned.within["attention"]["train"] is None
    assert "by the fit from about n = " in str(aligned)
    # the refined column is closer at every size, and right
    off = np.abs(aligned.refined - aligned.mean)[:, 0, 0]
    assert np.all(off < np.abs(aligned.gap)[:, 0, 0])
    assert np.all(off < 4 * aligned.se[:, 0, 0] + 0.03 * aligned.mean[:, 0, 0])


def test_without_weights_nothing_is_flagged():
    found = convergence(Setting(Tokens(2.0, 0.5)), sizes=[120, 60], draws=3)
    assert found.n.tolist() == [60, 120]
    assert found.p.tolist() == [120, 240]
    assert found.cautions == []


def table(gap, se):
    """A convergence with these relative gaps and standard errors for attention's training error."""
    shape = (len(gap), 2, 2)
    predicted, errors, refined = np.full(shape, 0.5), np.full(shape, 0.001), np.full(shape, np.nan)
    mean = predicted.copy()
    mean[:, 0, 0] -= 0.5 * np.asarray(gap)
    errors[:, 0, 0] = 0.5 * np.asarray(se)
    n = SIZES[: len(gap)]
    return Convergence(Setting(), n, n // 2, 5, 0, 0.03, predicted, refined, mean, errors)


@pytest.mark.parametrize(
    ("gap", "se", "within", "words"),
    [
        ([0.08, 0.02, 0.01, 0.005], [0.003] * 4, 200, "within 3 % from n = 200 on"),
        ([0.02, 0.05, 0.02, 0.01], [0.001] * 4, 400, "within 3 % from n = 400 on"),
        ([0.01, 0.01, 0.02, 0.02], [0.02] * 4, None, "inside its noise; whether it is within 3 % takes more"),
        (
            [0.32, 0.16, 0.08, 0.04],
            [0.001] * 4,
            None,
            "not within 3 % here, by the fit from about n = 1100 on",
        ),
        ([0.2, 0.2, 0.2, 0.2], [0.001] * 4, None, "not within 3 % at any n here"),
        ([0.001, 0.2], [0.001] * 2, None, "not within 3 % at any n here"),
    ],
)
def test_verdicts(gap, se, within, words):
    found = table(gap, se)
    assert found.within["attention"]["train"] == within
    assert words in str(found)
    assert found.within["linear"] == {"train": 100, "test": 100}


def test_an_interrupt_keeps_the_sizes_that_are_done(monkeypatch):
    calls = []

    def stopping(*args, **kwargs):
        calls.append(kwargs["n"])
        if len(calls) == 3:
            raise Interrupted(np.empty(0), 4)
        return simulate(*args, **kwargs)

    monkeypatch.setattr("resolvent.convergence.table.simulate", stopping)
    with pytest.raises(Interrupted) as stop:
        convergence(Setting(), sizes=(20, 30, 40), draws=3)
    assert stop.value.record.n.tolist() == [20, 30]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"setting": Setting(ridge=[0.1, 1.0])}, r"one setting, got arrays of shape \(2,\)"),
        ({"sizes": [64]}, r"sizes must be at least two different n, got \[64\]"),
        ({"sizes": [64, 64]}, "two different n"),
        ({"sizes": [64, 2]}, "sizes must be at least 4, got 2"),
        ({"draws": 1}, "draws must be at least 2, got 1"),
        ({"tolerance": 0.0}, "tolerance must be positive, got 0"),
    ],
)
def test_refusals(more, message):
    given = {"setting": Setting(), "sizes": [20, 40]} | more
    with pytest.raises(ValueError, match=message):
        convergence(given.pop("setting"), **given)


def test_the_plot_shows_errors_gaps_and_rates(aligned, monkeypatch):
    saved = []
    monkeypatch.setattr("resolvent.plot.convergence.save", lambda figure, _: saved.append(figure))
    plot_convergence(aligned, None)
    panels = saved[0].axes
    assert [ax.get_ylabel() for ax in panels[:2]] == ["training error", "test error"]
    for e, (errors, gaps) in enumerate(zip(panels[:2], panels[2:], strict=True)):
        for m, (above, below) in enumerate(zip(errors.containers, gaps.containers, strict=True)):
            np.testing.assert_allclose(above.lines[0].get_ydata(), aligned.mean[:, m, e])
            share = aligned.gap[:, m, e] / aligned.predicted[:, m, e]
            np.testing.assert_allclose(below.lines[0].get_ydata(), share)
    assert any("n^{-" in text.get_text() for text in panels[2].texts)


def test_errors_of_zero_or_infinity_have_no_share(monkeypatch):
    # p > n without a ridge: every label is interpolated, and attention's test error grows without bound
    found = convergence(Setting(Tokens(2.0), ridge=0.0), sizes=(20, 40, 60), draws=4)
    assert found.rates["linear"]["train"] is None
    assert found.within["linear"]["train"] == found.within["attention"]["train"] == 20
    assert np.isnan(found.relative[0][:, :, 0]).all()
    assert np.isfinite(found.relative[0][:, 1, 1]).all()
    assert np.isinf(found.predicted[:, 0, 1]).all()
    assert np.isnan(found.relative[0][:, 0, 1]).all()
    assert found.within["attention"]["test"] is found.rates["attention"]["test"] is None
    assert "nan" not in str(found)
    assert "the limit is infinite" in str(found)
    monkeypatch.setattr("resolvent.plot.convergence.save", lambda *_: None)
    plot_convergence(found, None)
