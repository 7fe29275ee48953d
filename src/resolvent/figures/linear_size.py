"""Linear regression against p, at the published n = 4096, ridge 1e-5: interpolation begins at p = n.

Below, the ridgeless training error is (1 - p/n)/(1 + snr) (theory page, section 6); above, it vanishes.
"""

from __future__ import annotations

import numpy as np

from resolvent.figures.linear import error_panels, linear_along, size_note
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement, decimals
from resolvent.setting import Setting, Tokens

SNR, RIDGE = 1.0, 1e-5
RATIOS = np.array([1, 2, 4, 6, 7, 8, 9, 10]) / 8.0
NONE = 0.01  # errors below it count as none
PUBLISHED = Plan(n=4096, draws=3)


def _setting(ratio: Array | float) -> Setting:
    return Setting(Tokens(ratio, SNR), ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """Both errors over p/n."""
    found = linear_along(_setting, np.linspace(0.05, 1.4, 109), RATIOS, plan)
    train, test = error_panels(found, "ratio", "")
    return train, Panel(test.title, test.x, test.y, test.series, "y")


def caption(panels: Panels, plan: Plan) -> str:
    """Where the probe interpolates, and where the test error peaks."""
    (train,), (test,) = (panel.series if isinstance(panel, Panel) else () for panel in panels)
    at = train.points
    fits = bool(np.all((train.measured[at] < NONE) == (train.x[at] >= 1.0)))
    peak = float(test.x[at][np.argmax(test.measured[at])])
    return (
        f"Linear regression against p. {size_note(plan, PUBLISHED)}: ridge {RIDGE:g}, {plan.draws} draws; "
        f"snr "
        f"{SNR:g} (our setting). That the training error vanishes from p = n on, and not before, "
        f"{'holds' if fits else 'fails'} (below {NONE:g} counts as none). The measured test error is "
        f"largest at p/n = "
        f"{decimals(peak)}. {agreement(panels)}"
    )


FIGURE = Figure("linear-size", "Linear regression against p", PUBLISHED, Plan(400, 16), panels, caption)
