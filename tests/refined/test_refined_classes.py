"""Class tables: quadrature, moments, adaptation, tokens."""

from dataclasses import replace

import numpy as np
import pytest
from refined_simulation import probe, tokens

from resolvent.equivalents.refined import (
    Softmax,
    adapted_classes,
    gaussian_classes,
    refined_errors,
    refined_linear_errors,
    token_classes,
)
from resolvent.equivalents.refined.interpolation import pair_moments
from resolvent.equivalents.refined.spectrum import shrunk_eigenvalues, spectral_nodes
from resolvent.equivalents.refined.tables import tables
from resolvent.nonlinearity import nonlinearity

SKEWED = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])


def test_gaussian_classes_have_the_moments_of_the_tokens():
    p = 50.0
    classes = gaussian_classes(p=p, n=100, gram=SKEWED, label_mean=0.4, nodes=4, norm_nodes=3)
    w, y, P, R = classes.weight, classes.label, classes.position, classes.norm
    assert w.sum() == pytest.approx(1.0)
    assert w @ y == pytest.approx(0.4)
    mean = (w * y) @ P
    assert mean @ mean == pytest.approx(SKEWED[0, 0])
    np.testing.assert_allclose(
        np.einsum("a,ai,aj->ij", w, P, P), np.outer(mean, mean) + np.eye(3), atol=1e-12
    )
    assert w @ R**2 == pytest.approx((p - 3) / p)
    assert w @ R**4 == pytest.approx((p - 3) * (p - 1) / p**2)


def test_scores_are_those_of_the_weights():
    classes = gaussian_classes(p=50, n=100, gram=SKEWED, nodes=2, norm_nodes=1)
    w, y, P = classes.weight, classes.label, classes.position
    mu = (w * y) @ P
    value, vector = np.linalg.eigh(SKEWED)
    B = (vector * np.sqrt(value))[:, ::-1]
    np.testing.assert_allclose(B @ B.T, SKEWED, atol=1e-12)
    np.testing.assert_allclose(mu, B[0], atol=1e-12)
    expected = (P @ P.T + np.outer(P @ B[1], P @ B[2])) / np.sqrt(50)
    np.testing.assert_allclose(classes.scores(), expected, atol=1e-12)


def test_no_signal_and_no_weights_need_no_span():
    classes = gaussian_classes(p=64, n=128, gram=np.zeros((3, 3)))
    assert classes.position.shape[1] == 0
    assert refined_errors(classes, ridge=0.1, f=nonlinearity("tanh")).converged
    linear = refined_linear_errors(classes, ridge=0.1)
    assert 0.0 < linear.train < 1.0 < linear.test


@pytest.mark.parametrize("name", ["tanh", "relu", "exp(t - 1/2)", "sign", "hermite3"])
def test_interpolated_moments_are_the_exact_ones(name):
    rng, f = np.random.default_rng(1), nonlinearity(name)
    P, R = rng.normal(size=60) + 1.0, rng.uniform(0.6, 1.4, 60)
    delta, tau = np.outer(P, P) / 3.0, np.outer(R, R)
    exact = f.moments(delta, tau)
    m0, m1, second = pair_moments(f, delta, tau)
    size = np.sqrt(exact.second)
    assert np.abs((m0 - exact.m0) / size).max() < 1e-9
    assert np.abs((m1 - exact.m1) * tau / size).max() < 1e-9
    assert np.abs(second / exact.second - 1.0).max() < 1e-6


def test_the_tables_are_moments_of_the_scores():
    classes = gaussian_classes(p=50, n=100, gram=SKEWED, nodes=2, norm_nodes=2)
    f = nonlinearity("relu")
    found = tables(classes, f, 0.3, True)
    xi = (np.arange(-90000, 90000) + 0.5) / 1e4
    density = np.exp(-(xi**2) / 2) / np.sqrt(2 * np.pi) / 1e4
    delta, tau = classes.scores(), classes.spreads()
    for a, b in ((0, 5), (3, 1), (7, 7)):
        x = tau[a, b] * xi
        one, other = f(delta[a, b] + x), f(delta[b, a] + x)
        m0, m1 = density @ one, density @ (xi * one) / tau[a, b]
        rest = one - m0 - m1 * x
        back = other - density @ other - density @ (xi * other) / tau[a, b] * x
        assert found.m0[a, b] == pytest.approx(m0, abs=1e-6)
        assert found.m1[a, b] == pytest.approx(m1, abs=1e-6)
        assert found.v[a, b] == pytest.approx(density @ rest**2, abs=1e-6)
        assert found.kap[a, b] == pytest.approx(density @ (rest * back), abs=1e-6)
    R2, root = classes.norm**2, np.sqrt(50.0)
    kept = f(np.diag(delta) + root * R2) / root
    np.testing.assert_allclose(found.diagonal, 0.3 + kept - np.diag(found.m1) * R2 - np.diag(found.m0) / root)


def test_softmax_moments_at_large_n_are_those_of_the_exponential():
    classes = gaussian_classes(p=64, n=1e9, gram=SKEWED, nodes=2, norm_nodes=2)
    found, beta = tables(classes, Softmax(0.7), 0.0, False), 0.7
    power = (beta * classes.spreads()) ** 2
    mean = np.exp(beta * classes.scores() + power / 2)
    Z = classes.weight @ mean
    np.testing.assert_allclose(found.m0, mean / Z, rtol=1e-6)
    np.testing.assert_allclose(found.m1, beta * mean / Z, rtol=1e-6)
    np.testing.assert_allclose(found.v, (mean / Z) ** 2 * (np.exp(power) - 1 - power), rtol=1e-5)
    kap = mean * mean.T / np.outer(Z, Z) * (np.exp(power) - 1 - power)
    np.testing.assert_allclose(found.kap, kap, rtol=1e-5)


def test_softmax_moments_at_small_n_are_those_of_sampled_columns():
    n, beta, draws = 40, 1.0, 40000
    classes = gaussian_classes(p=64, n=n, gram=np.zeros((3, 3)), norm_nodes=1)
    found, tau = tables(classes, Softmax(beta), 0.0, False), classes.spreads()[0, 0]
    xi = np.random.default_rng(2).normal(size=(draws, n - 1))
    weights = np.exp(beta * tau * xi)
    f = n * weights[:, 0] / weights.sum(axis=1)
    for value, sample in (
        (found.m0, f),
        (found.m1, xi[:, 0] * f / tau),
        (found.v + found.m0**2 + (found.m1 * tau) ** 2, f**2),
    ):
        assert abs(value[0, 0] - sample.mean()) < 4.0 * sample.std() / np.sqrt(draws)


@pytest.mark.parametrize(
    ("name", "p", "gram"),
    [
        ("tanh", 64, 2.0 * np.outer([1, 1.5, -1], [1, 1.5, -1])),
        ("hermite3", 128, 2.0 * np.ones((3, 3))),
        ("relu", 40, np.diag([1.0, 0.0, 0.5])),
    ],
)
def test_adapted_classes_have_nodes_enough(name, p, gram):
    f = nonlinearity(name)
    classes, change = adapted_classes(p=p, n=2 * p, gram=gram, label_mean=0.3, ridge=[0.01, 1.0], f=f)
    assert change <= 1e-3
    nodes = 7 if np.count_nonzero(np.diag(gram)) == 2 else 40
    finer = gaussian_classes(p=p, n=2 * p, gram=gram, label_mean=0.3, nodes=nodes, norm_nodes=3)
    for ridge in (0.01, 0.1, 1.0):
        one, other = (refined_errors(c, ridge=ridge, f=f) for c in (classes, finer))
        assert one.train == pytest.approx(other.train, rel=2e-3)
        assert one.test == pytest.approx(other.test, rel=2e-3)


def test_spectral_nodes_keep_moments():
    values = np.random.default_rng(3).gamma(2.0, size=300)
    values /= values.mean()
    nodes, shares = spectral_nodes(values)
    for power in range(1, 12):
        assert shares @ nodes**power == pytest.approx((values**power).mean(), rel=1e-8)
    np.testing.assert_allclose(spectral_nodes(np.full(7, 3.0)), ([1.0], [1.0]))


def test_shrunk_eigenvalues_have_the_second_moment_of_the_truth():
    rng, p, n = np.random.default_rng(4), 120, 300
    truth = np.linspace(0.2, 3.0, p)
    sample = np.sqrt(truth)[:, None] * rng.normal(size=(p, n))
    raw, shrunk = np.linalg.eigvalsh(sample @ sample.T / n), shrunk_eigenvalues(sample)
    assert (raw**2).mean() > 1.2 * (truth**2).mean()
    assert (shrunk**2).mean() == pytest.approx((truth**2).mean(), rel=0.05)


def token_gaps(spread, draws=3, gaussian=True):
    """Mean and standard error of predicted/measured - 1 for noise eigenvalues from 1 - spread to 1 + spread.

    Of attention, of linear regression, and of the latter without the discriminant direction.
    """
    rng, p, n, f = np.random.default_rng(5), 48, 480, nonlinearity("tanh")
    root = np.diag(np.sqrt(np.linspace(1.0 - spread, 1.0 + spread, p)))
    mu = np.where(np.arange(p) % 2, 1.0, 0.4)
    mu *= 1.2 / np.linalg.norm(mu)
    key = 1.5 * mu
    gaps = []
    for _ in range(draws):
        X, y = tokens(rng, p, n, mu, 0.2, root)
        K = f((X.T @ X + np.outer(X.T @ key, key @ X)) / np.sqrt(p)) / np.sqrt(p)
        np.fill_diagonal(K, 0.0)
        H = X @ K
        linear = probe(X, X, y, y, 0.1)[0]
        classes = token_classes(X, y, key=key, query=key, quantiles=(3, 2, 2, 2), gaussian=gaussian)
        plain = token_classes(X, y, discriminant=False, gaussian=True)
        gaps.append(
            [
                refined_errors(classes, ridge=0.1, f=f).train / probe(H, H, y, y, 0.1)[0],
                refined_linear_errors(classes, ridge=0.1).train / linear,
                refined_linear_errors(plain, ridge=0.1).train / linear,
            ]
        )
    return np.mean(gaps, axis=0) - 1.0, np.std(gaps, axis=0, ddof=1) / np.sqrt(draws)


def test_tokens_are_predicted():
    gap, error = token_gaps(spread=0.4, gaussian=False)
    assert (np.abs(gap[:2]) <= 4.0 * error[:2] + 0.03).all(), (gap, error)


def test_the_discriminant_direction_recovers_most_of_the_signal_in_coloured_noise():
    gap, _ = token_gaps(spread=0.7)
    assert gap[2] > 0.1
    assert abs(gap[1]) < 0.5 * gap[2]


def test_weights_fitted_to_the_tokens_do_less_for_fresh_ones():
    rng = np.random.default_rng(8)
    X, y = tokens(rng, 60, 240, np.full(60, 0.15), 0.0)
    mu = 0.5 * (X[:, y > 0].mean(axis=1) - X[:, y < 0].mean(axis=1))
    X -= 0.5 * (X[:, y > 0].mean(axis=1) + X[:, y < 0].mean(axis=1))[:, None]
    classes = token_classes(X, y, key=mu, query=mu, quantiles=(5, 2, 2))
    read, fresh = classes.right[:, -1], classes.fresh[:, -1]
    assert (classes.weight * classes.label) @ read == pytest.approx(mu @ mu, rel=1e-9)
    bias = np.var(X - np.outer(mu, y)) * 60 * (1.0 / np.sum(y > 0) + 1.0 / np.sum(y < 0)) / 4.0
    mean = (classes.weight * classes.label) @ fresh
    assert mean**2 == pytest.approx(mu @ mu * (mu @ mu - bias), rel=0.01)
    f = nonlinearity("tanh")
    seen, unseen = (refined_errors(c, ridge=0.1, f=f) for c in (replace(classes, fresh=None), classes))
    assert unseen.train == seen.train
    assert unseen.test > seen.test


def test_token_classes_keep_what_they_average():
    rng = np.random.default_rng(6)
    X, y = tokens(rng, 30, 400, np.full(30, 0.3), 0.5)
    classes = token_classes(X, y)
    assert (classes.weight > 0.0).all()
    assert classes.weight @ classes.label == pytest.approx(y.mean())
    mu = 0.5 * (X[:, y > 0].mean(axis=1) - X[:, y < 0].mean(axis=1))
    plus, minus = (
        np.average(classes.position[classes.label == s, 0], weights=classes.weight[classes.label == s])
        for s in (1, -1)
    )
    assert (plus - minus) / 2 < np.linalg.norm(mu)
    assert ((plus - minus) / 2) ** 2 == pytest.approx(30 * 0.09, rel=0.1)


def test_refuses_what_is_out_of_range():
    classes = gaussian_classes(p=64, n=128, gram=np.ones((3, 3)))
    for field, value, message in (
        ("weight", classes.weight * 0.5, "weight must sum to 1, got 0.5"),
        ("norm", -classes.norm, "norm must be positive in every entry"),
        ("label", 2.0 * classes.label, "label must be between -1 and 1 in every entry"),
        ("left", classes.left[:-1], r"left must have shape \(42, 2\), got \(41, 2\)"),
        ("eigenvalues", np.array([2.0]), "eigenvalues must have mean 1, got 2"),
        ("p", 1.0, "p must be above the dimension 1 of the span, got 1"),
        ("n", 0.0, "n must be positive, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(classes, **{field: value})
    with pytest.raises(ValueError, match=r"gram must have shape \(3, 3\)"):
        gaussian_classes(p=64, n=128, gram=np.ones((2, 3, 3)))
    with pytest.raises(ValueError, match="label_mean must be between -1 and 1, got 1"):
        gaussian_classes(p=64, n=128, gram=np.ones((3, 3)), label_mean=1.0)
    with pytest.raises(ValueError, match="nodes and norm_nodes must be at least 1"):
        gaussian_classes(p=64, n=128, gram=np.ones((3, 3)), nodes=0)
    X, y = np.zeros((3, 4)), np.array([1.0, 1.0, -1.0, -1.0])
    with pytest.raises(ValueError, match="labels must be \\+1 or -1, got 0"):
        token_classes(X, 0.0 * y)
    with pytest.raises(ValueError, match="each label must be on at least two tokens"):
        token_classes(X, np.abs(y))
    with pytest.raises(ValueError, match=r"key must have shape \(3,\), got \(2,\)"):
        token_classes(X, y, key=[1.0, 2.0])
    with pytest.raises(ValueError, match="ridge must be positive, got 0"):
        refined_linear_errors(classes, ridge=0.0)
