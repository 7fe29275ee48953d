"""phase: where in a plane of settings attention beats linear regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents import linear_errors
from resolvent.phase.best import ZERO_PROBE
from resolvent.phase.best import best_ridge as minimised
from resolvent.phase.minimum import Rows
from resolvent.predict import predict
from resolvent.setting import Setting
from resolvent.setting.ranges import number
from resolvent.setting.variation import NUMBERS, varied

Array = NDArray[np.float64]
Pair = tuple[Array | float, Array | float]

ERRORS = ("train", "test")
TIE = 1e-9  # errors closer than this are equal: it is the solver's tolerance


class Axis(NamedTuple):
    """One side of the plane: the name of a field and its values, increasing."""

    name: str
    values: Array


@dataclass(frozen=True)
class Phase:
    """Errors of both methods over a plane, and where attention wins.

    `attention`, `linear`
        (error, y, x), errors train and test; NaN where the solver did not converge.
    `ridges`
        (method, y, x), methods attention and linear: each method's own best ridge, where that was asked for.
    """

    setting: Setting
    x: Axis
    y: Axis
    attention: Array
    linear: Array
    converged: NDArray[np.bool_]
    ridges: Array | None = None

    @property
    def difference(self) -> Array:
        """Attention's error less linear regression's, (error, y, x)."""
        return self.attention - self.linear

    @property
    def wins(self) -> dict[str, NDArray[np.bool_]]:
        """Where attention's error is the lower one, (y, x), by error; False in a tie."""
        return {error: self.difference[i] < -TIE for i, error in enumerate(ERRORS)}

    @cached_property
    def boundary(self) -> dict[str, list[Array]]:
        """Curves between the regions of either winner, by error: each (points, 2), columns x and y."""
        return {error: self._curves(i) for i, error in enumerate(ERRORS)}

    def _curves(self, error: int) -> list[Array]:
        from contourpy import contour_generator

        level = np.ma.masked_invalid(self.difference[error])
        lines = contour_generator(self.x.values, self.y.values, level).lines(-TIE)
        return [np.asarray(line, dtype=float) for line in lines]

    @property
    def shares(self) -> dict[str, float]:
        """Share of the converged points at which attention wins, by error."""
        count = max(int(self.converged.sum()), 1)
        return {error: float(wins.sum()) / count for error, wins in self.wins.items()}

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent phase --json`; arrays have a row for each y."""
        methods = {"attention": self.attention, "linear": self.linear}
        ridges = None if self.ridges is None else dict(zip(methods, self.ridges, strict=True))
        settings: Mapping[str, Any] = self.setting.as_dict()
        best = () if ridges is None else ("ridge",)
        return {
            "setting": {k: v for k, v in settings.items() if k not in (self.x.name, self.y.name, *best)},
            "x": self.x._asdict(),
            "y": self.y._asdict(),
            "best_ridge": ridges,
            **{name: dict(zip(ERRORS, values, strict=True)) for name, values in methods.items()},
            "wins": self.shares,
            "boundary": self.boundary,
            "solver": {"converged": self.converged},
        }

    def __str__(self) -> str:
        ridge = f"ridge {self.setting.ridge:g}" if self.ridges is None else "each method's best ridge"
        ridge = "the ridge of the axis" if "ridge" in (self.x.name, self.y.name) else ridge
        lines = [
            f"{self.setting.name}, {ridge}: {self.x.name} {_span(self.x)}, {self.y.name} {_span(self.y)}, "
            f"{int(self.converged.sum())} of {self.converged.size} points converged"
        ]
        for error in ERRORS:
            curves = len(self.boundary[error])
            lines.append(
                f"{error:6} attention wins at {100.0 * self.shares[error]:5.1f} % of the plane, "
                f"{curves} boundary curve{'s' * (curves != 1)}"
            )
        return "\n".join(lines)


def phase(
    setting: Setting, x: tuple[str, ArrayLike], y: tuple[str, ArrayLike], *, best_ridge: bool = False
) -> Phase:
    """Where attention beats linear regression, over a plane of settings.

    Parameters
    ----------
    setting
        What does not vary.
    x, y
        Name and increasing values (at least 2) of two numbers of the setting, such as ("ratio", values).
    best_ridge
        Compare each method at the ridge of its own least test error (its training error is taken there too:
        by itself that is least at ridge 0) and not at the setting's.

    Raises ValueError or TypeError for a wrong axis or setting, ConvergenceError where no point converges.

    Errors are those of `predict`. The boundary is the level set of their difference, linear between points.

    >>> import numpy as np
    >>> from resolvent import Setting, Weights
    >>> aligned = Setting(weights=Weights.aligned(1.0))
    >>> print(phase(aligned, ("ratio", [0.5, 1.0, 2.0]), ("snr", [0.0, 1.0, 2.0])))
    tanh, ridge 0.1: ratio 0.5 to 2, snr 0 to 2, 9 of 9 points converged
    train  attention wins at ...
    test   attention wins at ...
    """
    if setting.shape:
        raise ValueError(f"phase takes one setting, got arrays of shape {setting.shape}")
    across, up = _axis("x", x), _axis("y", y)
    if across.name == up.name:
        raise ValueError(f"x and y must vary different fields, got {across.name} twice")
    if best_ridge and "ridge" in (across.name, up.name):
        raise ValueError("ridge cannot be an axis when each method takes its best ridge")
    if best_ridge:
        return _at_best_ridge(setting, across, up)
    limits = predict(varied(setting, {across.name: across.values, up.name: up.values[:, None]}))
    shape = (up.values.size, across.values.size)
    pairs = [(e.train, e.test) for e in (limits.attention, limits.linear)]
    attention, linear = (np.stack([np.broadcast_to(v, shape) for v in pair]) for pair in pairs)
    return Phase(setting, across, up, attention, linear, np.broadcast_to(limits.attention.converged, shape))


def _at_best_ridge(setting: Setting, x: Axis, y: Axis) -> Phase:
    """Each method at its own best ridge; points are rows, since they are refined as long as they need."""
    ys, xs = (values.ravel() for values in np.meshgrid(y.values, x.values, indexing="ij"))

    def at(ridge: Array, rows: Rows) -> Setting:
        return varied(setting, {x.name: xs[rows], y.name: ys[rows], "ridge": ridge})

    def attention(ridge: Array, rows: Rows) -> Pair:
        limits = predict(at(ridge, rows)).attention
        return limits.train, limits.test

    def linear(ridge: Array, rows: Rows) -> Pair:
        tokens = at(ridge, rows).tokens
        limits = linear_errors(
            ratio=tokens.ratio, ridge=ridge, snr=tokens.snr, target_overlap=tokens.target_overlap
        )
        return limits.train, limits.test

    shape = (y.values.size, x.values.size)
    found = [_at_best(errors, xs.size) for errors in (attention, linear)]
    ridges = np.stack([ridge.reshape(shape) for ridge, _ in found])
    ours, theirs = (values.reshape(2, *shape) for _, values in found)
    converged = np.asarray(np.isfinite([ours, theirs]).all(axis=(0, 1)))
    return Phase(setting, x, y, ours, theirs, converged, ridges)


def _at_best(errors: Callable[[Array, Rows], Pair], count: int) -> tuple[Array, Array]:
    """A method's best ridge, and its training and test error there."""
    best = minimised(lambda ridge, rows: np.asarray(errors(ridge, rows)[1]), count)
    finite = np.isfinite(best.ridge)
    train, test = errors(np.where(finite, best.ridge, 1.0), np.arange(count))
    return best.ridge, np.stack([np.where(finite, train, ZERO_PROBE), np.where(finite, test, ZERO_PROBE)])


def _axis(side: str, given: Any) -> Axis:
    """Name and values, checked."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"{side} must be a name and its values, got {given!r}")
    name, values = given
    if name not in NUMBERS:
        raise ValueError(f"{side} must vary one of {', '.join(NUMBERS)}, got {name!r}")
    points = np.asarray(number(name, values))
    if points.ndim != 1 or points.size < 2 or not np.all(np.diff(points) > 0.0):
        given = ", ".join(f"{value:g}" for value in points.ravel()[:3])
        raise ValueError(f"{side} must have at least 2 increasing values of {name}, got {given}, ...")
    return Axis(name, points)


def _span(axis: Axis) -> str:
    return f"{axis.values[0]:g} to {axis.values[-1]:g}"
