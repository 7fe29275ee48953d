"""Sentences that a figure's numbers decide: agreement of points and curves, and whether a claim holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resolvent.figures.record import Panel, Panels, Series

TIE = 1e-6  # differences below it are none
SIGMAS, SHARE = 4.0, 0.03  # a point agrees within 4 standard errors plus 3 % of the prediction


def agreement(panels: Panels) -> str:
    """How many measured points agree with their prediction."""
    near = np.concatenate([_near(s) for panel in panels if isinstance(panel, Panel) for s in panel.series])
    many = "all" if near.all() else f"{near.sum()} of"
    return (
        f"Curves are predicted, points measured with one standard error; {many} {near.size} points lie "
        f"within "
        f"{SIGMAS:g} standard errors plus {100 * SHARE:g} % of the prediction."
    )


def holds(parts: NDArray[np.bool_] | list[bool]) -> str:
    """Whether a claim holds at the measured points.

    >>> holds([True, True]), holds([True, False]), holds([False])
    ('holds at all 2 measured points', 'holds at 1 of 2 measured points', 'fails at all 1 measured points')
    """
    found = np.asarray(parts, dtype=bool)
    if found.all():
        return f"holds at all {found.size} measured points"
    if not found.any():
        return f"fails at all {found.size} measured points"
    return f"holds at {found.sum()} of {found.size} measured points"


def spans(x: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
    """Runs of x that are inside, in words.

    >>> spans(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, True]))
    '1 to 2 and 4'
    """
    starts = np.flatnonzero(inside & ~np.r_[False, inside[:-1]])
    ends = np.flatnonzero(inside & ~np.r_[inside[1:], False])
    runs = [
        f"{x[a]:.2g}" if a == b else f"{x[a]:.2g} to {x[b]:.2g}" for a, b in zip(starts, ends, strict=True)
    ]
    return " and ".join(runs) or "nowhere"


def ahead(panel: Panel) -> NDArray[np.float64]:
    """At each measured point -1 where attention is lower, 1 where linear regression is, 0 in a tie.

    A tie is below two standard errors of the difference, which is paired draw by draw.
    """
    s = panel.difference
    assert s is not None
    value, se = s.measured[s.points], s.se[s.points]
    return np.asarray(np.where(np.abs(value) > 2.0 * se, np.sign(value), 0.0))


def score(panel: Panel) -> str:
    """Who was measured lower how often, and where the limit has attention lower."""
    found, s = ahead(panel), panel.difference
    assert s is not None
    lower = s.predicted < -TIE
    limit = (
        f"lower in the limit at {panel.x} {spans(s.x, lower)}" if lower.any() else "never lower in the limit"
    )
    return (
        f"{panel.title}: measured lower at {(found < 0).sum()} and higher at {(found > 0).sum()} of "
        f"{found.size} "
        f"points, {limit}"
    )


def falls(s: Series) -> bool:
    """Whether the measured points fall from first to last by more than their errors and 5 %."""
    values, se = s.measured[s.points], s.se[s.points]
    change = float(values[0] - values[-1])
    return bool(change > 4.0 * np.hypot(se[0], se[-1]) + 0.05 * abs(values[0]))


def flat(s: Series) -> bool:
    """Whether no measured point leaves the mean of all by more than its error and 5 %."""
    values, se = s.measured[s.points], s.se[s.points]
    mean = float(values.mean())
    return bool(np.all(np.abs(values - mean) <= 4.0 * se + 0.05 * abs(mean)))


def decimals(value: float) -> str:
    """A number as short as it can be."""
    return f"{value:.4g}"


def _near(s: Series) -> NDArray[np.bool_]:
    at = s.points
    far = np.abs(s.measured - s.best)[at]
    return np.asarray(far <= SIGMAS * np.nan_to_num(s.se[at]) + SHARE * np.abs(s.best[at]))
