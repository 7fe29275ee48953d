"""Monte Carlo of an expression: sample its leaves, evaluate it as written, entry-wise functions included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from resolvent.engine.entrywise import Entrywise
from resolvent.engine.expression import Expression, Identity, Inverse, Product, Sum
from resolvent.engine.letters import Deterministic, Random
from resolvent.engine.scalar import Dim, Scalar
from resolvent.engine.vectors import Outer, Vector
from resolvent.equivalents.dyson import Array


def simulate(
    expression: Expression,
    sizes: Mapping[Dim, Scalar],
    n: int,
    draws: int,
    seed: int,
    vectors: tuple[Vector, Vector] | None,
    values: Mapping[str, Any],
) -> Array:
    """The trace over n, or u'Qv in units of n, in each of `draws` independent draws."""
    if n < 1 or draws < 2:
        raise ValueError(f"n must be at least 1 and draws at least 2, got {n} and {draws}")
    numbers = {dim.name: max(1, round(float(size(values)) * n)) for dim, size in sizes.items()}
    bound = {**values, **numbers}
    streams = np.random.SeedSequence(seed).spawn(draws)
    return np.array(
        [_draw(expression, numbers, n, np.random.default_rng(s), vectors, bound) for s in streams]
    )


def _draw(
    expression: Expression,
    numbers: Mapping[str, int],
    n: int,
    random: np.random.Generator,
    pair: tuple[Vector, Vector] | None,
    bound: Mapping[str, Any],
) -> float:
    sample = Sample(numbers, random, bound)
    for vector in sorted(
        _vectors(expression) | set(pair or ()), key=lambda v: (v.dim.name, v.family, v.name)
    ):
        sample.families.setdefault(vector.dim, {})[vector.family] = vector
    matrix = sample(expression)
    if pair is None:
        return float(np.trace(matrix) / len(matrix))
    u, v = (sample.vector(vector) for vector in pair)
    return float(u @ matrix @ v / n ** float(pair[0].degree + pair[1].degree))


class Sample:
    """One draw of every leaf, each sampled when it is first needed."""

    def __init__(
        self, numbers: Mapping[str, int], random: np.random.Generator, bound: Mapping[str, Any]
    ) -> None:
        self.numbers, self.random, self.bound = numbers, random, bound
        self.families: dict[Dim, dict[tuple[str, ...], Vector]] = {}
        self.matrices: dict[str, Array] = {}
        self.columns: dict[Dim, dict[tuple[tuple[str, ...], str], Array]] = {}

    def __call__(self, expression: Expression) -> Array:
        """Return the matrix of an expression."""
        match expression:
            case Identity():
                return np.eye(self.numbers[expression.rows.name])
            case Random() | Deterministic():
                if expression.name not in self.matrices:
                    plain = expression.T if expression.flipped else expression
                    self.matrices[expression.name] = (
                        self._gaussian(plain) if isinstance(plain, Random) else self._given(plain)
                    )
                matrix = self.matrices[expression.name]
                return matrix.T if expression.flipped else matrix
            case Outer():
                return np.outer(self.vector(expression.left), self.vector(expression.right))
            case Sum():
                shape = self.numbers[expression.rows.name], self.numbers[expression.cols.name]
                return sum(
                    (float(value(self.bound)) * self(term) for term, value in expression.terms),
                    np.zeros(shape),
                )
            case Product():
                first, *rest = expression.factors
                matrix = self(first)
                for factor in rest:
                    matrix = matrix @ self(factor)
                return matrix
            case Inverse():
                return np.asarray(np.linalg.inv(self(expression.argument)))
            case Entrywise():
                matrix = np.asarray(expression.function(self(expression.argument)), dtype=float)
                if expression.shift.terms:
                    np.fill_diagonal(matrix, 0.0)
                return matrix
        raise TypeError(f"cannot sample {expression}")

    def _gaussian(self, leaf: Random) -> Array:
        size = self.numbers[leaf.rows.name], self.numbers[leaf.cols.name]
        scale = np.sqrt(float(leaf.variance(self.bound)))
        plain = self.random.standard_normal(size)
        if not leaf.correlation:
            return np.asarray(scale * plain)
        even, odd = (plain + plain.T) / np.sqrt(2), (plain - plain.T) / np.sqrt(2)
        mixed = np.sqrt((1 + leaf.correlation) / 2) * even + np.sqrt((1 - leaf.correlation) / 2) * odd
        return np.asarray(scale * mixed)

    def _given(self, leaf: Deterministic) -> Array:
        rows, cols = self.numbers[leaf.rows.name], self.numbers[leaf.cols.name]
        if leaf.weights is not None:
            at = np.searchsorted(np.cumsum(leaf.weights), (np.arange(rows) + 0.5) / rows)
            return np.diag(leaf.values[np.minimum(at, len(leaf.values) - 1)])
        copies, left = divmod(rows, leaf.values.shape[0])
        if left or cols != copies * leaf.values.shape[1]:
            shape = " x ".join(map(str, leaf.values.shape))
            raise ValueError(
                f"{leaf.name} is {shape}: it needs multiples of these sizes, got {rows} x {cols}"
            )
        return np.kron(np.eye(copies), leaf.values)

    def vector(self, vector: Vector) -> Array:
        """A column of a random frame with the exact Gram matrix, families of one dimension orthogonal."""
        if vector.dim not in self.columns:
            families = list(self.families[vector.dim].values())
            width = sum(len(member.family) for member in families)
            frame, _ = np.linalg.qr(self.random.standard_normal((self.numbers[vector.dim.name], width)))
            columns: dict[tuple[tuple[str, ...], str], Array] = {}
            start = 0
            for member in families:
                stop = start + len(member.family)
                gram = np.array([[float(entry(self.bound)) for entry in row] for row in member.gram])
                spread, basis = np.linalg.eigh(gram)
                root = basis * np.sqrt(np.maximum(spread, 0.0)) @ basis.T
                made = frame[:, start:stop] @ root
                columns |= {(member.family, name): made[:, k] for k, name in enumerate(member.family)}
                start = stop
            self.columns[vector.dim] = columns
        return self.columns[vector.dim][vector.family, vector.name]


def _vectors(expression: Expression) -> set[Vector]:
    if isinstance(expression, Outer):
        return {expression.left, expression.right}
    below = (expression.argument,) if isinstance(expression, Entrywise) else expression.children
    return {vector for child in below for vector in _vectors(child)}
