"""Panels to a picture: measured points with error bars over predicted curves, the caption below."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure as Picture
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from resolvent.figures.record import Map, Panel, Panels, Series
from resolvent.plot.style import SERIES

WIDTH, HEIGHT = 8.4, 3.0  # inches: of the picture, of a row of panels
SIZE, LINE, MARGIN, COLUMNS = 8, 0.15, 0.25, 128  # the caption: points, inches a line and around, characters
TIE = 1e-6  # differences below it are none
AXES = {"ratio": "ratio p/n", "snr": "snr |mu|^2"}
SMALLEST = 1e-3  # differences below it are coloured linearly
MARK: dict[str, Any] = {"markersize": 4.5, "markerfacecolor": "white"}
SPIKE = {"color": "#D55E00", "marker": "s", **MARK}
WINNERS: dict[str, tuple[float, dict[str, Any]]] = {
    "attention measured lower": (-1.0, {"marker": "o", "color": "#0072B2", "markerfacecolor": "white"}),
    "linear regression measured lower": (
        1.0,
        {"marker": "s", "color": "#D55E00", "markerfacecolor": "white"},
    ),
    "measured equal": (0.0, {"marker": "x", "color": "black"}),
}


def draw(panels: Panels, caption: str) -> Picture:
    """The picture, two panels a row."""
    text = fill(caption, COLUMNS)
    below = LINE * (text.count("\n") + 1) + MARGIN
    rows = -(-len(panels) // 2)
    height = HEIGHT * rows + below + 0.3
    above = ConstrainedLayoutEngine(rect=(0.0, below / height, 1.0, 1.0 - below / height))
    picture = Picture(figsize=(WIDTH, height), layout=above)
    picture.text(0.02, 0.5 * MARGIN / height, text, fontsize=SIZE, va="bottom")
    for ax, panel in zip(picture.subplots(rows, 2, squeeze=False).flat, panels, strict=True):
        (_map if isinstance(panel, Map) else _curves)(picture, ax, panel)  # type: ignore[arg-type]
        ax.set_title(panel.title, fontsize=10)
        ax.set_xlabel(AXES.get(panel.x, panel.x))
        ax.set_ylabel(AXES.get(panel.y, panel.y))
    handles = _legend(panels)
    picture.legend(
        handles=handles, loc="outside upper center", ncols=min(len(handles), 4), frameon=False, fontsize=8
    )
    return picture


def _curves(_: Picture, ax: Axes, panel: Panel) -> None:
    for s in panel.series:
        style, at = SERIES[s.style], np.isfinite(s.refined)
        ax.plot(s.x, s.predicted, color=style["color"], linestyle=style["linestyle"], linewidth=1.4)
        ax.plot(s.x[at], s.refined[at], color=style["color"], linestyle=":", linewidth=1.2)
        ax.errorbar(
            s.x[s.points],
            s.measured[s.points],
            yerr=s.se[s.points],
            color=style["color"],
            marker=style["marker"],
            linestyle="none",
            capsize=2.5,
            **MARK,
        )
    for spike in panel.spikes:
        ax.axvline(spike.predicted, color="0.3", linestyle="--", linewidth=1.2)
        height = 0.5 * ax.get_ylim()[1]
        ax.errorbar([spike.measured], [height], xerr=[spike.se], capsize=2.5, **SPIKE)
    if panel.difference:
        x, wins = panel.difference.x, panel.difference.predicted < -TIE
        ax.fill_between(x, 0, 1, where=wins, color="0.9", transform=ax.get_xaxis_transform(), zorder=0)
    if "x" in panel.log:
        ax.set_xscale("log")
    if panel.y == "difference":
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        ax.set_yscale("symlog", linthresh=SMALLEST)
    elif "y" in panel.log:
        ax.set_yscale("log")
    elif all(np.nanmin(s.predicted) >= 0.0 for s in panel.series):
        highest = max(float(np.nanmax(s.predicted)) for s in panel.series)
        ax.set_ylim(0.0, max(ax.get_ylim()[1], 1.06 * highest))


def _map(picture: Picture, ax: Axes, panel: Map) -> None:
    largest = max(float(np.nanmax(np.abs(panel.predicted))), 2.0 * SMALLEST)
    norm = SymLogNorm(SMALLEST, vmin=-largest, vmax=largest)
    mesh = ax.pcolormesh(
        panel.xs, panel.ys, panel.predicted, cmap="RdBu_r", norm=norm, shading="nearest", rasterized=True
    )
    picture.colorbar(mesh, ax=ax)
    for curve in panel.boundary:
        ax.plot(*curve.T, color="black", linewidth=1.5)
    at = panel.points
    ahead = np.where(np.abs(at.measured) > 2.0 * at.se, np.sign(at.measured), 0.0)
    for sign, style in WINNERS.values():
        ax.plot(at.x[ahead == sign], at.y[ahead == sign], linestyle="none", markersize=5.5, **style)
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(panel.xs[0], panel.xs[-1])
    ax.set_ylim(panel.ys[0], panel.ys[-1])


def _legend(panels: Panels) -> list[Line2D]:
    """An entry for each label, line and marker together; one for the refined equivalent, one for a shade."""
    found: dict[str, Line2D] = {}
    curves = [panel for panel in panels if isinstance(panel, Panel)]
    for s in (s for panel in curves for s in panel.series):
        found.setdefault(s.label, _handle(s))
    if any(np.isfinite(s.refined).any() for panel in curves for s in panel.series):
        label = "refined equivalent at this size"
        found[label] = Line2D([], [], color="0.3", linestyle=":", label=label)
    if any(panel.spikes for panel in curves):
        label = "isolated eigenvalue"
        found[label] = Line2D([], [], linestyle="--", label=label, **SPIKE)
    if any(panel.difference and np.any(panel.difference.predicted < -TIE) for panel in curves):
        label = "attention's limit lower"
        found[label] = Line2D([], [], color="0.85", linewidth=8, label=label)
    if any(isinstance(panel, Map) for panel in panels):
        for label, (_, style) in WINNERS.items():
            found[label] = Line2D([], [], linestyle="none", markersize=5.5, label=label, **style)
    return list(found.values())


def _handle(s: Series) -> Line2D:
    return Line2D([], [], label=s.label, **SERIES[s.style], **MARK)
