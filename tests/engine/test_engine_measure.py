import numpy as np
import pytest

from resolvent.engine import (
    Diagonal,
    Dim,
    Elliptic,
    Gaussian,
    Given,
    Symbol,
    Wigner,
    equivalent,
    eye,
    inv,
    vectors,
)
from resolvent.engine.measure import Sample

N, P = Dim("n"), Dim("p")
GAMMA = Symbol("gamma")
Z = Gaussian("Z", P, N)


def test_the_seed_decides():
    eq = equivalent(inv(GAMMA * eye(N) + Z.T @ Z / N), {P / N: 0.5})
    first, again, other = (eq.measure(40, 3, seed, gamma=0.1) for seed in (1, 1, 2))
    assert first.mean == again.mean
    assert first.mean != other.mean
    assert first.draws == 3
    assert first.z == pytest.approx((first.mean - float(first.predicted)) / first.se)
    assert "measured" in str(first)
    assert "limit" in str(first)


def test_samples_have_the_moments_of_their_letters():
    random = np.random.default_rng(0)
    sample = Sample({"n": 600, "p": 300}, random, {"n": 600, "p": 300})
    w, e = sample(Wigner("W", N, 1 / N)), sample(Elliptic("E", N, -0.4, 1 / N))
    off = ~np.eye(600, dtype=bool)
    assert (w == w.T).all()
    assert 600 * np.mean(w[off] ** 2) == pytest.approx(1, abs=0.02)
    assert 600 * np.mean(e[off] ** 2) == pytest.approx(1, abs=0.02)
    assert 600 * np.mean((e * e.T)[off]) == pytest.approx(-0.4, abs=0.02)
    assert sample(Z) is sample(Z)
    assert (sample(Z.T) == sample(Z).T).all()
    diagonal = np.diag(sample(Diagonal("D", N, [1.0, 2.0], [0.25, 0.75])))
    assert np.mean(diagonal == 2.0) == pytest.approx(0.75)
    given = sample(Given("A", N, N, [[1.0, 0.5], [0.5, 1.0]]))
    assert np.linalg.eigvalsh(given) == pytest.approx(np.repeat([0.5, 1.5], 300))


def test_vectors_have_their_gram_matrix_exactly():
    u, v = vectors("u v", N, [[N, 0.5 * N], [0.5 * N, 2 * N]])
    (w,) = vectors("w", N, 1.0)
    sample = Sample({"n": 50}, np.random.default_rng(0), {"n": 50})
    for vector in (u, v, w):
        sample.families.setdefault(vector.dim, {})[vector.family] = vector
    columns = np.stack([sample.vector(x) for x in (u, v, w)])
    assert columns @ columns.T == pytest.approx(np.array([[50, 25, 0], [25, 100, 0], [0, 0, 1.0]]), abs=1e-10)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="draws at least 2, got 10 and 1"):
        equivalent(Wigner("W", N, 1 / N)).measure(10, 1)
    eq = equivalent(Given("A", N, N, np.eye(3)) @ Wigner("W", N, 1 / N))
    with pytest.raises(ValueError, match="A is 3 x 3: it needs multiples of these sizes, got 10 x 10"):
        eq.measure(10, 2)
