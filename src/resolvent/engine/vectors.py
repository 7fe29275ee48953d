"""Vectors known by their inner products, and the rank-one matrices they make."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from resolvent.engine.expression import Expression
from resolvent.engine.scalar import Algebra, Dim, Scalar, dimension, number, scalar


@dataclass(frozen=True)
class Vector:
    """A deterministic vector known by its inner products with the others of its family; made by `vectors`."""

    name: str
    dim: Dim
    family: tuple[str, ...]
    gram: tuple[tuple[Scalar, ...], ...] = field(repr=False)

    @property
    def T(self) -> Covector:
        """The row vector, for outer products `u @ v.T`."""
        return Covector(self)

    def __matmul__(self, other: Covector) -> Expression:
        if not isinstance(other, Covector):
            raise TypeError(
                f"only outer products u @ v.T make matrices of vectors, got {self.name} @ {other!r}"
            )
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
    def T(self) -> Vector:
        """The column vector."""
        return self.vector


@dataclass(frozen=True, repr=False)
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
    def T(self) -> Outer:
        """v u^T."""
        return Outer(self.right, self.left)

    @property
    def degree(self) -> Fraction:
        """Degrees of |u| and |v| together."""
        return self.left.degree + self.right.degree

    def __str__(self) -> str:
        return f"{self.left.name} {self.right.name}.T"


def vectors(names: str, dim: Dim, gram: object) -> tuple[Vector, ...]:
    """Return vectors with a known Gram matrix; they are in general position to everything random.

    `gram` is a nested list of numbers or scalars: `y, one = vectors("y one", n, [[n, m * n], [m * n, n]])`.
    Vectors made in different calls are orthogonal. For one vector, `gram` may be its squared norm.
    """
    family = tuple(names.split())
    rows: Any = gram if isinstance(gram, (list, tuple, np.ndarray)) else [[gram]]
    table = tuple(
        tuple(scalar(entry if isinstance(entry, Algebra) else float(entry)) for entry in row) for row in rows
    )
    if len(set(family)) != len(family) or any(len(row) != len(family) for row in (table, *table)):
        raise ValueError(f"{len(family)} different vectors need a {len(family)} x {len(family)} Gram matrix")
    if any(table[i][j] != table[j][i] for i in range(len(family)) for j in range(i)):
        raise ValueError(f"the Gram matrix of {', '.join(family)} must be symmetric")
    return tuple(Vector(name, dimension(dim), family, table) for name in family)
