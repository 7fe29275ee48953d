"""Training and test error of a ridge probe on one or several heads, given block traces and feature side.

Block 0 is Q; heads h = 0, 1, ... have v_h = 1 + 2 h (the block of X'w_h) and w_h = 2 + 2 h (of -K_h Q y). The
form of the labels y with themselves is

    F = (Nc^-1 + mu'G mu)^-1,   Nc = (1 - ybar^2) N/c + ybar^2 N1,   N1^-1 = c N^-1 + T,

N1 that of the constant direction, on which means of f, norm fluctuations (through T) and intercepts act. With
f = F e_0, the adjoint Lambda of `traces`, the fields Phi of the feature side and e = e_0 - sum_h skip_h e_w,

    E_train = ridge^2 c Lambda_00,
    mean on a fresh token = y0 e'(mu'G mu) f,   variance = e'(K(Lambda) + Phi) e + sum_hg noise_hg Lambda_vv.

Theory page, sections 5, 7 and 8, for any number of heads and any feature side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.arguments import plain
from resolvent.equivalents.averages import Array
from resolvent.equivalents.features import Features
from resolvent.equivalents.traces import Equation, Solution, follow, inverse


@dataclass(frozen=True)
class Heads:
    """What the heads' nonlinearities do; arrays over heads (H,) or pairs of heads (H, H).

    `noise` and `twin` are the covariances of the noise entries ij with ij and with ji; `diagonal` all
    multiples of the identity in K_h, `skip` the part of them that acts on a fresh token; `mean_spike` a0
    sqrt p, `a2` the second coefficients. `norms` (2 H, 2 H) is the Gram matrix of the norm fluctuations of
    keys (first H) and queries. `intercept` marks heads whose columns have a fixed sum, which frees a
    constant.
    """

    noise: Array
    twin: Array
    diagonal: Array
    skip: Array
    mean_spike: Array
    a2: Array
    norms: Array
    intercept: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """H."""
        return self.skip.size

    @property
    def v(self) -> NDArray[np.intp]:
        """Blocks of X'w_h."""
        return 1 + 2 * np.arange(self.count)


@dataclass(frozen=True)
class Target:
    """Mean of the labels and overlap of the target with them."""

    label_mean: float
    overlap: float


def equation(c: float, heads: Heads, features: Features) -> Equation:
    """The equation of the block traces."""
    v, B = heads.v, 1 + 2 * heads.count
    base = np.zeros((B, B))
    base[0, v] = base[v, 0] = heads.diagonal
    base[v, v + 1] = base[v + 1, v] = 1.0
    noise = np.zeros((B, B, B, B))
    for h, at in enumerate(v):
        for g, other in enumerate(v):
            noise[0, 0, at, other] = noise[at, other, 0, 0] = heads.noise[h, g] / c
            noise[at, 0, 0, other] = noise[0, at, other, 0] = heads.twin[h, g] / c
    return Equation(c, base, noise, features, tuple(int(b) for b in v))


def errors(
    equation: Equation, ridge: float, solution: Solution, heads: Heads, target: Target
) -> tuple[float, float]:
    """Training and test error at a solution."""
    c, N = equation.c, solution.N
    dressed = equation.features.dressed(N, c)
    pull = dressed.signal()
    token = _token_forms(c, N, pull, heads, target.label_mean)
    share = target.overlap**2
    fields = share * dressed.fields(token.y)
    source = share * token.source(target.label_mean) + fields
    source[0, 0] += 1.0 - share
    Lambda = equation.response(ridge, N, source / c)
    fields = np.einsum("abcd,cd->ab", dressed.kernel(), Lambda) + fields
    train = ridge**2 * c * Lambda[0, 0]
    return float(train), float(_test_error(fields, Lambda, pull, token, heads, target))


@dataclass(frozen=True)
class _TokenForms:
    """Forms with (y, block 0) of y and the constant, (B,), and sources of y, the constant and the norms.

    `norm_sources` (2 H, B) are those of the fluctuations, `norms` their Gram matrix.
    """

    y: Array
    one: Array
    y_source: Array
    one_source: Array
    norm_sources: Array
    norms: Array

    def source(self, ybar: float) -> Array:
        """sum gram g g' over the directions of the token side (B, B)."""
        crossed = ybar * np.outer(self.y_source, self.one_source)
        out = np.outer(self.y_source, self.y_source) + np.outer(self.one_source, self.one_source)
        return np.asarray(out + crossed + crossed.T + self.norm_sources.T @ self.norms @ self.norm_sources)


def _token_forms(c: float, N: Array, pull: Array, heads: Heads, ybar: float) -> _TokenForms:
    B, H, v = N.shape[0], heads.count, heads.v
    into = np.concatenate([v, np.zeros(H, dtype=np.intp)])  # blocks of the fluctuations of keys, of queries
    out_of = np.concatenate([np.zeros(H, dtype=np.intp), v])  # where the constant direction meets them
    strength = np.tile(heads.a2, 2) / np.sqrt(2.0)
    T = np.zeros((B, B))
    T[0, v] = T[v, 0] = heads.mean_spike
    weighted = np.outer(strength, strength) * heads.norms * N[np.ix_(into, into)] / c
    np.subtract.at(T, (out_of[:, None], out_of), weighted)

    N1 = _constrained_inverse(c * inverse(N) + T, heads)
    Nc = (1.0 - ybar**2) * N / c + ybar**2 * N1
    f_y = np.asarray(np.linalg.solve(np.eye(B) + Nc @ pull, Nc)[:, 0], dtype=np.float64)
    g_y = -pull @ f_y
    g_y[0] += 1.0
    f_one = ybar * (N1 @ g_y)
    g_one = c * np.linalg.solve(N, f_one) - ybar * g_y
    g_norm = np.zeros((2 * H, B))
    g_norm[np.arange(2 * H), into] = -strength * f_one[out_of]
    return _TokenForms(f_y, f_one, g_y, g_one, g_norm, heads.norms)


def _constrained_inverse(matrix: Array, heads: Heads) -> Array:
    """The inverse on what fixed column sums leave free: a mean_spike of infinite strength pins the rest."""
    if not heads.intercept.any():
        return inverse(matrix)
    pinned = np.zeros((matrix.shape[0], 2))
    pinned[0, 0] = 1.0
    pinned[heads.v[heads.intercept], 1] = 1.0
    free = np.linalg.svd(pinned.T)[2][2:].T
    return np.asarray(free @ np.linalg.solve(free.T @ matrix @ free, free.T), dtype=np.float64)


def _test_error(
    fields: Array, Lambda: Array, pull: Array, token: _TokenForms, heads: Heads, target: Target
) -> float:
    """E (t0 - prediction)^2 for a fresh token, its target as noisy as those of the context."""
    kappa, ybar, v, H = target.overlap, target.label_mean, heads.v, heads.count
    e = np.zeros(fields.shape[0])
    e[0], e[v + 1] = 1.0, -heads.skip
    mean = kappa * e @ pull @ token.y
    constant = -kappa * token.one_source[0]
    query = kappa * heads.a2 / np.sqrt(2.0) * token.one[v]
    variance = (
        e @ fields @ e + (heads.noise * Lambda[np.ix_(v, v)]).sum() + query @ token.norms[H:, H:] @ query
    )
    bias = 1.0 - 2.0 * kappa * (mean + ybar * constant) + mean**2 + 2.0 * ybar * mean * constant + constant**2
    return float(bias + variance)


@dataclass(frozen=True)
class ProbeErrors:
    """Limits of the probe at each ridge and the certificate of the fixed point; NaN where not converged."""

    train: Array | float
    test: Array | float
    residual: Array | float
    iterations: NDArray[np.int64] | int
    converged: NDArray[np.bool_] | bool


def probe_errors(c: float, ridges: Array, heads: Heads, target: Target, features: Features) -> ProbeErrors:
    """Training and test errors along positive ridges of any shape, from one path down."""
    if not (ridges > 0.0).all():
        raise ValueError("ridge must be positive here, got 0")
    system, flat = equation(c, heads, features), ridges.ravel()
    solutions = follow(system, flat, _top_ridge(system, heads))
    values = np.full((2, flat.size), np.nan)
    for k, solution in enumerate(solutions):
        if solution.converged:
            values[:, k] = errors(system, float(flat[k]), solution, heads, target)
    columns = (
        *values,
        np.array([s.residual for s in solutions]),
        np.array([s.iterations for s in solutions]),
        np.array([s.converged for s in solutions]),
    )
    return ProbeErrors(*(plain(column.reshape(ridges.shape)) for column in columns))


def _top_ridge(equation: Equation, heads: Heads) -> float:
    """A ridge at which half-damped iteration converges at once: ten times the size of H'H/n."""
    feature = equation.features
    linear = np.einsum("k,kab->ab", feature.share, feature.bulk**2)[0].sum()
    if np.isfinite(feature.dimension):
        linear += (feature.coupling**2).sum() / feature.dimension
    power = float(np.trace(heads.noise) + linear + (heads.diagonal**2).sum())
    return 10.0 * max(power, np.finfo(float).tiny) * max(equation.c, 1.0) * (1.0 + 1.0 / equation.c)
