"""The key-query weights: M = I + w_K w_Q' by inner products of mu, w_K and w_Q, and the ways to other M."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from resolvent.setting.low_rank import LowRankWeights
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.ranges import COSINE, NON_NEGATIVE, Array, common_shape, number


@dataclass(frozen=True)
class Weights:
    """M = I + w_K w_Q': norms of w_K and w_Q and the cosines between them and the signal mu; fields may be
    arrays.

    `align` scales w_K = w_Q = align mu and excludes the other five. Build with `none`, `aligned`,
    `from_angles` or `from_vectors`. `low_rank`, `matrix` and `factors` give weights of other kinds, which a
    setting takes as well.
    """

    align: Array | float | None = None
    key_norm: Array | float = 0.0
    query_norm: Array | float = 0.0
    key_cos: Array | float = 0.0
    query_cos: Array | float = 0.0
    key_query_cos: Array | float = 0.0

    def __post_init__(self) -> None:
        norms, cosines = ("key_norm", "query_norm"), ("key_cos", "query_cos", "key_query_cos")
        if self.align is not None:
            object.__setattr__(self, "align", number("align", self.align))
            given = [name for name in (*norms, *cosines) if np.any(np.asarray(getattr(self, name)) != 0.0)]
            if given:
                raise ValueError(f"align already fixes the weights, so {given[0]} cannot be given with it")
            return
        for name in norms:
            object.__setattr__(self, name, number(name, getattr(self, name), NON_NEGATIVE))
        for name in cosines:
            object.__setattr__(self, name, number(name, getattr(self, name), COSINE))
        common_shape(self.as_dict())
        a, b, c = self.key_cos, self.query_cos, self.key_query_cos
        impossible = 1.0 + 2.0 * a * b * c - a * a - b * b - c * c < -1e-9
        if np.any(impossible):
            a, b, c = (np.broadcast_to(v, np.shape(impossible))[impossible].flat[0] for v in (a, b, c))
            raise ValueError(
                "key_cos, query_cos and key_query_cos must be the cosines of three vectors: "
                f"key_query_cos cannot be {c:g} when they are {a:g} and {b:g}"
            )

    @classmethod
    def none(cls) -> Weights:
        """M = I: attention without learnt weights."""
        return cls()

    @classmethod
    def aligned(cls, align: ArrayLike) -> Weights:
        """w_K = w_Q = align mu."""
        return cls(align=number("align", align))

    @classmethod
    def from_angles(
        cls,
        *,
        key_norm: ArrayLike,
        query_norm: ArrayLike,
        key_cos: ArrayLike = 0.0,
        query_cos: ArrayLike = 0.0,
        key_query_cos: ArrayLike | None = None,
    ) -> Weights:
        """Norms and cosines with mu; without key_query_cos the parts outside mu are orthogonal."""
        key, query = number("key_cos", key_cos, COSINE), number("query_cos", query_cos, COSINE)
        both = key * query if key_query_cos is None else number("key_query_cos", key_query_cos, COSINE)
        return cls(None, number("key_norm", key_norm), number("query_norm", query_norm), key, query, both)

    @classmethod
    def from_vectors(cls, key: ArrayLike, query: ArrayLike, mu: ArrayLike) -> Weights:
        """From w_K, w_Q and mu in R^p; a zero vector has cosine 0 with everything."""
        vectors = [np.atleast_1d(number(name, v)) for name, v in (("key", key), ("query", query), ("mu", mu))]
        shapes = {v.shape for v in vectors}
        if len(shapes) > 1 or vectors[0].ndim != 1:
            raise ValueError(
                f"key, query and mu must be vectors of one length, got {[v.shape for v in vectors]}"
            )
        w_K, w_Q, signal = vectors
        return cls(
            None,
            float(np.linalg.norm(w_K)),
            float(np.linalg.norm(w_Q)),
            _cosine(w_K, signal),
            _cosine(w_Q, signal),
            _cosine(w_K, w_Q),
        )

    @staticmethod
    def low_rank(keys: ArrayLike, queries: ArrayLike, mu: ArrayLike) -> LowRankWeights:
        """M = I + K'Q for keys and queries (r, p); mu (p,) gives the direction of the signal, not its size.

        Source: theory page, sections 5 and 8c.

        >>> Weights.low_rank(np.eye(3)[:2], np.eye(3)[:2], mu=[1.0, 0.0, 0.0]).rank
        2
        """
        return LowRankWeights.from_vectors(keys, queries, mu)

    @staticmethod
    def matrix(
        M: ArrayLike, *, tau: float | None = None, signal: str | ArrayLike = "random"
    ) -> MatrixWeights:
        """Any square matrix M (p, p), in place of I + low rank.

        The score of two tokens has the standard deviation |M|_F/sqrt p: as given, or scaled to `tau`.
        `signal` is the direction of mu: a vector (p,), "random", or M's first left ("top-key") or right
        ("top-query") singular vector. Raises ValueError, in one line, unless M is square, finite, real and
        not zero.

        Source: theory page, section 8.

        >>> Weights.matrix(np.diag([1.0, 2.0, 2.0]), tau=1.0).factors.tau
        1.0
        """
        return MatrixWeights.from_matrix(M, tau, signal)

    @staticmethod
    def factors(
        key: ArrayLike,
        query: ArrayLike,
        *,
        tau: float | None = None,
        signal: str | ArrayLike = "random",
    ) -> MatrixWeights:
        """M = W_K'W_Q for the weights (d, p) of a head, reduced to its column and row spaces; see `matrix`.

        Source: theory page, section 8.

        >>> Weights.factors(np.ones((1, 4)), np.ones((1, 4))).factors.stable_rank
        1.0
        """
        return MatrixWeights.from_factors(key, query, tau, signal)

    def gram(self, snr: Array | float) -> Array:
        """Inner products of (mu, w_K, w_Q) for |mu|^2 = snr, shape (..., 3, 3)."""
        mu = np.sqrt(snr)
        values: tuple[Array | float, ...] = (
            self.key_norm,
            self.query_norm,
            self.key_cos,
            self.query_cos,
            self.key_query_cos,
        )
        if self.align is not None:
            norm, sign = np.abs(self.align) * mu, np.sign(self.align)
            values = (norm, norm, sign, sign, 1.0)
        *lengths, ab, ac, bc = np.broadcast_arrays(mu, *values)
        size = np.stack(lengths, axis=-1)
        gram: Array = size[..., :, None] * size[..., None, :]
        for (i, j), cosine in (((0, 1), ab), ((0, 2), ac), ((1, 2), bc)):
            gram[..., i, j] *= cosine
            gram[..., j, i] *= cosine
        return gram

    def as_dict(self) -> dict[str, Array | float]:
        """The fields that fix the weights."""
        if self.align is not None:
            return {"align": self.align}
        names = ("key_norm", "query_norm", "key_cos", "query_cos", "key_query_cos")
        return {name: getattr(self, name) for name in names}


def _cosine(u: Array, v: Array) -> float:
    size = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float(np.clip(u @ v / size, -1.0, 1.0)) if size > 0.0 else 0.0
