import numpy as np
import pytest

from resolvent.engine import Diagonal, Dim, Gaussian, Symbol, Wigner, equivalent, eye, inv, symbols

N, P = Dim("n"), Dim("p")
GAMMA = Symbol("gamma")
Z = Gaussian("Z", P, N)


def test_density_of_a_resolvent_is_that_of_what_is_inverted():
    eq = equivalent(inv(GAMMA * eye(N) + Z.T @ Z / N), {P / N: 2.0})
    plain = equivalent(Z.T @ Z / N, {P / N: 2.0})
    x = np.linspace(0.3, 5, 9)
    assert eq.density(x).value == pytest.approx(plain.density(x).value, rel=1e-10)
    # with a value for gamma it is the law of 1/(gamma + x)
    q = 1 / (0.5 + x)
    assert eq.density(q, gamma=0.5).value == pytest.approx(plain.density(x).value / q**2, rel=1e-9)


def test_two_bulks_and_their_edges():
    """D + W/5 with D = 1, 3, 7 has three bulks, their edges where w + s2 E 1/(w - D) is flat (Biane 1997)."""
    values, weights, s2 = np.array([1.0, 3.0, 7.0]), np.array([0.25, 0.25, 0.5]), 0.04
    eq = equivalent(Diagonal("D", N, values, weights) + 0.2 * Wigner("W", N, 1 / N))
    found = eq.spectrum()
    polynomial = np.poly1d(values, r=True) ** 2
    slope = polynomial - s2 * sum(
        p * np.poly1d(np.delete(values, k), r=True) ** 2 for k, p in enumerate(weights)
    )
    w = np.sort(slope.roots[np.abs(slope.roots.imag) < 1e-9].real)
    edges = w + s2 * np.sum(weights / (w[:, None] - values), axis=1)
    assert found.edges == pytest.approx(np.sort(edges).reshape(-1, 2), abs=1e-7)
    assert found.mass == pytest.approx(1, abs=1e-5)
    assert "bulk [" in str(found)


def test_atoms_away_from_zero():
    found = equivalent(Diagonal("D", N, [-1.0, 2.0], [0.3, 0.7])).spectrum()
    assert list(found.atoms) == pytest.approx([-1.0, 2.0], abs=1e-9)
    assert list(found.atoms.values()) == pytest.approx([0.3, 0.7], abs=1e-6)
    assert len(found.edges) == 0
    assert found.mass == pytest.approx(1, abs=1e-6)


def test_hard_edge():
    Y = Gaussian("Y", N, N, 1 / N)
    eq = equivalent(Y.T @ Y)
    x = np.array([1e-10, 1e-3, 1.0, 3.9])
    assert eq.density(x).value == pytest.approx(np.sqrt((4 - x) / x) / (2 * np.pi), rel=1e-7)


def test_kernel_law_with_two_bulks():
    """The nearly separated bulks of a kernel with little noise: masses 1 - c and c."""
    a1, sigma = symbols("a1 sigma")
    K = a1 * (Z.T @ Z / P - eye(N)) + sigma * Wigner("W", N, 1 / P)
    found = equivalent(K, {P / N: 0.25}).spectrum(a1=0.5, sigma=0.02)
    assert len(found.edges) == 2
    assert found.edges[0] == pytest.approx([-0.5695, -0.4310], abs=1e-3)
    assert found.mass == pytest.approx(1, abs=1e-4)


def test_density_of_samples():
    """Histogram of a sum of a Wishart and a Wigner matrix at n = 800."""
    random = np.random.default_rng(0)
    n = 800
    z, w = random.standard_normal((n // 2, n)), random.standard_normal((n, n))
    sample = np.linalg.eigvalsh(z.T @ z / n + 0.5 * (w + w.T) / np.sqrt(2 * n))
    eq = equivalent(Z.T @ Z / N + 0.5 * Wigner("W", N, 1 / N), {P / N: 0.5})
    edges = np.linspace(-1.5, 3.5, 26)
    nodes = (edges[:-1, None] + 0.2 * (np.arange(16) + 0.5) / 16).ravel()
    mass = eq.density(nodes).value.reshape(-1, 16).mean(axis=1) * 0.2
    count, _ = np.histogram(sample, edges)
    assert np.abs(count / n - mass).max() < 6 / n


def test_only_symmetric_expressions_and_single_values():
    with pytest.raises(ValueError, match="symmetric as written"):
        equivalent(Gaussian("Y", N, N, 1 / N)).density([0.0])
    with pytest.raises(ValueError, match="single values, got an array for gamma"):
        equivalent(GAMMA * eye(N) + Wigner("W", N, 1 / N)).spectrum(gamma=[1.0, 2.0])
