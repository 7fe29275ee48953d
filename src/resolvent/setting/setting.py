"""A setting: tokens, weights, nonlinearity, ridge and the conventions of the attention matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from resolvent.equivalents.arguments import LARGEST_PRODUCT
from resolvent.nonlinearity import Nonlinearity, Softmax
from resolvent.setting.heads import AnyWeights, Head, Spec, checked_heads, joint_gram
from resolvent.setting.matrix import MatrixWeights
from resolvent.setting.ranges import NON_NEGATIVE, Array, common_shape, flag, number
from resolvent.setting.tokens import Tokens
from resolvent.setting.weights import Weights


@dataclass(frozen=True)
class Setting:
    """What is predicted and measured: a ridge probe on H = X (f(X'MX/sqrt p)/sqrt p + skip I).

    weights
        `Weights.none`, `aligned`, `from_angles`, `from_vectors`, `low_rank`, `matrix` or `factors`.
    nonlinearity
        A name ("tanh"), an expression in t ("t*tanh(t)"), a Python function, a `Nonlinearity`, or "softmax":
        every column of K is then (n/sqrt p) softmax(beta S), the self-score masked.
    centred
        Whether the mean of f under a standard normal is removed: yes, unless a `Nonlinearity` says otherwise.
    ridge
        Penalty, zero or positive; 0 is the ridgeless limit.
    skip
        Weight of a residual connection.
    keep_diagonal
        Whether tokens attend to themselves. By default the diagonal of f(X'MX/sqrt p) is set to zero.
    beta
        Inverse temperature of softmax, 1 by default.

    Lists of weights, of nonlinearities, or of both, are heads side by side: the probe sees their concatenated
    features. Numbers may be arrays that broadcast together. Raises ValueError or TypeError, in one line, for
    anything out of range.

    >>> setting = Setting(Tokens(ratio=0.5, snr=2.0), Weights.aligned(1.0), "tanh", ridge=0.1)
    >>> setting.shape
    ()
    >>> len(Setting(nonlinearity=["tanh", "softmax"], beta=0.5).heads)
    2
    """

    tokens: Tokens = field(default_factory=Tokens)
    weights: AnyWeights | Sequence[AnyWeights] = field(default_factory=Weights.none)
    nonlinearity: Spec | Sequence[Spec] = "tanh"
    centred: bool | None = None
    ridge: Array | float = 0.1
    skip: Array | float = 0.0
    keep_diagonal: bool = False
    beta: Array | float | None = None
    heads: tuple[Head, ...] = field(init=False, repr=False, compare=False)
    shape: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tokens, Tokens):
            raise TypeError(f"tokens must be a Tokens, got {self.tokens!r}")
        centred = None if self.centred is None else flag("centred", self.centred)
        object.__setattr__(self, "keep_diagonal", flag("keep_diagonal", self.keep_diagonal))
        object.__setattr__(self, "ridge", number("ridge", self.ridge, NON_NEGATIVE))
        object.__setattr__(self, "skip", number("skip", self.skip))
        if self.beta is not None:
            object.__setattr__(self, "beta", number("beta", self.beta))
        heads = checked_heads(
            self.nonlinearity, self.weights, centred, self.beta, self.keep_diagonal, self.tokens.score_scale
        )
        object.__setattr__(self, "heads", heads)
        if centred is None and not heads[0].softmax:
            object.__setattr__(self, "centred", heads[0].f.centred)
        self._require_one_law()
        object.__setattr__(self, "shape", common_shape(self.numbers()))
        self._require_sizes()

    def _require_one_law(self) -> None:
        tokens = self.tokens
        if self.dimension is not None and (tokens.population is not None or not tokens.isotropic):
            raise ValueError(
                "weights given as a matrix need white Gaussian noise, without layer normalisation: "
                "for noise of covariance Sigma give Sigma^(1/2) M Sigma^(1/2) and whitened tokens"
            )

    def _require_sizes(self) -> None:
        """Refuse vectors whose inner products double precision cannot hold against noise of size one."""
        if self.dimension is not None:
            return
        squares = np.diagonal(self.gram, axis1=-2, axis2=-1)
        names = ("snr", *(["key_norm"] * len(self.owners)), *(["query_norm"] * len(self.owners)))
        for index, name in enumerate(names):
            if np.any(squares[..., index] > LARGEST_PRODUCT):
                owner = self.heads[self.owners[(index - 1) % len(self.owners)]].weights
                aligned = index and isinstance(owner, Weights) and owner.align is not None
                longest = float(np.sqrt(squares[..., index].max()))
                called = "align" if aligned else name
                raise ValueError(f"{called} must keep vectors at most 1e6 long, got length {longest:g}")

    @property
    def head(self) -> Head:
        """The head of a setting that has one; ValueError when it has several."""
        if len(self.heads) > 1:
            raise ValueError(f"one head is needed here, got {len(self.heads)}")
        return self.heads[0]

    @property
    def f(self) -> Nonlinearity | Softmax:
        """The nonlinearity of a setting with one head; ValueError when it has several."""
        return self.head.f

    @property
    def name(self) -> str:
        """The nonlinearities by name."""
        return " + ".join(head.f.name for head in self.heads)

    @property
    def dimension(self) -> int | None:
        """p where weights given as a matrix fix it."""
        weights = self.heads[0].weights
        return weights.dimension if isinstance(weights, MatrixWeights) else None

    @property
    def gram(self) -> Array:
        """Inner products of mu, the keys and the queries: (..., 3, 3) for M = I + w_K w_Q'."""
        return joint_gram(self.heads, self.tokens.snr)[0]

    @property
    def owners(self) -> list[int]:
        """The head that each term w_K w_Q' belongs to."""
        return joint_gram(self.heads, 1.0)[1]

    def numbers(self) -> dict[str, Array | float]:
        """Every number that may be an array, by name; those of the weights with their head's position."""
        tokens = self.tokens
        own = {"ridge": self.ridge, "skip": self.skip, "beta": 1.0 if self.beta is None else self.beta}
        own |= {name: getattr(tokens, name) for name in ("ratio", "snr", "label_mean", "label_noise")}
        for place, head in enumerate(self.heads):
            if isinstance(head.weights, Weights):
                suffix = f" of head {place + 1}" if len(self.heads) > 1 else ""
                own |= {name + suffix: value for name, value in head.weights.as_dict().items()}
        return own

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON and tables; lists where there are several heads."""
        names, weights = [head.f.name for head in self.heads], [head.weights.as_dict() for head in self.heads]
        one = len(self.heads) == 1
        betas = [head.f.beta for head in self.heads if isinstance(head.f, Softmax)]
        return {
            "f": names[0] if one else names,
            "centred": True if self.centred is None else self.centred,
            **self.tokens.as_dict(),
            "ridge": self.ridge,
            "skip": self.skip,
            **({"beta": betas[0] if len(betas) == 1 else betas} if betas else {}),
            **(weights[0] if one else {"heads": weights}),
            "keep_diagonal": self.keep_diagonal,
        }
