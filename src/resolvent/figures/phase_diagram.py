"""Phase diagram: where in the plane of p/n and snr attention with aligned weights wins, and a cut."""

from __future__ import annotations

import numpy as np

from resolvent.figures.along import ERRORS, TITLES, along, errors_of, with_difference
from resolvent.figures.record import Array, Figure, Map, Panels, Plan, Points
from resolvent.figures.verdict import agreement, holds
from resolvent.phase import Phase, phase
from resolvent.predict import predict
from resolvent.refine import refine
from resolvent.setting import Setting, Tokens, Weights
from resolvent.simulate import simulate

RIDGE, CUT = 0.1, 2.0
RATIOS, SNRS = np.geomspace(0.1, 4.0, 61), np.linspace(0.0, 6.0, 49)
MEASURED = (0.15, 0.4, 1.0, 2.5), (0.5, 2.0, 4.0)


def _setting(ratio: Array | float, snr: Array | float) -> Setting:
    return Setting(Tokens(ratio, snr), Weights.aligned(1.0), ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """Both errors: the plane with measured points, and the cut at one snr."""
    diagram = phase(_setting(0.5, 1.0), ("ratio", RATIOS), ("snr", SNRS))
    measured = np.array([_measured(ratio, snr, plan) for ratio in MEASURED[0] for snr in MEASURED[1]])
    maps = [_map(diagram, error, measured) for error in ERRORS]
    cut = along(lambda ratio: _setting(ratio, CUT), RATIOS, np.geomspace(0.12, 3.2, 6), plan, refined=True)
    return (*maps, *(cut.panel(error, "ratio", f" at snr {CUT:g}", "x") for error in ERRORS))


def caption(panels: Panels, plan: Plan) -> str:
    """Whether the measured winner is the predicted one, and how much of the plane attention wins."""
    maps = [panel for panel in panels if isinstance(panel, Map)]
    clear = np.concatenate([np.abs(m.points.measured) > 2.0 * m.points.se for m in maps])
    limit = np.concatenate([m.points.measured * m.points.predicted > 0.0 for m in maps])[clear]
    refined = np.concatenate([m.points.measured * m.points.refined > 0.0 for m in maps])[clear]
    shares = ", ".join(
        f"{100.0 * float(np.mean(m.predicted < 0.0)):.0f} % of the plane in {m.title.partition(':')[0]}"
        for m in maps
    )
    return (
        f"Attention's error less that of linear regression, tanh, aligned weights w_K = w_Q = mu; black: "
        f"the predicted "
        f"boundary. Our setting: ridge {RIDGE:g}, n = {plan.n}, {plan.draws} draws; cuts at snr {CUT:g}. "
        f"Attention is "
        f"predicted lower at {shares}. That the winner measured beyond two standard errors is that of the "
        f"limit "
        f"{holds(limit)}, that it is that of the refined equivalent at this size {holds(refined)}. "
        f"{agreement(panels)}"
    )


def _measured(ratio: float, snr: float, plan: Plan) -> Array:
    """The columns of `Points` for both errors: (error, 6)."""
    setting = _setting(round(ratio * plan.n) / plan.n, snr)
    m = simulate(setting, n=plan.n, draws=plan.draws, seed=plan.seed)
    limit, refined = (with_difference(errors_of(e, ()))[2] for e in (predict(setting), refine(setting, m.p)))
    both = zip(limit, refined, m.difference, strict=True)
    return np.array([(float(setting.tokens.ratio), snr, a, b, *average) for a, b, average in both])


def _map(diagram: Phase, error: str, measured: Array) -> Map:
    j = ERRORS[error]
    return Map(
        f"{TITLES[error]}: attention less linear",
        "ratio",
        "snr",
        diagram.x.values,
        diagram.y.values,
        diagram.difference[j],
        Points(*measured[:, j].T),
        diagram.boundary[error],
    )


FIGURE = Figure("phase", "Phase diagram of p/n and snr", Plan(600, 8), Plan(256, 6), panels, caption)
