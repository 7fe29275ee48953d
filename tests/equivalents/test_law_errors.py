"""Errors under a table: the closed form, the route through the covariance, sampled spectra, other entries."""

import numpy as np
import pytest
from naive_probe import assert_agrees, entrywise, simulate

from resolvent.equivalents import (
    attention_errors,
    covariance_linear_errors,
    heads_errors,
    law_errors,
    law_linear_errors,
    linear_errors,
    score_variance,
)
from resolvent.laws import empirical, entry_law, generalised_marchenko_pastur, marchenko_pastur, population
from resolvent.nonlinearity import nonlinearity

V = np.random.default_rng(0).standard_normal((3, 6)) * 0.4
FULL = {
    "a1": 0.7,
    "a2": 0.2,
    "gram": V @ V.T,
    "shift": -0.1,
    "skip": 0.3,
    "mean_spike": 0.4,
    "norm_variance": 1.4,
    "label_mean": 0.3,
    "target_overlap": 0.8,
}


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 5.0])
def test_marchenko_pastur_table_is_the_closed_form(ratio, ridge):
    law = marchenko_pastur(ratio)
    common = {"ratio": ratio, "ridge": ridge, "sigma2": 0.1} | FULL
    by_table, exact = law_errors(law.nodes, law.weights, **common), attention_errors(**common)
    assert by_table.train == pytest.approx(exact.train, rel=1e-10)
    assert by_table.test == pytest.approx(exact.test, rel=1e-10)
    linear = {"ratio": ratio, "ridge": ridge, "snr": 2.0, "target_overlap": 0.7}
    by_table, exact = law_linear_errors(law.nodes, law.weights, **linear), linear_errors(**linear)
    assert by_table.train == pytest.approx(exact.train, rel=1e-10)
    assert by_table.test == pytest.approx(exact.test, rel=1e-10)


def test_without_a_linear_part():
    law = marchenko_pastur(0.5)
    common = {"ratio": 0.5, "ridge": 0.1, "sigma2": 0.4} | FULL | {"a1": 0.0}
    by_table, exact = law_errors(law.nodes, law.weights, **common), attention_errors(**common)
    assert by_table.train == pytest.approx(exact.train, rel=1e-10)
    assert by_table.test == pytest.approx(exact.test, rel=1e-10)


@pytest.mark.parametrize("ratio", [0.4, 2.0])
def test_table_and_covariance_are_two_routes_to_one_answer(ratio):
    noise = population([0.2, 1.0, 3.0], [0.4, 0.4, 0.2])
    law = generalised_marchenko_pastur(noise, ratio)
    assert score_variance(law.nodes, law.weights, ratio) == pytest.approx(noise.moment(2), rel=1e-10)
    common = {"ratio": ratio, "ridge": np.array([0.01, 1.0])} | FULL
    by_table = law_errors(law.nodes, law.weights, sigma2=0.1, **common)
    by_covariance = heads_errors(noise=0.1, levels=noise.levels, shares=noise.shares, **common)
    np.testing.assert_allclose(by_table.train, by_covariance.train, rtol=1e-9)
    np.testing.assert_allclose(by_table.test, by_covariance.test, rtol=1e-9)
    linear = {"ratio": ratio, "ridge": 0.1, "snr": 2.0, "target_overlap": 0.6, "label_mean": 0.3}
    by_table = law_linear_errors(law.nodes, law.weights, **linear)
    by_covariance = covariance_linear_errors(levels=noise.levels, shares=noise.shares, **linear)
    assert by_table.train == pytest.approx(by_covariance.train, rel=1e-10)
    assert by_table.test == pytest.approx(by_covariance.test, rel=1e-10)


@pytest.mark.parametrize(("ratio", "name"), [(0.5, "relu"), (2.0, "tanh")])
def test_empirical_spectrum_predicts_its_own_tokens(ratio, name):
    n = 900 if ratio < 1 else 400
    p = round(ratio * n)
    spread = np.random.default_rng(3).exponential(size=p) + 0.05
    spread = np.sqrt(spread / spread.mean())

    def noise(rng, p, n):
        return spread[:, None] * rng.standard_normal((p, n))

    Z = noise(np.random.default_rng(4), p, n)
    law = empirical(np.linalg.eigvalsh(Z.T @ Z / p))
    scale = np.sqrt(score_variance(law.nodes, law.weights, ratio))
    f = nonlinearity(name)
    k = f.coefficients(scale)
    W = np.random.default_rng(5).standard_normal((3, p))
    W[1:] += 0.5 * W[0]
    W /= np.linalg.norm(W, axis=1)[:, None]
    predicted = law_errors(
        law.nodes,
        law.weights,
        ratio=ratio,
        ridge=0.1,
        a1=k.a1,
        a2=k.a2,
        sigma2=k.sigma2,
        gram=W @ W.T,
    )
    attend = entrywise(lambda S: f.evaluate(S, scale=scale))
    M = np.eye(p) + np.outer(W[1], W[2])
    assert_agrees(predicted, simulate([(M, attend, 0.0)], mu=W[0], n=n, ridge=0.1, draws=6, noise=noise))


@pytest.mark.parametrize(
    ("entries", "ratio", "name"),
    [
        (("rademacher", None), 0.5, "relu"),
        (("laplace", None), 2.0, "relu"),
        pytest.param(("student-t", 10.0), 0.5, "tanh", marks=pytest.mark.slow),
    ],
)
def test_other_entries_change_the_norm_fluctuation_alone(entries, ratio, name):
    n = 1200 if ratio < 1 else 600
    law, f = entry_law(*entries), nonlinearity(name)
    k = f.coefficients()
    mu = np.zeros(round(ratio * n))
    mu[:4] = 0.6
    predicted = attention_errors(
        ratio=ratio,
        ridge=0.1,
        a1=k.a1,
        a2=k.a2,
        sigma2=k.sigma2,
        gram=np.diag([mu @ mu, 0.0, 0.0]),
        norm_variance=law.norm_variance,
        label_mean=0.5,
    )
    measured = simulate(
        [(np.eye(mu.size), entrywise(f), 0.0)],
        mu=mu,
        n=n,
        ridge=0.1,
        draws=6,
        label_mean=0.5,
        noise=lambda rng, p, n: law.sample(rng, (p, n)),
    )
    assert_agrees(predicted, measured)


@pytest.mark.parametrize(
    ("nodes", "weights", "message"),
    [
        ([1.0, 1.0], [0.5, 0.6], r"weights must sum to 1, got 1\.1"),
        ([2.0, 2.0], [0.5, 0.5], "nodes must have mean 1"),
        ([-1.0, 3.0], [0.5, 0.5], "nodes must be zero or positive, got -1"),
        ([1.0], [0.5, 0.5], "lists of one length"),
    ],
)
def test_bad_tables_are_refused(nodes, weights, message):
    with pytest.raises(ValueError, match=message):
        law_errors(nodes, weights, ratio=0.5, ridge=0.1, a1=1.0, sigma2=0.1, gram=np.zeros((3, 3)))
