"""Arbitrary weights: the scalar route, a second route in the tests, and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from naive_probe import assert_agrees, entrywise, simulate

from resolvent.equivalents import attention_errors, reduce_factors, reduce_matrix, weights_errors
from resolvent.nonlinearity import noise_covariance, nonlinearity


def matrix(factors):
    return (factors.left * factors.values) @ factors.right.T


def arguments(f, factors):
    k, tau = f.coefficients(factors.tau), factors.tau
    r = noise_covariance(f, f, factors.rho, scale_f=tau, scale_g=tau) / k.sigma2
    return {"a1": k.a1, "a2": k.a2, "sigma2": k.sigma2, "correlation": r}


OPTIONS = [
    {},
    {"skip": 0.4, "shift": 0.2},
    {"label_mean": 0.5, "a2": 0.15, "mean_spike": 0.7, "target_overlap": 0.6},
    {"label_mean": -0.5, "intercept": True, "skip": -0.3},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("ratio", "ridge"), [(0.5, 0.1), (2.0, 1e-4), (1.0, 1e-6)])
@pytest.mark.parametrize("treated_as_symmetric", [True, False])
def test_identity_weights_are_the_scalar_route(options, ratio, ridge, treated_as_symmetric):
    p = 40
    mu = np.full(p, np.sqrt(1.7 / p))
    identity = reduce_matrix(np.eye(p))
    if not treated_as_symmetric:
        identity = replace(identity, right=identity.left.copy())
    common = {"ratio": ratio, "ridge": ridge, "a1": 0.6, "sigma2": 0.05} | options
    general = weights_errors(identity, mu=mu, correlation=1.0, **common)
    norm_variance = identity.norm_gram(identity)[0, 0]
    scalar = attention_errors(gram=np.diag([1.7, 0, 0]), norm_variance=norm_variance, **common)
    assert general.converged
    assert general.train == pytest.approx(scalar.train, rel=1e-10)
    assert general.test == pytest.approx(scalar.test, rel=1e-10)


def test_rank_one_weights_on_the_identity_tend_to_the_scalar_route():
    # inside M the rank-one part also counts in the traces, which is a correction of order 1/p
    gaps = []
    for p in (60, 240):
        mu, query = np.zeros((2, p))
        mu[0], query[:2] = 1.0, (0.5, 1.0)
        M = np.eye(p) + np.outer(mu, query)
        V = np.stack([mu, mu, query])
        factors = reduce_matrix(M)
        general = weights_errors(
            factors, mu=mu, ratio=0.5, ridge=0.1, a1=0.6 * factors.tau, sigma2=0.05, correlation=1.0
        )
        scalar = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.05, gram=V @ V.T)
        gaps.append(abs(general.train - scalar.train) + abs(general.test - scalar.test))
    assert gaps[1] < 0.006
    assert gaps[1] < 0.3 * gaps[0]


def low_rank(rng, p):
    key = rng.standard_normal((64, p))
    return reduce_factors(key, 0.5 * key + rng.standard_normal((64, p)))


def antisymmetric(rng, p):
    A, B = rng.standard_normal((2, 40, p))
    return reduce_factors(np.vstack([A, B]), np.vstack([B, -A]))


def symmetric(rng, p):
    A = rng.standard_normal((p, p)) / np.sqrt(p)
    return reduce_matrix(A + A.T + 2 * np.eye(p))


@pytest.mark.parametrize(
    ("weights", "name", "ratio", "options"),
    [
        pytest.param(low_rank, "tanh", 0.5, {}, marks=pytest.mark.slow),
        (low_rank, "relu", 2.0, {"skip": 0.4}),
        (symmetric, "relu", 0.5, {"label_mean": 0.4, "target_overlap": 0.8}),
        (antisymmetric, "tanh", 2.0, {"label_mean": 0.4}),
    ],
)
def test_weights_agree_with_simulation(weights, name, ratio, options):
    rng = np.random.default_rng(3)
    p = 400 if ratio < 1 else 600
    factors = weights(rng, p).scaled(1.2)
    mu = factors.left[:, 0] + factors.right[:, 1]
    mu *= np.sqrt(1.5) / np.linalg.norm(mu)
    f = nonlinearity(name)
    predicted = weights_errors(factors, mu=mu, ratio=ratio, ridge=0.1, **arguments(f, factors), **options)
    skip = options.get("skip", 0.0)
    measured = simulate(
        [(matrix(factors), entrywise(lambda S: f.evaluate(S, scale=factors.tau)), skip)],
        mu=mu,
        n=round(p / ratio),
        ridge=0.1,
        draws=6,
        label_mean=options.get("label_mean", 0.0),
        overlap=options.get("target_overlap", 1.0),
    )
    assert_agrees(predicted, measured, slack=0.05 if weights is low_rank else 0.03)


def test_a_curve_over_ridges_is_its_points():
    factors = low_rank(np.random.default_rng(0), 200)
    common = {"mu": np.eye(200)[0], "ratio": 0.5, "a1": 1.0, "sigma2": 0.3, "correlation": 0.2}
    ridges = np.array([[0.1, 10.0], [1e-3, 1.0]])
    curve = weights_errors(factors, ridge=ridges, **common)
    assert curve.train.shape == curve.test.shape == curve.converged.shape == (2, 2)
    for index in np.ndindex(2, 2):
        point = weights_errors(factors, ridge=ridges[index], **common)
        assert curve.train[index] == pytest.approx(point.train, rel=1e-9)
        assert curve.test[index] == pytest.approx(point.test, rel=1e-9)


def test_errors_grow_from_interpolation_to_one_with_the_ridge():
    factors = low_rank(np.random.default_rng(1), 150)
    common = {"mu": np.eye(150)[0], "ratio": 0.5, "a1": 1.0, "sigma2": 0.3, "correlation": 0.2}
    curve = weights_errors(factors, ridge=np.geomspace(1e-4, 1e5, 12), **common)
    assert curve.converged.all()
    assert np.all(np.diff(curve.train) > 0)
    assert 0 < curve.train[0] < curve.train[-1] < 1
    assert curve.train[-1] == pytest.approx(1.0, abs=1e-3)
    assert curve.test[-1] == pytest.approx(1.0, abs=1e-3)


def test_factors_measure_the_matrix():
    rng = np.random.default_rng(5)
    key, query = rng.standard_normal((2, 8, 30))
    M = key.T @ query
    factors = reduce_factors(key, query)
    assert factors.rank == 8
    assert not factors.symmetric
    np.testing.assert_allclose(matrix(factors), M, atol=1e-12 * np.abs(M).max())
    assert factors.tau == pytest.approx(np.linalg.norm(M) / np.sqrt(30))
    assert factors.trace == pytest.approx(np.trace(M) / 30)
    assert factors.rho == pytest.approx(np.trace(M @ M) / np.linalg.norm(M) ** 2)
    assert factors.stable_rank == pytest.approx(np.linalg.norm(M) ** 2 / np.linalg.norm(M, 2) ** 2)
    left, right = M @ M.T, M.T @ M
    scale = 30 * factors.tau**4
    expected = [
        [np.trace(left @ left), np.trace(left @ right)],
        [np.trace(left @ right), np.trace(right @ right)],
    ]
    np.testing.assert_allclose(factors.norm_gram(factors), 2 * np.array(expected) / scale)
    excess = np.sum(np.diag(left) * np.diag(right)) / scale
    assert (factors.norm_gram(factors, kurtosis=4.5) - factors.norm_gram(factors))[0, 1] == pytest.approx(
        1.5 * excess
    )
    other = reduce_factors(query, key)
    same, turned = factors.correlation(other)
    assert turned == pytest.approx(1.0)
    assert same == pytest.approx(factors.rho)


def test_symmetric_factors_are_recognised():
    key = np.random.default_rng(6).standard_normal((5, 20))
    factors = reduce_factors(key, key)
    assert factors.symmetric
    assert factors.rank == 5
    assert factors.rho == 1.0
    np.testing.assert_allclose(matrix(factors), key.T @ key, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reduce_matrix(np.ones((2, 3))), r"square matrix, got shape \(2, 3\)"),
        (lambda: reduce_matrix([[np.nan, 0], [0, 1]]), "finite"),
        (lambda: reduce_matrix(np.zeros((3, 3))), "must not be zero"),
        (lambda: reduce_matrix(np.eye(2) * 1j), "real numbers, got complex128"),
        (lambda: reduce_factors(np.ones((2, 5)), np.ones((3, 5))), "share one shape"),
    ],
)
def test_bad_matrices_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": 0.0}, "ridge must be positive here, got 0"),
        ({"ridge": -1.0}, "ridge must be zero or positive, got -1"),
        ({"mu": np.ones(3)}, r"mu must have shape \(5,\), got \(3,\)"),
        ({"sigma2": -0.1}, "sigma2"),
        ({"correlation": 1.5}, "correlation must be between -1 and 1"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    good = {"mu": np.ones(5), "ratio": 0.5, "ridge": 0.1, "a1": 1.0, "sigma2": 0.1, "correlation": 0.0}
    with pytest.raises(ValueError, match=message):
        weights_errors(reduce_matrix(np.eye(5)), **(good | change))
