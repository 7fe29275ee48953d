"""Captions say what the numbers say: other numbers, another caption."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_tools import SMALL, as_predicted, backwards, changed, small_panels

from resolvent.figures import FIGURES
from resolvent.figures.record import Map, Panel


def opposite(s):
    return replace(s, measured=-s.measured)


def doubled(s):
    return replace(s, measured=2.0 * s.measured + 0.1)


def inverted(s):
    return replace(s, measured=1.0 / s.measured)


def falling(s):
    values = np.where(s.points, np.linspace(1.0, 0.2, s.x.size), np.nan)
    return replace(s, measured=values)


# name, change of the measured values, what the caption says before and after
FLIPS = [
    ("linear-ridge", backwards, "holds at all 12 measured", "fails at all 12 measured"),
    ("linear-size", doubled, "and not before, holds", "and not before, fails"),
    ("linear-snr", doubled, "error holds at all 9", "error fails at all 9"),
    ("no-signal", opposite, "higher one holds at 14 of 18", "higher one holds at 4 of 18"),
    ("aligned", opposite, "for p < n holds at 2 of 5", "for p < n holds at 3 of 5"),
    ("linear-component", falling, "In snr it holds: 3 of 3 are flat", "In snr it fails: 0 of 3 are flat"),
    ("alignment", backwards, "For the test error it holds", "For the test error it fails"),
    ("head", inverted, "reads most, holds: least", "reads most, fails: least"),
    ("words", opposite, "For the test error it holds at all 9", "For the test error it fails at all 9"),
]


@pytest.mark.parametrize(
    ("name", "change", "before", "after"), FLIPS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_other_numbers_make_another_caption(name, change, before, after):
    figure = FIGURES[name]
    panels = changed(small_panels(name), as_predicted)
    assert before in figure.caption(panels, SMALL)
    assert after in figure.caption(changed(panels, change), SMALL)


@pytest.mark.parametrize("name", FIGURES)
def test_a_caption_counts_the_points_that_agree(name):
    panels = changed(small_panels(name), as_predicted)
    count = sum(int(s.points.sum()) for p in panels if isinstance(p, Panel) for s in p.series)
    assert f"all {count} points lie within" in FIGURES[name].caption(panels, SMALL)
    assert f"0 of {count} points lie within" in FIGURES[name].caption(changed(panels, doubled), SMALL)


def test_the_spike_decides_the_caption_of_the_spectrum():
    panels = changed(small_panels("spectrum"), as_predicted)

    def with_spike(factor):
        return tuple(
            replace(p, spikes=tuple(s._replace(measured=factor * s.predicted) for s in p.spikes))
            for p in panels
        )

    caption = FIGURES["spectrum"].caption
    assert "does not know it holds" in caption(with_spike(1.05), SMALL)
    assert "does not know it fails" in caption(with_spike(3.0), SMALL)


def test_the_winners_decide_the_caption_of_the_phase_diagram():
    panels = small_panels("phase")

    def with_points(sign):
        return tuple(
            replace(
                p,
                points=p.points._replace(
                    measured=sign * p.points.predicted, se=np.full(p.points.se.shape, 1e-9)
                ),
            )
            if isinstance(p, Map)
            else p
            for p in panels
        )

    caption = FIGURES["phase"].caption
    assert "that of the limit holds at all 24" in caption(with_points(1.0), SMALL)
    assert "that of the limit fails at all 24" in caption(with_points(-1.0), SMALL)
