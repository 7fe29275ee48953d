"""Figures of small size for tests, without the refined equivalent, and the same with other numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from resolvent.figures import FIGURES, Plan
from resolvent.figures.record import Map, Panel, Series
from resolvent.predict import predict

SMALL, WORDS = Plan(n=64, draws=3), Plan(n=450, draws=2)


@cache
def small_panels(name: str) -> tuple[Panel | Map, ...]:
    """A figure's panels at n = 64, the limit in place of the slower refined equivalent."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("along", "phase_diagram"):
            patch.setattr(f"resolvent.figures.{module}.refine", lambda setting, p: predict(setting))  # noqa: ARG005
        patch.setattr("resolvent.figures.head._installed", lambda: None)
        return FIGURES[name].panels(WORDS if name == "words" else SMALL)


def changed(panels, change: Callable[[Series], Series]):
    """Panels with every series changed, the difference too."""
    return tuple(
        panel
        if isinstance(panel, Map)
        else replace(
            panel,
            series=tuple(map(change, panel.series)),
            difference=panel.difference and change(panel.difference),
        )
        for panel in panels
    )


def as_predicted(s: Series) -> Series:
    """The series as if every point had been measured exactly where the limit says."""
    at = s.points
    return replace(
        s,
        measured=np.where(at, s.predicted, np.nan),
        se=np.where(at, 1e-9, np.nan),
        refined=np.full(s.x.shape, np.nan),
    )


def backwards(s: Series) -> Series:
    """Measured values in the opposite order."""
    values = s.measured.copy()
    values[s.points] = values[s.points][::-1]
    return replace(s, measured=values)


def rows(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
