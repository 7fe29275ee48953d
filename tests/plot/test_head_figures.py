"""What the figures of heads show: a line style for each place of the signal, and a map of gains."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from resolvent.checkpoints import Head
from resolvent.compare import GainTable, HeadGain, compare_head
from resolvent.compare.gains import Pair
from resolvent.plot import plot_gains, plot_head_comparison
from resolvent.setting import Setting


@pytest.fixture
def figures(monkeypatch):
    """The figures that were given to `save`."""
    saved = []
    monkeypatch.setattr("resolvent.plot.heads.save", lambda figure, path: saved.append(figure))  # noqa: ARG005
    return saved


@pytest.mark.parametrize("over", ["ridge", "snr"])
def test_a_style_for_each_place(figures, monkeypatch, over):
    fine = {"ridge": 25, "snr": 5}
    monkeypatch.setattr("resolvent.plot.heads.FINE", fine)
    W = np.random.default_rng(0).normal(size=(2, 6, 24))
    head = Head(3, 1, *W, None, None, "toy", None, "memory")
    comparison = compare_head(head, over=over, draws=2)
    plot_head_comparison(comparison, None)
    (figure,) = figures
    (legend,) = figure.legends
    names = ["signal random", "signal top-key", "signal top-query", "linear regression"]
    assert [text.get_text() for text in legend.get_texts()] == names
    styles = {(h.get_color(), h.get_linestyle(), h.get_marker()) for h in legend.legend_handles}
    assert all(len({style[i] for style in styles}) == 4 for i in range(3))
    assert figure.get_suptitle().startswith("layer 3 head 1 (toy, 6 of 24), stable rank ")
    for axes, error in zip(figure.axes, ("train", "test"), strict=True):
        assert axes.get_xscale() == {"ridge": "log", "snr": "linear"}[over]
        lines = [
            line
            for line in axes.get_lines()
            if line.get_linestyle() != "None" and len(line.get_xdata()) == fine[over]
        ]
        assert len(lines) == len(axes.containers) == 4
        for i, (line, container) in enumerate(zip(lines, axes.containers, strict=True)):
            case = comparison.cases[min(i, 2)]
            method = "linear" if i == 3 else "attention"
            # each curve passes through the predictions that the comparison holds
            x, y = line.get_data()
            shared = np.isclose(x[:, None], comparison.x).nonzero()
            assert len(shared[0]) >= 4
            np.testing.assert_allclose(y[shared[0]], case.predicted(method, error)[shared[1]], rtol=1e-6)
            points = np.array(container.lines[0].get_xydata())
            np.testing.assert_allclose(points[:, 1], case.measured(method, error).mean)


def table(layers, heads, value=lambda layer, head: 0.1 * head - 0.3 * layer):
    rows = [
        HeadGain(layer, head, 0.0, Pair(0.5 - value(layer, head), 0.5), Pair(0.5, 0.5))
        for layer in range(layers)
        for head in range(heads)
    ]
    return GainTable("folder/toy", Setting(), "random", rows)


def test_a_map_is_centred_at_zero_with_its_numbers(figures):
    plot_gains(table(2, 3), None)
    (figure,) = figures
    top, bottom, _ = figure.axes
    (image,) = top.get_images()
    np.testing.assert_allclose(image.get_array(), [[0.0, 0.1, 0.2], [-0.3, -0.2, -0.1]], atol=1e-12)
    assert (image.norm.vmin, image.norm.vmax) == pytest.approx((-0.3, 0.3))
    red, white, blue = (image.cmap(image.norm(value))[:3] for value in (-0.2, 0.0, 0.2))
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert min(white) > 0.95
    assert [t.get_text() for t in top.texts] == ["+0.00", "+0.10", "+0.20", "-0.30", "-0.20", "-0.10"]
    assert [t.get_color() for t in top.texts] == ["black", "black", "white", "white", "white", "black"]
    assert np.all(bottom.get_images()[0].get_array() == 0.0)
    assert figure.get_suptitle() == "toy: tanh, ratio 0.5, snr 1, ridge 0.1, signal random"


def test_without_room_there_are_no_numbers_and_unknown_heads_are_grey(figures):
    plot_gains(table(30, 9, lambda layer, _: np.nan if layer == 2 else 0.1), None)
    axes = figures[0].axes[0]
    assert not axes.texts
    (image,) = axes.get_images()
    assert image.get_array().mask.nonzero()[0].tolist() == [2] * 9
    assert image.cmap(np.nan)[:3] == (0.8, 0.8, 0.8)


def test_pictures_are_written(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_gains(table(1, 1, lambda *_: np.nan), tmp_path / "one.png")
        plot_gains(table(3, 2), tmp_path / "map.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.svg", "one.png"]
