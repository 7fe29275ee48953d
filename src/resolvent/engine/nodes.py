"""Deterministic matrices of a pencil on common nodes: simultaneous eigenvalues and their weights.

Random matrices with Gaussian entries do not change their law under rotations, so only the joint spectrum of
the deterministic ones counts: node k holds one eigenvalue (singular value, for a rectangular one) of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resolvent.engine.letters import Deterministic
from resolvent.engine.scalar import Dim
from resolvent.equivalents.dyson import Array


@dataclass(frozen=True)
class Nodes:
    """values[leaf] (K,); weights (K, D), a column for each dimension, found by columns[dim]."""

    values: dict[Deterministic, Array]
    weights: Array
    columns: dict[Dim, int]


def common_nodes(dims: Sequence[Dim], leaves: Sequence[Deterministic]) -> Nodes:
    """Bring all leaves to one list of nodes, padded by nodes of weight zero."""
    unique = {leaf: _plain(leaf) for leaf in leaves}
    names = {leaf.name: leaf for leaf in unique.values()}
    found: dict[str, Array] = {}
    shares: dict[Dim, Array] = {}
    for group in _groups(list(names.values())):
        values, weights = _diagonals(group) if group[0].weights is not None else _matrices(group)
        found |= values
        shares |= weights
    count = max((len(share) for share in shares.values()), default=1)
    columns = {dim: k for k, dim in enumerate(dict.fromkeys(dims))}
    table = np.zeros((count, len(columns)))
    for dim, column in columns.items():
        share = shares.get(dim, np.full(count, 1 / count))
        table[: len(share), column] = share
    padded = {
        leaf: np.pad(found[leaf.name], (0, count - len(found[leaf.name])), mode="edge") for leaf in unique
    }
    return Nodes(padded, table, columns)


def _plain(leaf: Deterministic) -> Deterministic:
    plain = leaf.T if leaf.flipped else leaf
    assert isinstance(plain, Deterministic)
    return plain


def _groups(leaves: list[Deterministic]) -> list[list[Deterministic]]:
    """Leaves whose dimensions are connected."""
    groups: list[list[Deterministic]] = []
    for leaf in leaves:
        touching = [
            g for g in groups if any({leaf.rows, leaf.cols} & {other.rows, other.cols} for other in g)
        ]
        groups = [g for g in groups if g not in touching] + [
            [leaf, *(other for g in touching for other in g)]
        ]
    return groups


def _diagonals(group: list[Deterministic]) -> tuple[dict[str, Array], dict[Dim, Array]]:
    first = group[0]
    for leaf in group:
        if leaf.weights is None or not np.array_equal(leaf.weights, first.weights):
            raise ValueError(
                f"{first.name} and {leaf.name} act on {leaf.rows}: give both as Diagonal, with equal weights"
            )
    return {leaf.name: leaf.values for leaf in group}, {first.rows: first.weights}


def _matrices(group: list[Deterministic]) -> tuple[dict[str, Array], dict[Dim, Array]]:
    """Joint spectrum of symmetric matrices that commute, or singular values of one rectangular matrix."""
    first = group[0]
    if len(group) == 1 and first.rows != first.cols:
        singular = np.linalg.svd(first.values, compute_uv=False)
        rows, cols = first.values.shape
        long = np.zeros(max(rows, cols))
        long[: len(singular)] = singular
        return {first.name: long}, {first.rows: _share(rows, len(long)), first.cols: _share(cols, len(long))}
    for leaf in group:
        if leaf.weights is not None or not leaf.symmetric or leaf.values.shape != first.values.shape:
            raise ValueError(
                f"{leaf.name} beside {first.name}: given matrices that share a dimension must all be square"
            )
    size = len(first.values)
    mix = np.random.default_rng(0).standard_normal(len(group))
    _, basis = np.linalg.eigh(sum(m * leaf.values for m, leaf in zip(mix, group, strict=True)))
    found = {}
    for leaf in group:
        rotated = basis.T @ leaf.values @ basis
        if np.abs(rotated - np.diag(np.diag(rotated))).max() > 1e-8 * np.abs(rotated).max():
            raise ValueError(
                f"the given matrices on {leaf.rows} must commute: {', '.join(x.name for x in group)} do not"
            )
        found[leaf.name] = np.diag(rotated)
    return found, {first.rows: np.full(size, 1 / size)}


def _share(size: int, count: int) -> Array:
    return np.where(np.arange(count) < size, 1 / size, 0.0)
