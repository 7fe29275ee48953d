"""The role of a1: without a linear component in f, attention does not see the signal.

Signal and weights enter through a1 alone (theory page, section 3), so with a1 = 0 the error is the same at
every snr. It still falls as p grows at fixed n: more dimensions memorise more.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from resolvent.figures.along import along
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan, Series
from resolvent.figures.verdict import agreement, falls, flat
from resolvent.nonlinearity import nonlinearity
from resolvent.setting import Setting, Tokens

FUNCTIONS = ("tanh", "relu", "cos", "hermite3", "hermite2")
RATIO, SNR, RIDGE = 0.5, 2.0, 0.1


def _over_snr(f: str, snr: Array | float) -> Setting:
    return Setting(Tokens(RATIO, snr), nonlinearity=f, ridge=RIDGE)


def _over_ratio(f: str, ratio: Array | float) -> Setting:
    return Setting(Tokens(ratio, SNR), nonlinearity=f, ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """The training error over snr and over p/n, five nonlinearities."""
    snrs, ratios = np.array([0.0, 0.5, 1.0, 2.0, 4.0]), np.geomspace(0.1, 3.0, 5)
    over_snr = [
        along(partial(_over_snr, f), np.linspace(0.0, 4.0, 49), snrs, plan, refined=True) for f in FUNCTIONS
    ]
    over_ratio = [
        along(partial(_over_ratio, f), np.geomspace(0.08, 4.0, 49), ratios, plan, refined=True)
        for f in FUNCTIONS
    ]
    return tuple(
        Panel(
            f"training error, {fixed}",
            axis,
            "error",
            tuple(
                here.series("attention", "train", _label(f), k)
                for k, (f, here) in enumerate(zip(FUNCTIONS, found, strict=True))
            ),
            log,
        )
        for axis, fixed, found, log in (
            ("snr", f"p/n = {RATIO:g}", over_snr, ""),
            ("ratio", f"snr {SNR:g}", over_ratio, "x"),
        )
    )


def caption(panels: Panels, plan: Plan) -> str:
    """The paper: a1 = 0 is flat in p and snr, the others fall."""
    return (
        f"The role of a1, the linear component of f; no learnt weights. Our setting: ridge {RIDGE:g}, n = "
        f"{plan.n}, "
        f"{plan.draws} draws. The claim is that errors with a1 = 0 stay flat in snr and p while others fall. "
        f"{' '.join(_verdict(panel) for panel in panels if isinstance(panel, Panel))} (Flat: within 4 "
        f"standard errors "
        f"plus 5 % of the mean.) {agreement(panels)}"
    )


def _verdict(panel: Panel) -> str:
    blind, seeing = ([s for s in panel.series if _blind(s) is side] for side in (True, False))
    still, limit, fall = sum(map(flat, blind)), sum(map(_level, blind)), sum(map(falls, seeing))
    word = "holds" if still == len(blind) and fall == len(seeing) else "fails"
    return (
        f"In {'p' if panel.x == 'ratio' else panel.x} it {word}: {still} of {len(blind)} are flat ({limit} "
        f"in the "
        f"limit), {fall} of {len(seeing)} fall."
    )


def _level(s: Series) -> bool:
    return bool(np.ptp(s.predicted) <= 0.05 * s.predicted.mean())


def _blind(s: Series) -> bool:
    return s.label.endswith("(a1 = 0)")


def _label(f: str) -> str:
    a1 = nonlinearity(f).coefficients().a1
    return f"{f} (a1 = {round(a1, 2):g})"


FIGURE = Figure(
    "linear-component", "The role of the linear component a1", Plan(768, 6), Plan(256, 6), panels, caption
)
