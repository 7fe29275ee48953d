"""What one head's M = W_K' W_Q looks like next to the paper's I + w_K w_Q'.

M has rank at most d_head, far below d_model = d, so everything here comes from the d_head x d factors K and
Q: |M|_F^2 = tr (K K')(Q Q'), tr M = tr K Q', tr M^2 = tr (Q K')^2, and with thin K' = P R, Q' = P2 R2 the
singular values of M are those of the small R R2'.

Closeness to the identity. Over all M of rank d_head, tr M <= sqrt(d_head) |M|_F, so

    alignment = tr M / (sqrt(d_head) |M|_F)    lies in [-1, 1], 1 for a projection,

    min_c |M - c I|_F / |M|_F = sqrt(1 - alignment^2 d_head/d) >= sqrt(1 - d_head/d),

the floor: no head comes nearer to c I. How far from 0 the alignment is by chance is measured on mismatched
pairs, the keys of one head with the queries of another in the same layer, for which no trace is expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.checkpoints.head import Head

Array = NDArray[np.float64]
MOST_TURNS = 200


@dataclass(frozen=True)
class HeadSummary:
    """Scalar description of one head's M; ratios are NaN where M = 0.

    `chance` is the root mean square alignment of the layer's mismatched pairs (NaN with a single key head),
    `energy` the shares of |M|_F^2 in the leading 1, 2, 4, ... singular values, `symmetry` rho = tr
    M^2/|M|_F^2 (1 symmetric, -1 antisymmetric, 0 on average for independent entries), `shift` the c and
    `misfit` the relative distance |M - c I - L|_F/|M|_F of the best c I plus L of rank `fit_rank`, `floor`
    what no c I alone can go below.
    """

    layer: int
    head: int
    kind: str
    d_head: int
    d_model: int
    gain: bool
    norm: float
    trace: float
    alignment: float
    chance: float
    stable_rank: float
    energy: tuple[float, ...]
    symmetry: float
    fit_rank: int
    shift: float
    misfit: float
    floor: float
    notes: tuple[str, ...]

    @property
    def beyond_chance(self) -> float:
        """The alignment in units of its chance level."""
        return self.alignment / self.chance if self.chance else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self) | {"beyond_chance": self.beyond_chance}

    def __str__(self) -> str:
        return (
            f"layer {self.layer} head {self.head}: |M| {self.norm:.3g}, alignment {self.alignment:+.3f} "
            f"({self.beyond_chance:+.1f} x chance), stable rank {self.stable_rank:.1f}, symmetry "
            f"{self.symmetry:+.2f}, misfit of {self.shift:.2g} I + rank {self.fit_rank}: {self.misfit:.3f}"
        )


def summarise_heads(heads: Iterable[Head], *, gain: bool = False, fit_rank: int = 1) -> Iterator[HeadSummary]:
    """Summaries in order, with one layer in memory at a time; `gain` folds the norm's gain into M.

    Heads of a layer must come one after another, as `read_heads` gives them.

    Raises ValueError for a negative `fit_rank`, weights that aren't finite, and `gain` where none is known.

    >>> import numpy as np
    >>> eye = np.eye(2, 8)
    >>> head = Head(0, 0, eye, eye, None, None, "toy", None, "memory")
    >>> (summary,) = summarise_heads([head], fit_rank=0)
    >>> round(summary.alignment, 6), round(summary.misfit, 6), round(summary.floor, 6)
    (1.0, 0.866025, 0.866025)
    """
    if isinstance(fit_rank, bool) or not isinstance(fit_rank, int) or fit_rank < 0:
        raise ValueError(f"fit_rank must be an integer from 0 on, got {fit_rank!r}")
    for _, members in groupby(heads, key=lambda head: head.layer):
        layer = list(members)
        factors = [head.key_query(gain=gain) for head in layer]
        chance = _chance(factors)
        for head, (K, Q) in zip(layer, factors, strict=True):
            yield _summary(head, K, Q, chance, gain, fit_rank)


def singular_directions(
    head: Head, count: int = 1, *, gain: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The leading left (key) directions, singular values and right (query) directions of M = U diag(s) V'.

    U and V are d_model x count.

    Raises ValueError when `count` isn't from 1 to d_head.
    """
    if not 1 <= count <= head.d_head:
        raise ValueError(f"count must be from 1 to d_head = {head.d_head}, got {count}")
    U, s, V = _svd(*head.key_query(gain=gain))
    return U[:, :count], s[:count], V[:, :count]


def _svd(K: Array, Q: Array) -> tuple[Array, Array, Array]:
    """Thin SVD of K'Q from its factors."""
    P, R = np.linalg.qr(K.T)
    P2, R2 = np.linalg.qr(Q.T)
    U, s, Vt = np.linalg.svd(R @ R2.T)
    return P @ U[:, : len(s)], s, P2 @ Vt[: len(s)].T


def _chance(factors: list[tuple[Array, Array]]) -> float:
    """Root mean square alignment of K_a'Q_b over heads a, b of a layer that don't share their keys."""
    keys = [hash(K.tobytes()) for K, _ in factors]
    grams = [(K @ K.T, Q @ Q.T) for K, Q in factors]
    squares = [
        float(np.vdot(factors[a][0], factors[b][1])) ** 2 / (len(factors[a][0]) * energy)
        for a in range(len(keys))
        for b in range(len(keys))
        if keys[a] != keys[b] and (energy := float(np.vdot(grams[a][0], grams[b][1]))) > 0
    ]
    return float(np.sqrt(np.mean(squares))) if squares else float("nan")


def _norm(K: Array, Q: Array) -> float:
    return float(np.sqrt(max(float(np.vdot(K @ K.T, Q @ Q.T)), 0.0)))


def _alignment(K: Array, Q: Array, norm: float) -> float:
    return float(np.vdot(K, Q) / (np.sqrt(len(K)) * norm)) if norm else float("nan")


def _summary(head: Head, K: Array, Q: Array, chance: float, gain: bool, fit_rank: int) -> HeadSummary:
    norm, (d_head, d) = _norm(K, Q), K.shape
    _, values, _ = _svd(K, Q)
    QK = Q @ K.T
    with np.errstate(invalid="ignore", divide="ignore"):  # M = 0 makes every ratio NaN
        shares = np.cumsum(values**2) / np.float64(norm) ** 2
        stable_rank = np.float64(norm) ** 2 / np.square(values[0])
        symmetry = np.sum(QK * QK.T) / np.float64(norm) ** 2
    shift, misfit = _best_shift(K, Q, norm, values, fit_rank) if norm else (0.0, float("nan"))
    return HeadSummary(
        head.layer, head.head, head.kind, d_head, d, gain,
        norm=norm,
        trace=float(np.vdot(K, Q)),
        alignment=_alignment(K, Q, norm),
        chance=chance,
        stable_rank=float(stable_rank),
        energy=tuple(float(shares[2**i - 1]) for i in range(d_head.bit_length()) if 2**i <= len(shares)),
        symmetry=float(symmetry),
        fit_rank=fit_rank,
        shift=shift,
        misfit=misfit,
        floor=float(np.sqrt(max(1 - d_head / d, 0.0))),
        notes=head.notes,
    )  # fmt: skip


def _best_shift(K: Array, Q: Array, norm: float, values: Array, rank: int) -> tuple[float, float]:
    """c and relative misfit of the best c I + L, L of the given rank; NaN should the descent not settle.

    For fixed c the best L is the leading part of M - c I, for fixed L the best c is tr(M - L)/d: taking turns
    descends, to a minimum that may be local. As |tr L| <= rank |M|_2 up to terms in c, the best c is about
    that over d from tr M/d; the descents from both ends of this range and from c = 0 are compared.
    """
    d, trace = K.shape[1], float(np.vdot(K, Q))
    if rank == 0:
        return trace / d, float(np.sqrt(max(1 - trace**2 / (d * norm**2), 0.0)))
    B, reach = _compression(K, Q), rank * float(values[0]) / d
    starts = (0.0, trace / d - reach, trace / d + reach)
    misfit, shift = min(_descend(B, d, trace, norm, rank, start) for start in starts)
    return shift, float(np.sqrt(max(misfit, 0.0))) / norm if np.isfinite(misfit) else float("nan")


def _compression(K: Array, Q: Array) -> Array:
    """M on the span of its rows and columns; on the other dimensions M = 0."""
    P, _ = np.linalg.qr(np.concatenate([K, Q]).T)
    compressed: Array = (P.T @ K.T) @ (Q @ P)
    return compressed


def _descend(B: Array, d: int, trace: float, norm: float, rank: int, c: float) -> tuple[float, float]:
    """Taking turns from c: (|M - c I - L|_F^2, c), infinite where it doesn't settle."""
    for _ in range(MOST_TURNS):
        energy, removed = _leading(B, rank, c)
        better = (trace - removed) / d
        if abs(better - c) <= 1e-12 * norm:
            return norm**2 - 2 * c * trace + d * c**2 - energy, c
        c = better
    return float("inf"), float("nan")


def _leading(B: Array, rank: int, c: float) -> tuple[float, float]:
    """Energy and trace of the leading `rank` part of M - c I.

    Outside the span of M it is -c in every direction, at the best c too little to lead: |c| is then at most
    about d_head/d times the first singular value left over.
    """
    from scipy.linalg import eigh

    A = B - c * np.eye(len(B))
    energies, V = eigh(A.T @ A, subset_by_index=(max(len(B) - rank, 0), len(B) - 1))
    return float(np.sum(energies)), float(np.vdot(V, A @ V))
