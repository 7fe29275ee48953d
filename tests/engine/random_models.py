"""Random models: sums, products, transposes, inverses of shared leaves up to a depth, always invertible."""

from __future__ import annotations

import numpy as np

from resolvent.engine import Diagonal, Dim, Elliptic, Gaussian, Wigner, eye, inv
from resolvent.engine.expression import Expression
from resolvent.engine.letters import Random

N, P = Dim("n"), Dim("p")
RATIO = 0.5
RECTANGLES = [Gaussian(f"Z{k}", P, N, 1 / N) for k in range(2)]
SQUARES = {
    N: [
        eye(N),
        Wigner("W", N, 1 / N),
        Elliptic("Y", N, 0.0, 1 / N),
        Elliptic("E", N, -0.4, 1 / N),
        Diagonal("D", N, [0.5, 1.0, 2.0], [0.25, 0.25, 0.5]),
        Diagonal("D2", N, [1.0, -1.0, 0.5], [0.25, 0.25, 0.5]),
    ],
    P: [eye(P), Wigner("V", P, 1 / P), Diagonal("S", P, [0.3, 1.7])],
}


def random_model(random: np.random.Generator, depth: int = 4) -> Expression:
    """A square n x n expression that is more than one leaf and contains a random matrix."""
    while True:
        model = _grow(random, N, N, depth)
        if model.children and _is_random(model):
            return model


def _is_random(expression: Expression) -> bool:
    return isinstance(expression, Random) or any(map(_is_random, expression.children))


def _grow(random: np.random.Generator, rows: Dim, cols: Dim, depth: int) -> Expression:
    if depth == 0 or random.random() < 0.1:
        return _leaf(random, rows, cols)
    kinds = ["sum", "product", "product"] + (["ridge", "skew", "gram"] if rows == cols else [])
    match kinds[random.integers(len(kinds))]:
        case "sum":
            left, right = (_grow(random, rows, cols, depth - 1) for _ in range(2))
            return float(random.choice([0.5, 1.0, -1.0])) * left + float(random.choice([0.7, 1.3])) * right
        case "product":
            middle = (N, P)[random.integers(2)]
            return _grow(random, rows, middle, depth - 1) @ _grow(random, middle, cols, depth - 1)
        case "ridge":
            inner = _grow(random, (N, P)[random.integers(2)], rows, depth - 1)
            return inv(float(random.choice([0.5, 1.0])) * eye(rows) + inner.T @ inner)
        case "skew":
            inner = _grow(random, rows, rows, depth - 1)
            return inv(eye(rows) + inner - inner.T)
        case _:
            inner = _grow(random, (N, P)[random.integers(2)], rows, depth - 1)
            return inner.T @ inner


def _leaf(random: np.random.Generator, rows: Dim, cols: Dim) -> Expression:
    if rows == cols:
        return SQUARES[rows][random.integers(len(SQUARES[rows]))]
    leaf = RECTANGLES[random.integers(len(RECTANGLES))]
    return leaf if rows == P else leaf.T
