"""Monte Carlo of the attention probe and of linear regression in plain NumPy."""

import numpy as np


def vectors(p, gram):
    """mu, w_K, w_Q (p,) with these inner products."""
    value, vector = np.linalg.eigh(np.asarray(gram, float))
    out = np.zeros((3, p))
    out[:, :3] = vector * np.sqrt(np.maximum(value, 0.0))
    return out


def tokens(rng, p, n, mu, label_mean, root=None):
    """X, y; root (p, p) is a square root of the noise covariance."""
    y = np.where(rng.random(n) < (1.0 + label_mean) / 2.0, 1.0, -1.0)
    Z = rng.normal(size=(p, n))
    return np.outer(mu, y) + (Z if root is None else root @ Z), y


def attend(f, X, X0, key, query, self_scores):
    """Columns of K between the tokens X and X0."""
    p, n = X.shape
    S = (X.T @ X0 + np.outer(X.T @ key, query @ X0)) / np.sqrt(p)
    if isinstance(f, float):
        K = np.exp(f * S)
        if self_scores == "masked":
            np.fill_diagonal(K, 0.0)
        return K * n / np.sqrt(p) / K.sum(axis=0)
    K = f(S) / np.sqrt(p)
    if self_scores == "masked":
        np.fill_diagonal(K, 0.0)
    return K


def probe(H, H0, t, t0, ridge):
    """Training and test error of the ridge probe on features H (p, n) and H0."""
    p, n = H.shape
    if p <= n:
        w = np.linalg.solve(H @ H.T + n * ridge * np.eye(p), H @ t)
    else:
        w = H @ np.linalg.solve(H.T @ H + n * ridge * np.eye(n), t)
    return np.mean((t - H.T @ w) ** 2), np.mean((t0 - H0.T @ w) ** 2)


def simulate(f, *, p, n, gram, ridge, draws, seed, label_mean=0.0, skip=0.0, keep_diagonal=False, kappa=1.0):
    """Mean and standard error (2, 2): attention, linear x train, test. f is a function, or a beta."""
    rng = np.random.default_rng(seed)
    mu, key, query = vectors(p, gram)
    rows = []
    for _ in range(draws):
        X, y = tokens(rng, p, n, mu, label_mean)
        X0, y0 = tokens(rng, p, 2 * n, mu, label_mean)
        t, t0 = (np.where(rng.random(v.size) < (1.0 + kappa) / 2.0, v, -v) for v in (y, y0))
        H = X @ attend(f, X, X, key, query, "kept" if keep_diagonal else "masked") + skip * X
        H0 = X @ attend(f, X, X0, key, query, "kept") + skip * X0
        rows.append([probe(H, H0, t, t0, ridge), probe(X, X0, t, t0, ridge)])
    values = np.array(rows)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(draws)
