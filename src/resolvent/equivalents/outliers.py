"""Isolated eigenvalues beside the bulk, and what they come from.

With the directions u = (y, 1, s) on the token side and (Z'mu, keys, queries) on the feature side, C the
symmetric coefficients of the low-rank parts of section 3 over pairs of block and direction, C = Q sign Q',
and B the noise-only forms of section 5 at gamma = -z,

    F = (B^-1 + C)^-1 = B - B Q W^-1 Q' B,      W(z) = sign + Q' B(z) Q,      y'(H'H/n - z)^-1 y/n = c F_yy.

Isolated eigenvalues are the z where W is singular. Outside the bulk dB/dz is positive semi-definite, so
that every eigenvalue of W rises with z: comparing its signs at the two ends of a gap counts the zeros,
double ones too, and bisection finds them. With W w = 0 and r = Q w the eigenvector v has overlaps
(u'v)(u''v)/n = c (Br)_u (Br)_u'/(r'B'r), and r'B'r, split over the directions, tells what holds it: the
signal (y, mu), the weights, or the constant direction with the norm fluctuation s that a2 leaves. Theory
page, section 8d.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from resolvent.equivalents.averages import Array
from resolvent.equivalents.plane import Plane

LABELS, CONSTANT, NORM, MU = range(4)
NEAREST = 1e-7  # closest distance to the bulk looked at, relative to the size of the spectrum
BESIDE_ATOM = 1e-4  # closest distance to an atom, relative to the gap: what stays at the atom shows up within
ROUNDS, PARTS = 8, 24  # each round of bisection cuts the bracket into so many parts


@dataclass(frozen=True)
class Outlier:
    """An isolated eigenvalue: its place, its eigenvector's squared overlap with y/sqrt n, and its kind."""

    place: float
    overlap: float
    kind: str


@dataclass(frozen=True)
class LowRank:
    """The low-rank parts of K, and of X'X/n when `ratio` is given (then the spectrum is that of H'H/n)."""

    a1: float
    gram: Array
    mean_spike: float
    a2: float
    norm_variance: float
    label_mean: float
    ratio: float | None

    @property
    def directions(self) -> Array:
        """Gram matrix of the token directions, then of the feature directions (3 + 1 + 2r square)."""
        size = 3 + self.gram.shape[0]
        out = np.zeros((size, size))
        out[LABELS, CONSTANT] = out[CONSTANT, LABELS] = self.label_mean
        out[LABELS, LABELS] = out[CONSTANT, CONSTANT] = 1.0
        out[NORM, NORM] = self.norm_variance
        out[MU:, MU:] = self.gram
        return out

    @property
    def attention(self) -> Array:
        """Coefficients of K in the directions: K = ... + U attention U'."""
        r = (self.gram.shape[0] - 1) // 2
        keys, queries = slice(MU + 1, MU + 1 + r), slice(MU + 1 + r, MU + 1 + 2 * r)
        mu_key, mu_query = self.gram[0, 1 : 1 + r], self.gram[0, 1 + r :]
        out = np.zeros((3 + self.gram.shape[0],) * 2)
        out[LABELS, LABELS] = self.gram[0, 0] + mu_key @ mu_query
        out[LABELS, MU] = out[MU, LABELS] = 1.0
        out[LABELS, queries] = mu_key
        out[keys, LABELS] = mu_query
        out[keys, queries] = np.eye(r)
        out *= self.a1
        out[CONSTANT, CONSTANT] = self.mean_spike
        out[NORM, CONSTANT] = out[CONSTANT, NORM] = self.a2 / np.sqrt(2.0)
        return out

    @property
    def symmetric(self) -> bool:
        """Whether K is: as a form, attention and its transpose agree."""
        skew = self.attention - self.attention.T
        return bool(np.abs(self.directions @ skew @ self.directions).max() < 1e-9)

    @property
    def coefficients(self) -> Array:
        """C over (block, direction) pairs, square."""
        K = self.attention
        if self.ratio is None:
            return 0.5 * (K + K.T)
        tokens = np.zeros_like(K)
        tokens[LABELS, LABELS] = self.gram[0, 0]
        tokens[LABELS, MU] = tokens[MU, LABELS] = 1.0
        empty = np.zeros_like(K)
        return np.block([[empty, K.T, empty], [K, empty, empty], [empty, empty, self.ratio * tokens]])

    @property
    def factor(self) -> tuple[Array, Array]:
        """Q (B d, k) and the signs (k,) with C = Q diag(signs) Q'."""
        values, vectors = np.linalg.eigh(self.coefficients)
        good = np.abs(values) > 1e-12 * np.abs(values).max(initial=0.0)
        return vectors[:, good] * np.sqrt(np.abs(values[good])), np.sign(values[good])

    def forms(self, token: Array, feature: Array) -> Array:
        """B over (block, direction) pairs, from (B, B) forms of token and of feature directions."""
        gram = self.directions
        on_tokens, on_features = np.zeros_like(gram), np.zeros_like(gram)
        on_tokens[:MU, :MU], on_features[MU:, MU:] = gram[:MU, :MU], gram[MU:, MU:]
        return np.kron(token, on_tokens) + np.kron(feature, on_features)


def outliers(
    plane: Plane, low_rank: LowRank, support: Array, atoms: tuple[float, ...]
) -> tuple[Outlier, ...]:
    """All isolated eigenvalues outside the support and off the atoms, in increasing order."""
    reach = _reach(plane, low_rank)
    bottom = -reach if low_rank.ratio is None else 0.0
    ends = [bottom, *support.ravel(), reach]
    found: list[Outlier] = []
    for left, right in zip(ends[::2], ends[1::2], strict=True):
        walls = sorted({left, right, *(a for a in atoms if left < a < right)})
        for a, b in pairwise(walls):
            low, high = (
                BESIDE_ATOM * (b - a) if wall in atoms else NEAREST * min(plane.scale, b - a)
                for wall in (a, b)
            )
            if b - a > NEAREST * plane.scale:
                found += _between(plane, low_rank, a + low, b - high)
    return tuple(found)


def _reach(plane: Plane, low_rank: LowRank) -> float:
    """Beyond this there is no eigenvalue: the size of the bulk plus that of the low-rank parts."""
    root_c = np.sqrt(plane.c)
    lengths = np.sqrt(np.diag(low_rank.directions) / plane.c)  # |y|/sqrt p
    lengths[MU:] *= 1.0 + root_c  # |Z'v|/sqrt p
    added = float(lengths @ np.abs(low_rank.attention) @ lengths)
    if low_rank.ratio is None:
        return plane.scale + added
    tokens = 1.0 + root_c  # |Z|/sqrt n
    kernel = np.sqrt(plane.scale) / tokens + added
    return float((kernel * (tokens + np.sqrt(low_rank.gram[0, 0]))) ** 2)


def _between(plane: Plane, low_rank: LowRank, left: float, right: float) -> list[Outlier]:
    """Isolated eigenvalues between two points of a gap: eigenvalues of W that change sign."""
    low, high = _eigenvalues(plane, low_rank, np.array([left, right]))
    crossing = np.flatnonzero((low < 0.0) & (high > 0.0))[::-1]  # the highest eigenvalue of W vanishes first
    return [
        _described(plane, low_rank, _zero(plane, low_rank, int(k), left, right), int(k)) for k in crossing
    ]


def _zero(plane: Plane, low_rank: LowRank, k: int, a: float, b: float) -> float:
    """Where the k-th eigenvalue of W, rising from a to b, vanishes."""
    for _ in range(ROUNDS):
        x = np.linspace(a, b, PARTS + 1)
        above = _eigenvalues(plane, low_rank, x[1:-1])[:, k] > 0.0
        first = int(np.argmax(np.append(above, True)))
        a, b = float(x[first]), float(x[first + 1])
    return 0.5 * (a + b)


def _eigenvalues(plane: Plane, low_rank: LowRank, x: Array) -> Array:
    """Sorted eigenvalues of W at real x outside the bulk, (rows, k)."""
    N, _ = plane.traces(x)
    Q, sign = low_rank.factor
    W = Q.T @ _forms(plane, low_rank, N.real) @ Q + np.diag(sign)
    return np.asarray(np.linalg.eigvalsh(W), dtype=np.float64)


def _forms(plane: Plane, low_rank: LowRank, N: Array) -> Array:
    return low_rank.forms(N / plane.c, N @ plane.dressed(N) / plane.c)


def _described(plane: Plane, low_rank: LowRank, place: float, k: int) -> Outlier:
    """Overlap of the eigenvector with the labels, and its kind."""
    z = np.array([place])
    N = plane.traces(z)[0].real
    X, slope = plane.dressed(N), plane.slopes(z, N)
    B = _forms(plane, low_rank, N)[0]
    dB = low_rank.forms(slope / plane.c, np.swapaxes(X, 1, 2) @ slope @ X / plane.c)[0]
    Q, sign = low_rank.factor
    r = Q @ np.linalg.eigh(Q.T @ B @ Q + np.diag(sign))[1][:, k]
    total = r @ dB @ r
    share = (r * (dB @ r) / total).reshape(-1, low_rank.directions.shape[0]).sum(axis=0)
    return Outlier(place, float(plane.c * (B @ r)[LABELS] ** 2 / total), _kind(share, low_rank))


def _kind(share: Array, low_rank: LowRank) -> str:
    """Which directions hold an eigenvector, by their shares of r'B'r."""
    signal, weights = share[LABELS] + share[MU], share[MU + 1 :].sum()
    if share[CONSTANT] + share[NORM] > signal + weights:
        mean = low_rank.mean_spike != 0.0 and (low_rank.a2 == 0.0 or share[CONSTANT] > 3.0 * share[NORM])
        return "mean (a0)" if mean else "norm fluctuation (a2)"
    return "weights" if weights > 0.0 and signal < 1e-6 else "signal"
