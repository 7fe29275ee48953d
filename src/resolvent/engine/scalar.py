"""Scalars of a model: numbers, symbols bound at evaluation, and dimensions, in one canonical form.

A scalar is a sum of monomials, coefficient times powers of atoms; an atom is a symbol, a dimension, or a
scalar whose power does not expand. Equal scalars therefore compare equal, derivatives are exact, and the
power of the system size that a scalar carries (its degree: n + p has 1, 1/sqrt(p) has -1/2) can be read off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

RESERVED = ("n", "draws", "seed", "vectors")
SMALLEST = 1e-100
"""Stands for a zero that is divided by; only pivots made by the linearisation may do that, see `pencil`."""


class Algebra:
    """Arithmetic that ends in a Scalar, shared by Scalar and Dim."""

    __slots__ = ()
    __array_ufunc__ = None

    def __add__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, _add)

    def __radd__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, _add)

    def __mul__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, _multiply)

    def __rmul__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, _multiply)

    def __sub__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, lambda a, b: _add(a, _multiply(number(-1.0), b)))

    def __rsub__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, lambda a, b: _add(b, _multiply(number(-1.0), a)))

    def __truediv__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, lambda a, b: _multiply(a, _power(b, Fraction(-1))))

    def __rtruediv__(self, other: float | Algebra) -> Scalar:
        return _binary(self, other, lambda a, b: _multiply(b, _power(a, Fraction(-1))))

    def __pow__(self, exponent: float | Fraction) -> Scalar:
        return _power(scalar(self), Fraction(exponent).limit_denominator(1000))

    def __neg__(self) -> Scalar:
        return _multiply(number(-1.0), scalar(self))


@dataclass(frozen=True)
class Dim(Algebra):
    """A dimension that grows with the system; as a scalar, its size: `Z.T @ Z / p`, `ratios={p / n: 0.5}`."""

    name: str

    def __str__(self) -> str:
        return self.name


Atom: TypeAlias = "str | Dim | Scalar"
Monomial: TypeAlias = tuple[tuple[Atom, Fraction], ...]


@dataclass(frozen=True, repr=False)
class Scalar(Algebra):
    """A sum of monomials, sorted, without zeros; made by `scalar`, `Symbol` and arithmetic."""

    terms: tuple[tuple[Monomial, float], ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return " + ".join(_write(monomial, value) for monomial, value in self.terms) or "0"

    @property
    def constant(self) -> float | None:
        """The number that this scalar is, or None if it contains a symbol or a dimension."""
        if not self.terms:
            return 0.0
        (monomial, value), *rest = self.terms
        return None if monomial or rest else value

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols in it."""
        return frozenset(
            name
            for monomial, _ in self.terms
            for atom, _ in monomial
            for name in (
                [atom] if isinstance(atom, str) else atom.symbols if isinstance(atom, Scalar) else ()
            )
        )

    @property
    def dims(self) -> frozenset[Dim]:
        """The dimensions in it."""
        return frozenset(
            dim
            for monomial, _ in self.terms
            for atom, _ in monomial
            for dim in ([atom] if isinstance(atom, Dim) else atom.dims if isinstance(atom, Scalar) else ())
        )

    @property
    def degree(self) -> Fraction:
        """Power of the system size; ValueError if the terms differ in it."""
        degrees = {_monomial_degree(monomial) for monomial, _ in self.terms}
        if len(degrees) > 1:
            raise ValueError(f"the terms of {self} grow with different powers of the dimensions")
        return degrees.pop() if degrees else Fraction(0)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Its value, the symbols being bound to numbers or arrays."""
        total: Any = 0.0
        for monomial, value in self.terms:
            term: Any = value
            for atom, exponent in monomial:
                base = atom(values) if isinstance(atom, Scalar) else values[str(atom)]
                term = term * _raised(base, exponent)
            total = total + term
        return total

    def derivative(self, symbol: str) -> Scalar:
        """Exact derivative in a symbol."""
        total = number(0.0)
        for monomial, value in self.terms:
            for k, (atom, exponent) in enumerate(monomial):
                inner = atom.derivative(symbol) if isinstance(atom, Scalar) else number(float(atom == symbol))
                if inner.terms:
                    rest = _product((*monomial[:k], *monomial[k + 1 :], (atom, exponent - 1)))
                    total = _add(total, _multiply(Scalar(((rest, value * float(exponent)),)), inner))
        return total

    def substitute(self, values: Mapping[Dim, Scalar]) -> Scalar:
        """Replace dimensions by scalars."""
        total = number(0.0)
        for monomial, value in self.terms:
            term = number(value)
            for atom, exponent in monomial:
                base = atom.substitute(values) if isinstance(atom, Scalar) else _atom(atom)
                if isinstance(atom, Dim):
                    base = values.get(atom, base)
                term = _multiply(term, _power(base, exponent))
            total = _add(total, term)
        return total

    def rounded(self, relative: float) -> Scalar:
        """Without the terms that are this small beside the largest one or beside 1."""
        largest = max([1.0, *(abs(value) for _, value in self.terms)])
        return Scalar(tuple(term for term in self.terms if abs(term[1]) > relative * largest))

    @property
    def denominators(self) -> frozenset[Scalar]:
        """What must not be zero for this scalar to be finite."""
        found = {
            _atom(atom) if not isinstance(atom, Scalar) else atom
            for monomial, _ in self.terms
            for atom, exponent in monomial
            if exponent < 0
        }
        inner = (a.denominators for monomial, _ in self.terms for a, _ in monomial if isinstance(a, Scalar))
        return frozenset(found).union(*inner)


def Symbol(name: str) -> Scalar:
    """Return a scalar whose value comes later: `gamma = Symbol("gamma")`, then `eq.trace(gamma=0.1)`."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"a symbol needs a name that is a Python identifier, got {name!r}")
    if name in RESERVED:
        raise ValueError(f"a symbol cannot be named {', '.join(RESERVED)}: `measure` takes these, got {name}")
    return _atom(name)


def symbols(names: str) -> tuple[Scalar, ...]:
    """Return several symbols: `gamma, a1 = symbols("gamma a1")`."""
    return tuple(Symbol(name) for name in names.split())


def sqrt(value: object) -> Scalar:
    """Square root of a scalar or dimension; symbols under the root are taken to be positive."""
    return _power(scalar(value), Fraction(1, 2))


def number(value: float) -> Scalar:
    """Return the scalar of a number."""
    return Scalar((((), float(value)),) if value else ())


def scalar(value: object) -> Scalar:
    """Convert a number, Dim or Scalar; TypeError for anything else."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Dim):
        return _atom(value)
    if isinstance(value, Real):
        return number(float(value))
    raise TypeError(f"a scalar must be a real number, a Symbol or a Dim, got {type(value).__name__}")


def dimension(value: object) -> Dim:
    """Check that a value is a Dim; TypeError otherwise."""
    if not isinstance(value, Dim):
        raise TypeError(f'a dimension must be a Dim, such as Dim("n"), got {value!r}')
    return value


def _binary(left: object, right: object, operation: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    try:
        first, second = scalar(left), scalar(right)
    except TypeError:
        return NotImplemented  # type: ignore[no-any-return]
    return operation(first, second)


def _atom(atom: str | Dim) -> Scalar:
    return Scalar(((((atom, Fraction(1)),), 1.0),))


def _key(atom: Atom) -> tuple[str, str]:
    return type(atom).__name__, str(atom)


def _collect(terms: Iterable[tuple[Monomial, float]]) -> Scalar:
    total: dict[Monomial, float] = {}
    for monomial, value in terms:
        total[monomial] = total.get(monomial, 0.0) + value
    kept = [(monomial, value) for monomial, value in total.items() if value]
    return Scalar(tuple(sorted(kept, key=lambda term: [(_key(a), e) for a, e in term[0]])))


def _add(left: Scalar, right: Scalar) -> Scalar:
    return _collect((*left.terms, *right.terms))


def _multiply(left: Scalar, right: Scalar) -> Scalar:
    return _collect((_product((*a, *b)), x * y) for a, x in left.terms for b, y in right.terms)


def _product(factors: Iterable[tuple[Atom, Fraction]]) -> Monomial:
    powers: dict[Atom, Fraction] = {}
    for atom, exponent in factors:
        powers[atom] = powers.get(atom, Fraction(0)) + exponent
    return tuple(sorted(((a, e) for a, e in powers.items() if e), key=lambda factor: _key(factor[0])))


def _power(base: Scalar, exponent: Fraction) -> Scalar:
    if exponent == 1:
        return base
    if base.constant is not None:
        if base.constant == 0 and exponent < 0:
            raise ZeroDivisionError("division by zero")
        if base.constant < 0 and exponent.denominator != 1:
            raise ValueError(f"root of a negative number, got {base.constant:g}")
        return number(base.constant ** float(exponent))
    whole = exponent.denominator == 1
    if len(base.terms) == 1:
        ((monomial, value),) = base.terms
        if (value > 0 or whole) and (whole or all(isinstance(a, Dim) or e % 2 for a, e in monomial)):
            return Scalar(((tuple((a, e * exponent) for a, e in monomial), value ** float(exponent)),))
    if whole and 0 < exponent <= 4:
        result = base
        for _ in range(int(exponent) - 1):
            result = _multiply(result, base)
        return result
    return Scalar(((((base, exponent),), 1.0),))


def _monomial_degree(monomial: Monomial) -> Fraction:
    total = Fraction(0)
    for atom, exponent in monomial:
        total += exponent * (1 if isinstance(atom, Dim) else atom.degree if isinstance(atom, Scalar) else 0)
    return total


def _raised(base: Any, exponent: Fraction) -> Any:
    if exponent < 0:
        base = np.where(np.asarray(base) == 0, SMALLEST, base)
    return base ** (int(exponent) if exponent.denominator == 1 and exponent > 0 else float(exponent))


def _write(monomial: Monomial, value: float) -> str:
    factors = [
        (f"({atom})" if isinstance(atom, Scalar) else str(atom)) + ("" if exponent == 1 else f"^{exponent}")
        for atom, exponent in monomial
    ]
    if not factors:
        return f"{value:g}"
    return " ".join(factors) if value == 1 else f"{value:g} " + " ".join(factors)
