"""Lemma 1 on one sample: K is its noise-only part plus a few rank-one terms, up to an error that vanishes.

    K = K_N + U C V' + rest,      |rest| -> 0 in operator norm,

K_N = f(Z'Z/sqrt p)/sqrt p from the noise of the tokens alone, and U C V' the signal and the weights, in
vectors each divided by sqrt p:

    a1 [ (|mu|^2 + mu'w_K mu'w_Q) y y' + y (Z'mu)' + (Z'mu) y' + (mu'w_K) y (Z'w_Q)' + (mu'w_Q) (Z'w_K) y'
         + (Z'w_K)(Z'w_Q)' ].

K_N itself splits, with G = Z'Z/p and the norm fluctuations s_i = sqrt p (|z_i|^2/p - 1), into

    K_N = a1 (G - I) + d I + [ a0 sqrt p 1 1' + (a2/sqrt 2) (s 1' + 1 s') ] + sigma W,

W symmetric, its operator norm close to 2/sqrt c, as that of a Gaussian matrix with entries of variance 1/p.
The rest is made of products such as (f'(S_ij) - a1) delta_ij/sqrt p, delta the low-rank part of a score:
noise times a rank-one matrix, of operator norm n^-1/2 (times a power of ln n where there are weights).

Source: lemma 1 of Liao, Liu, Hou, Zou, Ling, arXiv 2506.18656, and the theory page, section 3, which adds
a0 and a2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.callable_module import call_as
from resolvent.nonlinearity import Nonlinearity
from resolvent.setting import Setting
from resolvent.simulate.matrix import attention_matrix, first_draw

Array = NDArray[np.float64]

DENSE = 200  # up to this n the operator norm comes from all singular values, beyond from Lanczos's method


@dataclass(frozen=True, eq=False)
class Linearisation:
    """One attention matrix and its parts, all n x n: K = noise + low_rank + rest.

    `noise` is K of the noise-only tokens, and in turn linear + spread + wigner: a1 (G - I) + d I, the
    directions of the mean (a0) and of the norm fluctuations (a2), and what is left, sigma W. `norms` holds
    operator norms.
    """

    setting: Setting
    n: int
    p: int
    seed: int
    K: Array
    noise: Array
    low_rank: Array
    linear: Array
    spread: Array
    norms: dict[str, float]

    @property
    def rest(self) -> Array:
        """K - noise - low_rank."""
        return self.K - self.noise - self.low_rank

    @property
    def wigner(self) -> Array:
        """noise - linear - spread, about sigma W."""
        return self.noise - self.linear - self.spread

    @property
    def norm(self) -> float:
        """Operator norm of the rest."""
        return self.norms["rest"]

    def as_dict(self) -> dict[str, object]:
        """Sizes and norms."""
        size = {"n": self.n, "p": self.p, "seed": self.seed}
        return {"setting": {**self.setting.as_dict(), **size}, "norms": self.norms}

    def __str__(self) -> str:
        a, c = self.setting.f.coefficients(), float(self.setting.tokens.ratio)
        notes = {"wigner": f"   (limit {2.0 * np.sqrt(a.sigma2 / c):.4f})", "rest": "   (limit 0)"}
        lines = [f"operator norms at n = {self.n}, p = {self.p}"]
        lines += [f"{name:9} {value:8.4f}{notes.get(name, '')}" for name, value in self.norms.items()]
        return "\n".join(lines)


def linearisation(setting: Setting, *, n: int = 1024, seed: int = 0) -> Linearisation:
    """Sample K and split it as in lemma 1: K = noise + low_rank + rest, the rest small in operator norm.

    Tokens are those of the first draw of `simulate(setting, n=n, seed=seed)`; d and a0 sqrt p are taken at
    its p.

    Raises ValueError for sizes out of range, a setting with arrays (its ridge aside), and for what the lemma
    does not cover: several heads, softmax, weights that are not I + low rank, noise that is not white,
    normalised tokens. OverflowError when f overflows on the scores.

    >>> from resolvent import Setting, Weights
    >>> parts = linearisation(Setting(weights=Weights.aligned(0.5)), n=100)
    >>> bool(np.allclose(parts.K, parts.noise + parts.low_rank + parts.rest))
    True
    >>> parts.norm < parts.norms["low_rank"]
    True
    """
    with threadpool_limits(1, user_api="blas"):
        return _split(setting, n, seed)


def _split(setting: Setting, n: int, seed: int) -> Linearisation:
    f = _covered(setting)
    attention, mu, (X, labels, _) = first_draw(setting, n, seed)
    p, a1 = mu.size, f.coefficients().a1
    Z = X - np.outer(mu, labels)
    silent = attention._replace(key=np.zeros(p), query=np.zeros(p))
    K, noise = attention_matrix(attention, X), attention_matrix(silent, Z)
    read, sought = X.T @ attention.key.reshape(p, -1), X.T @ attention.query.reshape(p, -1)
    low_rank = a1 * (X.T @ X - Z.T @ Z + read @ sought.T) / p  # the terms above: X'MX less Z'Z
    linear = a1 * (Z.T @ Z / p - np.eye(n)) + (f.kept_diagonal(p) if setting.keep_diagonal else 0.0) * np.eye(
        n
    )
    spread = _spread(f, Z)
    parts = {"K": K, "noise": noise, "low_rank": low_rank, "linear": linear, "spread": spread}
    left = {"wigner": noise - linear - spread, "rest": K - noise - low_rank}
    norms = {name: operator_norm(part) for name, part in (parts | left).items()}
    return Linearisation(setting, n, p, seed, **parts, norms=norms)


def _covered(setting: Setting) -> Nonlinearity:
    """The nonlinearity of a setting that the lemma covers; ValueError otherwise."""
    tokens = setting.tokens
    if len(setting.heads) > 1 or not isinstance(setting.f, Nonlinearity):
        raise ValueError(f"linearisation takes one head with an entry-wise f, got {setting.name}")
    if setting.dimension is not None:
        raise ValueError("linearisation takes weights I + low rank, got a matrix")
    if tokens.population is not None or tokens.norm_spread or tokens.normalise is not None:
        raise ValueError("linearisation takes tokens of white noise and their own norms")
    return setting.f


def _spread(f: Nonlinearity, Z: Array) -> Array:
    """a0 sqrt p 1 1' + (a2/sqrt 2) (s 1' + 1 s'), vectors over sqrt p."""
    a, p = f.coefficients(), Z.shape[0]
    s = np.sqrt(p) * ((Z * Z).sum(axis=0) / p - 1.0)
    half = 0.5 * a.a0 * np.sqrt(p) + a.a2 / np.sqrt(2.0) * s
    return np.asarray((half[:, None] + half[None, :]) / p)


def operator_norm(matrix: Array) -> float:
    """The largest singular value."""
    n = matrix.shape[0]
    if not matrix.any():
        return 0.0  # where Lanczos's method has no start
    if n <= DENSE:
        return float(np.linalg.norm(matrix, 2))
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).standard_normal((n,))
    return float(svds(matrix, k=1, tol=1e-6, v0=start, return_singular_vectors=False)[0])


call_as(linearisation, __name__)
