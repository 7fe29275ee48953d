"""The pencil of an expression, as symbols to read and as arrays to solve.

Block (i, j) of the pencil L is a sum of scalar times leaf. With dimension sizes in units of the expression's
own dimension, the block traces T of L^-1 solve T = (A - eta(T))^-1, where (theory page, section 9)

    eta(T)_ij = sum over random leaves X at (i, a) and X' at (b, j) of  coef coef' E[X_1k X'_k1] size_a T_ab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from resolvent.engine.entrywise import covariance
from resolvent.engine.expression import Expression, Identity
from resolvent.engine.latex import matrix_latex
from resolvent.engine.letters import Deterministic, Random
from resolvent.engine.linearise import linearise
from resolvent.engine.minimal import minimise
from resolvent.engine.nodes import Nodes, common_nodes
from resolvent.engine.scalar import Dim, Scalar, number
from resolvent.engine.vectors import Outer, Vector
from resolvent.equivalents.dyson import Array, Dyson

Position = tuple[int, int]


@dataclass(frozen=True)
class Placement:
    """Coefficient times a random matrix (or its transpose) at a block."""

    row: int
    col: int
    leaf: Random
    value: Scalar


@dataclass(frozen=True)
class LowRank:
    """Coefficient times u v^T at a block."""

    row: int
    col: int
    outer: Outer
    value: Scalar


class Table:
    """Scalars that become the last axis of an array, the numbers among them once for all."""

    def __init__(self, scalars: list[Scalar]) -> None:
        self.scalars = scalars
        self.numbers = np.array(
            [s.constant if s.constant is not None else np.nan for s in scalars], dtype=float
        )
        self.moving = [(k, s) for k, s in enumerate(scalars) if s.constant is None]

    def __call__(self, values: Mapping[str, Array], count: int) -> Array:
        """Return their values, shape (count, number of scalars)."""
        kind = np.result_type(float, *values.values()) if values else np.dtype(float)
        out = np.empty((count, len(self.scalars)), dtype=kind)
        out[:] = self.numbers
        for k, expression in self.moving:
            out[:, k] = expression(values)
        return out if not np.iscomplexobj(out) or out.imag.any() else out.real

    def derivative(self, symbol: str) -> Table:
        """Table of the derivatives."""
        return Table([s.derivative(symbol) for s in self.scalars])


@dataclass(frozen=True)
class Pencil:
    """Self-adjoint linear pencil: `dims` of its blocks, its `entries`, the block of its inverse to `read`."""

    dims: tuple[Dim, ...]
    entries: tuple[tuple[Position, tuple[tuple[Expression, Scalar], ...]], ...]
    read: Position

    def __len__(self) -> int:
        return len(self.dims)

    def __str__(self) -> str:
        lines = [f"{len(self)} blocks: " + ", ".join(map(str, self.dims)) + f"; read block {self.read}"]
        for (i, j), block in self.entries:
            if i <= j:
                lines.append(f"  ({i}, {j})  " + " + ".join(f"({value}) {leaf}" for leaf, value in block))
        return "\n".join(lines)

    @property
    def latex(self) -> str:
        """The pencil and the equations that its block traces solve, as LaTeX."""
        return matrix_latex(self.dims, dict(self.entries), self.covariance, self.read)

    def _leaves(self) -> list[tuple[Position, Expression, Scalar]]:
        return [(at, leaf, value) for at, block in self.entries for leaf, value in block]

    @property
    def identities(self) -> list[tuple[Position, Scalar]]:
        """Multiples of the identity."""
        return [(at, value) for at, leaf, value in self._leaves() if isinstance(leaf, Identity)]

    @property
    def deterministic(self) -> list[tuple[Position, Deterministic, Scalar]]:
        """Given matrices."""
        return [(at, leaf, value) for at, leaf, value in self._leaves() if isinstance(leaf, Deterministic)]

    @property
    def low_rank(self) -> list[LowRank]:
        """Rank-one parts."""
        return [LowRank(*at, leaf, value) for at, leaf, value in self._leaves() if isinstance(leaf, Outer)]

    @property
    def placements(self) -> list[Placement]:
        """Random matrices."""
        return [Placement(*at, leaf, value) for at, leaf, value in self._leaves() if isinstance(leaf, Random)]

    @cached_property
    def covariance(self) -> dict[tuple[Position, Position], Scalar]:
        """Coefficient of T[read] in eta(T)[write], by (write, read)."""
        found: dict[tuple[Position, Position], Scalar] = {}
        placements = self.placements
        moments = {(x.leaf, y.leaf): moment(x.leaf, y.leaf) for x in placements for y in placements}
        for x in placements:
            for y in placements:
                second = moments[x.leaf, y.leaf]
                if second.terms:
                    key = ((x.row, y.col), (x.col, y.row))
                    term = x.value * y.value * second * self.dims[x.col]
                    found[key] = found.get(key, number(0.0)) + term
        return {key: value for key, value in found.items() if value.terms}


def moment(x: Random, y: Random) -> Scalar:
    """E[X_ik Y_ki] for i != k: what E[X M Y] = moment tr(M) I needs."""
    plain_x, plain_y = (replace(leaf.T, flipped=False) if leaf.flipped else leaf for leaf in (x, y))
    shared = plain_x.variance if plain_x == plain_y else covariance(plain_x.source, plain_y.source)
    aligned = x.flipped != y.flipped
    return shared * (1.0 if aligned else plain_x.correlation)


def pencil(expression: Expression) -> Pencil:
    """Return the pencil of an expression: linearised, made self-adjoint and reduced."""
    system, read = linearise(expression)
    system = minimise(system, read)
    entries = sorted((at, tuple(block.items())) for at, block in system.entries.items() if block)
    return Pencil(tuple(system.rows), tuple(entries), read)


class Assembly:
    """A pencil as arrays: the Dyson equation at values of the symbols, and its slopes in them."""

    def __init__(self, symbolic: Pencil, sizes: Mapping[Dim, Scalar]) -> None:
        self.dims, self.read = symbolic.dims, symbolic.read
        self.low_rank = symbolic.low_rank
        self.nodes: Nodes = common_nodes(symbolic.dims, [leaf for _, leaf, _ in symbolic.deterministic])
        self.identity_at = np.array([at for at, _ in symbolic.identities], dtype=int).reshape(-1, 2).T
        self.given_at = np.array([at for at, _, _ in symbolic.deterministic], dtype=int).reshape(-1, 2).T
        self.given_leaves = [leaf for _, leaf, _ in symbolic.deterministic]
        pairs = sorted(symbolic.covariance)
        writes, reads = sorted({w for w, _ in pairs}), sorted({r for _, r in pairs})
        self.writes = np.array(writes, dtype=int).reshape(-1, 2).T
        self.reads = np.array(reads, dtype=int).reshape(-1, 2).T
        self.eta_at = (
            np.array([writes.index(w) for w, _ in pairs], dtype=int),
            np.array([reads.index(r) for _, r in pairs], dtype=int),
        )
        self.identity = self._table([v for _, v in symbolic.identities], sizes)
        self.given = self._table([v for _, _, v in symbolic.deterministic], sizes)
        self.eta = self._table([symbolic.covariance[pair] for pair in pairs], sizes)
        self.outer = self._table([part.value for part in symbolic.low_rank], sizes)
        self.sizes = sizes
        self.slopes: dict[str, tuple[Table, Table, Table, Table]] = {}

    @staticmethod
    def _table(scalars: list[Scalar], sizes: Mapping[Dim, Scalar]) -> Table:
        return Table([value.substitute(sizes) for value in scalars])

    def _constant(self, identity: Array, given: Array) -> Array:
        size, count = len(self.dims), len(self.nodes.weights)
        full = np.zeros((len(identity), count, size, size), dtype=np.result_type(identity, given))
        full[:, :, self.identity_at[0], self.identity_at[1]] += identity[:, None, :]
        for k, ((i, j), leaf) in enumerate(zip(self.given_at.T, self.given_leaves, strict=True)):
            full[:, :, i, j] += given[:, k, None] * self.nodes.values[leaf]
        return full

    def _eta(self, eta: Array) -> Array:
        full = np.zeros((len(eta), self.writes.shape[1], self.reads.shape[1]), dtype=eta.dtype)
        full[:, self.eta_at[0], self.eta_at[1]] = eta
        return full

    def dyson(self, values: Mapping[str, Array], count: int) -> Dyson:
        """Equations at `count` points; every value is a scalar or has shape (count,)."""
        constant = self._constant(self.identity(values, count), self.given(values, count))
        weights = np.stack([self.nodes.weights[:, self.nodes.columns[dim]] for dim in self.dims], axis=1)
        return Dyson(constant, weights, self._eta(self.eta(values, count)), self.writes, self.reads)

    def slope(self, symbol: str, values: Mapping[str, Array], count: int) -> tuple[Array, Array, Array]:
        """Derivatives of A, of eta and of the low-rank coefficients in a symbol."""
        if symbol not in self.slopes:
            tables = (self.identity, self.given, self.eta, self.outer)
            a, b, c, d = (table.derivative(symbol) for table in tables)
            self.slopes[symbol] = (a, b, c, d)
        identity, given, eta, outer = (table(values, count) for table in self.slopes[symbol])
        return self._constant(identity, given), self._eta(eta), outer

    def gram(self, labels: list[tuple[int, Vector]]) -> Table:
        """Inner products of the vectors of labelled blocks, zero between different dimensions."""
        zero = number(0.0)
        pairs = [u.dot(v) if u.dim == v.dim else zero for _, u in labels for _, v in labels]
        return self._table(pairs, self.sizes)
