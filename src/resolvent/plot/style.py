"""One look for every figure: colour, marker and line together, so that none is needed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

METHODS = {
    "attention": {"color": "#0072B2", "linestyle": "-", "marker": "o", "label": "attention"},
    "linear": {"color": "#D55E00", "linestyle": "--", "marker": "s", "label": "linear regression"},
}

SERIES: tuple[dict[str, Any], ...] = (  # for more than two: attention's and linear regression's first
    *({key: style[key] for key in ("color", "linestyle", "marker")} for style in METHODS.values()),
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "D"},
    {"color": "#000000", "linestyle": (0, (1, 1)), "marker": "v"},
)


def curve(axes: Axes, method: str, x: Array, y: ArrayLike) -> None:
    """A predicted curve."""
    style = METHODS[method]
    axes.plot(
        x,
        np.asarray(y),
        color=style["color"],
        linestyle=style["linestyle"],
        label=f"{style['label']}, predicted",
    )


def refined_curve(axes: Axes, method: str, x: Array, y: ArrayLike) -> None:
    """A curve of the refined equivalent, dotted."""
    style = METHODS[method]
    axes.plot(x, np.asarray(y), color=style["color"], linestyle=":", label=f"{style['label']}, refined")


def points(axes: Axes, method: str, x: Array, y: ArrayLike, se: Array | None = None) -> None:
    """Measured points, with a bar of one standard error."""
    style = METHODS[method]
    axes.errorbar(
        x,
        np.asarray(y),
        yerr=se,
        color=style["color"],
        marker=style["marker"],
        linestyle="none",
        markersize=4.5,
        markerfacecolor="white",
        capsize=2.5,
        label=f"{style['label']}, measured",
    )
