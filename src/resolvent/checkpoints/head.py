"""One attention head of a pretrained model.

A token x_j (a column of X, d_model long) asks, a token x_i answers, with the score

    S_ij = (W_K x_i) . (W_Q x_j) = x_i' M x_j,     M = W_K' W_Q      (d_model x d_model, rank at most d_head)

so rows of S and the left side of M belong to keys, columns and the right side to queries (the theory page,
sections 1 and 8). The transposed convention M = W_Q' W_K, common elsewhere, is M' here: the trace, the norm
and the symmetry are the same, left and right change places.

A head is kept as its two factors. The d_model x d_model product exists only when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Head:
    """The key and query weights of one head; with grouped keys, each query head with the key head it reads.

    `W_Q` and `W_K` are d_head x d_model, `b_Q` and `b_K` d_head long or None. `norm_gain` is the gain of the
    normalisation whose output the head reads (d_model long), None when the model has none or it isn't known.
    `kind` names the architecture, `source` the file and tensor, `notes` what M leaves out.

    Raises ValueError when the shapes don't belong together.
    """

    layer: int
    head: int
    W_Q: Array
    W_K: Array
    b_Q: Array | None
    b_K: Array | None
    kind: str
    norm_gain: Array | None
    source: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.W_Q.ndim != 2 or self.W_Q.shape != self.W_K.shape or 0 in self.W_Q.shape:
            raise ValueError(
                f"W_Q and W_K must be d_head x d_model alike, got {self.W_Q.shape} and {self.W_K.shape}"
            )
        for name, bias in (("b_Q", self.b_Q), ("b_K", self.b_K)):
            if bias is not None and bias.shape != (self.d_head,):
                raise ValueError(f"{name} must have shape ({self.d_head},), got {bias.shape}")
        if self.norm_gain is not None and self.norm_gain.shape != (self.d_model,):
            raise ValueError(f"norm_gain must have shape ({self.d_model},), got {self.norm_gain.shape}")

    @property
    def d_head(self) -> int:
        """Dimension of the head's keys and queries, the largest rank M can have."""
        return int(self.W_Q.shape[0])

    @property
    def d_model(self) -> int:
        """Dimension of the tokens."""
        return int(self.W_Q.shape[1])

    def key_query(self, *, gain: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factors K, Q (d_head x d_model, float64) with M = K' Q.

        With `gain` the gain g of the normalisation is folded in, K diag(g) and Q diag(g): then M acts on the
        normalised token before its gain, and M becomes diag(g) M diag(g).

        Raises ValueError for weights that are not finite, and for `gain` when the gain isn't known.

        >>> import numpy as np
        >>> gain = np.array([1.0, 2.0, 3.0])
        >>> head = Head(0, 0, np.eye(2, 3), 2 * np.eye(2, 3), None, None, "toy", gain, "memory")
        >>> K, Q = head.key_query(gain=True)
        >>> (K.T @ Q).diagonal()
        array([2., 8., 0.])
        """
        K, Q = self.W_K.astype(np.float64), self.W_Q.astype(np.float64)
        if gain:
            if self.norm_gain is None:
                raise ValueError(
                    f"layer {self.layer} head {self.head}: no norm gain is known for {self.source}"
                )
            K, Q = K * self.norm_gain, Q * self.norm_gain
        if not (np.isfinite(K).all() and np.isfinite(Q).all()):
            raise ValueError(f"layer {self.layer} head {self.head}: weights are not finite in {self.source}")
        return K, Q

    def matrix(self, *, gain: bool = False) -> NDArray[np.float64]:
        """M = W_K' W_Q itself, d_model x d_model; prefer `key_query` for anything but a look."""
        K, Q = self.key_query(gain=gain)
        return K.T @ Q

    def __str__(self) -> str:
        return f"layer {self.layer} head {self.head} ({self.kind}, {self.d_head} of {self.d_model})"
