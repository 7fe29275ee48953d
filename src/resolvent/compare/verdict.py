"""Who wins, why, and the table that shows it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from resolvent.setting import MatrixWeights, Setting
from resolvent.simulate import Average

Winner = Literal["attention", "linear", "tie"]

ERRORS = {"train": "training", "test": "test"}
TIE = 2.0  # paired standard errors
WEAK = 0.05  # alignment share below which weights do not point at the signal
CHANCE = 3.0  # standard deviations of mu'M mu for a direction that M knows nothing of


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
    a = [head.f.coefficients(head.scale) for head in setting.heads]
    power = sum(k.nu for k in a)
    noise = 100.0 * sum(k.sigma2 for k in a) / power if power > 0.0 else 0.0
    linear = any(k.a1 != 0.0 for k in a)
    aligned = linear and _aligned(setting)
    name = setting.name
    if winner == "tie":
        return "neither method is ahead by more than two standard errors."
    if not linear and winner == "linear":
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


def _aligned(setting: Setting) -> bool:
    """Whether mu'(M - tr M/p)mu/|mu|^2, (mu'w_K)(mu'w_Q)/|mu|^2 for I + w_K w_Q', is above chance."""
    matrices = [head.weights for head in setting.heads if isinstance(head.weights, MatrixWeights)]
    if matrices:
        chance = [CHANCE * w.factors.tau / np.sqrt(w.dimension) for w in matrices]
        return any(_read(w) > max(WEAK, c) for w, c in zip(matrices, chance, strict=True))
    snr, T = float(np.max(setting.tokens.snr)), len(setting.owners)
    along = setting.gram.reshape(-1, 1 + 2 * T, 1 + 2 * T)[0, 0]
    return snr > 0.0 and float(along[1 : 1 + T] @ along[1 + T :]) / snr > WEAK


def _read(weights: MatrixWeights) -> float:
    f, mu = weights.factors, weights.signal
    return float((f.left.T @ mu * f.values) @ (f.right.T @ mu)) - f.trace


def table(values: dict[str, Any]) -> str:
    """Predicted and measured errors of both methods, from the fields of `as_dict`."""
    refined = values["predicted"].get("refined")
    middle = f" {'refined':>10}" if refined else ""
    lines = [f"{'':8} {'':18} {'predicted':>10}{middle} {'measured':>22} {'z':>7}"]
    for error in ("train", "test"):
        for method, label in (("attention", "attention"), ("linear", "linear regression")):
            measured = values["measured"][method][error]
            z = values["z"][method][error]
            cells = [
                f"{values['predicted'][method][error]:10.4f}",
                *([f"{refined[method][error]:10.4f}"] if refined else []),
                f"{_measured(measured):>22}",
                f"{_z(z):>7}",
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
