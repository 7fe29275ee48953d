"""What every head of a model gains over linear regression, as the theory predicts it: no simulation.

The gain is linear regression's error less that of the probe on the head's features, at one setting and one
place of the signal: positive where attention with this head wins. Linear regression sees only the tokens, so
its error is the same for all heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from resolvent.checkpoints import Head
from resolvent.compare.heads import READ, Signal, head_setting, query_signal
from resolvent.predict import ConvergenceError, predict
from resolvent.predict.routes import linear_limits
from resolvent.setting import Setting


class Pair(NamedTuple):
    """Training and test error."""

    train: float = float("nan")
    test: float = float("nan")


@dataclass(frozen=True)
class HeadGain:
    """Predicted errors with one head's M, and of linear regression; NaN where M = 0 or nothing converged.

    Where `query_signal` is above 0.05, attention does better than predicted.
    """

    layer: int
    head: int
    query_signal: float
    attention: Pair
    linear: Pair

    @property
    def gain(self) -> Pair:
        """Linear regression's error less attention's: positive where attention wins."""
        return Pair(*(b - a for a, b in zip(self.attention, self.linear, strict=True)))

    def as_dict(self) -> dict[str, object]:
        """{"layer", "head", "query_signal"}, and of {"train", "test"} "attention", "linear" and "gain"."""
        pairs = {name: getattr(self, name)._asdict() for name in ("attention", "linear", "gain")}
        return {"layer": self.layer, "head": self.head, "query_signal": self.query_signal, **pairs}


def head_gains(
    heads: Iterable[Head],
    setting: Setting | None = None,
    *,
    signal: Signal = "top-key",
    tau: float = 1.0,
    gain: bool = False,
) -> Iterator[HeadGain]:
    """Predicted errors of each head in turn, in the setting given; arguments as in `head_setting`.

    Raises what `head_setting` raises, but for a head with M = 0, whose errors are NaN.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> head = Head(0, 0, *rng.normal(size=(2, 4, 20)), None, None, "toy", None, "memory")
    >>> (found,) = head_gains([head], Setting(ridge=1.0))
    >>> found.gain.train == found.linear.train - found.attention.train
    True
    """
    base = setting or Setting()
    if base.shape:
        raise ValueError(f"head_gains takes one setting, got arrays of shape {base.shape}")
    for head in heads:
        yield _gain(head, base, signal, tau, gain)


def _gain(head: Head, base: Setting, signal: Signal, tau: float, gain: bool) -> HeadGain:
    limits = linear_limits(base)
    linear, attention, q = Pair(float(limits.train), float(limits.test)), Pair(), float("nan")
    if head.W_K.any() and head.W_Q.any():  # not a pruned head
        setting = head_setting(head, base, signal=signal, tau=tau, gain=gain)
        q = query_signal(setting)
        with suppress(ConvergenceError):
            found = predict(setting).attention
            attention = Pair(float(found.train), float(found.test))
    return HeadGain(head.layer, head.head, q, attention, linear)


@dataclass(frozen=True)
class GainTable:
    """The gains of a model's heads, in the setting and with the signal named."""

    source: str
    setting: Setting
    signal: str
    rows: Sequence[HeadGain]

    def as_dict(self) -> dict[str, object]:
        """{"source", "setting", "signal", "heads": [{"layer", "head", "attention", "linear", "gain"}]}."""
        fixed = {k: v for k, v in self.setting.as_dict().items() if k != "align"}
        heads = [row.as_dict() for row in self.rows]
        return {"source": self.source, "setting": fixed, "signal": self.signal, "heads": heads}

    @property
    def title(self) -> str:
        """What was predicted, in a line."""
        s, t = self.setting, self.setting.tokens
        return f"{s.name}, ratio {t.ratio:g}, snr {t.snr:g}, ridge {s.ridge:g}, signal {self.signal}"

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            cells = [f"{e:9.4f} {gain:+9.4f}" for e, gain in zip(row.attention, row.gain, strict=True)]
            lines.append(f"{row.layer:5} {row.head:4} " + " ".join(cells) + f" {row.query_signal:7.3f}")
        linear, wins = self.rows[0].linear, [sum(row.gain[e] > 0 for row in self.rows) for e in (0, 1)]
        return "\n".join(
            [
                f"{self.source}: {self.title}",
                "",
                f"{'layer':>5} {'head':>4} {'train':>9} {'gain':>9} {'test':>9} {'gain':>9} {'q':>7}",
                *lines,
                "",
                f"Linear regression: train {linear.train:.4f}, test {linear.test:.4f}. Attention gains on it "
                f"with {wins[0]} of {len(lines)} heads in training, with {wins[1]} on fresh tokens.",
                f"Where q, the signal that queries read, is above {READ:g}, attention does better than this.",
            ]
        )
