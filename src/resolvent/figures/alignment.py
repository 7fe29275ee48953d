"""The angle between weights and signal, from opposite to aligned.

Three vectors of one length: the query turned with the key on the signal, and both turned together. Signal and
weights enter the bulk equations through their inner products alone (theory page, section 5).
"""

from __future__ import annotations

import numpy as np

from resolvent.figures.along import TITLES, along
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan, Series
from resolvent.figures.verdict import agreement, decimals
from resolvent.setting import Setting, Tokens, Weights

RATIO, SNR, RIDGE = 0.5, 2.0, 0.1
NORM = float(np.sqrt(SNR))
LABELS = ("query turned, key aligned", "key and query turned together", "linear regression")


def _query(cosine: Array | float) -> Setting:
    weights = Weights.from_angles(
        key_norm=NORM, query_norm=NORM, key_cos=1.0, query_cos=cosine, key_query_cos=cosine
    )
    return Setting(Tokens(RATIO, SNR), weights, ridge=RIDGE)


def _both(cosine: Array | float) -> Setting:
    weights = Weights.from_angles(
        key_norm=NORM, query_norm=NORM, key_cos=cosine, query_cos=cosine, key_query_cos=1.0
    )
    return Setting(Tokens(RATIO, SNR), weights, ridge=RIDGE)


def panels(plan: Plan) -> Panels:
    """Both errors over the cosine."""
    curve, at = np.linspace(-1.0, 1.0, 81), np.linspace(-1.0, 1.0, 7)
    query, both = (along(path, curve, at, plan, refined=True) for path in (_query, _both))
    return tuple(
        Panel(
            TITLES[error],
            "cosine",
            "error",
            (
                query.series("attention", error, LABELS[0], 0),
                both.series("attention", error, LABELS[1], 2),
                query.series("linear", error, LABELS[2], 1),
            ),
        )
        for error in ("train", "test")
    )


def caption(panels: Panels, plan: Plan) -> str:
    """Whether alignment helps, and by how much."""
    sentences = [_verdict(panel) for panel in panels if isinstance(panel, Panel)]
    return (
        f"Cosine of weights and signal, tanh, |w_K|^2 = |w_Q|^2 = {SNR:g}. Our setting: p/n = {RATIO:g}, "
        f"snr {SNR:g}, "
        f"ridge {RIDGE:g}, n = {plan.n}, {plan.draws} draws. The claim is that alignment with the signal "
        f"lowers "
        f"attention's error. {' '.join(sentences)} {agreement(panels)}"
    )


def _verdict(panel: Panel) -> str:
    query = panel.series[0]
    first, last = _ends(query)
    best = float(query.x[query.points][np.argmin(query.measured[query.points])])
    se = float(np.hypot(*query.se[query.points][[0, -1]]))
    word = "holds" if last < first - 2.0 * se else "fails"
    return (
        f"For the {panel.title} it {word}: with the query turned from opposite to aligned it goes from "
        f"{first:.3f} to {last:.3f}, and is least at cosine {decimals(best)}."
    )


def _ends(s: Series) -> tuple[float, float]:
    values = s.measured[s.points]
    return float(values[0]), float(values[-1])


FIGURE = Figure(
    "alignment", "The angle between weights and signal", Plan(1024, 8), Plan(256, 8), panels, caption
)
