"""The limiting density over the histogram of one sampled matrix, isolated eigenvalues marked and labelled.

Eigenvalues of H'H/n are spread over decades: they are drawn against their logarithm, as density of ln x.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from resolvent.plot.files import save
from resolvent.setting import Weights
from resolvent.spectrum import SettingSpectrum

Array = NDArray[np.float64]

POINTS, BINS = 400, 60
ROOM = 1.25  # height of the axes over that of the histogram or, without one, of most of the density
KINDS = {
    "signal": ("#D55E00", "--"),
    "norm fluctuation (a2)": ("#CC79A7", "-."),
    "weights": ("#009E73", ":"),
    "mean (a0)": ("#E69F00", (0, (1, 1))),
}
LIMIT, SAMPLE = "#0072B2", "0.78"


def plot_spectrum(spectrum: SettingSpectrum, path: Path) -> None:
    """Draw density, atoms and isolated eigenvalues; sampled ones as a histogram and as points on the axis."""
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    ax = figure.subplots()
    logarithmic = spectrum.of == "features"
    heights = _histogram(ax, spectrum, logarithmic)
    curve = _density(ax, spectrum, logarithmic)
    ax.set_ylim(0.0, ROOM * max(heights.max(initial=0.0), np.quantile(curve, 0.95)))
    _spikes(ax, spectrum)
    ax.set_xlabel(("eigenvalue of H'H/n" if logarithmic else "eigenvalue of K") + _atoms(spectrum))
    ax.set_ylabel("density of its logarithm" if logarithmic else "density")
    ax.legend(frameon=False, fontsize=8)
    ax.set_title(_title(spectrum), fontsize=10)
    save(figure, path)


def _density(ax: Axes, spectrum: SettingSpectrum, logarithmic: bool) -> Array:
    """The curve on every interval of the support; its values."""
    drawn: list[Array] = []
    for left, right in spectrum.limit.support:
        start = max(left, _smallest(spectrum)) if logarithmic else left
        angle = np.sin(np.linspace(0.0, 0.5 * np.pi, POINTS)) ** 2  # close together at both edges
        x = start * (right / start) ** angle if logarithmic else start + (right - start) * angle
        y = spectrum.density(x) * (x if logarithmic else 1.0)
        ax.plot(x, y, color=LIMIT, linewidth=1.6, label=None if drawn else "limiting density")
        drawn.append(y[np.isfinite(y)])
    if logarithmic:
        ax.set_xscale("log")
        ax.set_xlim(left=0.5 * max(_smallest(spectrum), _first_percent(spectrum)))
    return np.concatenate(drawn)


def _smallest(spectrum: SettingSpectrum) -> float:
    """Where a logarithmic axis starts if the density reaches down to zero."""
    top = 1e-4 * float(spectrum.limit.support.max())
    if spectrum.measured is None:
        return top
    positive = spectrum.measured.eigenvalues[spectrum.measured.eigenvalues > 1e-6 * top]
    return min(top, 0.5 * float(positive[0]))


def _first_percent(spectrum: SettingSpectrum) -> float:
    """Below it a hard edge at zero leaves 1 % of the sampled eigenvalues, which would stretch the axis."""
    m = spectrum.measured
    return 0.0 if m is None else float(np.quantile(m.eigenvalues[m.eigenvalues > 0.0], 0.01))


def _histogram(ax: Axes, spectrum: SettingSpectrum, logarithmic: bool) -> Array:
    """Sampled eigenvalues, those that make up an atom at zero left out; heights of the bins."""
    m = spectrum.measured
    if m is None:
        return np.empty(0)
    values = m.eigenvalues
    if logarithmic:
        values = values[values > 1e-6 * _smallest(spectrum)]
        edges = np.geomspace(values[0] * (1 - 1e-9), values[-1] * (1 + 1e-9), BINS + 1)
        widths = np.diff(np.log(edges))
    else:
        edges = np.linspace(values[0], values[-1], BINS + 1)
        widths = np.diff(edges)
    counts, _ = np.histogram(values, edges)
    heights = counts / (m.n * widths)
    ax.stairs(heights, edges, fill=True, color=SAMPLE, label=f"sampled, n = {m.n}, p = {m.p}")
    if m.outliers.size:
        ax.plot(
            m.outliers,
            np.zeros(m.outliers.size),
            "o",
            color="black",
            markerfacecolor="white",
            markersize=6,
            clip_on=False,
            zorder=5,
            label="isolated, sampled",
        )
    return np.asarray(heights)


def _spikes(ax: Axes, spectrum: SettingSpectrum) -> None:
    """A line at each predicted isolated eigenvalue, one entry of the legend for each kind."""
    seen: set[str] = set()
    for outlier in spectrum.outliers:
        color, style = KINDS[outlier.kind]
        label = None if outlier.kind in seen else f"isolated, predicted: {outlier.kind}"
        ax.axvline(outlier.place, ymax=0.6, color=color, linestyle=style, linewidth=1.6, label=label)
        seen.add(outlier.kind)


def _atoms(spectrum: SettingSpectrum) -> str:
    """What the axis does not show."""
    return "".join(f"   (atom at {at:.3g} of mass {mass:.3g})" for at, mass in spectrum.limit.atoms)


def _title(spectrum: SettingSpectrum) -> str:
    setting, weights = spectrum.setting, spectrum.setting.head.weights
    tokens = f"ratio {float(setting.tokens.ratio):g}, snr {float(setting.tokens.snr):.3g}"
    values = weights.as_dict() if isinstance(weights, Weights) else {}
    described = ", ".join(f"{k} {float(v):g}" for k, v in values.items() if np.any(v))
    return f"{setting.name}, {tokens}" + (f", {described}" if described else "")
