"""What takes long, as generators of (event, value): measured points, and the user's own tokens.

They run in a process of their own (`jobs`). Points are cells of `sweep` with its seeds, so that the code on
the page gives the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.compare import TokenComparison, compare_tokens
from resolvent.dataset.reading import read_token_bytes
from resolvent.explorer.code import MEASURED, command_line, python_code
from resolvent.explorer.panels import ERRORS, METHODS, POINTS, listed
from resolvent.explorer.view import NUMBERS, SIZES, View
from resolvent.predict import predict
from resolvent.refine import refine
from resolvent.setting.variation import varied
from resolvent.sweep.cells import Measure, Sizes
from resolvent.sweep.grid import Grid

Array = NDArray[np.float64]
Events = Iterator[tuple[str, dict[str, Any]]]

LEAST_REFINED = 64  # dimensions; below, the classes of the refined equivalent take long to settle
REFINING = 15.0  # seconds after which no further point is refined


def measured_points(view: View) -> Events:
    """Simulated errors along the axis, a point at a time; then what is predicted at their size."""
    values = view.along("over", MEASURED)
    sizes = Sizes(*(view[name] for name in SIZES))
    for index, value in enumerate(values):
        mean, se = _cell(view, values, index, sizes)
        y = {
            m: {e: {"mean": listed(mean[i, j]), "se": listed(se[i, j])} for j, e in enumerate(ERRORS)}
            for i, m in enumerate(METHODS)
        }
        yield "point", {"x": float(value), "y": y, "done": index + 1, "of": MEASURED}
    yield (
        "code",
        {"python": python_code(view, POINTS, True), "command": command_line(view, POINTS, True)},
    )
    yield from _at_size(view, values)


def _at_size(view: View, values: Array) -> Events:
    """The refined equivalent at the sizes of the points where it is quick, for as long as a reader waits."""
    end = time.monotonic() + REFINING
    for value in values:
        setting = varied(view.setting, {view["over"]: value})
        p = round(float(setting.tokens.ratio) * view["n"])
        if p < LEAST_REFINED or time.monotonic() > end:
            continue
        found = refine(setting, p)
        if found.attention is not None and found.linear is not None:
            y = {m: {e: listed(getattr(getattr(found, m), e)) for e in ERRORS} for m in METHODS}
            yield "refined", {"x": float(value), "y": y}


def _cell(view: View, values: Array, index: int, sizes: Sizes) -> Any:
    """Means and standard errors (2, method, error) of a point. All ridges share the draws of one cell."""
    along_ridge = view["over"] == "ridge"
    grid = Grid.over(view.setting, {view["over"]: values[[index]] if along_ridge else values})
    return Measure(grid, sizes)(0 if along_ridge else index)[..., 0]


def own_tokens(view: View, name: str, content: bytes) -> Events:
    """Labelled tokens in memory: what they say; then both methods against the ridge, with measured points."""
    data = read_token_bytes(name, content)
    own = compare_tokens(data, view.setting, draws=view["draws"], seed=view["seed"])
    yield "tokens", {"text": str(own.estimate), "broken": own.assumptions, "use": _usable(own)}
    ridge = NUMBERS["ridge"]
    train, test = own.over_ridges(ridge.values(MEASURED))
    count = len(test)
    fine = ridge.values(POINTS)
    at = {"train": own.at_all, "test": own.at_split}
    limits = {e: predict(replace(at[e].setting, ridge=fine), p=own.estimate.p) for e in ERRORS}
    yield (
        "curves",
        {
            "x": listed(fine),
            "y": {m: {e: listed(getattr(getattr(limits[e], m), e)) for e in ERRORS} for m in METHODS},
            "points": {
                "x": listed(ridge.values(MEASURED)),
                "y": {
                    m: {
                        "train": {"mean": listed(train[k]), "se": None},
                        "test": {
                            "mean": listed(test[:, k].mean(axis=0)),
                            "se": listed(test[:, k].std(axis=0, ddof=1) / np.sqrt(count)),
                        },
                    }
                    for k, m in enumerate(METHODS)
                },
            },
            "reason": own.reason,
        },
    )


def _usable(own: TokenComparison) -> dict[str, float]:
    """What the tokens say of the model, for the sliders."""
    found = own.estimate
    return {"ratio": found.ratio, "snr": found.snr_used, "label_mean": found.label_mean}
