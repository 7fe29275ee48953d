"""The expression tree: frozen, canonical matrices that users combine with + - @ / .T and inv.

Transposes are pushed to the leaves, products are flattened, sums collect equal terms and are sorted, scalars
are pulled out of products. So A.T == B compares structure, and "symmetric" means e.T == e.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from resolvent.engine.scalar import Dim, Scalar, dimension, number, scalar


class Expression:
    """A matrix with `rows` and `cols` dimensions."""

    __slots__ = ()
    __array_ufunc__ = None
    rows: Dim
    cols: Dim

    @property
    def T(self) -> Expression:
        """The transpose."""
        raise NotImplementedError

    @property
    def degree(self) -> Fraction:
        """Power of the system size with which the norm grows; ValueError if terms of a sum differ."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions directly below this one."""
        return ()

    @property
    def shape(self) -> str:
        """The dimensions in words: `p x n`."""
        return f"{self.rows} x {self.cols}"

    def __repr__(self) -> str:
        return str(self)

    def __add__(self, other: Expression) -> Expression:
        return add([(self, number(1.0)), (_matrix(other), number(1.0))])

    def __sub__(self, other: Expression) -> Expression:
        return add([(self, number(1.0)), (_matrix(other), number(-1.0))])

    def __neg__(self) -> Expression:
        return add([(self, number(-1.0))])

    def __mul__(self, other: object) -> Expression:
        if isinstance(other, Expression):
            raise TypeError(f"use @ for the matrix product of {self.shape} and {other.shape}")
        return add([(self, scalar(other))])

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Expression:
        return add([(self, 1 / scalar(other))])

    def __matmul__(self, other: Expression) -> Expression:
        return multiply([self, _matrix(other)])


def _matrix(value: object) -> Expression:
    if not isinstance(value, Expression):
        raise TypeError(
            f"a matrix expression is needed here (for a scalar write scalar * eye(n)), got {value!r}"
        )
    return value


@dataclass(frozen=True, repr=False)
class Identity(Expression):
    """I of one dimension; made by `eye`."""

    rows: Dim

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Same as the rows."""
        return self.rows

    @property
    def T(self) -> Identity:
        """Itself."""
        return self

    @property
    def degree(self) -> Fraction:
        """Zero."""
        return Fraction(0)

    def __str__(self) -> str:
        return f"I_{self.rows}"


# ---------------------------------------------------------------- nodes


@dataclass(frozen=True, repr=False)
class Sum(Expression):
    """Sum of scalar times matrix, sorted, equal matrices collected; made by `add`."""

    rows: Dim
    cols: Dim
    terms: tuple[tuple[Expression, Scalar], ...]

    @property
    def T(self) -> Expression:
        """Sum of the transposes."""
        return add([(term.T, value) for term, value in self.terms], self.cols, self.rows)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The matrices."""
        return tuple(term for term, _ in self.terms)

    @property
    def degree(self) -> Fraction:
        """The common degree of the terms."""
        degrees = {term.degree + value.degree: f"{value} {term}" for term, value in self.terms}
        if len(degrees) > 1:
            listed = " and ".join(f"{text} ~ {self.rows}^{power}" for power, text in degrees.items())
            raise ValueError(f"terms of one sum must grow alike with the dimensions, got {listed}")
        return next(iter(degrees), Fraction(0))

    def __str__(self) -> str:
        return "(" + (" + ".join(f"{value} {term}" for term, value in self.terms) or "0") + ")"


@dataclass(frozen=True, repr=False)
class Product(Expression):
    """Product of at least two factors that are neither products nor the identity; made by `multiply`."""

    factors: tuple[Expression, ...]

    @property
    def rows(self) -> Dim:  # type: ignore[override]
        """Rows of the first factor."""
        return self.factors[0].rows

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Columns of the last factor."""
        return self.factors[-1].cols

    @property
    def T(self) -> Expression:
        """The transposes in reverse order."""
        return multiply([factor.T for factor in reversed(self.factors)])

    @property
    def children(self) -> tuple[Expression, ...]:
        """The factors."""
        return self.factors

    @property
    def degree(self) -> Fraction:
        """Sum of the degrees."""
        return sum((factor.degree for factor in self.factors), Fraction(0))

    def __str__(self) -> str:
        return " ".join(map(str, self.factors))


@dataclass(frozen=True, repr=False)
class Inverse(Expression):
    """Inverse of a square expression; made by `inv`."""

    argument: Expression

    @property
    def rows(self) -> Dim:  # type: ignore[override]
        """Columns of the argument."""
        return self.argument.cols

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Rows of the argument."""
        return self.argument.rows

    @property
    def T(self) -> Expression:
        """Inverse of the transpose."""
        return Inverse(self.argument.T)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The argument."""
        return (self.argument,)

    @property
    def degree(self) -> Fraction:
        """Minus that of the argument."""
        return -self.argument.degree

    def __str__(self) -> str:
        return f"inv{self.argument}"


# ---------------------------------------------------------------- canonical construction


def add(
    terms: Iterable[tuple[Expression, Scalar]], rows: Dim | None = None, cols: Dim | None = None
) -> Expression:
    """Canonical sum; ValueError that names both shapes if they differ."""
    total: dict[Expression, Scalar] = {}
    for term, value in terms:
        rows, cols = rows or term.rows, cols or term.cols
        if (term.rows, term.cols) != (rows, cols):
            raise ValueError(f"cannot add {rows} x {cols} and {term.shape}")
        for inner, factor in term.terms if isinstance(term, Sum) else ((term, number(1.0)),):
            total[inner] = total.get(inner, number(0.0)) + value * factor
    if rows is None or cols is None:
        raise ValueError("an empty sum has no shape")
    kept = sorted(
        ((term, value) for term, value in total.items() if value.terms), key=lambda pair: str(pair[0])
    )
    if len(kept) == 1 and kept[0][1].constant == 1:
        return kept[0][0]
    return Sum(rows, cols, tuple(kept))


def multiply(factors: Iterable[Expression]) -> Expression:
    """Canonical product; ValueError that names both shapes if they do not fit."""
    flat: list[Expression] = []
    coefficient = number(1.0)
    first: Expression | None = None
    last: Expression | None = None
    for factor in factors:
        if last is not None and last.cols != factor.rows:
            raise ValueError(f"cannot multiply {last.shape} by {factor.shape}")
        first, last = first or factor, factor
        if isinstance(factor, Sum) and len(factor.terms) == 1:
            ((factor, value),) = factor.terms
            coefficient = coefficient * value
        if not isinstance(factor, Identity):
            flat.extend(factor.factors if isinstance(factor, Product) else [factor])
    if first is None or last is None:
        raise ValueError("an empty product has no shape")
    if any(isinstance(factor, Sum) and not factor.terms for factor in flat):
        return Sum(first.rows, last.cols, ())
    product = Product(tuple(flat)) if len(flat) > 1 else flat[0] if flat else Identity(first.rows)
    return add([(product, coefficient)])


def transpose_invariant(expression: Expression) -> bool:
    """Whether the expression is symmetric as it is written."""
    return expression.rows == expression.cols and expression == expression.T


# ---------------------------------------------------------------- what users write


def eye(dim: Dim) -> Expression:
    """Return the identity of a dimension."""
    return Identity(dimension(dim))


def inv(argument: Expression) -> Expression:
    """Return the inverse of a square expression.

    Raises ValueError, naming the shape, if it is not square.
    """
    if argument.rows != argument.cols:
        raise ValueError(f"only square matrices have an inverse, got {argument.shape}")
    if isinstance(argument, Inverse):
        return argument.argument
    if isinstance(argument, Identity):
        return argument
    if isinstance(argument, Sum) and len(argument.terms) == 1:
        ((term, value),) = argument.terms
        return inv(term) / value
    if isinstance(argument, Sum) and not argument.terms:
        raise ZeroDivisionError("the zero matrix has no inverse")
    return Inverse(argument)
