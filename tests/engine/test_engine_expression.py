import pytest

from resolvent.engine import Diagonal, Dim, Elliptic, Gaussian, Given, Symbol, Wigner, eye, inv, sqrt, vectors
from resolvent.engine.expression import transpose_invariant

N, P = Dim("n"), Dim("p")
Z, W = Gaussian("Z", P, N), Wigner("W", N, 1 / N)


def test_mismatches_are_caught_when_written_and_name_both_shapes():
    with pytest.raises(ValueError, match="cannot add p x n and n x n"):
        _ = Z + W
    with pytest.raises(ValueError, match="cannot multiply p x n by p x n"):
        _ = Z @ Z
    with pytest.raises(ValueError, match="only square matrices have an inverse, got p x n"):
        inv(Z)
    (y,) = vectors("y", N, 1.0)
    (mu,) = vectors("mu", P, 1.0)
    with pytest.raises(ValueError, match="cannot add p x n and n x p"):
        _ = Z + y @ mu.T


def test_scalars_and_matrices_are_not_mixed():
    with pytest.raises(TypeError, match=r"scalar \* eye\(n\)"):
        _ = W + 1.0
    with pytest.raises(TypeError, match="use @ for the matrix product of p x n and n x n"):
        _ = Z * W
    with pytest.raises(TypeError):
        _ = Symbol("a") + W


def test_transposes_reach_the_leaves():
    assert (Z @ W).T == W @ Z.T
    assert Z.T.T == Z
    assert W.T == W
    assert inv(eye(N) + Z.T @ Z / N) == inv(eye(N) + Z.T @ Z / N).T


@pytest.mark.parametrize(
    ("expression", "symmetric"),
    [
        (Z.T @ Z, True),
        (W @ Z.T @ Z + Z.T @ Z @ W, True),
        (W @ Z.T @ Z, False),
        (Elliptic("E", N, 0.5), False),
        (Elliptic("E", N, 1.0), True),
    ],
    ids=str,
)
def test_symmetry_is_seen_in_what_is_written(expression, symmetric):
    assert transpose_invariant(expression) == symmetric


def test_sums_collect_and_products_pull_out_scalars():
    assert Z + Z == 2 * Z
    assert (2 * Z).T @ (3 * Z) == 6 * (Z.T @ Z)
    assert eye(P) @ Z == Z
    assert inv(2 * W) == inv(W) / 2
    assert inv(inv(W)) == W


def test_terms_that_grow_differently_are_refused():
    with pytest.raises(ValueError, match="must grow alike with the dimensions"):
        _ = (eye(N) + Z.T @ Z).degree
    assert (eye(N) + Z.T @ Z / P + Z.T @ Z / sqrt(N * P)).degree == 0


def test_bad_letters_are_refused():
    with pytest.raises(ValueError, match="variance must be positive, got -1"):
        Gaussian("Z", P, N, -1.0)
    with pytest.raises(ValueError, match="correlation must be between -1 and 1, got 2"):
        Elliptic("E", N, 2)
    with pytest.raises(TypeError, match="must be a Dim"):
        Gaussian("Z", "p", N)
    with pytest.raises(ValueError, match="2 non-negative numbers that sum to one"):
        Diagonal("D", N, [1.0, 2.0], [0.5, 0.6])
    with pytest.raises(ValueError, match="must be symmetric, A is not"):
        Given("A", N, N, [[0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="3 different vectors need a 3 x 3 Gram matrix"):
        vectors("a b c", N, [[1.0]])
    with pytest.raises(ValueError, match="Gram matrix of a, b must be symmetric"):
        vectors("a b", N, [[1.0, 0.5], [0.4, 1.0]])
