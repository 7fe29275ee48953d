"""Attention features and fresh predictions against the n x n formula written out, and their memory."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from resolvent.nonlinearity import nonlinearity
from resolvent.simulate import features as module
from resolvent.simulate.features import BLOCK, Attention, features, predictions

P, N = 40, 300  # more than one block of columns


def tokens(p: int = P, n: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((p, n))


def attention(name: str = "tanh", **kwargs) -> Attention:
    key, query = np.random.default_rng(9).standard_normal((2, P)) * 0.3
    return Attention(nonlinearity(name).evaluate, key, query, **kwargs)


def scores(a: Attention, X: np.ndarray, queries: np.ndarray) -> np.ndarray:
    M = np.eye(X.shape[0]) + np.outer(a.key, a.query)
    return a.f(X.T @ M @ queries / np.sqrt(X.shape[0])) / np.sqrt(X.shape[0])


def obvious(a: Attention, X: np.ndarray) -> np.ndarray:
    K = scores(a, X, X)
    if not a.keep_diagonal:
        np.fill_diagonal(K, 0.0)
    return X @ (K + a.skip * np.eye(X.shape[1]))


@pytest.mark.parametrize("name", ["tanh", "relu", "sign", "t^3 - 3*t", "gelu"])
@pytest.mark.parametrize(
    "kwargs", [{}, {"skip": -0.7}, {"keep_diagonal": True}, {"skip": 0.5, "keep_diagonal": True}]
)
def test_features_are_the_product_with_the_whole_attention_matrix(name: str, kwargs: dict) -> None:
    a, X = attention(name, **kwargs), tokens()
    np.testing.assert_allclose(features(a, X), obvious(a, X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("p", "n"), [(5, 2), (40, BLOCK - 1), (40, BLOCK), (40, BLOCK + 1), (300, 40)])
def test_any_shape(p: int, n: int) -> None:
    rng = np.random.default_rng(1)
    a = Attention(np.tanh, rng.standard_normal(p), rng.standard_normal(p))
    X = tokens(p, n)
    np.testing.assert_allclose(features(a, X), obvious(a, X), rtol=1e-11, atol=1e-11)


def test_fresh_tokens_attend_to_the_whole_context() -> None:
    a, X, fresh = attention("relu", skip=0.4, keep_diagonal=True), tokens(), tokens(n=N + 7, seed=1)
    w = np.random.default_rng(2).standard_normal((3, P))
    expected = w @ (X @ scores(a, X, fresh) + 0.4 * fresh)
    np.testing.assert_allclose(predictions(a, X, w @ X, w, fresh), expected, rtol=1e-10, atol=1e-10)


def test_tokens_are_left_as_they_are_and_a_pool_changes_nothing() -> None:
    a, X = attention(skip=0.3), tokens(n=3 * BLOCK + 5)
    before = X.copy()
    alone = features(a, X)
    np.testing.assert_array_equal(X, before)
    w = np.ones((1, P))
    outputs = predictions(a, X, w @ X, w, X)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(features(a, X, pool), alone)
        np.testing.assert_array_equal(predictions(a, X, w @ X, w, X, pool), outputs)


@pytest.mark.parametrize("name", ["tanh", "relu", "t^2 - 1"])
def test_single_precision_errs_by_a_few_1e_7(name: str) -> None:
    X = np.random.default_rng(4).standard_normal((P, 2 * module.SUM_LENGTH + 10))
    exact = features(attention(name, skip=0.2), X)
    single = features(attention(name, skip=0.2, single=True), X)
    assert single.dtype == np.float64
    error = np.linalg.norm(single - exact) / np.linalg.norm(exact)
    assert 1e-8 < error < 2e-6


def test_the_attention_matrix_is_never_held() -> None:
    p, n = 50, 2500
    X = tokens(p, n)
    a = Attention(nonlinearity("tanh").evaluate, np.zeros(p), np.zeros(p))
    a.f(X)
    tracemalloc.start()
    features(a, X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n * n / 4  # H, and blocks of BLOCK columns


@pytest.mark.filterwarnings("error")
def test_overflow_is_named() -> None:
    a = Attention(nonlinearity("exp").evaluate, np.full(P, 100.0), np.full(P, 100.0))
    with pytest.raises(OverflowError, match=r"f reaches .* on the scores of these tokens"):
        features(a, tokens())
    with pytest.raises(OverflowError, match="f reaches"):
        predictions(a, tokens(), np.ones((1, N)), np.ones((1, P)), tokens(seed=1))
