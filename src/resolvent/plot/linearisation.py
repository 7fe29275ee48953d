"""Lemma 1 in one picture: of K's parts only the operator norm of the rest falls with n, like n^-1/2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from resolvent.plot.files import save
from resolvent.simulate import Linearisation

PARTS = {
    "noise": ("noise only, $K_N$", "#0072B2", "o", "-"),
    "low_rank": ("rank-one terms", "#009E73", "s", "--"),
    "rest": ("rest", "#D55E00", "D", " "),
}


def plot_linearisation(parts: Sequence[Linearisation], path: Path) -> None:
    """Operator norms against n of splits of one setting at several sizes, one or more samples of each.

    Raises ValueError for fewer than two sizes, and for splits of different settings.
    """
    sizes = np.unique([part.n for part in parts])
    if sizes.size < 2:
        raise ValueError(f"plot_linearisation takes splits at two sizes or more, got n = {sizes.tolist()}")
    if any(part.setting != parts[0].setting for part in parts):
        raise ValueError("plot_linearisation takes splits of one setting")
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    for name, (label, color, marker, line) in PARTS.items():
        means = [np.mean([part.norms[name] for part in parts if part.n == n]) for n in sizes]
        ax.plot(
            sizes, means, linestyle=line, color=color, marker=marker, markerfacecolor="white", label=label
        )
        if name == "rest":
            scaled = float(np.mean(np.asarray(means) * np.sqrt(sizes)))
            ax.plot(sizes, scaled / np.sqrt(sizes), ":", color=color, label=r"$\propto n^{-1/2}$")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, labels=[str(n) for n in sizes])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("tokens n")
    ax.set_ylabel("operator norm (mean over samples)")
    ax.legend(frameon=False, fontsize=8)
    setting = parts[0].setting
    ax.set_title(f"{setting.name}, ratio {float(setting.tokens.ratio):g}: K and its parts", fontsize=10)
    save(figure, path)
