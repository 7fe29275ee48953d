"""The probe written naively in plain NumPy, as an independent check of the limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Scores = Callable[[np.ndarray], np.ndarray]


def entrywise(f: Scores) -> Callable[[np.ndarray, int, bool], np.ndarray]:
    """K = f(S)/sqrt p, its diagonal zero."""

    def attention(S: np.ndarray, p: int, own: bool) -> np.ndarray:
        K = f(S) / np.sqrt(p)
        if own:
            np.fill_diagonal(K, 0.0)
        return K

    return attention


def softmax(beta: float) -> Callable[[np.ndarray, int, bool], np.ndarray]:
    """K = (n/sqrt p) softmax over rows, the self-score masked."""

    def attention(S: np.ndarray, p: int, own: bool) -> np.ndarray:
        E = np.exp(beta * S)
        if own:
            np.fill_diagonal(E, 0.0)
        return E * (S.shape[0] / np.sqrt(p) / E.sum(axis=0))

    return attention


def white(rng: np.random.Generator, p: int, n: int) -> np.ndarray:
    return rng.standard_normal((p, n))


def simulate(
    heads: list[tuple[np.ndarray, Callable[[np.ndarray, int, bool], np.ndarray], float]],
    *,
    mu: np.ndarray,
    n: int,
    ridge: float,
    draws: int = 4,
    label_mean: float = 0.0,
    overlap: float = 1.0,
    noise: Callable[[np.random.Generator, int, int], np.ndarray] = white,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of (train, test) for heads (M, attention, skip) side by side."""
    p, out = mu.size, []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        y = np.where(np.arange(n) < round(n * (1 + label_mean) / 2), 1.0, -1.0)
        y0 = np.where(rng.random(n) < (1 + label_mean) / 2, 1.0, -1.0)
        t, t0 = (np.where(rng.random(n) < (1 - overlap) / 2, -v, v) for v in (y, y0))
        X = np.outer(mu, y) + noise(rng, p, n)
        X0 = np.outer(mu, y0) + noise(rng, p, n)
        H, H0 = [], []
        for M, attention, skip in heads:
            H.append(X @ attention(X.T @ (M @ X) / np.sqrt(p), p, True) + skip * X)
            H0.append(X @ attention(X.T @ (M @ X0) / np.sqrt(p), p, False) + skip * X0)
        H, H0 = np.concatenate(H), np.concatenate(H0)
        if H.shape[0] <= n:
            w = np.linalg.solve(H @ H.T + n * ridge * np.eye(H.shape[0]), H @ t)
        else:
            w = H @ np.linalg.solve(H.T @ H + n * ridge * np.eye(n), t)
        out.append((np.mean((t - w @ H) ** 2), np.mean((t0 - w @ H0) ** 2)))
    values = np.array(out)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(draws)


def assert_agrees(prediction, measured: tuple[np.ndarray, np.ndarray], slack: float = 0.03) -> None:
    """Within 4 standard errors plus 3 %, for the training and the test error."""
    mean, error = measured
    for name, value, m, se in zip(
        ("train", "test"), (prediction.train, prediction.test), mean, error, strict=True
    ):
        assert abs(value - m) < 4 * se + slack * value, f"{name}: predicted {value}, measured {m} +- {se}"
        assert se < 0.1 * value
