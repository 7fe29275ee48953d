"""Reduction of a symmetric pencil to minimal size, the Kalman decomposition of a self-adjoint realisation.

The blocks x of the read columns of L^-1 are rational functions of the letters. Constant linear relations
among them, x = P x', give the smaller pencil P^T L P, whose constant kernel is then dropped: what is left is
minimal for its class (Cohn and Reutenauer 1994; Helton, Mai and Speicher 2018). Relations hold for matrices
of every size, so they are found at small random ones, and the result is checked at fresh ones.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from resolvent.engine.expression import Expression, Identity
from resolvent.engine.letters import Deterministic, Random
from resolvent.engine.linearise import System
from resolvent.engine.scalar import Dim
from resolvent.engine.vectors import Outer
from resolvent.equivalents.dyson import Array

EXACT = 1e-9
"""Relative size below which a number found from random matrices counts as zero."""


class Letters:
    """A random small matrix for each leaf, and a random number for each symbol and dimension."""

    def __init__(self, system: System, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        dims = sorted(set(system.rows), key=lambda dim: dim.name)
        size = 6 + int(np.sqrt(len(system.rows)))
        self.sizes = {dim: size + k for k, dim in enumerate(dims)}
        scalars = [value for block in system.entries.values() for value in block.values()]
        names = {name for value in scalars for name in value.symbols | {dim.name for dim in value.dims}}
        self.numbers = {name: self.random.uniform(0.5, 1.5) for name in sorted(names)}
        self.matrices: dict[object, Array] = {}

    def _new(self, key: object, rows: Dim, cols: Dim, symmetric: bool = False) -> Array:
        if key not in self.matrices:
            made = self.random.standard_normal((self.sizes[rows], self.sizes[cols])) / np.sqrt(
                self.sizes[rows]
            )
            self.matrices[key] = made + made.T if symmetric else made
        return self.matrices[key]

    def __call__(self, leaf: Expression) -> Array:
        """Return the matrix of a leaf."""
        match leaf:
            case Identity():
                return np.eye(self.sizes[leaf.rows])
            case Outer():
                parts = (self._new((v.family, v.name), v.dim, v.dim)[:, 0] for v in (leaf.left, leaf.right))
                return np.outer(*parts)
            case Random() | Deterministic():
                symmetric = leaf == leaf.T
                rows, cols = (leaf.cols, leaf.rows) if leaf.flipped else (leaf.rows, leaf.cols)
                made = self._new(leaf.T if leaf.flipped else leaf, rows, cols, symmetric)
                return made.T if leaf.flipped else made
        raise TypeError(f"not a letter: {leaf}")


def _columns(system: System, read: tuple[int, int], letters: Letters) -> list[Array]:
    """The blocks of the read columns of L^-1, block i as (size of i, columns)."""
    bounds = np.cumsum([0, *(letters.sizes[dim] for dim in system.rows)])
    full = np.zeros((bounds[-1], bounds[-1]))
    for (i, j), block in system.entries.items():
        part = full[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
        for leaf, value in block.items():
            part += float(value(letters.numbers)) * letters(leaf)
    at = np.concatenate([np.arange(bounds[k], bounds[k + 1]) for k in sorted(set(read))])
    columns = np.linalg.solve(full, np.eye(bounds[-1])[:, at])
    return [columns[a:b] for a, b in pairwise(bounds)]


def _relations(system: System, read: tuple[int, int]) -> Array:
    """P (blocks, independent blocks): each block as a combination of the first independent ones of its
    dimension.

    A relation whose coefficients depend on the symbols can hold at a few samples; more are drawn until
    nothing changes.
    """
    samples = [_columns(system, read, Letters(system, seed)) for seed in (1, 2)]
    basis = _common_relations(system, read, samples)
    while True:
        samples.append(_columns(system, read, Letters(system, len(samples) + 1)))
        again = _common_relations(system, read, samples)
        if basis.shape == again.shape and np.allclose(basis, again, rtol=1e-6, atol=1e-8):
            return again
        basis = again


def _common_relations(system: System, read: tuple[int, int], samples: list[list[Array]]) -> Array:
    flat = [np.concatenate([sample[k].ravel() for sample in samples]) for k in range(len(system.rows))]
    kept: list[int] = []
    rows: list[dict[int, float]] = []
    for k, dim in enumerate(system.rows):
        mates = [other for other in kept if system.rows[other] == dim]
        basis = np.array([flat[other] for other in mates]).reshape(len(mates), flat[k].size).T
        scale = np.maximum(np.linalg.norm(basis, axis=0), 1e-300)
        weights = np.linalg.lstsq(basis / scale, flat[k], rcond=None)[0] / scale if mates else np.zeros(0)
        gap = np.linalg.norm(basis @ weights - flat[k])
        if k not in read and gap < EXACT * np.linalg.norm(flat[k]):
            rows.append(
                {m: w for m, w in zip(mates, weights, strict=True) if abs(w) > EXACT * abs(weights).max()}
            )
        elif k not in read and not np.any(np.abs(flat[k]) > EXACT):
            rows.append({})
        else:
            kept.append(k)
            rows.append({k: 1.0})
    return np.array([[row.get(k, 0.0) for k in kept] for row in rows])


def _congruence(system: System, basis: Array) -> System:
    """P^T L P, numbers that cancel removed."""
    kept = [int(np.flatnonzero(basis[:, k])[0]) for k in range(basis.shape[1])]
    dims = [system.rows[k] for k in kept]
    reduced = System(list(dims), list(dims))
    for (i, j), block in system.entries.items():
        for r in np.flatnonzero(basis[i]):
            for c in np.flatnonzero(basis[j]):
                for leaf, value in block.items():
                    reduced.put(int(r), int(c), leaf, value * float(basis[i, r] * basis[j, c]))
    for block in reduced.entries.values():
        for leaf, value in list(block.items()):
            block[leaf] = value.rounded(EXACT)
            if not block[leaf].terms:
                del block[leaf]
    return reduced


def _without_kernel(system: System, read: tuple[int, int]) -> System:
    """Drop blocks along constant vectors w with L w = 0."""
    while True:
        size = len(system.rows)
        keys = {
            (leaf, monomial)
            for block in system.entries.values()
            for leaf, v in block.items()
            for monomial, _ in v.terms
        }
        where = {key: k for k, key in enumerate(keys)}
        stack = np.zeros((len(keys), size, size))
        for (i, j), block in system.entries.items():
            for leaf, value in block.items():
                for monomial, coefficient in value.terms:
                    stack[where[leaf, monomial], i, j] += coefficient
        _, singular, right = np.linalg.svd(stack.reshape(-1, size))
        if singular[-1] > EXACT * singular[0]:
            return system
        free = np.abs(right[-1])
        free[list(read)] = 0.0
        drop = int(np.argmax(free))
        system = _congruence(system, np.delete(np.eye(size), drop, axis=1))


def minimise(system: System, read: tuple[int, int]) -> System:
    """Return the pencil reduced by its constant relations, or itself if there are none."""
    basis = _relations(system, read)
    if basis.shape[0] == basis.shape[1]:
        return system
    reduced = _without_kernel(_congruence(system, basis), read)
    letters = Letters(system, 0)
    old, new = (_columns(each, read, letters)[read[0]] for each in (system, reduced))
    if not np.allclose(old, new, rtol=1e-6, atol=1e-8 * np.abs(old).max()):
        raise ArithmeticError("the reduced pencil differs from the original")
    return reduced
