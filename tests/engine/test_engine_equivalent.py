import numpy as np
import pytest

from resolvent.engine import (
    ConvergenceError,
    Diagonal,
    Dim,
    Gaussian,
    Given,
    Symbol,
    Value,
    Wigner,
    entrywise,
    equivalent,
    eye,
    inv,
    sqrt,
    symbols,
    vectors,
)

N, P = Dim("n"), Dim("p")
GAMMA, C = symbols("gamma c")
Z = Gaussian("Z", P, N)


def ridge(ratio=0.5):
    return equivalent(inv(GAMMA * eye(N) + Z.T @ Z / N), {P / N: ratio})


def test_a_value_is_a_float_with_its_certificate():
    found = ridge().trace(gamma=0.1)
    assert isinstance(found, Value)
    assert float(found) == pytest.approx(5.741657386773941, rel=1e-13)
    assert found.converged
    assert found.residual < 1e-12
    assert "converged, residual" in str(found)
    assert str(ridge()) == "equivalent of inv(gamma I_n + n^-1 Z.T Z) (n = 1, p = 0.5; 2 blocks)"


def test_parameters_broadcast():
    eq = ridge(C)
    found = eq.trace(gamma=np.array([[0.1], [1.0]]), c=np.array([0.5, 1.0, 2.0]))
    assert found.value.shape == found.residual.shape == found.converged.shape == (2, 3)
    single = [[float(eq.trace(gamma=g, c=c)) for c in (0.5, 1.0, 2.0)] for g in (0.1, 1.0)]
    assert found.value == pytest.approx(np.array(single), rel=1e-12)
    assert np.asarray(found).shape == (2, 3)
    with pytest.raises(TypeError, match=r"only a single value can be a float, got shape \(2, 3\)"):
        float(found)


def test_what_has_no_limit_is_reported_not_returned():
    eq = equivalent(inv(Symbol("z") * eye(N) + Wigner("W", N, 1 / N)))
    found = eq.trace(z=np.array([1.0, 3.0]))
    assert list(found.converged) == [False, True]
    assert np.isnan(found.value[0])
    with pytest.raises(ConvergenceError, match="no certified value"):
        float(eq.trace(z=1.0))
    assert "1 not converged" in str(found)


@pytest.mark.parametrize("symbol", ["gamma", "c", "a", "snr"])
def test_derivatives_of_traces_and_forms(symbol):
    """Exact in every kind of symbol: ridge, ratio, coefficient, Gram entry; differences only check it."""
    a, snr = symbols("a snr")
    (y, one), (mu,) = vectors("y one", N, [[N, 0.3 * N], [0.3 * N, N]]), vectors("mu", P, snr)
    D = Diagonal("D", P, [0.5, 2.0])
    X = mu @ y.T + Z + 0.4 * (mu @ one.T)
    K = a * (X.T @ D @ X / P - eye(N)) + Wigner("W", N, 0.1 / N)
    eq = equivalent(inv(GAMMA * eye(N) + K.T @ X.T @ X @ K / N), {P / N: C})
    at, step = {"gamma": 0.3, "c": 0.7, "a": 0.8, "snr": 1.5}, 1e-5
    up, down = ({**at, symbol: at[symbol] + s} for s in (step, -step))
    trace = (float(eq.trace(**up)) - float(eq.trace(**down))) / (2 * step)
    form = (float(eq.quadratic(y, one, **up)) - float(eq.quadratic(y, one, **down))) / (2 * step)
    assert float(eq.derivative(symbol, **at)) == pytest.approx(trace, rel=1e-6, abs=1e-8)
    assert float(eq.derivative(symbol, y, one, **at)) == pytest.approx(form, rel=1e-6, abs=1e-8)


def test_two_points():
    eq = ridge()
    q, other = float(eq.trace(gamma=0.1)), float(eq.trace(gamma=0.4))
    found = eq.two_point({"gamma": 0.1}, {"gamma": 0.4})
    assert float(found) == pytest.approx((q - other) / 0.3, rel=1e-12)
    product = equivalent(inv(0.1 * eye(N) + Z.T @ Z / N) @ inv(0.4 * eye(N) + Z.T @ Z / N), {P / N: 0.5})
    assert float(product.trace()) == pytest.approx(float(found), rel=1e-10)
    with pytest.raises(ValueError, match="same random part"):
        ridge(C).two_point({"gamma": 0.1, "c": 0.5}, {"gamma": 0.1, "c": 0.6})
    with pytest.raises(ValueError, match="symmetric inverse"):
        equivalent(Z.T @ Z / N, {P / N: 0.5}).two_point({}, {})


def test_complex_parameters_give_the_stieltjes_transform():
    z = 1.0 + 0.3j
    low, high = (1 - 0.5**0.5) ** 2, (1 + 0.5**0.5) ** 2
    exact = (0.5 - 1 - z + np.sqrt(z - low) * np.sqrt(z - high)) / (2 * z)
    found = ridge().trace(gamma=np.array([-z, -np.conj(z)]))
    assert found.value == pytest.approx([exact, np.conj(exact)], rel=1e-11)


def test_blocks_of_the_pencil():
    eq = ridge()
    m = float(eq.trace(gamma=0.1))
    assert float(eq.block(0, 0, gamma=0.1)) == m
    assert float(eq.block(1, 1, gamma=0.1)) == pytest.approx(-1 / (1 + m), rel=1e-12)
    assert float(eq.block(0, 1, gamma=0.1)) == 0.0
    with pytest.raises(ValueError, match=r"numbered 0 to 1, got \(0, 2\)"):
        eq.block(0, 2, gamma=0.1)


def test_forms_between_different_dimensions():
    """mu'X Q y for a spiked X: the coefficient vector's overlap with the signal."""
    (y,), (mu,) = vectors("y", N, N), vectors("mu", P, 2.0)
    X = Z + mu @ y.T
    eq = equivalent(X @ inv(GAMMA * eye(N) + X.T @ X / N) / sqrt(N), {P / N: 0.5})
    found = eq.measure(400, 12, 0, (mu, y), gamma=0.3)
    assert abs(found.z) < 4, str(found)
    with pytest.raises(ValueError, match="only a square expression has a trace, got p x n"):
        eq.trace(gamma=0.3)
    with pytest.raises(ValueError, match="y lives in n, this side of the expression in p"):
        eq.quadratic(y, y, gamma=0.3)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="values are needed for gamma, got none"):
        ridge().trace()
    with pytest.raises(ValueError, match="values are needed for gamma, got gamma, tau"):
        ridge().trace(gamma=0.1, tau=1)
    with pytest.raises(ValueError, match="gamma must be finite numbers"):
        ridge().trace(gamma=np.nan)
    with pytest.raises(ValueError, match="got none for p"):
        equivalent(Z.T @ Z / N)
    with pytest.raises(ValueError, match="p names a symbol and a dimension"):
        equivalent(Symbol("p") * (Z.T @ Z) / N, {P / N: 0.5})
    with pytest.raises(ValueError, match="must be positive, got -1"):
        equivalent(Z.T @ Z / N, {P / N: -1})
    with pytest.raises(ValueError, match="one dimension over another"):
        equivalent(Z.T @ Z / N, {P * N: 1})
    with pytest.raises(ValueError, match=r"must stay bounded, it grows like n\^1"):
        equivalent(Z.T @ Z, {P / N: 0.5})
    with pytest.raises(ValueError, match="must be in one of gamma, got tau"):
        ridge().derivative("tau", gamma=0.1)
    with pytest.raises(ValueError, match="gamma must not be zero"):
        equivalent(Z.T @ Z / N / GAMMA, {P / N: 0.5}).trace(gamma=0.0)
    with pytest.raises(ValueError, match="two different matrices are named Z"):
        equivalent(Z.T @ Z / N + Wigner("Z", N, 1 / N), {P / N: 0.5}).trace()
    with pytest.raises(ValueError, match=r"its dimensions must have that ratio, got 2"):
        equivalent(Given("A", P, N, np.ones((2, 3))).T @ Z / sqrt(N), {P / N: 0.5})
    A, B = (Given(name, N, N, np.array(m)) for name, m in (("A", [[1, 0], [0, 2]]), ("B", [[0, 1], [1, 0]])))
    with pytest.raises(ValueError, match=r"must commute: [AB], [AB] do not"):
        equivalent(inv(GAMMA * eye(N) + A @ A + B @ B)).trace(gamma=1.0)


def test_entrywise_accepts_only_what_its_theorem_covers():
    with pytest.raises(ValueError, match="must be centred"):
        entrywise(lambda x: np.maximum(x, 0), Z.T @ Z / sqrt(P))
    with pytest.raises(ValueError, match="variance is a number, got"):
        entrywise(np.tanh, Z.T @ Z / P)
    with pytest.raises(ValueError, match="entrywise needs scores"):
        entrywise(np.tanh, Wigner("W", N, 1 / N))
    with pytest.raises(ValueError, match="one matrix plus low rank"):
        entrywise(np.tanh, (Z + Gaussian("Y", P, N)).T @ Z / sqrt(P))


def test_different_functions_of_the_same_scores_have_correlated_noise():
    """h3 and h3 + h4 share h3: their noises have covariance 1, variances 1 and 2."""

    def h3(x):
        return (x**3 - 3 * x) / np.sqrt(6)

    def h34(x):
        return h3(x) + (x**4 - 6 * x**2 + 3) / np.sqrt(24)

    scores = Z.T @ Z / sqrt(P)
    product = equivalent(entrywise(h3, scores) @ entrywise(h34, scores) / P, {P / N: 0.5})
    assert float(product.trace()) == pytest.approx(2.0, rel=1e-9)
    # twice the scores, and minus the scores, are the same noise through other functions
    double, minus = (
        entrywise(f, s * scores) for f, s in ((lambda x: h34(x / 2), 2), (lambda x: h34(-x), -1))
    )
    for other in (double, minus):
        mixed = equivalent(entrywise(h3, scores) @ other / P, {P / N: 0.5})
        assert float(mixed.trace()) == pytest.approx(2.0, rel=1e-9)
    square = equivalent(entrywise(h34, scores) @ entrywise(h34, scores) / P, {P / N: 0.5})
    assert float(square.trace()) == pytest.approx(4.0, rel=1e-9)


def test_transposed_features_are_the_same_features():
    X, theta = Gaussian("X", N, P), Gaussian("theta", N, P)
    forth, back = entrywise(np.sign, X @ theta.T / sqrt(P)), entrywise(np.sign, theta @ X.T / sqrt(P))
    product = equivalent(forth @ back / N, {P / N: 0.5})
    assert float(product.trace()) == pytest.approx(1.0, rel=1e-9)
    assert float(equivalent(forth @ forth.T / N, {P / N: 0.5}).trace()) == pytest.approx(1.0, rel=1e-9)
