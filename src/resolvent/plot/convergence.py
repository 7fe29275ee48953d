"""Errors over n beside their limits, and below them the gaps with the fitted rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from resolvent.convergence import Convergence
from resolvent.plot.files import save
from resolvent.plot.style import METHODS, curve, points, refined_curve

FINE = 64


def plot_convergence(convergence: Convergence, path: Path) -> None:
    """Training and test error of both methods over n; gaps as shares of the prediction, bars of one se."""
    c = convergence
    n = c.n.astype(np.float64)
    figure = Figure(figsize=(8.6, 6.0), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    for e, error in enumerate(("training error", "test error")):
        errors, gaps = panels[:, e]
        for m, method in enumerate(METHODS):
            curve(errors, method, n, c.predicted[:, m, e])
            if np.isfinite(c.refined[:, m, e]).any():
                refined_curve(errors, method, n, c.refined[:, m, e])
            points(errors, method, n, c.mean[:, m, e], c.se[:, m, e])
            _gap(gaps, c, method, m, e)
        errors.set_ylabel(error)
        drawn = np.array([c.predicted[:, :, e], c.mean[:, :, e] + c.se[:, :, e]])
        errors.set_ylim(0.0, max(1.12 * drawn[np.isfinite(drawn)].max(), 1e-9))
        gaps.set_ylabel("(predicted - measured)/predicted")
        gaps.set_xlabel("tokens n")
        _sizes(gaps, c)
    entries = [entry for ax in panels[:, 0] for entry in zip(*ax.get_legend_handles_labels(), strict=True)]
    unique = {label: handle for handle, label in entries}
    figure.legend(
        list(unique.values()), list(unique), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    setting = c.setting
    figure.suptitle(
        f"{setting.name}, ratio {float(setting.tokens.ratio):g}, snr {float(setting.tokens.snr):.3g}, "
        f"ridge {float(setting.ridge):g}, {c.draws} draws",
        fontsize=10,
    )
    save(figure, path)


def _gap(ax: Axes, c: Convergence, method: str, m: int, e: int) -> None:
    """Gaps with their bars, the fitted rate where there is one, and the tolerance as a band."""
    style = METHODS[method]
    gap, se = (part[:, m, e] for part in c.relative)
    if m == 0:
        label = f"within {100.0 * c.tolerance:g} %"
        ax.axhspan(-c.tolerance, c.tolerance, color="0.92", zorder=0, label=label)
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    points(ax, method, c.n.astype(np.float64), gap, se)
    rate = c.rates[method][("train", "test")[e]]
    if rate is not None:
        fine = np.geomspace(c.n[0], c.n[-1], FINE)
        fitted = rate.scale * fine**-rate.exponent / np.interp(fine, c.n, c.predicted[:, m, e])
        ax.plot(fine, fitted, color=style["color"], linestyle="-.", linewidth=1.0)
        middle = (fine[FINE // 2], fitted[FINE // 2])
        name = f"$n^{{-{rate.exponent:.2g}}}$"
        ax.annotate(
            name, middle, (4, 5), textcoords="offset points", color=style["color"], fontsize=9, va="bottom"
        )


def _sizes(ax: Axes, c: Convergence) -> None:
    """A logarithmic axis that names the sizes."""
    ax.set_xscale("log")
    ax.set_xticks(c.n, labels=[str(n) for n in c.n])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(c.n[0] / 1.15, c.n[-1] * 1.15)
