"""Classes of tokens: what the refined equivalent conditions on.
 A span of r directions holds the signal and the low-rank part of the weights. Given its class a, a token has
label y_a, coordinates P_a in the span, and outside of it |z|^2 = p R_a^2 with an otherwise exchangeable
direction. Its share of all tokens is pi_a. Scores split into a known and a Gaussian part,

    S_ab = delta_ab + tau_ab xi,
    delta_ab = left_a.right_b/sqrt p,    tau_ab = R_a R_b sqrt(mean(l^2) p/(p - r)),

with l the eigenvalues, of mean 1, of the covariance of z/R. For the weights I + w_K w_Q' the factors are
left = (P, P.w_K) and right = (P, P.w_Q). Theory page, section 12.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.averages import Array
from resolvent.equivalents.refined.score_law import ScoreLaw


def _white() -> Array:
    return np.ones(1)


@dataclass(frozen=True)
class Classes:
    """A classes of tokens in dimension p, n tokens in all.

    weight (A,), positive and of sum 1; label (A,), the mean label of the class, in [-1, 1]; position (A, r),
    coordinates in an orthonormal basis of the span; norm (A,), R = |z|/sqrt p > 0; left and right (A, s), the
    factors of the scores; eigenvalues (L,) and shares (L,), the law of the eigenvalues of the covariance of
    z/R, both positive, shares of sum 1 and eigenvalues of mean 1 (white noise when left out); fresh (A, s),
    the right factors of a token that the weights were not fitted to (those in `right` when left out); law,
    that of u_i.u_j sqrt p for z = |z| u (Gaussian when left out).

    Raises ValueError, naming the field, for anything else.
    """

    weight: Array
    label: Array
    position: Array
    norm: Array
    left: Array
    right: Array
    p: float
    n: float
    eigenvalues: Array = field(default_factory=_white)
    shares: Array = field(default_factory=_white)
    fresh: Array | None = None
    law: ScoreLaw | None = None

    def __post_init__(self) -> None:
        count, span = self.position.shape if self.position.ndim == 2 else (-1, -1)
        factors = (count, self.left.shape[-1] if self.left.ndim else 0)
        shapes = {"weight": (count,), "label": (count,), "norm": (count,), "left": factors, "right": factors}
        if self.fresh is not None:
            shapes["fresh"] = factors
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {getattr(self, name).shape}")
        if self.eigenvalues.ndim != 1 or self.eigenvalues.shape != self.shares.shape:
            raise ValueError(
                "eigenvalues and shares must be vectors of one length, "
                f"got {self.eigenvalues.shape} and {self.shares.shape}"
            )
        if not self.p > span:
            raise ValueError(f"p must be above the dimension {span} of the span, got {self.p:g}")
        if not self.n > 0:
            raise ValueError(f"n must be positive, got {self.n:g}")
        for name in ("weight", "norm", "eigenvalues", "shares"):
            _require(name, getattr(self, name) > 0.0, "positive")
        _require("label", np.abs(self.label) <= 1.0, "between -1 and 1")
        for name in ("position", "norm", "left", "right", "eigenvalues"):
            _require(name, np.isfinite(getattr(self, name)), "finite")
        for name, mean in (("weight", self.weight.sum()), ("shares", self.shares.sum())):
            if abs(mean - 1.0) > 1e-9:
                raise ValueError(f"{name} must sum to 1, got {mean:.10g}")
        if abs(self.shares @ self.eigenvalues - 1.0) > 1e-9:
            raise ValueError(f"eigenvalues must have mean 1, got {self.shares @ self.eigenvalues:.10g}")

    @property
    def ratio(self) -> float:
        """p/n."""
        return self.p / self.n

    @property
    def share_outside(self) -> float:
        """(p - r)/p, the share of the dimensions that are not in the span."""
        return float((self.p - self.position.shape[1]) / self.p)

    def scores(self) -> Array:
        """delta_ab, the known part of the score of a token of class a (row) with one of class b."""
        return np.asarray(self.left @ self.right.T / np.sqrt(self.p))

    def for_a_fresh_token(self) -> Classes:
        """The same classes, with scores of the context (rows) with a fresh token (columns)."""
        return self if self.fresh is None else replace(self, right=self.fresh, fresh=None)

    def rests(self) -> ScoreLaw:
        """The law of the rest of that score."""
        sizes = np.outer(self.norm, self.norm)
        if self.law is not None:
            return self.law.scaled(sizes)
        spread = np.sqrt(self.shares @ self.eigenvalues**2 / self.share_outside)
        return ScoreLaw(np.ones((1, *sizes.shape)), np.zeros((1, *sizes.shape)), spread * sizes[None])

    def spreads(self) -> Array:
        """tau_ab, its standard deviation."""
        return self.rests().spread()

    def __str__(self) -> str:
        return (
            f"{self.weight.size} classes, span {self.position.shape[1]}, p = {self.p:g}, n = {self.n:g}, "
            f"label mean {round(float(self.weight @ self.label), 12) + 0.0:.3g}"
        )


def _require(name: str, good: NDArray[np.bool_], allowed: str) -> None:
    if not np.all(good):
        raise ValueError(f"{name} must be {allowed} in every entry")
