"""The reasons and assumptions of an advice, as plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from resolvent.advise.candidates import Candidate
from resolvent.setting import Setting

CLOSER = 0.98  # refined error over limit from which a lead is one of the size
WEAK = 0.05  # (mu'w_K)(mu'w_Q)/|mu|^2 below which weights do not point at the signal


def why(setting: Setting, choice: str, ranking: Sequence[Candidate]) -> str:
    """Why this choice, through a1^2/nu, sigma2 and, where labels are unbalanced, a2.

    At a real size the leader may owe its place to what the limit does not see, and the sentence says so.
    """
    first, last = ranking[0], ranking[-1]
    a, z = first.coefficients, last.coefficients
    assert a is not None
    assert z is not None
    sentences = [_against_linear(setting, choice, first)]
    if last.best.test > first.best.test:
        sentences.append(
            f"{first.name} leads with a1^2/nu = {a.linear_share:.3f} and sigma2 = {a.sigma2:.3g}; "
            f"{last.name} comes last with a1^2/nu = {z.linear_share:.3f} and sigma2 = {z.sigma2:.3g}: "
            "signal and weights pass through a1 alone, and what lies beyond it is noise."
        )
    shares = [c.coefficients.linear_share for c in ranking if c.coefficients is not None]
    if a.linear_share < max(shares) and first.best.test < CLOSER * float(first.limit[1].test):
        sentences.append(
            f"It leads by its shape at this size, though others have a larger linear part: in the limit it "
            f"would reach {first.limit[1].test:.4f}."
        )
    if setting.tokens.label_mean and a.a2:
        sentences.append(
            f"Labels are unbalanced, so a2 = {a.a2:.3g} matters too: it couples the constant and the norms."
        )
    return " ".join(sentences)


def _against_linear(setting: Setting, choice: str, first: Candidate) -> str:
    gram, snr = setting.gram.reshape(3, 3), float(setting.tokens.snr)
    aligned = snr > 0.0 and gram[0, 1] * gram[0, 2] > WEAK * snr
    if snr == 0.0:
        return "The tokens carry no signal (snr 0), so no fresh label can be predicted."
    if choice == "attention":
        if aligned:
            return f"Aligned weights amplify the signal that the linear part of {first.name} passes."
        return f"The linear part of {first.name} passes the signal and mixing tokens averages noise away."
    if choice == "linear":
        if aligned:
            return "Although the weights point at the signal, the noise that attention adds outweighs it."
        return "The weights do not point at the signal: attention mixes tokens and adds noise to them."
    return "At their best ridges both reach the same error: take the simpler one."


def assumptions(setting: Setting, p: int | None) -> list[str]:
    """What the prediction takes for granted."""
    lines = [
        "white Gaussian noise of variance one around two class means, so tokens of nearly equal norm;",
        "weights that do not depend on the noise of these tokens (fitted on them, they see it as signal);",
        "a ridge in the same units, and a probe fitted to squared error;",
    ]
    if np.any(setting.tokens.label_mean):
        lines.append("labels unbalanced as given: the limit is approached slowly, like 1/sqrt p;")
    size = (
        "n and p large at this ratio: no p was given, so nothing checks a real size."
        if p is None
        else f"p = {p} and n = {p / float(setting.tokens.ratio):.0f}: errors are refined at that size, best "
        "ridges start from the limit's; the alignment to win and the best f are limits."
    )
    return [*lines, size]
