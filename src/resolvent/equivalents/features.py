"""The feature side of the pencil: what its p x p matrices do, given the block traces of the token side.

The pencil of the probe is L = A (x) I_n + Zs' D Zs + noise with Zs = Z/sqrt p, a small A and a symmetric D
of B x B blocks of size p; for one head with weights M

    D = [[0, beta M', 0], [beta M, 0, 0], [0, 0, c I]].

With N the block traces of L^-1 (N_ab = tr [L^-1]_ab/n), eliminating the tokens leaves

    G = (D^-1 + N/c (x) I_p)^-1,        P = tr_p G/p,        K(H) = tr_p [G (H (x) I) G]/p.

P enters the equation of N (`traces`), K its linear response, and mu'G mu what the signal sees. Here D is a
small matrix D_k on each of a few eigenspaces Pi_k of a token covariance (or of symmetric weights), plus W J
W' with the columns of W in given blocks, so that with Y_k = (I + D_k N/c)^-1

    G = sum_k Pi_k (x) Y_k D_k + Y W (J^-1 + sum_k (N/c Y_k) o (W' Pi_k W))^-1 W' Y'.

One eigenspace and thin factors W: any weights of low rank. Many eigenspaces, no W: covariances. Identity
plus a few columns: weights of finite rank on top of the identity. Theory page, section 8, in the form of
Woodbury's identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array


@dataclass(frozen=True)
class Features:
    """D, seen from the signal mu. K eigenspaces, B blocks, m columns of W.

    bulk (K, B, B) holds D_k, share (K,) the fraction of the p dimensions in each Pi_k. The columns of W lie
    in the blocks `block` (m,); coupling (m, m) is J, gram (K, m, m) W'Pi_k W, signal (K, m) W'Pi_k mu,
    signal_norm (K,) mu'Pi_k mu. `dimension` is p when the columns count in traces (then K = 1), infinity
    when they are finitely many.
    """

    bulk: Array
    share: Array
    signal_norm: Array
    coupling: Array
    block: NDArray[np.intp]
    gram: Array
    signal: Array
    dimension: float

    def balanced(self, scale: Array) -> Features:
        """Rows and columns of every block times scale (B,): D for traces N / (scale scale')."""
        square = scale[:, None] * scale
        columns = square[self.block[:, None], self.block]
        return Features(
            self.bulk * square,
            self.share,
            self.signal_norm,
            self.coupling * columns,
            self.block,
            self.gram,
            self.signal,
            self.dimension,
        )

    def dressed(self, N: Array, c: float) -> Dressed:
        """G at block traces N (B, B)."""
        Y = np.asarray(np.linalg.inv(np.eye(N.shape[0]) + self.bulk @ N / c), dtype=np.float64)
        pulled = (N / c) @ Y
        metric = (pulled[:, self.block[:, None], self.block] * self.gram).sum(axis=0)
        core = np.linalg.solve(np.eye(self.block.size) + self.coupling @ metric, self.coupling)
        return Dressed(self, Y, _symmetrised(Y @ self.bulk), _symmetrised(core))


def bulk_only(bulk: Array, share: Array, signal_norm: Array) -> Features:
    """Features without columns: the same small matrix on each eigenspace."""
    count, none = share.size, np.empty(0, dtype=np.intp)
    empty = np.empty((0, 0))
    return Features(
        bulk, share, signal_norm, empty, none, np.empty((count, 0, 0)), np.empty((count, 0)), np.inf
    )


@dataclass(frozen=True)
class Dressed:
    """G = Pi_k (x) bulk_k + Y_k W core W' Y_k' at some N: bulk (K, B, B), core (m, m)."""

    features: Features
    Y: Array
    bulk: Array
    core: Array

    def trace(self) -> Array:
        """P = tr_p G/p (B, B)."""
        P: Array = np.einsum("k,kab->ab", self.features.share, self.bulk)
        if np.isinf(self.features.dimension):
            return P
        return _symmetrised(P + self.Y[0] @ self._column_trace @ self.Y[0].T)

    def kernel(self) -> Array:
        """K(H)_ab = sum_cd kernel[a, b, c, d] H_cd, shape (B, B, B, B)."""
        K: Array = np.einsum("k,kac,kdb->abcd", self.features.share, self.bulk, self.bulk)
        if np.isinf(self.features.dimension):
            return K
        Y, bulk = self.Y[0], self.bulk[0]
        columns = Y @ self._column_trace @ Y.T
        K += np.einsum("ac,db->abcd", bulk, columns) + np.einsum("ac,db->abcd", columns, bulk)
        return np.asarray(
            K + np.einsum("ae,bf,efgh,cg,dh->abcd", Y, Y, self._column_kernel, Y, Y, optimize=True)
        )

    def signal(self) -> Array:
        """mu'G mu (B, B)."""
        P = np.einsum("k,kab->ab", self.features.signal_norm, self.bulk)
        return _symmetrised(P + self._reach @ self.core @ self._reach.T)

    def fields(self, f: Array) -> Array:
        """Inner products phi_a'phi_b of phi = G (f (x) mu), shape (B, B)."""
        parts, Y = self.features, self.Y
        direct = self.bulk @ f
        weight = self.core @ (self._reach.T @ f)
        columns = _by_block(np.outer(weight, weight) * parts.gram, parts.block, f.size)
        crossed = np.einsum(
            "ka,kb->kab", direct, np.einsum("kbi,ki->kb", Y[:, :, parts.block], parts.signal * weight)
        )
        out = np.einsum("k,ka,kb->ab", parts.signal_norm, direct, direct)
        out += (crossed + np.swapaxes(crossed, 1, 2)).sum(axis=0)
        return _symmetrised(out + np.einsum("kac,kcd,kbd->ab", Y, columns, Y))

    @cached_property
    def _reach(self) -> Array:
        """mu' Y W (B, m)."""
        return np.asarray(np.einsum("kbi,ki->bi", self.Y[:, :, self.features.block], self.features.signal))

    @cached_property
    def _column_trace(self) -> Array:
        """tr_p [W core W']/p (B, B)."""
        parts = self.features
        return np.asarray(
            _by_block(self.core * parts.gram, parts.block, self.Y.shape[-1])[0] / parts.dimension
        )

    @cached_property
    def _column_kernel(self) -> Array:
        """tr_p [(W core W')_ac (W core W')_db]/p as [a, b, c, d]."""
        parts, B = self.features, self.Y.shape[-1]
        at = [np.flatnonzero(parts.block == b) for b in range(B)]
        gram = parts.gram[0]
        out = np.zeros((B, B, B, B))
        turns = {
            (a, c, d): self.core[np.ix_(at[a], at[c])] @ gram[np.ix_(at[c], at[d])]
            for a in range(B)
            for c in range(B)
            for d in range(B)
            if at[a].size and at[c].size and at[d].size
        }
        for (a, c, d), there in turns.items():
            for b in range(B):
                if at[b].size:
                    out[a, b, c, d] = np.vdot(there, turns[d, b, a].T) / parts.dimension
        return out


def _by_block(matrices: Array, block: NDArray[np.intp], blocks: int) -> Array:
    """Sums of (K, m, m) matrices over the pairs of blocks: (K, B, B)."""
    member = (block[:, None] == np.arange(blocks)).astype(float)
    return np.asarray(member.T @ matrices @ member)


def _symmetrised(matrix: Array) -> Array:
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))
