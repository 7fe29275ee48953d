"""Heads side by side and noise with a covariance: reductions to one head, and simulation."""

import numpy as np
import pytest
from naive_probe import assert_agrees, entrywise, simulate

from resolvent.equivalents import (
    attention_errors,
    covariance_linear_errors,
    heads_errors,
    linear_errors,
    reduce_factors,
    reduce_matrix,
    weighted_heads_errors,
    weights_errors,
)
from resolvent.nonlinearity import noise_covariance, nonlinearity


def covariances(functions, rho, tau):
    return np.array(
        [
            [
                noise_covariance(f, g, rho[i][j], scale_f=tau[i], scale_g=tau[j])
                for j, g in enumerate(functions)
            ]
            for i, f in enumerate(functions)
        ]
    )


def test_one_head_is_the_scalar_route():
    V = np.random.default_rng(0).standard_normal((3, 6)) * 0.4
    common = {"ratio": 0.7, "ridge": 0.02, "a1": 0.8, "a2": 0.2, "gram": V @ V.T, "skip": 0.3, "shift": -0.1}
    common |= {"mean_spike": 0.4, "label_mean": 0.3, "target_overlap": 0.8}
    one, scalar = heads_errors(noise=0.1, **common), attention_errors(sigma2=0.1, **common)
    assert one.train == pytest.approx(scalar.train, rel=1e-11)
    assert one.test == pytest.approx(scalar.test, rel=1e-11)


def test_equal_heads_are_one_head_at_half_the_ridge():
    # [H; H] w with |w|^2 shared between the two copies: the best split halves the penalty
    rng = np.random.default_rng(1)
    V = rng.standard_normal((3, 6)) * 0.4
    twice = V[[0, 1, 1, 2, 2]]
    common = {"ratio": 0.7, "a1": 0.8, "a2": 0.2, "skip": 0.3, "label_mean": 0.3}
    noise = 0.1 * np.ones((2, 2))
    two = heads_errors(ridge=0.1, noise=noise, gram=twice @ twice.T, **common)
    one = heads_errors(ridge=0.05, noise=0.1, gram=V @ V.T, **common)
    assert two.train == pytest.approx(one.train, rel=1e-10)
    assert two.test == pytest.approx(one.test, rel=1e-10)


def test_one_weighted_head_is_weights_errors():
    rng = np.random.default_rng(2)
    key, query = rng.standard_normal((2, 12, 80))
    factors = reduce_factors(key, query).scaled(1.1)
    common = {
        "mu": np.eye(80)[3],
        "ratio": 0.5,
        "ridge": 0.1,
        "a1": 0.8,
        "a2": 0.2,
        "skip": 0.2,
        "label_mean": 0.4,
    }
    one = weighted_heads_errors([factors], noise=0.3, twin=0.1, **common)
    same = weights_errors(factors, sigma2=0.3, correlation=1 / 3, **common)
    assert one.train == pytest.approx(same.train, rel=1e-12)
    assert one.test == pytest.approx(same.test, rel=1e-12)


def test_weighted_identity_heads_are_plain_heads():
    p, noise = 30, np.array([[0.3, 0.1], [0.1, 0.2]])
    identity = reduce_matrix(np.eye(p))
    common = {"ratio": 0.5, "ridge": 0.1, "a1": [0.8, -0.3], "skip": [0.2, 0.0], "noise": noise}
    weighted = weighted_heads_errors([identity] * 2, mu=np.eye(p)[0], twin=noise, **common)
    plain = heads_errors(gram=np.diag([1.0, 0, 0, 0, 0]), **common)
    assert weighted.train == pytest.approx(plain.train, rel=1e-10)
    assert weighted.test == pytest.approx(plain.test, rel=1e-10)


@pytest.mark.parametrize(
    ("names", "ratio", "label_mean"),
    [(("tanh", "cos"), 0.25, 0.5), (("tanh", "relu"), 2.0, 0.3), (("tanh", "relu", "sign"), 2.0, 0.0)],
)
def test_heads_agree_with_simulation(names, ratio, label_mean):
    H, n = len(names), 1200 if ratio < 1 else 500
    p = round(ratio * n)
    rng = np.random.default_rng(3)
    V = np.zeros((1 + 2 * H, p))
    V[:, :5] = rng.standard_normal((1 + 2 * H, 5)) * 0.4
    V[0, 0] = 1.0
    functions = [nonlinearity(name) for name in names]
    k = [f.coefficients() for f in functions]
    skip = 0.3 * np.arange(H)
    predicted = heads_errors(
        ratio=ratio,
        ridge=0.3,
        a1=[c.a1 for c in k],
        a2=[c.a2 for c in k],
        noise=covariances(functions, np.ones((H, H)), np.ones(H)),
        gram=V @ V.T,
        skip=skip,
        label_mean=label_mean,
        target_overlap=0.9,
    )
    heads = [
        (np.eye(p) + np.outer(V[1 + h], V[1 + H + h]), entrywise(functions[h]), skip[h]) for h in range(H)
    ]
    measured = simulate(heads, mu=V[0], n=n, ridge=0.3, draws=5, label_mean=label_mean, overlap=0.9)
    assert_agrees(predicted, measured)


@pytest.mark.parametrize(
    ("ratio", "label_mean"), [pytest.param(0.5, 0.4, marks=pytest.mark.slow), (2.0, 0.0)]
)
def test_weighted_heads_agree_with_simulation(ratio, label_mean):
    n = 1000 if ratio < 1 else 300
    p = round(ratio * n)
    A, B, C, D = np.random.default_rng(4).standard_normal((4, 60, p))
    weights = [reduce_factors(A, B + A / 2).scaled(1.0), reduce_factors(C + A, D + B).scaled(1.2)]
    functions, tau = [nonlinearity("tanh"), nonlinearity("relu")], [w.tau for w in weights]
    rho = np.array([[w.correlation(u) for u in weights] for w in weights])
    k = [f.coefficients(t) for f, t in zip(functions, tau, strict=True)]
    mu = 0.8 * (weights[0].left[:, 0] + weights[1].right[:, 1])
    predicted = weighted_heads_errors(
        weights,
        mu=mu,
        ratio=ratio,
        ridge=0.3,
        a1=[c.a1 for c in k],
        a2=[c.a2 for c in k],
        noise=covariances(functions, rho[..., 0], tau),
        twin=covariances(functions, rho[..., 1], tau),
        skip=[0.0, 0.3],
        label_mean=label_mean,
    )
    heads = [
        ((w.left * w.values) @ w.right.T, entrywise(lambda S, f=f, t=t: f.evaluate(S, scale=t)), skip)
        for w, f, t, skip in zip(weights, functions, tau, (0.0, 0.3), strict=True)
    ]
    measured = simulate(heads, mu=mu, n=n, ridge=0.3, draws=6, label_mean=label_mean)
    assert_agrees(predicted, measured)


LEVELS, SHARES = np.array([0.2, 1.0, 3.0]) / 1.08, np.array([0.4, 0.4, 0.2])


@pytest.mark.parametrize(
    ("ratio", "name", "label_mean"), [(0.5, "relu", 0.5), (2.0, "relu", 0.0), (2.0, "tanh", 0.5)]
)
def test_covariance_agrees_with_simulation(ratio, name, label_mean):
    n = 1000 if ratio < 1 else 400
    p = round(ratio * n)
    spread = np.sqrt(np.repeat(LEVELS, np.round(SHARES * p).astype(int)))
    V = np.random.default_rng(5).standard_normal((3, p))
    V[1], V[2] = V[1] + 0.5 * V[0], V[2] - 0.5 * V[0]
    V /= np.linalg.norm(V, axis=1)[:, None]
    f, scale = nonlinearity(name), np.sqrt(SHARES @ LEVELS**2)
    k = f.coefficients(scale)
    common = {"ratio": ratio, "ridge": 0.1, "levels": LEVELS, "shares": SHARES, "label_mean": label_mean}
    attention = heads_errors(a1=k.a1, a2=k.a2, noise=k.sigma2, gram=V @ V.T, skip=0.2, **common)
    linear = covariance_linear_errors(snr=1.0, **common)

    def run(M, attend, skip):
        def noise(rng, p, n):
            return spread[:, None] * rng.standard_normal((p, n))

        return simulate(
            [(M, attend, skip)], mu=V[0], n=n, ridge=0.1, draws=6, label_mean=label_mean, noise=noise
        )

    f_scaled = entrywise(lambda S: f.evaluate(S, scale=scale))
    assert_agrees(attention, run(np.eye(p) + np.outer(V[1], V[2]), f_scaled, 0.2))
    assert_agrees(linear, run(np.eye(p), entrywise(np.zeros_like), 1.0))


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_white_covariance_is_linear_regression(ridge):
    common = {"ratio": 1.3, "ridge": ridge, "snr": 2.0, "target_overlap": 0.7}
    white = linear_errors(**common)
    same = covariance_linear_errors(levels=[1.0, 1.0], shares=[0.3, 0.7], **common)
    assert same.train == pytest.approx(white.train, rel=1e-11)
    assert same.test == pytest.approx(white.test, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gram": np.eye(3)}, "gram must have 5 rows for 2 terms"),
        ({"a1": [1.0, 2.0, 3.0]}, r"a1 must be one number or one per head \(2\), got shape \(3,\)"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise must be positive semi-definite"),
        ({"noise": [[1.0, 0.5], [0.0, 1.0]]}, "noise must be a symmetric matrix over heads"),
        ({"levels": [1.0, 2.0], "shares": [0.5, 0.5]}, r"levels must have mean 1, got 1\.5"),
        ({"levels": [1.0], "shares": [0.5]}, r"shares must sum to 1, got 0\.5"),
        ({"levels": [-1.0, 3.0], "shares": [0.5, 0.5]}, "levels must be positive, got -1"),
        ({"ridge": 0.0}, "ridge must be positive"),
    ],
)
def test_bad_heads_are_refused(change, message):
    good = {"ratio": 0.5, "ridge": 0.1, "a1": 1.0, "noise": np.eye(2), "gram": np.eye(5)}
    with pytest.raises(ValueError, match=message):
        heads_errors(**(good | change))
