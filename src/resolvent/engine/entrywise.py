"""Entry-wise nonlinearities of inner products, replaced by a linear part and independent noise.

For scores S = s A^T B of variance tau^2 per entry, with a_k = E[f(tau x) h_k(x)] and f centred, in operator
norm

    f(S) = (a_1/tau)(S - diagonal) + noise,      variance of the noise: sum_{k >= 2} a_k^2

(theory page, sections 3 and 8). A = B makes a symmetric kernel: its diagonal is set to zero and the noise is
a Wigner matrix. Independent A and B (random features) make a matrix with iid noise and no diagonal to speak
of. Two functions of the same scores have noise of covariance sum_{k >= 2} a_k a_k' per entry (section 8c).
The directions of a_2, which are orthogonal to balanced labels, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from resolvent.engine.expression import Expression, Identity, Product, Sum, eye
from resolvent.engine.letters import Random
from resolvent.engine.scalar import Dim, Scalar, number
from resolvent.engine.vectors import Outer

REACH, PIECES = 12.0, 96
"""Gaussian averages: 96 pieces of 20 Gauss-Legendre nodes; kinks at multiples of 1/4 are exact."""


@dataclass(frozen=True, repr=False)
class Entrywise(Expression):
    """f applied to the entries of scores; made by `entrywise`. `noise` is what linearisation adds."""

    function: Callable[[Any], Any]
    argument: Expression
    slope: float
    shift: Scalar
    noise: Random

    @property
    def rows(self) -> Dim:  # type: ignore[override]
        """Rows of the scores."""
        return self.argument.rows

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Columns of the scores."""
        return self.argument.cols

    @property
    def T(self) -> Expression:
        """f of the transposed scores."""
        return replace(self, argument=self.argument.T, noise=self.noise.T)

    @property
    def degree(self) -> Fraction:
        """One half: entries of order one."""
        return Fraction(1, 2)

    @property
    def linearised(self) -> Expression:
        """slope (scores - shift I) + noise, equal to f(scores) in operator norm up to o(1)."""
        linear = self.slope * self.argument + self.noise
        return linear - self.slope * self.shift * eye(self.rows) if self.shift.terms else linear

    def __str__(self) -> str:
        return f"{getattr(self.function, '__name__', 'f')}({self.argument})"


@dataclass(frozen=True)
class Source:
    """What an entry-wise noise comes from: the random part of its scores, their scale, and f."""

    scores: str
    scale: float
    function: Callable[[Any], Any]


def gaussian_mean(function: Callable[[Any], Any]) -> float:
    """E f(x), x standard normal; ValueError if it is not finite."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-REACH, REACH, PIECES + 1)
    half = REACH / PIECES
    x = (edges[:-1, None] + half * (nodes + 1)).ravel()
    density = np.tile(half * weights, PIECES) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    total = float(np.sum(density * np.asarray(function(x), dtype=float)))
    if not np.isfinite(total):
        raise ValueError(f"{function} has no finite Gaussian mean")
    return total


def entrywise(function: Callable[[Any], Any], scores: Expression) -> Expression:
    """Return f of each entry of the scores `s A.T @ B`, A and B Gaussian plus low rank, the same or
    independent.

    `scores` may carry weights, A.T @ M @ B with M the identity plus low rank. Its entries must have a
    variance that is a number: X.T @ X / sqrt(p). A symmetric kernel gets a zero diagonal, also in
    simulations. In products with dimensions f(scores) counts as a matrix of entries of order one: attention
    is K = entrywise(np.tanh, X.T @ X / sqrt(p)) / sqrt(p).

    Raises ValueError if the scores have another form, or if f is not centred under their Gaussian law.
    """
    first, second, factor = _inner_product(scores)
    square = factor * factor * first.variance * second.variance * first.cols
    variance = square.constant
    if variance is None or variance <= 0:
        raise ValueError(f"scores must have entries whose variance is a number, got {square}")
    tau = float(np.copysign(np.sqrt(variance), factor.terms[0][1]))
    name = getattr(function, "__name__", "f")
    mean = gaussian_mean(lambda x: function(tau * x))
    slope = gaussian_mean(lambda x: x * function(tau * x))
    power = gaussian_mean(lambda x: np.asarray(function(tau * x)) ** 2)
    if abs(mean) > 1e-8 * np.sqrt(power):
        raise ValueError(
            f"{name} must be centred under the law of the scores, got mean {mean:.6g}: subtract it"
        )
    symmetric = second == first.T
    shift = factor * first.variance * first.cols if symmetric else number(0.0)
    noise = _noise(
        name, Source(f"{first} {second}", tau, function), scores, max(power - slope**2, 0.0), symmetric
    )
    return Entrywise(function, scores, slope / tau, shift, noise)


def _noise(name: str, source: Source, scores: Expression, variance: float, symmetric: bool) -> Random:
    """The noise matrix; that of B.T @ A is the transpose of that of A.T @ B."""
    first, second, _ = _inner_product(scores)
    mirrored = f"{second.T} {first.T}"
    if mirrored < source.scores:
        return _noise(name, replace(source, scores=mirrored), scores.T, variance, symmetric).T
    label = f"noise[{name}({source.scores})]"
    return Random(label, scores.rows, scores.cols, number(variance), float(symmetric), source=source)


def covariance(first: Source | None, second: Source | None) -> Scalar:
    """Covariance per entry of the noises of two functions of the same scores; zero between other matrices."""
    if first is None or second is None or first.scores != second.scores:
        return number(0.0)

    def f(x: Any) -> Any:
        return np.asarray(first.function(first.scale * x))

    def g(x: Any) -> Any:
        return np.asarray(second.function(second.scale * x))

    return number(
        gaussian_mean(lambda x: f(x) * g(x))
        - gaussian_mean(lambda x: x * f(x)) * gaussian_mean(lambda x: x * g(x))
    )


def _inner_product(scores: Expression) -> tuple[Random, Random, Scalar]:
    """The two random matrices and the scalar of scores s X Y, low-rank parts dropped."""
    ((term, factor),) = (
        scores.terms if isinstance(scores, Sum) and len(scores.terms) == 1 else ((scores, number(1.0)),)
    )
    found = [_bulk(part) for part in term.factors] if isinstance(term, Product) else []
    kept = [(leaf, value) for leaf, value in found if not isinstance(leaf, Identity)]
    for _, value in found:
        factor = factor * value
    if len(kept) == 2:
        (first, _), (second, _) = kept
        if isinstance(first, Random) and isinstance(second, Random):
            same = first.name == second.name
            if not (first.correlation or second.correlation) and (not same or second == first.T):
                return first, second, factor
    raise ValueError(f"entrywise needs scores s A.T @ B of Gaussian matrices plus low rank, got {scores}")


def _bulk(factor: Expression) -> tuple[Expression, Scalar]:
    terms = factor.terms if isinstance(factor, Sum) else ((factor, number(1.0)),)
    full = [(leaf, value) for leaf, value in terms if not isinstance(leaf, Outer)]
    if len(full) != 1:
        raise ValueError(f"each factor of entry-wise scores must be one matrix plus low rank, got {factor}")
    return full[0]
