"""A setting: tokens, weights, nonlinearity, ridge and the conventions of the attention matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resolvent.equivalents.arguments import LARGEST_PRODUCT
from resolvent.nonlinearity import Nonlinearity, nonlinearity
from resolvent.setting.ranges import NON_NEGATIVE, Array, common_shape, flag, number
from resolvent.setting.tokens import Tokens
from resolvent.setting.weights import Weights

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Setting:
    """What is predicted and measured: a ridge probe on H = X (f(X'MX/sqrt p)/sqrt p + skip I).

    nonlinearity
        A name ("tanh"), an expression in t ("t*tanh(t)"), a Python function or a `Nonlinearity`.
    centred
        Whether the mean of f under a standard normal is removed: yes, unless a `Nonlinearity` says otherwise.
    ridge
        Penalty, zero or positive; 0 is the ridgeless limit.
    skip
        Weight of a residual connection.
    keep_diagonal
        Whether tokens attend to themselves. By default the diagonal of f(X'MX/sqrt p) is set to zero.

    Numbers may be arrays that broadcast together. Raises ValueError or TypeError, in one line, for anything
    out of range.

    >>> setting = Setting(Tokens(ratio=0.5, snr=2.0), Weights.aligned(1.0), "tanh", ridge=0.1)
    >>> setting.shape
    ()
    """

    tokens: Tokens = field(default_factory=Tokens)
    weights: Weights = field(default_factory=Weights.none)
    nonlinearity: str | Nonlinearity | Function = "tanh"
    centred: bool | None = None
    ridge: Array | float = 0.1
    skip: Array | float = 0.0
    keep_diagonal: bool = False
    f: Nonlinearity = field(init=False, repr=False, compare=False)
    shape: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, kind in (("tokens", Tokens), ("weights", Weights)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {getattr(self, name)!r}")
        centred = None if self.centred is None else flag("centred", self.centred)
        object.__setattr__(self, "keep_diagonal", flag("keep_diagonal", self.keep_diagonal))
        object.__setattr__(self, "ridge", number("ridge", self.ridge, NON_NEGATIVE))
        object.__setattr__(self, "skip", number("skip", self.skip))
        object.__setattr__(self, "f", nonlinearity(self.nonlinearity, centred=centred))
        object.__setattr__(self, "centred", self.f.centred)
        self.f.coefficients()
        if self.keep_diagonal:
            self.f.kept_diagonal(1)
        shape = common_shape({**self._numbers(), **self.weights.as_dict()})
        object.__setattr__(self, "shape", shape)
        self._require_sizes()

    def _require_sizes(self) -> None:
        """Refuse vectors whose inner products double precision cannot hold against noise of size one."""
        squares = np.diagonal(self.gram, axis1=-2, axis2=-1)
        for index, name in enumerate(("snr", "key_norm", "query_norm")):
            if np.any(squares[..., index] > LARGEST_PRODUCT):
                flag_name = "align" if index and self.weights.align is not None else name
                longest = float(np.sqrt(squares[..., index].max()))
                raise ValueError(f"{flag_name} must keep vectors at most 1e6 long, got length {longest:g}")

    @property
    def gram(self) -> Array:
        """Inner products of (mu, w_K, w_Q), shape (..., 3, 3)."""
        return self.weights.gram(self.tokens.snr)

    def _numbers(self) -> dict[str, Array | float]:
        tokens = self.tokens
        return {
            "ratio": tokens.ratio,
            "snr": tokens.snr,
            "label_mean": tokens.label_mean,
            "label_noise": tokens.label_noise,
            "ridge": self.ridge,
            "skip": self.skip,
        }

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON and tables."""
        return {
            "f": self.f.name,
            "centred": self.f.centred,
            **self._numbers(),
            **self.weights.as_dict(),
            "keep_diagonal": self.keep_diagonal,
        }
