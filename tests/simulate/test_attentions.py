"""Softmax, causal masks, several heads and given matrices, against n x n matrices written out."""

from __future__ import annotations

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, simulate
from resolvent.nonlinearity import Softmax
from resolvent.setting.cautions import added_score
from resolvent.simulate import sampling
from resolvent.simulate.draws import stream

N = 40
HEAD = np.random.default_rng(5).standard_normal((2, 6, 20))
SKEWED = Weights.from_angles(key_norm=1.2, query_norm=0.8, key_cos=0.7, query_cos=-0.3)


def columns(f, scores: np.ndarray, scale: float, seen: np.ndarray | None) -> np.ndarray:
    """sqrt p K."""
    mask = np.ones(scores.shape, dtype=bool) if seen is None else seen
    if not isinstance(f, Softmax):
        return np.where(mask, f.evaluate(scores, scale), 0.0)
    powers = np.where(mask, np.exp(f.beta * scores), 0.0)
    return scores.shape[0] * powers / np.maximum(powers.sum(0), 1e-300)


def by_hand(setting: Setting, matrices, mu, seed: int, causal: bool) -> np.ndarray:
    p, n, rng = mu.size, N, stream(seed, 0)
    X, fresh = (sampling.draw(setting.tokens, mu, n, rng) for _ in range(2))
    order = np.arange(n)
    seen = order[:, None] < order if causal else order[:, None] != order
    past, new = [], []
    for head, M in zip(setting.heads, matrices, strict=True):
        for out, queries, mask in ((past, X.tokens, seen), (new, fresh.tokens, None)):
            K = columns(head.f, X.tokens.T @ M @ queries / np.sqrt(p), head.scale, mask) / np.sqrt(p)
            out.append(X.tokens @ K + setting.skip * queries)
    H, H0 = np.vstack(past), np.vstack(new)
    w = np.linalg.solve(H @ H.T + n * setting.ridge * np.eye(H.shape[0]), H @ X.targets)
    return np.array([np.mean((X.targets - w @ H) ** 2), np.mean((fresh.targets - w @ H0) ** 2)])


def rank_one(setting: Setting, p: int):
    mu, *rows = sampling.vectors(setting.gram, p)
    terms = len(rows) // 2
    return mu, [np.eye(p) + np.outer(rows[t], rows[terms + t]) for t in range(terms)]


@pytest.mark.parametrize("device", [None, "array_api_strict"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "setting",
    [
        Setting(Tokens(snr=2.0, label_mean=0.2), SKEWED, "softmax", beta=0.7, skip=0.3),
        Setting(Tokens(snr=2.0), [SKEWED, Weights.aligned(0.6)], ["relu", "softmax"], beta=0.4),
        Setting(Tokens(snr=2.0), Weights.factors(*HEAD, tau=0.8, signal="top-key"), "tanh"),
        Setting(weights=Weights.matrix(np.eye(20) + 0.1), nonlinearity="softmax", beta=0.5),
        Setting(weights=[Weights.factors(*HEAD, tau=1.0), Weights.none()], nonlinearity=["relu", "sin"]),
    ],
    ids=["softmax", "heads", "factors", "softmax of a matrix", "a head and none"],
)
def test_a_draw_is_the_model_written_out(setting: Setting, causal: bool, device: str | None) -> None:
    if device is not None:
        pytest.importorskip(device)
    if setting.dimension is None:
        mu, matrices = rank_one(setting, 20)
    else:
        factors = [head.weights.factors for head in setting.heads]
        matrices = [f.left * f.values @ f.right.T for f in factors]
        mu = setting.heads[0].weights.signal * np.sqrt(setting.tokens.snr)
    measured = simulate(setting, n=N, draws=1, seed=4, causal=causal, device=device)
    np.testing.assert_allclose(measured.values[0, 0], by_hand(setting, matrices, mu, 4, causal), rtol=1e-8)
    assert ("causal" in measured.as_dict()["setting"]) is causal
    assert ("the theory does not predict it" in str(measured)) is causal


@pytest.mark.parametrize(
    ("tokens", "kurtosis"),
    [
        (Tokens(noise="rademacher"), 1.0),
        (Tokens(noise="uniform"), 1.8),
        (Tokens(noise="laplace"), 6.0),
        (Tokens(noise="student-t:12"), 3.75),
    ],
    ids=lambda value: getattr(value, "noise", ""),
)
def test_entries_have_their_law(tokens: Tokens, kurtosis: float) -> None:
    noise = sampling.draw(tokens, np.zeros(50), 20_000, np.random.default_rng(1)).tokens
    assert noise.var() == pytest.approx(1.0, abs=0.01)
    assert np.mean(noise**4) == pytest.approx(kurtosis, rel=0.05)
    assert tokens.norm_variance == pytest.approx(kurtosis - 1.0)


@pytest.mark.parametrize("normalise", [None, "rms", "layer"])
@pytest.mark.parametrize("covariance", [None, "ar1:0.5", "spiked:3:0.2"])
def test_norm_variance_is_that_of_the_tokens(covariance: str | None, normalise: str | None) -> None:
    """p Var(x'Sigma x/(p s2)), relative to |x|^2/p when tokens are normalised."""
    tokens = Tokens(
        covariance=covariance, normalise=normalise, noise="laplace" if covariance is None else "gaussian"
    )
    p = 400
    X = sampling.draw(tokens, np.zeros(p), 20_000, np.random.default_rng(2)).tokens
    levels = np.ones(p) if tokens.population is None else sampling._levels(tokens.population, p)
    seen = levels @ X**2 / p / np.mean(levels**2)
    spread = p * seen.var()
    assert spread == pytest.approx(tokens.norm_variance, rel=0.1, abs=0.02)
    if normalise is not None:
        np.testing.assert_allclose((X**2).sum(0), p)


def test_covariance_levels_are_those_of_the_samples() -> None:
    tokens = Tokens(covariance="spiked:5:0.25")
    X = sampling.draw(tokens, np.zeros(40), 50_000, np.random.default_rng(3)).tokens
    variances = np.sort(X.var(axis=1))
    np.testing.assert_allclose(variances[:30], 0.5, rtol=0.05)
    np.testing.assert_allclose(variances[30:], 2.5, rtol=0.05)


def test_signal_lies_in_a_random_frame_under_noise_that_knows_axes() -> None:
    gram = np.diag([2.0, 1.0, 1.0])
    rows = sampling.vectors(gram, 30, np.random.default_rng(0))
    np.testing.assert_allclose(rows @ rows.T, gram, atol=1e-12)
    assert np.all(np.abs(rows[0]) < 1.0)


def test_unequal_norms_are_measured() -> None:
    tokens = Tokens(norm_spread=0.5)
    X = sampling.draw(tokens, np.zeros(200), 20_000, np.random.default_rng(0)).tokens
    norms = np.log((X**2).sum(0) / 200) / 2
    assert norms.std() == pytest.approx(0.5, rel=0.05)
    assert np.mean(X**2) == pytest.approx(1.0, rel=0.03)


def test_the_added_score_counts_the_head_that_adds_most() -> None:
    two = Setting(Tokens(snr=1.0), [Weights.aligned(1.0), Weights.none()])
    assert added_score(two, 4) == pytest.approx(added_score(Setting(weights=Weights.aligned(1.0)), 4))
