"""Draw docs/images/setting_*.png: for each kind of setting, error against ridge, predicted and measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from resolvent import Setting, Tokens, Weights, predict, simulate
from resolvent.plot.files import save
from resolvent.plot.style import curve, points, refined_curve
from resolvent.refine import refine

IMAGES = Path(__file__).parent / "images"
RIDGE = np.logspace(-2, 1, 7)
FINE = np.logspace(-2, 1, 41)
SKEWED = Weights.from_angles(key_norm=1.0, query_norm=0.8, key_cos=0.7, query_cos=-0.3)
UNBALANCED = {"label_mean": 0.6}


def head(p: int, d: int, signal: str) -> object:
    """A random head of rank d with a trace."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((2, d, p))
    return Weights.factors(W[0], W[0] + W[1], tau=1.0, signal=signal)


def low_rank(rank: int) -> object:
    """Keys and queries on the first axes, of which the signal is one."""
    axes = np.eye(8)
    return Weights.low_rank(0.9 * axes[:rank], 0.9 * axes[:rank], mu=axes[0])


PICTURES: dict[str, dict[str, Setting]] = {
    "softmax": {
        "beta 0.5": Setting(weights=Weights.aligned(1.0), nonlinearity="softmax", beta=0.5),
        "beta 1": Setting(weights=Weights.aligned(1.0), nonlinearity="softmax", beta=1.0),
    },
    "matrix": {
        "W_K'W_Q, rank 64 of 300, signal at random": Setting(Tokens(snr=2.0), head(300, 64, "random")),
        "the same, signal on its top key": Setting(Tokens(snr=2.0), head(300, 64, "top-key")),
    },
    "low_rank": {
        "I + rank 1, along the signal": Setting(Tokens(snr=2.0), low_rank(1)),
        "I + rank 4": Setting(Tokens(snr=2.0), low_rank(4)),
    },
    "heads": {
        "tanh aligned": Setting(weights=Weights.aligned(1.0)),
        "tanh aligned + relu": Setting(weights=[Weights.aligned(1.0), SKEWED], nonlinearity=["tanh", "relu"]),
    },
    "noise": {
        "relu, Rademacher noise": Setting(Tokens(noise="rademacher", **UNBALANCED), SKEWED, "relu"),
        "relu, Laplace noise": Setting(Tokens(noise="laplace", **UNBALANCED), SKEWED, "relu"),
    },
    "covariance": {
        "white": Setting(weights=Weights.aligned(0.7)),
        "AR(1), correlation 0.6": Setting(Tokens(covariance="ar1:0.6"), Weights.aligned(0.7)),
    },
    "norms": {
        "norms spread by 0.5": Setting(Tokens(norm_spread=0.5, **UNBALANCED), Weights.aligned(0.7), "relu"),
        "the same, RMS normalised": Setting(
            Tokens(norm_spread=0.5, normalise="rms", **UNBALANCED), Weights.aligned(0.7), "relu"
        ),
    },
    "classes": {
        "90 % positive, uncentred": Setting(Tokens(label_mean=0.8), SKEWED, "relu", centred=False),
        "skip 0.5, labels 15 % wrong": Setting(Tokens(label_noise=0.15), SKEWED, "relu", skip=0.5),
    },
}


def draw(name: str) -> None:
    """One picture: two settings side by side."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, (title, setting) in zip(panels, PICTURES[name].items(), strict=True):
        panel(ax, title, setting)
    panels[0].set_ylabel("error")
    handles, labels = panels[0].get_legend_handles_labels()
    strong = dict(reversed(list(zip(labels, handles, strict=True))))
    style = {"ncols": 4, "frameon": False, "fontsize": 8}
    figure.legend(strong.values(), strong.keys(), loc="outside lower center", **style)
    save(figure, IMAGES / f"setting_{name}.png")


def panel(ax: Axes, title: str, setting: Setting) -> None:
    """Training error filled below test error: both methods."""
    measured = simulate(replace(setting, ridge=RIDGE), n=600, draws=6, seed=1)
    spread = setting.tokens.norm_spread and setting.tokens.normalise is None
    for error, alpha in (("train", 1.0), ("test", 0.45)):
        before = set(ax.get_children())
        for method in ("attention", "linear"):
            average = getattr(getattr(measured, method), error)
            if spread:
                found = refine(replace(setting, ridge=FINE[::4]), measured.p)
                refined_curve(ax, method, FINE[::4], getattr(getattr(found, method), error))
            else:
                found = predict(replace(setting, ridge=FINE), p=measured.p)
                curve(ax, method, FINE, getattr(getattr(found, method), error))
            points(ax, method, RIDGE, average.mean, average.se)
        for drawn in set(ax.get_children()) - before:
            drawn.set_alpha(alpha)
            if error == "test" and hasattr(drawn, "set_label"):
                drawn.set_label("_")
    ax.set(xscale="log", xlabel="ridge")
    ax.set_title(title, fontsize=10)
    ax.text(0.03, 0.03, "strong: training, pale: test", transform=ax.transAxes, fontsize=7.5, color="0.35")
    ax.set_ylim(bottom=0.0)


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        draw(name)
