"""Weights aligned with the signal, w_K = w_Q = mu, over snr and over p/n: where attention wins."""

from __future__ import annotations

import numpy as np

from resolvent.figures.along import along
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement, ahead, holds, score
from resolvent.setting import Setting, Tokens, Weights

RATIO, SNR, RIDGE = 0.5, 2.0, 0.1


def _over_snr(snr: Array | float) -> Setting:
    return Setting(Tokens(RATIO, snr), Weights.aligned(1.0), ridge=RIDGE)


def _over_ratio(ratio: Array | float) -> Setting:
    return Setting(Tokens(ratio, SNR), Weights.aligned(1.0), ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """Both errors over both axes."""
    snrs, ratios = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]), np.geomspace(0.1, 3.0, 7)
    found = (
        (
            "snr",
            f"p/n = {RATIO:g}",
            along(_over_snr, np.linspace(0.0, 4.0, 65), snrs, plan, refined=True),
            "",
        ),
        (
            "ratio",
            f"snr {SNR:g}",
            along(_over_ratio, np.geomspace(0.08, 4.0, 65), ratios, plan, refined=True),
            "x",
        ),
    )
    return tuple(
        here.panel(error, axis, f", {fixed}", log)
        for axis, fixed, here, log in found
        for error in ("train", "test")
    )


def caption(panels: Panels, plan: Plan) -> str:
    """The paper: attention's training error is equal or lower for p < n."""
    curves = [panel for panel in panels if isinstance(panel, Panel)]
    over_ratio = next(panel for panel in curves if panel.x == "ratio" and panel.title.startswith("training"))
    s = over_ratio.series[0]
    below = ahead(over_ratio)[s.x[s.points] < 1.0]
    return (
        f"tanh with weights aligned with the signal, w_K = w_Q = mu. Our setting: ridge {RIDGE:g}, n = "
        f"{plan.n}, "
        f"{plan.draws} draws. That attention's training error is equal or lower for p < n "
        f"{holds(below <= 0.0)} "
        f"at snr {SNR:g}. Attention is in the limit lower where shaded. By panel, "
        f"{'; '.join(map(score, curves))}. "
        f"{agreement(panels)}"
    )


FIGURE = Figure("aligned", "Aligned weights over snr and p/n", Plan(1024, 8), Plan(256, 8), panels, caption)
