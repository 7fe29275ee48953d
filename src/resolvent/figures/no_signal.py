"""Attention and linear regression on pure noise: which of the two memorises labels better?"""

from __future__ import annotations

from functools import partial

import numpy as np

from resolvent.figures.along import along
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement, ahead, holds, score
from resolvent.setting import Setting, Tokens

RIDGES = (1e-3, 0.1)
CURVE, AT = np.geomspace(0.05, 4.0, 81), np.geomspace(0.08, 3.0, 9)


def _setting(ridge: float, ratio: Array | float) -> Setting:
    return Setting(Tokens(ratio, 0.0), ridge=ridge)


def panels(plan: Plan) -> Panels:
    """The training error over p/n, at a small and a larger ridge, and its difference between the methods."""
    found = {ridge: along(partial(_setting, ridge), CURVE, AT, plan) for ridge in RIDGES}
    errors = (here.panel("train", "ratio", f", ridge {ridge:g}", "x") for ridge, here in found.items())
    differences = (
        Panel(
            f"difference, ridge {ridge:g}", "ratio", "difference", (here.series("difference", "train"),), "x"
        )
        for ridge, here in found.items()
    )
    return (*errors, *differences)


def caption(panels: Panels, plan: Plan) -> str:
    """Where attention's error is higher, and where it is not."""
    curves = [panel for panel in panels if isinstance(panel, Panel) and panel.difference]
    higher = np.concatenate([ahead(panel) > 0.0 for panel in curves])
    return (
        f"No signal (snr 0): attention with tanh and without learnt weights, and linear regression. Our "
        f"setting: n = "
        f"{plan.n}, {plan.draws} draws. That attention's training error is the higher one {holds(higher)}, "
        f"else "
        f"lower or equal to two standard errors. By panel, {'; '.join(map(score, curves))}. "
        f"{agreement(panels)}"
    )


FIGURE = Figure(
    "no-signal",
    "Attention and linear regression without signal",
    Plan(1024, 8),
    Plan(256, 6),
    panels,
    caption,
)
