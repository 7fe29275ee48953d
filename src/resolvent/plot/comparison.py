"""Error against ridge: predicted curves, measured points with error bars, both methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from resolvent.compare import Comparison, TokenComparison
from resolvent.plot.files import save
from resolvent.plot.style import curve, points, refined_curve
from resolvent.predict import Prediction, predict
from resolvent.refine import Refined, refine
from resolvent.setting import LowRankWeights, MatrixWeights, Setting
from resolvent.setting.heads import Head
from resolvent.simulate import simulate

Array = NDArray[np.float64]

DECADES = 2.0  # on either side of the ridge that was asked for
MEASURED, PREDICTED = 13, 97
LEAST_REFINED, MOST_REFINED = 1e-6, 1e3  # ridges at which the refined curve is drawn


def plot_comparison(comparison: Comparison, path: Path, progress: bool = False) -> None:
    """Measure the same draws over a range of ridges and draw them over the predicted curves."""
    m, setting = comparison.measurement, comparison.measurement.setting
    ridges, fine = _ridges(setting)
    measured = simulate(replace(setting, ridge=ridges), n=m.n, draws=m.draws, seed=m.seed, progress=progress)
    predicted = predict(replace(setting, ridge=fine), p=m.p)
    sparse = fine[::4][(fine[::4] >= LEAST_REFINED) & (fine[::4] <= MOST_REFINED)]
    refined = refine(replace(setting, ridge=sparse), m.p) if sparse.size else Refined(None, None)
    figure, axes = _panels(setting)
    for ax, error in zip(axes, ("train", "test"), strict=True):
        for method in ("attention", "linear"):
            average = getattr(getattr(measured, method), error)
            curve(ax, method, fine, getattr(getattr(predicted, method), error))
            if refined.attention is not None:
                refined_curve(ax, method, sparse, getattr(getattr(refined, method), error))
            points(ax, method, ridges, average.mean, average.se)
        _finish(ax, error)
    _legend(figure, axes[0])
    figure.suptitle(f"{_title(setting)}, n = {m.n}, p = {m.p}, {m.draws} draws", fontsize=10)
    save(figure, path)


def plot_token_comparison(own: TokenComparison, path: Path) -> None:
    """The same on given tokens: training error on all of them, test error over the splits."""
    setting = own.at_all.setting
    ridges, fine = _ridges(setting)
    train, test = own.over_ridges(ridges)
    figure, axes = _panels(setting)
    for ax, error, at in zip(axes, ("train", "test"), (own.at_all, own.at_split), strict=True):
        predicted: Prediction = predict(replace(at.setting, ridge=fine), p=own.estimate.p)
        for k, method in enumerate(("attention", "linear")):
            curve(ax, method, fine, getattr(getattr(predicted, method), error))
            if error == "train":
                points(ax, method, ridges, train[k])
            else:
                values = test[:, k]
                points(ax, method, ridges, values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values)))
        _finish(ax, error)
    _legend(figure, axes[0])
    figure.suptitle(
        f"{Path(own.standard.source).name}: {_title(setting)}, n = {own.estimate.n}, p = {own.estimate.p}",
        fontsize=10,
    )
    save(figure, path)


def _ridges(setting: Setting) -> tuple[Array, Array]:
    centre = float(setting.ridge) or 0.1
    low, high = np.log10(centre) - DECADES, np.log10(centre) + DECADES
    return np.logspace(low, high, MEASURED), np.logspace(low, high, PREDICTED)


def _panels(setting: Setting) -> tuple[Figure, tuple[Axes, Axes]]:
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax in (left, right):
        if setting.ridge:
            ax.axvline(float(setting.ridge), color="0.8", linewidth=1.0, zorder=0)
    return figure, (left, right)


def _legend(figure: Figure, ax: Axes) -> None:
    """One legend for all panels, below them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def _finish(ax: Axes, error: str) -> None:
    ax.set_xscale("log")
    ax.set_xlabel("ridge")
    ax.set_ylabel("training error" if error == "train" else "test error")
    ax.set_ylim(bottom=0.0)


def _title(setting: Setting) -> str:
    weights = ", ".join(dict.fromkeys(_described(head) for head in setting.heads))
    return f"{setting.name}, snr {float(setting.tokens.snr):.3g}, {weights}"


def _described(head: Head) -> str:
    match head.weights:
        case MatrixWeights(factors=f):
            return f"weights of stable rank {f.stable_rank:.3g}"
        case LowRankWeights():
            return f"I + rank {head.weights.rank}"
    values = head.weights.as_dict()
    return ", ".join(f"{k} {float(np.max(v)):g}" for k, v in values.items() if np.any(v)) or "no weights"
