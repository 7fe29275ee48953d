"""The class-wise equivalent retyped from its formulas: dense, damped, finite differences."""

import numpy as np


def coupling(first, third):
    """3A x 3A: `first` (A, A) in blocks (2a,1b), its transpose in (1a,2b), `third` in (3a,3b)."""
    A = first.shape[0]
    M = np.zeros((A, 3, A, 3))
    M[:, 1, :, 0] = first
    M[:, 0, :, 1] = first.T
    M[:, 2, :, 2] = third
    return M.reshape(3 * A, 3 * A)


def diagonal_blocks(M):
    A = M.shape[0] // 3
    return np.stack([M[3 * a : 3 * a + 3, 3 * a : 3 * a + 3] for a in range(A)])


def block_diagonal(T):
    out = np.zeros((3 * T.shape[0], 3 * T.shape[0]))
    for a, block in enumerate(T):
        out[3 * a : 3 * a + 3, 3 * a : 3 * a + 3] = block
    return out


def form(classes, tables, ridge, skip=0.0, s=0.0, iterations=4000):
    """(F, T): F (A, 3, A, 3) at the fixed point, with s times the sources of the variance added."""
    w, R, P, p, c = classes.weight, classes.norm, classes.position, classes.p, classes.ratio
    kap, phi = p / (p - P.shape[1]), (p - P.shape[1]) / p
    A = np.zeros((w.size, 3, 3))
    A[:, 0, 0] = ridge
    A[:, 0, 1] = A[:, 1, 0] = tables.diagonal
    A[:, 1, 2] = A[:, 2, 1] = 1.0
    A[:, 1, 1] = s * (tables.v @ w)
    MM = coupling(tables.m1 * np.outer(R, R) * kap, c * np.outer(R, R) * kap)
    extra = np.zeros_like(MM)
    for b in range(w.size):
        read = np.zeros((w.size, 3))
        read[:, 1] = tables.m1[:, b] * R
        read[:, 2] = -skip * c * R
        extra += s * w[b] * R[b] ** 2 * kap * kap * np.outer(read, read)
    T = np.repeat(np.linalg.inv([[ridge, 0.0, 0.0], [0.0, -1.0, 1.0], [0.0, 1.0, 1.0]])[None], w.size, axis=0)
    one, law = np.eye(3 * w.size), list(zip(classes.eigenvalues, classes.shares, strict=True))
    for _ in range(iterations):
        TT = block_diagonal(w[:, None, None] * T / c)
        eta = np.zeros_like(T)
        eta[:, 0, 0] = tables.v.T @ (w * T[:, 1, 1]) / c
        eta[:, 1, 1] = tables.v @ (w * T[:, 0, 0]) / c
        eta[:, 0, 1] = eta[:, 1, 0] = tables.kap @ (w * T[:, 0, 1]) / c
        pull = sum(
            share * diagonal_blocks(np.linalg.solve(one + M @ TT, M))
            for share, M in ((g, value * MM + value**2 * extra) for value, g in law)
        )
        new = np.linalg.inv(A - eta + phi * pull)
        change = np.abs(new - T).max()
        T = 0.5 * (T + new)
        if change < 1e-14 * np.abs(T).max():
            break
    TT = block_diagonal(w[:, None, None] * T / c)
    CC = coupling(np.sqrt(p) * tables.m0, c * P @ P.T)
    return (TT @ np.linalg.inv(one + CC @ TT)).reshape(w.size, 3, w.size, 3), T


def errors(classes, tables, ridge, skip=0.0, kappa=1.0):
    """Training and test error."""
    w, y, c, p = classes.weight, classes.label, classes.ratio, classes.p

    def power(ridge, s=0.0):
        F, T = form(classes, tables, ridge, skip, s)
        return kappa**2 * y @ F[:, 0, :, 0] @ y + (1.0 - kappa**2) * w @ T[:, 0, 0] / c

    h = 1e-4 * ridge
    train = -(ridge**2) * c * (power(ridge + h) - power(ridge - h)) / (2.0 * h)
    F, _ = form(classes, tables, ridge, skip)
    mean = np.sqrt(p) * tables.m0.T @ (F[:, 1, :, 0] @ y)
    mean += skip * classes.position @ (-c * classes.position.T @ (F[:, 2, :, 0] @ y))
    s = 1e-4
    variance = -(power(ridge, s) - power(ridge, -s)) / (2.0 * s)
    return train, kappa**2 * w @ (y - mean) ** 2 + 1.0 - kappa**2 + variance
