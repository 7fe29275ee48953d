"""The real tokens that ship with the package, against numbers computed outside it."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from resolvent.dataset import broken_assumptions, demo_tokens, estimate, standardise


@pytest.fixture(scope="module")
def standard():
    return standardise(demo_tokens())


@pytest.fixture(scope="module")
def found(standard):
    return estimate(standard)


def attention_error(x, y, w, ridge=0.1):
    """Training error on X K, K = tanh(X' M X/sqrt p)/sqrt p without its diagonal, M = I + w w'."""
    p = x.shape[0]
    scores = x.T @ x + np.outer(x.T @ w, x.T @ w)
    attention = np.tanh(scores / np.sqrt(p)) / np.sqrt(p)
    np.fill_diagonal(attention, 0)
    return regression_error(x @ attention, y, ridge)


def regression_error(h, y, ridge=0.1):
    p, n = h.shape
    probe = np.linalg.solve(h @ h.T + n * ridge * np.eye(p), h @ y)
    return np.mean((y - h.T @ probe) ** 2)


def test_what_is_in_the_file():
    data = demo_tokens()
    assert (data.p, data.n) == (384, 2237)
    assert ((data.labels > 0).sum(), (data.labels < 0).sum()) == (1057, 1180)
    assert data.background_mean.shape == (384,)
    assert data.background_cov.shape == (384, 384)
    assert data.source == "MiniLM embeddings of the words of the VADER sentiment lexicon"
    assert data.label_names == (-1, 1)


def test_attribution_ships_beside_the_data():
    text = (files("resolvent.dataset") / "minilm_vader.md").read_text(encoding="utf-8")
    for needed in (
        "all-MiniLM-L6-v2",
        "Apache",
        "VADER",
        "Copyright (c) 2016 C.J. Hutto",
        "Permission is hereby",
    ):
        assert needed in text


def test_estimates(found):
    assert found.snr == pytest.approx(3.21, abs=0.005)
    assert found.noise.smallest == pytest.approx(0.07, abs=0.005)
    assert found.noise.largest == pytest.approx(5.4, abs=0.05)
    assert found.norm_spread == pytest.approx(0.24, abs=0.005)


def test_the_standard_error_agrees_with_a_bootstrap(standard, found):
    rng = np.random.default_rng(0)
    x, y = standard.tokens, standard.labels
    halves = []
    for _ in range(200):
        weight = np.zeros(y.size)
        for sign in (1, -1):
            of_class = np.flatnonzero(y == sign)
            weight += (
                sign * np.bincount(rng.choice(of_class, of_class.size), minlength=y.size) / of_class.size
            )
        halves.append(x @ weight / 2)
    plugin = (np.array(halves) ** 2).sum(axis=1)
    assert found.snr_se == pytest.approx(plugin.std(), rel=0.25)


def test_the_papers_reversal_on_real_words(standard, found):
    """Weights off, attention loses to linear regression; aligned with the class direction, it wins."""
    x, y = standard.tokens, standard.labels
    aligned = np.sqrt(found.snr_used) * found.direction
    assert attention_error(x, y, 0 * aligned) == pytest.approx(0.206, abs=0.0006)
    assert attention_error(x, y, aligned) == pytest.approx(0.170, abs=0.0006)
    assert regression_error(x, y) == pytest.approx(0.181, abs=0.0006)


def test_what_the_words_break(found):
    sentences = broken_assumptions(found)
    assert [sentence.split(":")[0] for sentence in sentences] == ["Unequal norms", "Noise is not white"]
    assert "0.24" in sentences[0]
    assert "0.069 to 5.4" in sentences[1]
