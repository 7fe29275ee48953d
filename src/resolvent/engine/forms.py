"""Quadratic forms of an inverse pencil, its low-rank parts included.

Low-rank parts sum_k c_k u_k v_k^T at blocks of the pencil leave the traces T alone. For vectors u at blocks i
in general position, B[(i, u), (j, v)] = T_ij u'v are the forms without them, C the coefficients c_k in rows
and columns labelled alike, and (theory page, section 5)

    F = B (1 + C B)^-1,        dF = (1 + B C)^-1 dB (1 + C B)^-1 - F dC F.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from resolvent.engine.pencil import Assembly, Table
from resolvent.engine.vectors import Vector
from resolvent.equivalents.dyson import Array


class Forms:
    """Forms between a left and a right vector (the first two labels) and those of the low-rank parts."""

    def __init__(self, assembly: Assembly, left: Vector, right: Vector) -> None:
        for vector, at in zip((left, right), assembly.read, strict=True):
            side = assembly.dims[at]
            if vector.dim != side:
                raise ValueError(
                    f"{vector.name} lives in {vector.dim}, this side of the expression in {side}"
                )
        parts = assembly.low_rank
        pairs = [((part.row, part.outer.left), (part.col, part.outer.right)) for part in parts]
        inner = list(dict.fromkeys(label for pair in pairs for label in pair))
        self.assembly = assembly
        self.labels = [(assembly.read[0], left), (assembly.read[1], right), *inner]
        self.places = [(2 + inner.index(a), 2 + inner.index(b)) for a, b in pairs]
        self.gram = assembly.gram(self.labels)

    def value(self, traces: Array, values: Mapping[str, Array]) -> Array:
        """F between the two vectors, (B,)."""
        form, *_ = self._solve(traces, values)
        return np.asarray(form[:, 0, 1])

    def slope(
        self, traces: Array, moved: Array, outer: Array, symbol: str, values: Mapping[str, Array]
    ) -> Array:
        """Its derivative in a symbol, given those of the traces and of the low-rank coefficients."""
        form, bilinear, coupling = self._solve(traces, values)
        gram_slope = self._table(self.gram.derivative(symbol), values, len(traces))
        gram = self._table(self.gram, values, len(traces))
        d_bilinear = self._spread(moved) * gram + self._spread(traces) * gram_slope
        ones = np.eye(len(self.labels))
        left, right = np.linalg.inv(ones + bilinear @ coupling), np.linalg.inv(ones + coupling @ bilinear)
        change = left @ d_bilinear @ right - form @ self._coupling(outer) @ form
        return np.asarray(change[:, 0, 1])

    def _solve(self, traces: Array, values: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        bilinear = self._spread(traces) * self._table(self.gram, values, len(traces))
        coupling = self._coupling(self.assembly.outer(values, len(traces)))
        return bilinear @ np.linalg.inv(np.eye(len(self.labels)) + coupling @ bilinear), bilinear, coupling

    def _spread(self, traces: Array) -> Array:
        """T at the blocks of the labels, zero where there is no solution (the report has NaN there)."""
        at = np.array([block for block, _ in self.labels])
        return np.nan_to_num(traces[:, at[:, None], at[None, :]])

    def _table(self, table: Table, values: Mapping[str, Array], count: int) -> Array:
        return table(values, count).reshape(count, len(self.labels), len(self.labels))

    def _coupling(self, outer: Array) -> Array:
        full = np.zeros((len(outer), len(self.labels), len(self.labels)), dtype=outer.dtype)
        for k, (row, col) in enumerate(self.places):
            full[:, row, col] += outer[:, k]
        return full
