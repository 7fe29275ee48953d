"""Error against size: the limit is flat, the refined equivalent follows the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from resolvent.plot.comparison import title
from resolvent.plot.files import checked_path, save
from resolvent.plot.style import points
from resolvent.predict import predict
from resolvent.setting import Setting
from resolvent.simulate import simulate

Array = NDArray[np.float64]

FEWEST = 4  # draws at a large size, whose errors fluctuate little


def plot_sizes(
    settings: Sequence[Setting],
    sizes: Sequence[int],
    path: Path,
    *,
    measured: Sequence[int] = (),
    draws: int = 64,
    seed: int = 0,
) -> None:
    """Training error of attention over p at the ratio of each setting, one panel for each.

    The refined equivalent is computed at `sizes`, the simulation at `measured`: `draws` at the smallest of
    them, fewer in proportion at larger ones. Settings hold single numbers. Raises what `predict` and
    `simulate` raise, ValueError where there is no refined equivalent, and for a path that cannot be drawn to.
    """
    checked_path(path)
    figure = Figure(figsize=(4.6 * len(settings), 4.0), layout="constrained")
    panels = figure.subplots(1, len(settings), squeeze=False)[0]
    for ax, setting in zip(panels, settings, strict=True):
        _predicted(ax, setting, np.array(sizes))
        if measured:
            _measured(ax, setting, np.array(measured), draws, seed)
        _finish(ax, setting)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save(figure, path)


def _predicted(ax: Axes, setting: Setting, sizes: Array) -> None:
    limit, errors = predict(setting).attention.train, []
    for p in sizes:
        refined = predict(setting, p=int(p)).refined
        if refined is None or refined.attention is None:
            raise ValueError(
                f"at p = {p} {'there is nothing refined' if refined is None else refined.missing}"
            )
        errors.append(float(refined.attention.train))
    ax.axhline(float(limit), color="#0072B2", linestyle="-", label="limit")
    ax.plot(sizes, errors, color="#0072B2", linestyle=":", label="refined")


def _measured(ax: Axes, setting: Setting, sizes: Array, draws: int, seed: int) -> None:
    averages = []
    for p in sizes:
        count = max(FEWEST, round(draws * sizes.min() / p))
        n = round(p / float(setting.tokens.ratio))
        averages.append(simulate(setting, n=n, draws=count, seed=seed).attention.train)
    mean, se = np.array(averages, dtype=np.float64).T
    points(ax, "attention", sizes, mean, se)


def _finish(ax: Axes, setting: Setting) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xlabel("p")
    ax.set_ylabel("training error")
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_title(
        f"{title(setting)}, p/n {float(setting.tokens.ratio):g}, ridge {float(setting.ridge):g}", fontsize=9
    )
