"""Pretrained heads: error against ridge or snr by place of the signal, and the gain of all heads as a map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from resolvent.compare import GainTable, HeadComparison
from resolvent.compare.heads import METHODS, Placed, along
from resolvent.plot.files import save
from resolvent.predict import predict

Array = NDArray[np.float64]

STYLES: dict[str, dict[str, Any]] = {
    "random": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    "top-key": {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    "top-query": {"color": "#CC79A7", "linestyle": ":", "marker": "v"},
    "tokens": {"color": "#000000", "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "D"},
    "linear": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
}
NAMES = {"train": "training error", "test": "test error"}
FINE = {"ridge": 49, "snr": 17}  # points of a predicted curve
ROOM = 20  # heads or layers up to which numbers fit into the cells
DARK = 0.65  # of the colour scale, from which on numbers are white


def plot_head_comparison(comparison: HeadComparison, path: Path) -> None:
    """Predicted curves and measured points, one line style for each place of the signal."""
    c, over = comparison, comparison.over
    low, high = float(c.x[0]), float(c.x[-1])
    fine = np.geomspace(low, high, FINE[over]) if over == "ridge" else np.linspace(low, high, FINE[over])
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    panels = dict(zip(NAMES, figure.subplots(1, 2), strict=True))
    for case in c.cases:
        setting = case.prediction.setting
        scalar = replace(setting, ridge=c.setting.ridge, tokens=c.setting.tokens)
        curves = replace(case, prediction=predict(along(scalar, over, fine)))
        for method in METHODS if case is c.cases[-1] else METHODS[:1]:
            for error, ax in panels.items():
                _draw(ax, method, error, curves, fine, c.x)
    for error, ax in panels.items():
        ax.set_xscale("log" if over == "ridge" else "linear")
        ax.set_xlabel(over)
        ax.set_ylabel(NAMES[error])
        ax.set_ylim(bottom=0.0)
    handles, labels = panels["train"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    draws = len(c.cases[0].values)
    s = c.setting
    fixed = f"snr {s.tokens.snr:g}" if over == "ridge" else f"ridge {s.ridge:g}"
    figure.suptitle(
        f"{c.head}, stable rank {c.stable_rank:.1f}: {s.name}, {fixed}, n = {c.n}, {draws} draws; "
        "lines predicted, points measured",
        fontsize=9,
    )
    save(figure, path)


def _draw(ax: Axes, method: str, error: str, case: Placed, fine: Array, x: Array) -> None:
    """A predicted curve and the measured points on it."""
    name = case.place if method == "attention" else "linear"
    style = STYLES[name]
    label = f"signal {name}" if method == "attention" else "linear regression"
    ax.plot(fine, case.predicted(method, error), color=style["color"], linestyle=style["linestyle"])
    mean, se = case.measured(method, error)
    ax.errorbar(x, np.asarray(mean), yerr=se, **style | {"linestyle": "none"}, **POINT)
    ax.plot([], [], **style, markerfacecolor="white", label=label)


POINT: dict[str, Any] = {"markersize": 4.5, "markerfacecolor": "white", "capsize": 2.5}


def plot_gains(table: GainTable, path: Path) -> None:
    """Layer by head, the predicted gain over linear regression: blue where attention wins, red where not.

    Cells hold their number while there is room; heads without a prediction are grey.
    """
    rows = sorted({row.layer for row in table.rows})
    heads = max(row.head for row in table.rows) + 1
    values = np.full((2, len(rows), heads), np.nan)
    for row in table.rows:
        values[:, rows.index(row.layer), row.head] = row.gain
    upright = len(rows) > heads
    width, height = 0.42 * heads + 1.4, 0.32 * len(rows) + 1.0
    size = (2 * width + 0.8, height) if upright else (width + 0.8, 2 * height)
    figure = Figure(figsize=(max(size[0], 6.0), max(size[1], 3.0)), layout="constrained")
    panels = figure.subplots(*((1, 2) if upright else (2, 1)))
    reach = float(np.nanmax(np.abs(values), initial=1e-12))
    scale = ScalarMappable(Normalize(-reach, reach), colormaps["RdBu"].with_extremes(bad="0.8"))
    for ax, error, panel in zip(panels, NAMES, values, strict=True):
        ax.imshow(panel, cmap=scale.get_cmap(), norm=scale.norm, aspect="auto")
        _label(ax, panel, rows, reach)
        ax.set_title(NAMES[error], fontsize=9)
    figure.colorbar(scale, ax=panels, label="gain over linear regression")
    figure.suptitle(f"{Path(table.source).name}: {table.title}", fontsize=9)
    save(figure, path)


def _label(ax: Axes, values: Array, layers: list[int], reach: float) -> None:
    """Layers and heads at the sides, and numbers in the cells while there is room."""
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    step = -(-len(layers) // ROOM)
    ax.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    ax.xaxis.set_major_locator(MaxNLocator(ROOM, integer=True))
    if max(values.shape) > ROOM:
        return
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if abs(value) > DARK * reach else "black"
            ax.text(j, i, f"{value:+.2f}", ha="center", va="center", fontsize=7, color=colour)
