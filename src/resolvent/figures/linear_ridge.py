"""Linear regression against the ridge, at the published p = 2048, n = 512, snr 1: E rises from 0 to 1."""

from __future__ import annotations

import numpy as np

from resolvent.figures.linear import error_panels, linear_along, size_note
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement, holds
from resolvent.setting import Setting, Tokens

RATIO, SNR = 4.0, 1.0
PUBLISHED = Plan(n=512, draws=10)


def _setting(ridge: Array | float) -> Setting:
    return Setting(Tokens(RATIO, SNR), ridge=ridge)


def panels(plan: Plan) -> Panels:
    """Both errors over nine decades of the ridge."""
    found = linear_along(_setting, np.logspace(-4, 5, 91), np.logspace(-4, 5, 13), plan)
    return error_panels(found, "ridge", "x")


def caption(panels: Panels, plan: Plan) -> str:
    """Whether the training error rises with the ridge."""
    (train,) = panels[0].series if isinstance(panels[0], Panel) else ()
    rising = np.diff(train.measured[train.points]) > 0.0
    return (
        f"Linear regression against the ridge. {size_note(plan, PUBLISHED)}: p = {round(RATIO * plan.n)}, "
        f"snr {SNR:g}, {plan.draws} draws. That the training error rises with the ridge {holds(rising)} "
        f"after the "
        f"first. {agreement(panels)}"
    )


FIGURE = Figure(
    "linear-ridge", "Linear regression against the ridge", PUBLISHED, Plan(128, 8), panels, caption
)
