"""What figures show: predicted curves, measured points with error bars, and the card's two panels."""

from __future__ import annotations

import numpy as np
import pytest

from resolvent.compare import compare, compare_tokens
from resolvent.dataset import LabelledTokens
from resolvent.nonlinearity import nonlinearity
from resolvent.plot import plot_comparison, plot_nonlinearity, plot_sizes, plot_token_comparison
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens, Weights
from resolvent.simulate import simulate

LABELS = [
    "attention, predicted",
    "linear regression, predicted",
    "attention, measured",
    "linear regression, measured",
]


@pytest.fixture
def figures(monkeypatch):
    """The figures that were given to `save`."""
    saved = []
    for module in ("card", "comparison", "size"):
        monkeypatch.setattr(f"resolvent.plot.{module}.save", lambda figure, path: saved.append(figure))  # noqa: ARG005
    return saved


def curves(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def bars(container):
    """Points, and the half lengths of their bars."""
    points, _, (segments,) = container.lines
    ends = np.array(segments.get_segments())
    return np.array(points.get_xydata()), (ends[:, 1, 1] - ends[:, 0, 1]) / 2


def test_a_comparison_over_ridges(figures):
    comparison = compare(Setting(weights=Weights.aligned(0.5), ridge=0.3), n=24, draws=4, seed=3)
    plot_comparison(comparison, None)
    (figure,) = figures
    assert len(figure.axes) == 2
    (legend,) = figure.legends
    refined = [label.replace("predicted", "refined") for label in LABELS[:2]]
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted([*LABELS, *refined])
    for axes, error in zip(figure.axes, ("train", "test"), strict=True):
        assert axes.get_xscale() == "log"
        assert axes.get_ylim()[0] == 0.0
        for method, container in zip(("attention", "linear"), axes.containers, strict=True):
            line = curves(axes)[LABELS[method == "linear"]]
            x, y = line.get_xdata(), line.get_ydata()
            assert (x.min(), x.max()) == pytest.approx((0.003, 30.0))
            for ridge, value in list(zip(x, y, strict=True))[::16]:
                wanted = predict(Setting(weights=Weights.aligned(0.5), ridge=ridge), p=12)
                assert value == pytest.approx(getattr(getattr(wanted, method), error), rel=1e-9)
            points, half = bars(container)
            average = getattr(getattr(comparison.measurement, method), error)
            assert points[6] == pytest.approx((0.3, average.mean), rel=1e-6)  # the ridge that was asked for
            assert half[6] == pytest.approx(average.se, rel=1e-6)
            assert np.all(half > 0.0)
    assert "tanh, snr 1, align 0.5, n = 24, p = 12, 4 draws" in figure.get_suptitle()


def test_given_tokens_over_ridges(figures):
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(40) % 2, 1, -1)
    data = LabelledTokens.from_arrays(rng.standard_normal((6, 40)) + 0.8 * labels, labels, source="mine.npz")
    own = compare_tokens(data, draws=3)
    plot_token_comparison(own, None)
    (figure,) = figures
    train, test = figure.axes
    assert figure.get_suptitle().startswith("mine.npz: tanh")
    assert not any("refined" in label for label in curves(train))  # too few tokens
    for k in (0, 1):
        points, _, ends = train.containers[k].lines
        assert ends == ()  # one number has no standard error
        assert points.get_xydata()[6] == pytest.approx((0.1, own.train[k]))
        points, half = bars(test.containers[k])
        assert points[6] == pytest.approx((0.1, own.test[:, k].mean()))
        assert half[6] == pytest.approx(own.test[:, k].std(ddof=1) / np.sqrt(3))


def test_given_tokens_with_a_refined_curve(figures):
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(100) % 2, 1, -1)
    data = LabelledTokens.from_arrays(rng.standard_normal((5, 100)) + 0.5 * labels, labels)
    own = compare_tokens(data, draws=2)
    plot_token_comparison(own, None)
    for axes, error in zip(figures[0].axes, ("train", "test"), strict=True):
        for method, name in (("attention", "attention"), ("linear", "linear regression")):
            line = curves(axes)[f"{name}, refined"]
            assert line.get_linestyle() == ":"
            at = np.argmin(np.abs(np.log(line.get_xdata() / 0.1)))
            assert line.get_ydata()[at] == pytest.approx(own.refined[method][error], rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1e12])
def test_any_ridge_can_be_drawn(figures, ridge):
    plot_comparison(compare(Setting(ridge=ridge), n=16, draws=2), None)
    for axes in figures[0].axes:
        ridges = curves(axes)["attention, predicted"].get_xdata()
        assert np.isfinite(axes.get_ylim()).all()
        assert np.all(ridges > 0.0)
        assert np.sqrt(ridges[0] * ridges[-1]) == pytest.approx(ridge or 0.1)


def test_errors_over_sizes(figures, tmp_path):
    settings = [Setting(Tokens(0.5), Weights.aligned(1.0), f) for f in ("tanh", "relu")]
    plot_sizes(settings, [8, 16], tmp_path / "sizes.png", measured=[8, 16], draws=6, seed=5)
    assert [axes.get_title().split(",")[0] for axes in figures[0].axes] == ["tanh", "relu"]
    for axes, setting in zip(figures[0].axes, settings, strict=True):
        limit, refined = (curves(axes)[name].get_ydata() for name in ("limit", "refined"))
        assert np.ptp(limit) == 0.0
        assert limit[0] == predict(setting).attention.train
        assert refined[1] == predict(setting, p=16).refined.attention.train
        points, half = bars(axes.containers[0])
        for k, (p, draws) in enumerate(((8, 6), (16, 4))):
            average = simulate(setting, n=2 * p, draws=draws, seed=5).attention.train
            assert points[k] == pytest.approx((p, average.mean))
            assert half[k] == pytest.approx(average.se)
    with pytest.raises(ValueError, match="at p = 2 the refined equivalent needs p above 2"):
        plot_sizes(settings, [2], tmp_path / "sizes.png")


@pytest.mark.parametrize("f", ["relu", "exp", "t^3 - 3*t"])
def test_the_card(figures, f):
    found = nonlinearity(f)
    plot_nonlinearity(found, None)
    left, right = figures[0].axes
    t = np.linspace(-4.0, 4.0, 801)
    drawn = curves(left)
    np.testing.assert_allclose(drawn[f].get_ydata(), found(t))
    a = found.coefficients()
    np.testing.assert_allclose(drawn["linear part a0 + a1 t"].get_ydata(), a.a0 + a.a1 * t)
    heights = np.array([bar.get_height() for bar in right.patches])
    assert heights[1] == pytest.approx(a.linear_share)
    assert heights[2] == pytest.approx(a.a2**2 / a.nu)
    assert 0.9 < heights.sum() <= 1.0 + 1e-12


def test_the_card_of_a_constant(figures):
    plot_nonlinearity(nonlinearity("0*t"), None)
    assert [bar.get_height() for bar in figures[0].axes[1].patches] == [0.0] * 8
