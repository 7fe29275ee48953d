"""A view: everything the page shows, written as the fields of a query string such as `ratio=0.5&f=relu`.

The address bar holds the same fields, so a link is a view. A field that is absent has its default; an unknown
or malformed one is a ValueError in one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.setting import Setting, Tokens, Weights

Array = NDArray[np.float64]


class Number(NamedTuple):
    """A number with a slider: its default, the slider's ends, and how it is named on the page."""

    default: float
    low: float
    high: float
    geometric: bool
    group: str
    label: str
    symbol: str

    def values(self, count: int) -> Array:
        """So many values from end to end."""
        spaced = np.geomspace if self.geometric else np.linspace
        return np.asarray(spaced(self.low, self.high, count))


NUMBERS = {
    "ratio": Number(0.5, 0.05, 10.0, True, "Tokens", "ratio", "c = p/n"),
    "snr": Number(1.0, 0.0, 10.0, False, "Tokens", "signal-to-noise ratio", r"\|\mu\|^2"),
    "label_mean": Number(0.0, -0.9, 0.9, False, "Tokens", "label mean", r"\mathbb{E}\,y"),
    "label_noise": Number(0.0, 0.0, 0.5, False, "Tokens", "label noise", r"\mathbb{P}(\text{flip})"),
    "align": Number(0.0, -2.0, 2.0, False, "Weights", "alignment", r"w_K = w_Q = a\,\mu"),
    "key_norm": Number(1.0, 0.0, 4.0, False, "Weights", "key norm", r"\|w_K\|"),
    "query_norm": Number(1.0, 0.0, 4.0, False, "Weights", "query norm", r"\|w_Q\|"),
    "key_cos": Number(0.0, -1.0, 1.0, False, "Weights", "key cosine", r"\cos(w_K, \mu)"),
    "query_cos": Number(0.0, -1.0, 1.0, False, "Weights", "query cosine", r"\cos(w_Q, \mu)"),
    "ridge": Number(0.1, 1e-6, 1e3, True, "Probe", "ridge", r"\gamma"),
    "beta": Number(1.0, 0.1, 2.0, False, "Attention", "inverse temperature", r"\beta"),
    "skip": Number(0.0, -2.0, 2.0, False, "Attention", "residual connection", r"s"),
}
TOKENS = ("ratio", "snr", "label_mean", "label_noise")
ANGLES = ("key_norm", "query_norm", "key_cos", "query_cos")
CHOICES = {
    "weights": ("aligned", "apart"),
    "over": tuple(NUMBERS),
    "x": tuple(NUMBERS),
    "y": tuple(NUMBERS),
    "error": ("test", "train"),
    "matrix": ("features", "attention"),
    "log": ("0", "1"),
    "centred": ("1", "0"),
    "keep_diagonal": ("0", "1"),
}
SIZES = {"n": (256, 8, 2048), "draws": (5, 2, 50), "seed": (0, 0, 2**53)}  # default, least, most
LARGEST_P = 4096
LONGEST_F = 200
DEFAULTS: dict[str, Any] = {
    "f": "tanh",
    **{name: number.default for name, number in NUMBERS.items()},
    **{name: choices[0] for name, choices in CHOICES.items()},
    "over": "ridge",
    "x": "ratio",
    "y": "snr",
    **{name: size[0] for name, size in SIZES.items()},
}


@dataclass(frozen=True)
class View:
    """The fields of a view, converted; `setting` is what they say of the model."""

    fields: dict[str, Any]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> View:
        """From the pairs of a query string.

        >>> View.of([("snr", "2"), ("over", "ratio")]).setting.tokens.snr
        2.0
        """
        fields = dict(DEFAULTS)
        seen = set()
        for name, text in pairs:
            if name not in DEFAULTS:
                raise ValueError(f"there is no field {name[:30]!r}")
            if name in seen:
                raise ValueError(f"{name} may be given once")
            seen.add(name)
            fields[name] = _converted(name, text)
        view = cls(fields)
        for side in ("over", "x", "y"):
            view._check_axis(side)
        if view["x"] == view["y"]:
            raise ValueError(f"x and y must vary different fields, got {view['x']} twice")
        return view

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    @property
    def free(self) -> tuple[str, ...]:
        """The numbers that this view's weights and nonlinearity have, hence the possible axes."""
        absent = ANGLES if self["weights"] == "aligned" else ("align",)
        absent = absent if self.softmax else (*absent, "beta")
        return tuple(name for name in NUMBERS if name not in absent)

    @property
    def softmax(self) -> bool:
        """Whether f is softmax, which has beta, and neither a mean nor a diagonal to keep."""
        return bool(self["f"].strip() == "softmax")

    @cached_property
    def setting(self) -> Setting:
        """The setting, validated."""
        apart = {name: self[name] for name in ANGLES}
        return Setting(
            Tokens(**{name: self[name] for name in TOKENS}),
            Weights.aligned(self["align"]) if self["weights"] == "aligned" else Weights.from_angles(**apart),
            self["f"],
            None if self.softmax and self["centred"] == "1" else self["centred"] == "1",
            ridge=self["ridge"],
            skip=self["skip"],
            keep_diagonal=self["keep_diagonal"] == "1",
            beta=self["beta"] if self.softmax else None,
        )

    def along(self, side: str, count: int) -> Array:
        """Values of the axis that the field `side` (over, x or y) names, over the length of its slider."""
        return NUMBERS[self[side]].values(count)

    def check_size(self, ratio: float) -> None:
        """ValueError where so many tokens at this ratio would take more than a page should."""
        p = round(ratio * self["n"])
        if p > LARGEST_P:
            raise ValueError(f"p = ratio n must be at most {LARGEST_P}, got {p}: lower n or the ratio")

    def _check_axis(self, side: str) -> None:
        if self[side] not in self.free:
            raise ValueError(f"{side} must be one of {', '.join(self.free)}, got {self[side]}")


def _converted(name: str, text: str) -> Any:
    if name == "f":
        if len(text) > LONGEST_F:
            raise ValueError(f"f must be at most {LONGEST_F} characters long, got {len(text)}")
        return text
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise ValueError(f"{name} must be one of {', '.join(CHOICES[name])}, got {text[:30]!r}")
        return text
    if name in SIZES:
        _, low, high = SIZES[name]
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise ValueError(f"{name} must be an integer from {low} to {high}, got {text[:30]!r}")
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text[:30]!r}") from None
