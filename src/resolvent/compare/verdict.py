"""Who wins, why, and the table that shows it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from resolvent.setting import Setting
from resolvent.simulate import Average

Winner = Literal["attention", "linear", "tie"]

ERRORS = {"train": "training", "test": "test"}
TIE = 2.0  # paired standard errors
LARGE_SCORE = 0.3  # of the low-rank part of a score, above which linearising f in it is rough
WEAK = 0.05  # alignment share below which weights do not point at the signal


def ahead(difference: Average) -> Winner:
    """Who is lower, from attention's error less linear regression's; NaN decides nothing."""
    mean, se = float(difference.mean), float(difference.se)
    if not abs(mean) >= TIE * se or mean == 0.0:
        return "tie"
    return "attention" if mean < 0.0 else "linear"


def reason(setting: Setting, winner: dict[str, Winner]) -> str:
    """Why the loser loses, by the quantities that the theory says matter: one sentence for each loser."""
    if winner["train"] == winner["test"]:
        return f"On both errors {_reason(setting, winner['test'])}"
    return " ".join(f"On the {name} error {_reason(setting, winner[e])}" for e, name in ERRORS.items())


def _reason(setting: Setting, winner: Winner) -> str:
    a = setting.f.coefficients()
    noise = 100.0 * a.sigma2 / a.nu if a.nu > 0.0 else 0.0
    snr, gram = float(np.max(setting.tokens.snr)), setting.gram.reshape(-1, 3, 3)[0]
    overlap = float(gram[0, 1] * gram[0, 2]) / snr if snr > 0.0 else 0.0  # (mu'w_K)(mu'w_Q)/|mu|^2
    aligned = a.a1 != 0.0 and overlap > WEAK
    name = setting.f.name
    if winner == "tie":
        return "neither method is ahead by more than two standard errors."
    if a.a1 == 0.0 and winner == "linear":
        return f"attention loses: {name} has no linear component (a1 = 0), so no signal passes through it."
    if winner == "linear":
        if aligned:
            return (
                f"attention loses although its weights point at the signal: the noise that {name} adds "
                f"({noise:.1f} % of its power) and that attention makes outweigh what alignment brings."
            )
        return (
            "attention loses: its weights do not point at the signal, so it mixes tokens without telling the "
            f"classes apart, and {noise:.1f} % of the power of {name} is noise."
        )
    if aligned:
        return "linear regression loses: aligned weights amplify the signal before the probe sees it."
    return "linear regression loses: at this ridge attention's features fit these labels better."


def cautions(setting: Setting, p: int) -> list[str]:
    """Sentences on what makes the limit unreliable at dimension p (theory page, section 11)."""
    gram = setting.gram.reshape(-1, 3, 3)[0]
    score = gram[0, 0] + abs(gram[0, 1] * gram[0, 2]) + np.sqrt(gram[1, 1] * gram[2, 2])
    size = float(score / np.sqrt(p))
    if size <= LARGE_SCORE:
        return []
    return [
        f"At p = {p} the scores that signal and weights add reach {size:.2f}, not small against 1: "
        "the limit may be far from the measurement; it gets closer as p grows."
    ]


def table(values: dict[str, Any], refined_first: bool = False) -> str:
    """Predicted and measured errors of both methods, from the fields of `as_dict`.

    z is that of the first column: the limit, or the refined prediction with the limit for reference.
    """
    columns = {"predicted": values["predicted"], "refined": values["predicted"].get("refined")}
    z = values["z"]
    if refined_first:
        columns, z = {"refined": columns["refined"], "limit": columns["predicted"]}, z["refined"]
    shown = {name: errors for name, errors in columns.items() if errors}
    lines = [f"{'':27} " + " ".join(f"{name:>10}" for name in shown) + f" {'measured':>22} {'z':>7}"]
    for error in ("train", "test"):
        for method, label in (("attention", "attention"), ("linear", "linear regression")):
            cells = [
                *(f"{errors[method][error]:10.4f}" for errors in shown.values()),
                f"{_measured(values['measured'][method][error]):>22}",
                f"{_z(z[method][error]):>7}",
            ]
            lines.append(f"{error:8} {label:18} " + " ".join(cells))
        lines.append(f"{'':8} {_verdict(values['winner'][error])}")
    return "\n".join(lines)


def _measured(value: dict[str, float | None]) -> str:
    mean, se = value["mean"], value["se"]
    if se is None or np.isnan(se):
        return f"{mean:.4f}            "
    return f"{mean:.4f} +- {se:.4f}  "


def _z(z: float | None) -> str:
    return "" if z is None or np.isnan(z) else f"{z:+.1f}"


def _verdict(winner: Winner) -> str:
    names = {"attention": "attention wins", "linear": "linear regression wins", "tie": "a tie"}
    return f"-> {names[winner]}"
