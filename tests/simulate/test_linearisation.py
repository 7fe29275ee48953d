"""Lemma 1 on samples: an exact split, a rest that falls like n^-1/2, noise that is a Wigner matrix."""

import sys

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights
from resolvent.nonlinearity import nonlinearity
from resolvent.plot import plot_linearisation
from resolvent.simulate import linearisation, simulate
from resolvent.simulate.linearisation import operator_norm

SKEWED = Weights.from_angles(key_norm=1.0, query_norm=0.7, key_cos=0.6, query_cos=-0.3, key_query_cos=0.2)


def setting(f, label_mean=0.0, align=0.0, ratio=0.5, **more):
    return Setting(Tokens(ratio, 2.0, label_mean), Weights.aligned(align), f, **more)


@pytest.mark.parametrize("f", ["tanh", "relu"])
@pytest.mark.parametrize("label_mean", [0.0, 0.6])
@pytest.mark.parametrize("align", [0.0, 0.35])
def test_the_rest_falls_like_one_over_root_n(f, label_mean, align):
    one, sizes = setting(f, label_mean, align), (70, 140, 280, 560)
    norms = [np.mean([linearisation(one, n=n, seed=seed).norm for seed in range(4)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(norms), 1)[0]
    assert -0.8 < slope < -0.3
    assert norms[-1] < 0.6 * norms[0]


@pytest.mark.parametrize(
    "one",
    [
        setting("tanh"),
        setting("relu", 0.6, 0.7, 2.0),
        setting("relu", centred=False, keep_diagonal=True),
        Setting(Tokens(0.5, 1.5, -0.4), SKEWED, "exp", centred=False),
    ],
)
def test_the_split_is_exact_and_written_out(one):
    # every part retyped, from the tokens of the first draw
    parts = linearisation(one, n=40, seed=3)
    np.testing.assert_allclose(parts.K, parts.noise + parts.low_rank + parts.rest, atol=1e-12)
    np.testing.assert_allclose(parts.noise, parts.linear + parts.spread + parts.wigner, atol=1e-12)
    f, a, n, p = one.f, one.f.coefficients(), parts.n, parts.p
    rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(0,)))
    y = np.where(rng.random(n) < 0.5 * (1 + one.tokens.label_mean), 1.0, -1.0)
    rng.random(n)
    Z = rng.standard_normal((p, n))
    values, basis = np.linalg.eigh(one.gram)
    kept = values > 1e-14 * values.max()
    mu, k, q = (basis[:, kept] * np.sqrt(values[kept])) @ np.eye(kept.sum(), p)
    X = Z + np.outer(mu, y)
    K = f(X.T @ (np.eye(p) + np.outer(k, q)) @ X / np.sqrt(p)) / np.sqrt(p)
    noise = f(Z.T @ Z / np.sqrt(p)) / np.sqrt(p)
    if not one.keep_diagonal:
        np.fill_diagonal(K, 0.0)
        np.fill_diagonal(noise, 0.0)
    np.testing.assert_allclose(parts.K, K, atol=1e-10)
    np.testing.assert_allclose(parts.noise, noise, atol=1e-10)
    o = np.outer
    terms = (mu @ mu + (mu @ k) * (mu @ q)) * o(y, y) + o(y, Z.T @ mu) + o(Z.T @ mu, y)
    terms += (mu @ k) * o(y, Z.T @ q) + (mu @ q) * o(Z.T @ k, y) + o(Z.T @ k, Z.T @ q)
    np.testing.assert_allclose(parts.low_rank, a.a1 * terms / p, atol=1e-12)
    assert np.linalg.matrix_rank(parts.low_rank) <= 3  # the paper's "rank at most three"
    s, ones = (np.sum(Z**2, axis=0) / p - 1) * np.sqrt(p), np.ones(n)
    spread = a.a0 * np.sqrt(p) * o(ones, ones) + a.a2 / np.sqrt(2) * (o(s, ones) + o(ones, s))
    np.testing.assert_allclose(parts.spread, spread / p, atol=1e-12)
    d = float(f(np.sqrt(p)) / np.sqrt(p)) if one.keep_diagonal else 0.0
    np.testing.assert_allclose(parts.linear, a.a1 * (Z.T @ Z / p - np.eye(n)) + d * np.eye(n), atol=1e-12)


@pytest.mark.parametrize("f", ["tanh", "relu"])
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_what_is_left_of_the_noise_is_a_wigner_matrix(f, ratio):
    parts = linearisation(setting(f, 0.6, 0.5, ratio), n=700)
    sigma = np.sqrt(nonlinearity(f).coefficients().sigma2)
    assert parts.norms["wigner"] == pytest.approx(2 * sigma / np.sqrt(ratio), rel=0.1)
    off = parts.wigner[~np.eye(700, dtype=bool)]
    assert off.std() * np.sqrt(parts.p) == pytest.approx(sigma, rel=0.03)


def test_without_the_a2_directions_something_large_would_be_left():
    parts = linearisation(setting("abs", ratio=0.1), n=800)
    assert operator_norm(parts.noise - parts.linear) > 1.2 * parts.norms["wigner"]


def test_operator_norms_agree(monkeypatch):
    matrix = np.random.default_rng(0).standard_normal((90, 90))
    expected = np.linalg.norm(matrix, 2)
    assert operator_norm(matrix) == expected
    monkeypatch.setattr(sys.modules["resolvent.simulate.linearisation"], "DENSE", 10)
    assert operator_norm(matrix) == pytest.approx(expected, rel=1e-6)
    assert operator_norm(0.0 * matrix) == 0.0


def test_one_seed_is_one_matrix():
    a, b, other = (linearisation(setting("tanh"), n=30, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.K, b.K)
    assert a.as_dict()["norms"] == b.as_dict()["norms"] != other.as_dict()["norms"]
    assert simulate(setting("tanh"), n=30, draws=1, seed=1).p == a.p


def test_text_shows_the_limits():
    text = str(linearisation(setting("tanh"), n=50))
    assert "operator norms at n = 50, p = 25" in text
    assert "(limit 0)" in text


def test_the_plot_shows_the_norms(monkeypatch):
    saved = []
    monkeypatch.setattr("resolvent.plot.linearisation.save", lambda figure, _: saved.append(figure))
    one = setting("tanh")
    parts = [linearisation(one, n=n, seed=seed) for n in (20, 40) for seed in (0, 1)]
    plot_linearisation(parts, None)
    (ax,) = saved[0].axes
    lines = {line.get_label(): line for line in ax.get_lines()}
    means = [np.mean([p.norm for p in parts if p.n == n]) for n in (20, 40)]
    np.testing.assert_allclose(lines["rest"].get_ydata(), means)
    with pytest.raises(ValueError, match=r"two sizes or more, got n = \[20\]"):
        plot_linearisation(parts[:2], None)
    with pytest.raises(ValueError, match="splits of one setting"):
        plot_linearisation([*parts, linearisation(setting("relu"), n=40)], None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 2}, "n must be at least 4, got 2"),
        ({"n": 9000}, "n must be at most 8192"),
        ({"seed": -1}, "seed must"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=message):
        linearisation(setting("tanh"), **given)
    with pytest.raises(ValueError, match="one draw takes one setting"):
        linearisation(Setting(skip=[0.0, 1.0]), n=20)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Setting(nonlinearity="softmax"), "one head with an entry-wise f, got softmax"),
        (Setting(nonlinearity=["tanh", "relu"]), r"entry-wise f, got tanh \+ relu"),
        (Setting(weights=Weights.matrix(np.eye(20))), "got a matrix"),
        (Setting(Tokens(normalise="rms")), "white noise and their own norms"),
    ],
)
def test_what_the_lemma_does_not_cover(given, message):
    with pytest.raises(ValueError, match=message):
        linearisation(given, n=40)
