"""The inverse of a pencil holds its expression exactly: checked at small random matrices."""

import numpy as np
import pytest
from random_models import N, random_model
from random_models import P as DIM_P

from resolvent.engine import Dim, Gaussian, Symbol, Wigner, equivalent, eye, inv, vectors
from resolvent.engine.expression import Identity, Inverse, Product, Sum, transpose_invariant
from resolvent.engine.linearise import linearise
from resolvent.engine.minimal import Letters, _columns, minimise
from resolvent.engine.pencil import pencil


def evaluate(expression, letters):
    """The expression itself at the matrices of `letters`."""
    match expression:
        case Sum():
            shape = letters.sizes[expression.rows], letters.sizes[expression.cols]
            parts = (float(v(letters.numbers)) * evaluate(term, letters) for term, v in expression.terms)
            return sum(parts, np.zeros(shape))
        case Product():
            return np.linalg.multi_dot([evaluate(factor, letters) for factor in expression.factors])
        case Inverse():
            return np.linalg.inv(evaluate(expression.argument, letters))
    return letters(expression)


def read_block(system, read, letters):
    columns = _columns(system, read, letters)[read[0]]
    start = sum(letters.sizes[system.rows[k]] for k in sorted(set(read)) if k < read[1])
    return columns[:, start : start + letters.sizes[system.rows[read[1]]]]


@pytest.mark.parametrize("seed", range(40))
def test_read_block_of_the_inverse_is_the_expression(seed):
    expression = random_model(np.random.default_rng(seed))
    system, read = linearise(expression)
    reduced = minimise(system, read)
    letters = Letters(system, 7)
    letters.sizes = {dim: 9 if dim == N else 8 for dim in (N, DIM_P)}
    letters.numbers |= {"n": 1.0, "p": 0.9}
    exact = evaluate(expression, letters)
    scale = np.abs(exact).max()
    assert read_block(system, read, letters) == pytest.approx(exact, abs=1e-7 * scale)
    assert read_block(reduced, read, letters) == pytest.approx(exact, abs=1e-7 * scale)


@pytest.mark.parametrize("seed", range(40))
def test_pencils_are_symmetric_and_minimal(seed):
    symbolic = pencil(random_model(np.random.default_rng(seed)))
    entries = {at: dict(block) for at, block in symbolic.entries}
    for (i, j), block in entries.items():
        assert {leaf.T: value for leaf, value in block.items()} == entries[j, i]
    system, read = linearise(random_model(np.random.default_rng(seed)))
    reduced = minimise(system, read)
    letters = Letters(reduced, 11)
    columns = _columns(reduced, read, letters)
    for dim in set(reduced.rows):
        flat = np.array(
            [c.ravel() / np.linalg.norm(c) for c, d in zip(columns, reduced.rows, strict=True) if d == dim]
        )
        assert np.linalg.matrix_rank(flat, tol=1e-8) == len(flat)


def test_sizes_of_known_pencils():
    n, p, gamma = Dim("n"), Dim("p"), Symbol("gamma")
    Z, W = Gaussian("Z", p, n), Wigner("W", n, 1 / n)
    assert len(pencil(inv(gamma * eye(n) + W))) == 1
    assert len(pencil(inv(gamma * eye(n) + Z.T @ Z / n))) == 2
    # a square written out in full is found to be one
    S = Gaussian("S", p, n, 1 / n)
    G = S.T @ S
    assert len(pencil(inv(eye(n) + W @ W + W @ G + G @ W + G @ G))) == len(
        pencil(inv(eye(n) + (W + G) @ (W + G)))
    )


def test_vanishing_coefficients_are_no_exception():
    n, p, a = Dim("n"), Dim("p"), Symbol("a")
    Z = Gaussian("Z", p, n)
    eq = equivalent(inv(2 * eye(n) + a * (Z.T @ Z) / n), {p / n: 0.5})
    found = eq.trace(a=[0.0, 1e-9, 1.0])
    assert found.converged.all()
    assert found.value[0] == pytest.approx(0.5, rel=1e-12)
    assert float(eq.derivative("a", a=0.0)) == pytest.approx(-0.25 * 0.5, rel=1e-12)


def test_latex_shows_the_equations():
    n, p, gamma = Dim("n"), Dim("p"), Symbol("gamma")
    Z, (y,), (mu,) = Gaussian("Z", p, n), vectors("y", n, n), vectors("mu", p, 1.0)
    X = Z + mu @ y.T
    text = equivalent(inv(gamma * eye(n) + X.T @ X / n), {p / n: 0.5}).pencil.latex
    assert r"\gamma I_{n} & Z^\top + y \mu^\top" in text.replace("  ", " ") or r"y \mu^\top" in text
    assert r"\eta(T)_{11} &= p T_{22}" in text
    assert r"\eta(T)_{22} &= n T_{11}" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


def test_identity_is_a_leaf():
    assert transpose_invariant(Identity(Dim("n")))
