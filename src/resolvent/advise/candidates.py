"""One candidate: its predicted errors at the setting's ridge, along the ridge, and at its own best ridge.

The best ridge is that of the least test error in the limit, global over log-ridge: the lowest of a curve of
two points a decade, closed in by parabolas (`phase.minimum`), or ridge 0, or the zero probe. At a real
size p the refined equivalent replaces the limit: its errors are taken on a short grid of ridges around the
limit's best, moved on while the least lies at an end; a parabola in log-ridge gives the minimum. Where the
limit's best is the zero probe, the grid starts from the best power of ten. The refined equivalent stands on
a fixed number of classes, good to half a per cent at moderate weights: `refine` would settle them anew for
each candidate, and for the same order take seconds each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents import linear_errors
from resolvent.equivalents.refined import Classes, gaussian_classes, refined_errors, refined_linear_errors
from resolvent.nonlinearity import Softmax
from resolvent.nonlinearity.nonlinearity import Coefficients
from resolvent.phase.best import HIGH, LOW, ROUNDING, WIDTH, ZERO_PROBE
from resolvent.phase.minimum import Bracket, minimum
from resolvent.predict import predict
from resolvent.setting import Setting

Array = NDArray[np.float64]

STEPS = np.array([-0.4, -0.2, 0.0, 0.2, 0.4])  # decades around the limit's best ridge
MOVES = 8  # of that grid
MOST_POWER = 1e6  # f^2 over its mean at an unusual token
NODES = {1: 10, 2: 5, 3: 3}  # of the classes, by dimension of the span of mu, w_K and w_Q


class Errors(NamedTuple):
    """Training and test error; arrays along a curve."""

    train: Array | float
    test: Array | float


class Curve(NamedTuple):
    """Limits of the errors at 25 ridges, two a decade."""

    ridge: Array
    train: Array
    test: Array


@dataclass(frozen=True)
class Candidate:
    """Predicted errors of one method.

    `equal` is at the setting's ridge, `best` at `best_ridge` (inf: the zero probe, whose errors are one).
    With a size p both are refined, else limits; `limit` holds the limits of both. `coefficients` is None for
    linear regression.
    """

    name: str
    coefficients: Coefficients | None
    equal: Errors
    best: Errors
    best_ridge: float
    curve: Curve
    limit: tuple[Errors, Errors]

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        a = self.coefficients
        shape = {} if a is None else {**a.as_dict(), "linear_share": a.linear_share}
        return {
            "name": self.name,
            **shape,
            "equal_ridge": self.equal._asdict(),
            "best_ridge": {"ridge": self.best_ridge, **self.best._asdict()},
            "limit": {"equal_ridge": self.limit[0]._asdict(), "best_ridge": self.limit[1]._asdict()},
            "curve": self.curve._asdict(),
        }


def attention(setting: Setting, p: int | None = None, classes: Classes | None = None) -> Candidate:
    """The setting's own nonlinearity; refined at p, or on these classes of tokens.

    Raises ValueError where it cannot be used: a diagonal that cannot be kept, p too small for the weights.
    """
    if p is not None:
        _refuse_extremes(setting, p)
        classes = gaussian(setting, p)
    f = setting.head.f

    def limit(ridge: Array) -> Errors:
        found = predict(replace(setting, ridge=ridge)).attention
        return Errors(found.train, found.test)

    def refined(ridge: Array) -> Errors:
        assert classes is not None
        found = refined_errors(
            classes,
            ridge=ridge,
            f=f,
            skip=float(setting.skip),
            keep_diagonal=setting.keep_diagonal,
            target_overlap=float(setting.tokens.target_overlap),
        )
        return Errors(found.train, found.test)

    return _candidate(f.name, setting, limit, refined if classes else None, f.coefficients())


def linear_regression(setting: Setting, p: int | None = None, classes: Classes | None = None) -> Candidate:
    """Linear regression on the tokens of the setting; refined at p, or on these classes of tokens."""
    tokens = setting.tokens
    classes = classes if p is None else gaussian(setting, p)

    def limit(ridge: Array) -> Errors:
        found = linear_errors(
            ratio=tokens.ratio, ridge=ridge, snr=tokens.snr, target_overlap=tokens.target_overlap
        )
        return Errors(found.train, found.test)

    def refined(ridge: Array) -> Errors:
        assert classes is not None
        found = refined_linear_errors(classes, ridge=ridge, target_overlap=float(tokens.target_overlap))
        return Errors(found.train, found.test)

    return _candidate("linear regression", setting, limit, refined if classes else None, None)


def gaussian(setting: Setting, p: int) -> Classes:
    """Gaussian tokens at p, on a fixed number of classes."""
    gram = setting.gram.reshape(3, 3)
    span = max(int(np.linalg.matrix_rank(gram, hermitian=True)), 1)
    if p <= span + 1:
        raise ValueError(f"p must be above {span + 1} for these weights, got {p}")
    label_mean = float(setting.tokens.label_mean)
    n = p / float(setting.tokens.ratio)
    return gaussian_classes(p=p, n=n, gram=gram, label_mean=label_mean, nodes=NODES[span], norm_nodes=3)


def _refuse_extremes(setting: Setting, p: int) -> None:
    """ValueError where a token two standard deviations out has scores at which f^2 dwarfs nu."""
    f = setting.head.f
    if isinstance(f, Softmax):
        return
    mu, key, query = np.sqrt(np.diagonal(setting.gram.reshape(3, 3)))
    far = mu + 2.0
    score = (far**2 + key * query * far**2) / np.sqrt(p)
    with np.errstate(over="ignore"):
        power = float(f.evaluate(np.array([score]))[0]) ** 2
    if not power < MOST_POWER * max(f.coefficients().nu, 1.0):
        raise ValueError(f"{f.name} grows so fast that at p = {p} its errors hang on a few extreme tokens")


def _candidate(
    name: str,
    setting: Setting,
    limit: Callable[[Array], Errors],
    refined: Callable[[Array], Errors] | None,
    coefficients: Coefficients | None,
) -> Candidate:
    powers = np.linspace(LOW, HIGH, 2 * (HIGH - LOW) + 1)
    curve = Curve(10.0**powers, *(np.asarray(values) for values in limit(10.0**powers)))
    ridge = _limit_best(limit, powers, curve.test)
    limits = (_at(limit, float(setting.ridge)), _at(limit, ridge))
    if refined is None:
        return Candidate(name, coefficients, *limits, ridge, curve, limits)
    equal, ridge, least = _refined(refined, float(setting.ridge), ridge)
    return Candidate(name, coefficients, equal, least, ridge, curve, limits)


def _limit_best(limit: Callable[[Array], Errors], powers: Array, test: Array) -> float:
    """The ridge of the least test error: 0, the bottom of the lowest dip, or inf for the zero probe."""
    k = int(np.clip(np.nanargmin(test), 1, powers.size - 2))
    sides = [np.array([values[i]]) for values in (powers, test) for i in (k - 1, k, k + 1)]
    power, least = minimum(lambda x, _: np.asarray(limit(10.0**x).test), Bracket(*sides), WIDTH)
    ridge, at = float(10.0 ** power[0]), float(least[0])
    ridgeless = float(np.asarray(limit(np.array([0.0, 1.0])).test)[0])  # NaN where there is no limit
    if ridgeless < at:
        ridge, at = 0.0, ridgeless
    return ridge if at < ZERO_PROBE - ROUNDING else np.inf


def _at(errors: Callable[[Array], Errors], ridge: float) -> Errors:
    if ridge == np.inf:
        return Errors(ZERO_PROBE, ZERO_PROBE)
    found = errors(np.array([ridge]))
    return Errors(*(float(np.asarray(value)[0]) for value in found))


def _refined(errors: Callable[[Array], Errors], own: float, start: float) -> tuple[Errors, float, Errors]:
    """Refined errors at the setting's own ridge, and the least test error from the limit's best ridge on."""
    if start == np.inf:  # the limit sees no signal; a finite size may
        powers = np.arange(LOW, HIGH + 1.0)
        test = np.asarray(errors(10.0**powers).test)
        useful = np.flatnonzero(test < ZERO_PROBE)
        start = float(10.0 ** powers[useful[np.argmin(test[useful])]]) if useful.size else np.inf
    if start == np.inf:
        return _at(errors, own), start, Errors(ZERO_PROBE, ZERO_PROBE)
    centre = np.log10(max(start, 10.0**LOW))
    for _ in range(MOVES):
        powers = np.clip(centre + STEPS, LOW, HIGH)
        found = errors(np.r_[own, 10.0**powers])
        test = np.asarray(found.test)[1:]
        k = int(np.argmin(np.where(np.isnan(test), np.inf, test)))
        if 0 < k < STEPS.size - 1 or powers[k] in (LOW, HIGH):
            break
        centre = powers[k]
    equal = Errors(*(float(np.asarray(values)[0]) for values in found))
    ridge = float(10.0 ** _vertex(powers, test, k))
    least = _at(errors, ridge)
    if not (np.isfinite(equal.test) and np.isfinite(least.test)):
        raise ValueError(f"the refined equivalent did not converge near ridge {ridge:.3g}")
    if float(least.test) > ZERO_PROBE:
        return equal, np.inf, Errors(ZERO_PROBE, ZERO_PROBE)
    return equal, ridge, least


def _vertex(powers: Array, test: Array, k: int) -> float:
    """Where the parabola through the least and its neighbours is lowest; the least itself at an end."""
    if not 0 < k < powers.size - 1:
        return float(powers[k])
    left, at, right = test[k - 1 : k + 2]
    bend = left - 2.0 * at + right
    return float(
        powers[k] + (0.5 * (left - right) / bend * (powers[k + 1] - powers[k]) if bend > 0.0 else 0.0)
    )
