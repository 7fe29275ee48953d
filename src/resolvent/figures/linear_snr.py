"""Linear regression against snr, at the published p = 512, n = 2048, ridge 1e-5: E = (1 - p/n)/(1 + snr)."""

from __future__ import annotations

import numpy as np

from resolvent.figures.linear import error_panels, linear_along, size_note
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement, holds
from resolvent.setting import Setting, Tokens

RATIO, RIDGE = 0.25, 1e-5
PUBLISHED = Plan(n=2048, draws=10)


def _setting(snr: Array | float) -> Setting:
    return Setting(Tokens(RATIO, snr), ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """Both errors over snr."""
    found = linear_along(
        _setting, np.linspace(0.0, 10.0, 81), np.array([0, 0.5, 1, 2, 3, 4, 6, 8, 10.0]), plan
    )
    return error_panels(found, "snr", "")


def caption(panels: Panels, plan: Plan) -> str:
    """Whether the training error is (1 - p/n)/(1 + snr)."""
    (train,) = panels[0].series if isinstance(panels[0], Panel) else ()
    at = train.points
    law = (1.0 - RATIO) / (1.0 + train.x[at])
    right = np.abs(train.measured[at] - law) <= 4.0 * train.se[at] + 0.01 * law
    return (
        f"Linear regression against snr. {size_note(plan, PUBLISHED)}: p = {round(RATIO * plan.n)}, ridge "
        f"{RIDGE:g}, {plan.draws} draws. The ridgeless law (1 - p/n)/(1 + snr) of the training error "
        f"{holds(right)}, to 4 standard errors plus 1 %. {agreement(panels)}"
    )


FIGURE = Figure("linear-snr", "Linear regression against snr", PUBLISHED, Plan(256, 12), panels, caption)
