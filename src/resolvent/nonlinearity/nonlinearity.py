"""An entry-wise nonlinearity f: a name, a safe expression in t, or a callable, with its Hermite coefficients.

With xi ~ N(0, 1), h_k the orthonormal Hermite polynomials and scores distributed as N(0, scale^2) (the theory
page, section 2; Liao, Liu, Hou, Zou, Ling, arXiv 2506.18656, definition 1):

    a_k = E[f(scale xi) h_k(xi)],      nu = E f^2,      sigma^2 = nu - a_0^2 - a_1^2

A *centred* nonlinearity is f less its mean under N(0, scale^2): a_0 = 0 and nu is the variance.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.nonlinearity.diagonal import checked_slope
from resolvent.nonlinearity.entrywise import Entrywise
from resolvent.nonlinearity.expansion import HIGHEST_DEGREE, Expansion, expand
from resolvent.nonlinearity.expression import NAMES, Expression
from resolvent.nonlinearity.functions import FUNCTIONS
from resolvent.nonlinearity.moments import Moments, Sampler, shifted_moments

Array = NDArray[Any]


@dataclass(frozen=True)
class Coefficients:
    """Hermite coefficients of a nonlinearity: a0, a1, a2, nu = E f^2 and sigma2 = nu - a0^2 - a1^2.

    sigma2, the noise power, is integrated and not subtracted: it is never negative and 0.0 for a linear f.
    """

    a0: float
    a1: float
    a2: float
    nu: float
    sigma2: float

    @property
    def linear_share(self) -> float:
        """Share of linear power a1^2/nu, in [0, 1]; 0 when f vanishes."""
        return self.a1**2 / self.nu if self.nu > 0 else 0.0

    def as_dict(self) -> dict[str, float]:
        """Fields by name."""
        return asdict(self)

    def __str__(self) -> str:
        return "  ".join(f"{name} = {value:.6g}" for name, value in self.as_dict().items())


@dataclass(frozen=True)
class Nonlinearity:
    """f, entry by entry. Build it with `nonlinearity`.

    `function` maps a float array to one of the same shape and dtype; with `in_place` it takes `out` too,
    which may be its argument. `breakpoints` are the points where f or a derivative jumps; None when they are
    not known.
    """

    name: str
    function: Callable[..., Array]
    breakpoints: tuple[float, ...] | None = None
    centred: bool = True
    in_place: bool = False

    def __call__(self, t: ArrayLike) -> Array:
        """Values at t for standard normal scores: `evaluate(t)`."""
        return self.evaluate(t)

    def evaluate(self, t: ArrayLike, scale: float = 1.0, out: Array | None = None) -> Array:
        """f(t), less its mean under N(0, scale^2) when centred, in the shape of t.

        float32 stays float32, every other input becomes float64. `out`, a float array of that shape and
        dtype, receives the values and may be t itself. Values that overflow are infinite, without a warning.
        """
        t = np.asarray(t)
        if t.dtype not in (np.float32, np.float64):
            t = t.astype(np.float64)
        if out is not None and (out.shape != t.shape or out.dtype != t.dtype):
            raise ValueError(
                f"out must have shape {t.shape} and dtype {t.dtype}, got {out.shape} and {out.dtype}"
            )
        mean = self.offset(scale)
        values = self._values(t, out)
        if mean != 0.0:
            values -= mean
        return values

    def _values(self, t: Array, out: Array | None) -> Array:
        """f(t) in a fresh array, or in out."""
        with np.errstate(all="ignore"):
            if self.in_place:
                return np.asarray(self.function(t, out=np.empty_like(t) if out is None else out))
            values = self.function(t)
        if out is None:
            return values.copy() if np.may_share_memory(values, t) else values
        np.copyto(out, values)
        return out

    def offset(self, scale: float = 1.0) -> float:
        """What centring subtracts: E f(scale xi) when centred, else 0."""
        return self.expansion(scale).a0 if self.centred else 0.0

    def coefficients(self, scale: float = 1.0) -> Coefficients:
        """Hermite coefficients under N(0, scale^2), to a relative 1e-10; cached.

        Raises ValueError, naming f, when f is not finite or not square-integrable under N(0, scale^2).

        >>> print(nonlinearity("relu").coefficients())
        a0 = 0  a1 = 0.5  a2 = 0.282095  nu = 0.340845  sigma2 = 0.0908451
        """
        expansion = self.expansion(scale)
        a0, a1, sigma2 = (0.0 if self.centred else expansion.a0), expansion.a1, expansion.sigma2
        return Coefficients(a0, a1, expansion.coefficient(2), a0**2 + a1**2 + sigma2, sigma2)

    def hermite(self, degree: int, scale: float = 1.0) -> float:
        """a_k = E[f(scale xi) h_k(xi)] for the degree k, from 0 to 256.

        Absolute error about 1e-14 sqrt(nu); raises ValueError as `coefficients` does.

        >>> round(nonlinearity("t^3").hermite(3) ** 2, 12)
        6.0
        """
        if not 0 <= degree <= HIGHEST_DEGREE:
            raise ValueError(f"degree must be between 0 and {HIGHEST_DEGREE}, got {degree}")
        return 0.0 if degree == 0 and self.centred else self.expansion(scale).coefficient(degree)

    def moments(self, shift: ArrayLike, scale: ArrayLike, reference: float = 1.0) -> Moments:
        """m0 = E f(shift + scale xi), m1 = E[xi f(shift + scale xi)]/scale and second = E f^2, broadcasting.

        m1 is E f' where f has a derivative. A centred f is centred under N(0, reference^2), whatever the
        shift and the scale. Errors are about 1e-11 sqrt(second), at kinks and jumps too. (The theory page,
        section 12.)

        Raises ValueError when shift is not finite, scale not positive, or f not square-integrable there.

        >>> nonlinearity("abs", centred=False).moments(0.0, [1.0, 2.0]).second
        array([1., 4.])
        """
        shifts, scales = np.broadcast_arrays(np.asarray(shift, float), np.asarray(scale, float))
        if not np.isfinite(shifts).all():
            raise ValueError("shift must be finite")
        if not ((scales > 0) & np.isfinite(scales)).all():
            raise ValueError("scale must be positive and finite")
        offset = self.offset(reference)
        sampler = Sampler(lambda t: self.function(t) - offset, self.breakpoints or (), self.name)
        flat = shifted_moments(sampler, shifts.ravel(), scales.ravel())
        return Moments(*(moment.reshape(shifts.shape) for moment in flat))

    def kept_diagonal(self, p: int, scale: float = 1.0) -> float:
        """f(sqrt p)/sqrt p: by how much K is shifted when its diagonal is kept (the theory page, section 1).

        Raises ValueError when f grows faster than linearly, since the shift then has no limit.

        >>> nonlinearity("relu", centred=False).kept_diagonal(100)
        1.0
        """
        if p < 1:
            raise ValueError(f"p must be at least 1, got {p}")
        checked_slope(self.function, self.name)
        root = np.sqrt(float(p))
        return float(self.evaluate(root, scale) / root)

    def parity(self, scale: float = 1.0) -> str:
        """`even`, `odd` or `neither`, of f less its mean."""
        return self.expansion(scale).parity

    def expansion(self, scale: float = 1.0) -> Expansion:
        """Samples of f under N(0, scale^2) and their integrals; raises ValueError as `coefficients` does."""
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"scale must be positive and finite, got {scale}")
        return expand(self.function, self.breakpoints or (), float(scale), self.name)


def nonlinearity(
    spec: str | Nonlinearity | Callable[[Array], Array],
    centred: bool | None = None,
    breakpoints: tuple[float, ...] | None = None,
) -> Nonlinearity:
    """The nonlinearity that `spec` (a name, an expression in t, a callable, a Nonlinearity) stands for.

    `centred` subtracts the mean (default True; a Nonlinearity keeps its own unless told). `breakpoints`, for
    a callable, are the points where it or a derivative jumps: not needed, but integrals are faster with them.

    Raises ValueError for an unknown name (with the nearest known one), an expression that is not allowed, or
    a callable that does not act entry by entry; TypeError for anything else.

    >>> nonlinearity("tanh").coefficients().a2
    0.0
    >>> nonlinearity("t + t^2/2", centred=False).name
    't + t^2/2'
    """
    match spec:
        case Nonlinearity():
            return spec if centred is None else replace(spec, centred=centred)
        case str():
            return _from_text(spec.strip(), centred is not False)
    if not callable(spec):
        raise TypeError(
            f"nonlinearity must be a name, an expression in t or a callable, got {type(spec).__name__}"
        )
    return _from_callable(spec, centred is not False, breakpoints)


def known_names() -> tuple[str, ...]:
    """Names of the built-in nonlinearities."""
    return tuple(FUNCTIONS)


def polynomial(*coefficients: float, centred: bool = True) -> Nonlinearity:
    """c0 + c1 t + c2 t^2 + ...: the expression with these coefficients.

    >>> polynomial(0, 1, 0.5).name
    '1.0*t^1 + 0.5*t^2'
    """
    terms = [f"{float(c)!r}*t^{k}" for k, c in enumerate(coefficients) if c != 0 and k > 0]
    if not terms:
        raise ValueError("polynomial must have a non-zero coefficient above degree 0")
    constant = [repr(float(coefficients[0]))] if coefficients[0] != 0 else []
    return nonlinearity(" + ".join(constant + terms), centred=centred)


def _from_text(text: str, centred: bool) -> Nonlinearity:
    if text in FUNCTIONS:
        function, breakpoints = FUNCTIONS[text]
        return Nonlinearity(text, function, breakpoints, centred, in_place=True)
    if text.isidentifier() and text not in NAMES:
        raise ValueError(_unknown(text))
    return Nonlinearity(text, Expression(text), None, centred, in_place=True)


def _unknown(name: str) -> str:
    close = get_close_matches(name.lower(), FUNCTIONS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known names: {', '.join(FUNCTIONS)}"
    return f"unknown nonlinearity {name!r}, {hint}"


def _from_callable(
    function: Callable[[Array], Array], centred: bool, breakpoints: tuple[float, ...] | None
) -> Nonlinearity:
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    points = None if breakpoints is None else tuple(float(b) for b in breakpoints)
    return Nonlinearity(name, Entrywise(function, name), points, centred)
