"""The expression tree: frozen, canonical matrices that users combine with + - @ / .T and inv.

Transposes are pushed to the leaves, products are flattened, sums collect equal terms and are sorted, scalars are pulled
out of products. So A.T == B compares structure, and "symmetric" means e.T == e.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from resolvent.engine.scalar import Algebra, Dim, Scalar, number, scalar


class Expression:
    """A matrix with `rows` and `cols` dimensions."""

    __slots__ = ()
    __array_ufunc__ = None
    rows: Dim
    cols: Dim

    @property
    def T(self) -> Expression:  # noqa: N802 - the usual name
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
        raise TypeError(f"a matrix expression is needed here (for a scalar write scalar * eye(n)), got {value!r}")
    return value


# ---------------------------------------------------------------- leaves


@dataclass(frozen=True)
class Identity(Expression):
    """I of one dimension; made by `eye`."""

    rows: Dim

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Same as the rows."""
        return self.rows

    @property
    def T(self) -> Identity:  # noqa: N802
        """Itself."""
        return self

    @property
    def degree(self) -> Fraction:
        """Zero."""
        return Fraction(0)

    def __str__(self) -> str:
        return f"I_{self.rows}"


@dataclass(frozen=True)
class Random(Expression):
    """Gaussian matrix X: entries of one variance, E[X_ij X_ji] = correlation * variance, otherwise independent.

    `source` is set on the noise of an entry-wise nonlinearity: what two such noises share decides their covariance.
    """

    name: str
    rows: Dim
    cols: Dim
    variance: Scalar
    correlation: float = 0.0
    flipped: bool = False
    source: Any = field(default=None, repr=False)

    @property
    def T(self) -> Random:  # noqa: N802
        """The transpose; a Wigner matrix is its own."""
        if self.correlation == 1:
            return self
        return replace(self, rows=self.cols, cols=self.rows, flipped=not self.flipped)

    @property
    def degree(self) -> Fraction:
        """(1 + degree of the variance)/2: entries of variance 1 make a norm of order sqrt n."""
        return (1 + self.variance.degree) / 2

    def __str__(self) -> str:
        return self.name + (".T" if self.flipped else "")


@dataclass(frozen=True)
class Deterministic(Expression):
    """A given matrix, diagonal or full. `values` is its diagonal (then `weights` says how frequent each is) or itself."""

    name: str
    rows: Dim
    cols: Dim
    values: Any = field(compare=False, repr=False)
    weights: Any = field(compare=False, repr=False)
    symmetric: bool = True
    flipped: bool = False

    @property
    def T(self) -> Deterministic:  # noqa: N802
        """The transpose."""
        return self if self.symmetric else replace(self, rows=self.cols, cols=self.rows, flipped=not self.flipped)

    @property
    def degree(self) -> Fraction:
        """Zero: its norm is taken to stay bounded."""
        return Fraction(0)

    def __str__(self) -> str:
        return self.name + (".T" if self.flipped else "")


@dataclass(frozen=True)
class Vector:
    """A deterministic vector known by its inner products with the others of its family; made by `vectors`."""

    name: str
    dim: Dim
    family: tuple[str, ...]
    gram: tuple[tuple[Scalar, ...], ...] = field(repr=False)

    @property
    def T(self) -> Covector:  # noqa: N802
        """The row vector, for outer products `u @ v.T`."""
        return Covector(self)

    def __matmul__(self, other: Covector) -> Expression:
        if not isinstance(other, Covector):
            raise TypeError(f"only outer products u @ v.T make matrices of vectors, got {self.name} @ {other!r}")
        return Outer(self, other.vector)

    def dot(self, other: Vector) -> Scalar:
        """Inner product; vectors of different families are orthogonal."""
        if self.dim != other.dim:
            raise ValueError(f"{self.name} lives in {self.dim}, {other.name} in {other.dim}")
        if self.family != other.family:
            return number(0.0)
        return self.gram[self.family.index(self.name)][self.family.index(other.name)]

    @property
    def degree(self) -> Fraction:
        """Half the degree of |v|^2."""
        return self.dot(self).degree / 2


@dataclass(frozen=True)
class Covector:
    """A transposed vector."""

    vector: Vector

    @property
    def T(self) -> Vector:  # noqa: N802
        """The column vector."""
        return self.vector


@dataclass(frozen=True)
class Outer(Expression):
    """The rank-one matrix u v^T."""

    left: Vector
    right: Vector

    @property
    def rows(self) -> Dim:  # type: ignore[override]
        """Dimension of u."""
        return self.left.dim

    @property
    def cols(self) -> Dim:  # type: ignore[override]
        """Dimension of v."""
        return self.right.dim

    @property
    def T(self) -> Outer:  # noqa: N802
        """v u^T."""
        return Outer(self.right, self.left)

    @property
    def degree(self) -> Fraction:
        """Degrees of |u| and |v| together."""
        return self.left.degree + self.right.degree

    def __str__(self) -> str:
        return f"{self.left.name} {self.right.name}.T"


Leaf = Identity | Random | Deterministic | Outer

# ---------------------------------------------------------------- nodes


@dataclass(frozen=True)
class Sum(Expression):
    """Sum of scalar times matrix, sorted, equal matrices collected; made by `add`."""

    rows: Dim
    cols: Dim
    terms: tuple[tuple[Expression, Scalar], ...]

    @property
    def T(self) -> Expression:  # noqa: N802
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


@dataclass(frozen=True)
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
    def T(self) -> Expression:  # noqa: N802
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


@dataclass(frozen=True)
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
    def T(self) -> Expression:  # noqa: N802
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


@dataclass(frozen=True)
class Entrywise(Expression):
    """f applied to the entries of a matrix of scores; made by `entrywise`, `noise` being what linearisation adds."""

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
    def T(self) -> Expression:  # noqa: N802
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
    kept = sorted(((term, value) for term, value in total.items() if value.terms), key=lambda pair: str(pair[0]))
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
    return expression.rows == expression.cols and expression.T == expression


# ---------------------------------------------------------------- what users write


def eye(dim: Dim) -> Expression:
    """Return the identity of a dimension."""
    return Identity(_dim(dim))


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


def Gaussian(name: str, rows: Dim, cols: Dim, variance: object = 1.0) -> Expression:  # noqa: N802
    """Return a rows x cols matrix of independent Gaussian entries, mean 0.

    (By universality the limits hold for any independent entries of this variance with a finite fourth moment.)
    """
    return Random(name, _dim(rows), _dim(cols), _variance(variance))


def Wigner(name: str, dim: Dim, variance: object = 1.0) -> Expression:  # noqa: N802
    """Return a symmetric Gaussian matrix; off-diagonal entries have this variance (1/n puts the spectrum on [-2, 2])."""
    return Random(name, _dim(dim), _dim(dim), _variance(variance), 1.0)


def Elliptic(name: str, dim: Dim, correlation: float, variance: object = 1.0) -> Expression:  # noqa: N802
    """Return a square Gaussian matrix with E[X_ij X_ji] = correlation * variance: 0 iid, 1 Wigner, -1 antisymmetric."""
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must be between -1 and 1, got {correlation}")
    return Random(name, _dim(dim), _dim(dim), _variance(variance), float(correlation))


def Diagonal(name: str, dim: Dim, values: object, weights: object = None) -> Expression:  # noqa: N802
    """Return a diagonal matrix known by its spectral law: `values` with `weights` (default: equal), which sum to one.

    Diagonals of one dimension share an order: value k of one stands at the same places as value k of another, so
    their numbers of values and their weights must be the same.
    """
    numbers = np.atleast_1d(np.array(values, dtype=float))
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"values of {name} must be a finite one-dimensional array, got shape {numbers.shape}")
    shares = np.full(len(numbers), 1 / len(numbers)) if weights is None else np.array(weights, dtype=float)
    if shares.shape != numbers.shape or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise ValueError(f"weights of {name} must be {len(numbers)} non-negative numbers that sum to one")
    return Deterministic(name, _dim(dim), dim, numbers, shares)


def Given(name: str, rows: Dim, cols: Dim, matrix: object) -> Expression:  # noqa: N802
    """Return a given matrix. Simulated at other sizes it stands for many copies of itself on the block diagonal.

    The shares of its rows and columns must be those of the dimensions: p x q numbers for a ratio p/q.
    """
    entries = np.array(matrix, dtype=float)
    if entries.ndim != 2 or not np.isfinite(entries).all():
        raise ValueError(f"{name} must be a finite two-dimensional array, got shape {entries.shape}")
    square = _dim(rows) == _dim(cols)
    if square and entries.shape[0] != entries.shape[1]:
        raise ValueError(f"{name} is declared {rows} x {cols}, got shape {entries.shape}")
    return Deterministic(name, rows, cols, entries, None, square and bool(np.array_equal(entries, entries.T)))


def vectors(names: str, dim: Dim, gram: object) -> tuple[Vector, ...]:
    """Return vectors with a known Gram matrix; they are in general position to everything random.

    `gram` is a nested list of numbers or scalars: `y, one = vectors("y one", n, [[n, m * n], [m * n, n]])`. Vectors made
    in different calls are orthogonal. For one vector, `gram` may be its squared norm.
    """
    family = tuple(names.split())
    rows: Any = gram if isinstance(gram, (list, tuple, np.ndarray)) else [[gram]]
    table = tuple(tuple(scalar(entry if isinstance(entry, Algebra) else float(entry)) for entry in row) for row in rows)
    if len(set(family)) != len(family) or any(len(row) != len(family) for row in (table, *table)):
        raise ValueError(f"{len(family)} different vectors need a {len(family)} x {len(family)} Gram matrix")
    if any(table[i][j] != table[j][i] for i in range(len(family)) for j in range(i)):
        raise ValueError(f"the Gram matrix of {', '.join(family)} must be symmetric")
    return tuple(Vector(name, _dim(dim), family, table) for name in family)


def _dim(value: object) -> Dim:
    if not isinstance(value, Dim):
        raise TypeError(f'a dimension must be a Dim, such as Dim("n"), got {value!r}')
    return value


def _variance(value: object) -> Scalar:
    variance = scalar(value)
    if variance.constant is not None and variance.constant <= 0:
        raise ValueError(f"variance must be positive, got {variance.constant:g}")
    return variance
