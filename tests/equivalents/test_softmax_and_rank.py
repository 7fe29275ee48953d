"""Softmax's intercept, and several rank-one terms on top of the identity."""

import numpy as np
import pytest
from naive_probe import assert_agrees, entrywise, simulate, softmax

from resolvent.equivalents import attention_errors, heads_errors, softmax_coefficients
from resolvent.nonlinearity import nonlinearity


def gram_of(*vectors):
    V = np.stack(vectors)
    return V @ V.T


def softmax_errors(beta, **arguments):
    k = softmax_coefficients(beta)
    return attention_errors(a1=k.a1, sigma2=k.sigma2, intercept=True, **arguments)


def test_softmax_known_value():
    e = softmax_errors(1.0, ratio=0.5, ridge=0.1, gram=np.ones((3, 3)))
    assert e.train == pytest.approx(0.2705, abs=5e-5)


@pytest.mark.parametrize("label_mean", [-0.6, 0.3])
def test_intercept_is_a_mean_spike_of_infinite_strength(label_mean):
    gram = gram_of([1.0, 0.3], [0.5, 1.0], [-0.2, 0.8])
    common = {"ratio": 0.7, "ridge": 0.05, "a1": 0.9, "sigma2": 0.3, "gram": gram, "skip": 0.2}
    limit = attention_errors(label_mean=label_mean, intercept=True, a2=0.4, mean_spike=3.0, **common)
    near = attention_errors(label_mean=label_mean, mean_spike=1e8, **common)
    assert limit.train == pytest.approx(near.train, rel=1e-7)
    assert limit.test == pytest.approx(near.test, rel=1e-7)


def test_intercept_pins_the_constant_direction_exactly():
    gram = gram_of([1.0, 0.3], [0.5, 1.0], [-0.2, 0.8])
    common = {"ratio": 0.7, "ridge": 0.05, "a1": 0.9, "gram": gram, "skip": 0.2}
    common |= {"label_mean": 0.6, "intercept": True, "target_overlap": 0.8}
    scalar = attention_errors(sigma2=0.3, **common)
    pinned = heads_errors(noise=0.3, **common)
    assert scalar.train == pytest.approx(pinned.train, rel=1e-10)
    assert scalar.test == pytest.approx(pinned.test, rel=1e-10)


def test_softmax_coefficients_are_hermite_coefficients():
    f = nonlinearity(f"exp(0.7*t - {0.7**2 * 1.3**2 / 2})")
    k = f.coefficients(1.3)
    got = softmax_coefficients(0.7, tau=1.3, rho=0.4)
    assert got.a1 == pytest.approx(k.a1)
    assert got.sigma2 == pytest.approx(k.sigma2)
    assert got.correlation * k.sigma2 == pytest.approx(
        sum(f.hermite(j, 1.3) ** 2 * 0.4**j for j in range(2, 40))
    )
    assert softmax_coefficients(1e-4).sigma2 == pytest.approx(0.5e-16, rel=1e-8)
    with pytest.raises(ValueError, match="beta must be positive and at most 20, got 0"):
        softmax_coefficients(0.0)


@pytest.mark.parametrize(
    ("beta", "ratio", "snr", "align", "label_mean", "ridge"),
    [
        (1.0, 0.5, 1.0, 1.0, 0.0, 0.1),
        (0.3, 0.25, 4.0, 0.0, 0.8, 1.0),  # centring the labels alone would say 0.133 where this measures 0.16
        (0.5, 2.0, 2.0, 1.0, 0.6, 0.1),
    ],
)
def test_softmax_agrees_with_simulation(beta, ratio, snr, align, label_mean, ridge):
    n = 1200 if ratio < 1 else 500
    mu = np.zeros(round(ratio * n))
    mu[0] = np.sqrt(snr)
    w = align * mu
    M = np.eye(mu.size) + np.outer(w, w)
    predicted = softmax_errors(beta, ratio=ratio, ridge=ridge, gram=gram_of(mu, w, w), label_mean=label_mean)
    measured = simulate([(M, softmax(beta), 0.0)], mu=mu, n=n, ridge=ridge, draws=6, label_mean=label_mean)
    assert_agrees(predicted, measured)


def rank_errors(gram, *, sigma2, **arguments):
    """One head with several terms w_K w_Q'."""
    return heads_errors(gram=gram, noise=sigma2, owners=[0] * (len(gram) // 2), **arguments)


def test_splitting_a_direction_changes_nothing():
    mu, key, query = np.random.default_rng(0).standard_normal((3, 6)) * 0.4
    common = {
        "ratio": 0.5,
        "ridge": 0.01,
        "a1": 0.7,
        "sigma2": 0.2,
        "a2": 0.3,
        "skip": 0.3,
        "label_mean": 0.4,
        "mean_spike": 0.5,
        "target_overlap": 0.7,
    }
    one = attention_errors(gram=gram_of(mu, key, query), **common)
    two = rank_errors(gram_of(mu, key, key, 0.3 * query, 0.7 * query), **common)
    three = rank_errors(gram_of(mu, key, mu, key, 2 * query, 0 * mu, -query), **common)
    for other in (two, three):
        assert other.train == pytest.approx(one.train, rel=1e-10)
        assert other.test == pytest.approx(one.test, rel=1e-10)


def test_gram_of_two_terms_must_be_possible():
    gram = np.eye(5)
    gram[0, 1] = gram[1, 0] = 2.0
    with pytest.raises(ValueError, match="positive semi-definite"):
        rank_errors(gram, ratio=0.5, ridge=0.1, a1=1.0, sigma2=0.1)
    with pytest.raises(ValueError, match=r"shape \(1 \+ 2T, 1 \+ 2T\)"):
        rank_errors(np.eye(4), ratio=0.5, ridge=0.1, a1=1.0, sigma2=0.1)
    with pytest.raises(ValueError, match="owners must be a list of heads between 0 and 0"):
        heads_errors(ratio=0.5, ridge=0.1, a1=1.0, noise=0.1, gram=np.eye(5), owners=[0, 1])


@pytest.mark.parametrize(("name", "ratio"), [("tanh", 0.5), ("relu", 2.0)])
def test_rank_two_weights_agree_with_simulation(name, ratio):
    n = 1000 if ratio < 1 else 500
    p = round(ratio * n)
    mu, k1, k2, q1, q2 = V = np.zeros((5, p))
    V[:, :3] = [[1.0, 0.3, 0.0], [0.8, 0.0, 0.3], [0.0, 0.7, 0.0], [0.6, 0.0, -0.5], [0.3, 0.7, 0.2]]
    M = np.eye(p) + np.outer(k1, q1) + np.outer(k2, q2)
    f = nonlinearity(name)
    k = f.coefficients()
    predicted = rank_errors(
        gram_of(mu, k1, k2, q1, q2), ratio=ratio, ridge=0.1, a1=k.a1, a2=k.a2, sigma2=k.sigma2, skip=0.2
    )
    assert_agrees(predicted, simulate([(M, entrywise(f), 0.2)], mu=mu, n=n, ridge=0.1, draws=6))
