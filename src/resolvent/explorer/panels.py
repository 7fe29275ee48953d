"""What the panels of a view draw, as plain values for JSON; a number that is not finite becomes None."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.explorer.code import command_line, python_code
from resolvent.explorer.view import View
from resolvent.nonlinearity import Softmax, card
from resolvent.phase import phase
from resolvent.phase.diagram import TIE
from resolvent.predict import predict
from resolvent.setting.variation import varied
from resolvent.spectrum import SettingSpectrum
from resolvent.spectrum import spectrum as setting_spectrum

Array = NDArray[np.float64]

METHODS, ERRORS = ("attention", "linear"), ("train", "test")
POINTS, ACROSS, SPECTRAL, REACH = 60, 33, 160, 4.0


def curve(view: View) -> dict[str, Any]:
    """Errors of both methods along the chosen axis and at the view itself, and code that gives the same."""
    x = view.along("over", POINTS)
    limits = predict(varied(view.setting, {view["over"]: x}))
    here = predict(view.setting)
    difference = {e: getattr(here.attention, e) - getattr(here.linear, e) for e in ERRORS}
    return {
        "over": view["over"],
        "at": view[view["over"]],
        "x": listed(x),
        "y": {m: {e: listed(_along(getattr(limits, m), e, x)) for e in ERRORS} for m in METHODS},
        "here": {m: {e: listed(getattr(getattr(here, m), e)) for e in ERRORS} for m in METHODS},
        "winner": {error: _winner(float(value)) for error, value in difference.items()},
        "converged": bool(np.all(limits.attention.converged)),
        "python": python_code(view, POINTS),
        "command": command_line(view, POINTS),
    }


def spectrum(view: View) -> dict[str, Any]:
    """Density, isolated eigenvalues and one sample of H'H/n or of K; `missing` says why there is none."""
    setting = view.setting
    try:
        view.check_size(view["ratio"])
        found = setting_spectrum(setting, of=view["matrix"], n=view["n"], seed=view["seed"])
    except (ValueError, ArithmeticError) as error:
        return {"matrix": view["matrix"], "missing": str(error)}
    return {
        "matrix": view["matrix"],
        "pieces": [_piece(found, left, right) for left, right in found.limit.support],
        "atoms": [{"place": place, "mass": mass} for place, mass in found.limit.atoms],
        "outliers": [{"place": o.place, "overlap": o.overlap, "kind": o.kind} for o in found.outliers],
        "sample": [] if found.measured is None else listed(found.measured.eigenvalues),
    }


def diagram(view: View) -> dict[str, Any]:
    """Attention's error less linear regression's over a plane, and where the two are equal."""
    found = phase(view.setting, *((view[side], view.along(side, ACROSS)) for side in ("x", "y")))
    index = ERRORS.index(view["error"])
    return {
        "error": view["error"],
        "x": {"name": found.x.name, "values": listed(found.x.values)},
        "y": {"name": found.y.name, "values": listed(found.y.values)},
        "difference": listed(found.difference[index]),
        "boundary": [listed(line) for line in found.boundary[view["error"]]],
        "share": found.shares[view["error"]],
        "at": [view[found.x.name], view[found.y.name]],
    }


def nonlinearity_card(view: View) -> dict[str, Any]:
    """The card of f, and f itself."""
    f = view.setting.f
    t = np.linspace(-REACH, REACH, 201)
    if isinstance(f, Softmax):
        return {"card": _softmax_card(f), "t": listed(t), "f": listed(f.entrywise().evaluate(t))}
    return {"card": card(f).as_dict(), "t": listed(t), "f": listed(f.evaluate(t))}


def _softmax_card(f: Softmax) -> dict[str, Any]:
    a = f.coefficients()
    sentence = (
        f"Softmax tends to exp(beta t), drawn here with mean 0: {100 * a.linear_share:.3g} % of its variance "
        "is linear, and signal and weights act through that part only; the rest acts as independent noise. "
        "The sum of every column is fixed, so that its mean and its quadratic part have no effect."
    )
    return {"name": "softmax", **a.as_dict(), "linear_share": a.linear_share, "sentence": sentence}


def listed(values: ArrayLike) -> Any:
    """Nested lists, or one number."""
    array = np.asarray(values, dtype=np.float64)
    found = array.astype(object)
    found[~np.isfinite(array)] = None
    return found.tolist()


def _along(errors: Any, error: str, x: Array) -> Array:
    return np.broadcast_to(getattr(errors, error), x.shape)


def _winner(difference: float) -> str:
    if abs(difference) <= TIE:
        return "tie"
    return "attention" if difference < 0.0 else "linear"


def _piece(found: SettingSpectrum, left: float, right: float) -> dict[str, Any]:
    """The density over one interval: denser towards its edges, where it rises as a square root, and over the
    decades above a hard edge at zero.
    """
    angle = np.linspace(0.0, 0.5 * np.pi, SPECTRAL + 2)[1:-1]
    x = left + (right - left) * np.sin(angle) ** 2
    if left >= 0.0:
        x = np.union1d(x, np.geomspace(max(left, 1e-5 * right), right, SPECTRAL + 2)[1:-1])
    return {"x": listed(x), "density": listed(found.density(x))}
