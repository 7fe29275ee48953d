"""A phase diagram: the difference of the errors in colour, the boundary as a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from resolvent.phase import Phase
from resolvent.plot.files import save

Array = NDArray[np.float64]

SMALLEST = 1e-3  # differences below it are coloured linearly


def plot_phase(path: Path, *phases: Phase) -> None:
    """A row for each diagram, training beside test error: blue where attention wins, red where linear
    regression does, black the boundary.
    """
    figure = Figure(figsize=(9.6, 4.0 * len(phases)), layout="constrained")
    panels = figure.subplots(len(phases), 2, squeeze=False)
    for row, phase in zip(panels, phases, strict=True):
        ridge = "each method's best ridge" if phase.ridges is not None else f"ridge {phase.setting.ridge:g}"
        if "ridge" in (phase.x.name, phase.y.name):
            ridge = "ridge on the axis"
        for ax, error, values in zip(row, ("train", "test"), phase.difference, strict=True):
            _panel(figure, ax, phase, values)
            for curve in phase.boundary[error]:
                ax.plot(*curve.T, color="black", linewidth=1.5)
            ax.set_title(f"{'training' if error == 'train' else 'test'} error, {ridge}", fontsize=10)
    figure.suptitle(f"{phases[0].setting.name}: attention less linear regression", fontsize=11)
    save(figure, path)


def _panel(figure: Figure, ax: Axes, phase: Phase, values: Array) -> None:
    largest = max(float(np.nanmax(np.abs(np.where(np.isfinite(values), values, np.nan)))), 2.0 * SMALLEST)
    norm = SymLogNorm(SMALLEST, vmin=-largest, vmax=largest)
    mesh = ax.pcolormesh(
        phase.x.values, phase.y.values, values, cmap="RdBu_r", norm=norm, shading="nearest", rasterized=True
    )
    figure.colorbar(mesh, ax=ax)
    ax.set_xlabel(phase.x.name.replace("_", " "))
    ax.set_ylabel(phase.y.name.replace("_", " "))
    if _geometric(phase.x.values):
        ax.set_xscale("log")
    if _geometric(phase.y.values):
        ax.set_yscale("log")
    for side in (ax.xaxis, ax.yaxis):
        side.set_minor_formatter(NullFormatter())
    ax.set_xlim(phase.x.values[0], phase.x.values[-1])
    ax.set_ylim(phase.y.values[0], phase.y.values[-1])


def _geometric(values: Array) -> bool:
    """Whether the values are evenly spaced in their logarithm."""
    if values[0] <= 0.0 or values.size < 3:
        return False
    steps = np.diff(np.log(values))
    return bool(np.allclose(steps, steps[0]))
