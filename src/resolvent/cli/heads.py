"""`resolvent heads`: the attention heads of a pretrained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from cyclopts import Group, Parameter

from resolvent.checkpoints import (
    HeadTable,
    SignalShare,
    open_checkpoint,
    read_heads,
    signal_shares,
    summarise_heads,
)
from resolvent.checkpoints.head import Head
from resolvent.checkpoints.heads import find_stack
from resolvent.cli.flags import TOKENS, Json, naming, number
from resolvent.cli.output import progress_wanted, show
from resolvent.dataset import LabelledTokens, read_tokens
from resolvent.setting.ranges import integer
from resolvent.simulate.progress import bar

MODEL = Group("Model", sort_key=0)
TOP, PERMUTATIONS = 4, 999


class _OfHead(Protocol):
    @property
    def layer(self) -> int: ...

    @property
    def head(self) -> int: ...


Row = TypeVar("Row", bound=_OfHead)


@Parameter(name="*")
@dataclass(frozen=True)
class ModelFlags:
    """Which heads of a model, and what their M is."""

    layer: Annotated[int | None, number(MODEL, "Of this layer only, counted from 0.")] = None
    head: Annotated[int | None, number(MODEL, "This head of every layer only.")] = None
    stack: Annotated[
        str | None, Parameter(group=MODEL, help="Of several towers, the one whose name holds this.")
    ] = None
    heads: Annotated[int | None, number(MODEL, "Heads per layer, where no configuration says.")] = None
    gain: Annotated[
        bool, Parameter(group=MODEL, negative="", help="Fold the gain of the norm before a head into M.")
    ] = False
    fit_rank: Annotated[int, number(MODEL, "k of the best c I + rank k.", 1)] = 1


@Parameter(name="*")
@dataclass(frozen=True)
class SignalFlags:
    """The user's own signal direction."""

    tokens: Annotated[
        Path | None, Parameter(group=TOKENS, help="Labelled tokens as the heads read them: a signal.")
    ] = None
    labels: Annotated[Path | None, Parameter(group=TOKENS, help="Labels of an .npy file.")] = None
    top: Annotated[int | None, number(TOKENS, "Leading directions that may hold the signal.", TOP)] = None
    permutations: Annotated[int | None, number(TOKENS, "Of the labels, for p-values.", PERMUTATIONS)] = None

    def read(self) -> LabelledTokens | None:
        """The tokens, where there are any."""
        if self.tokens is None:
            for name in ("labels", "top", "permutations"):
                if (value := getattr(self, name)) is not None:
                    raise ValueError(f"--{name} {value} goes with --tokens FILE")
            return None
        with naming("--tokens"):
            return read_tokens(self.tokens, self.labels)


_MODEL, _SIGNAL = ModelFlags(), SignalFlags()


def heads(
    source: Annotated[
        str, Parameter(help='A file or folder of weights, or an id on the Hugging Face hub ("org/name").')
    ],
    /,
    *,
    model: ModelFlags = _MODEL,
    signal: SignalFlags = _SIGNAL,
    seed: Annotated[int, number(TOKENS, "The integer that decides all randomness.", 0)] = 0,
    json: Json = False,
) -> None:
    """The heads of a pretrained model: what each one's key-query product M looks like."""
    tokens = signal.read()
    opened = Opened(source, model, progress_wanted(json))
    show(_described(opened, tokens, signal, seed), json)


class Opened:
    """A checkpoint and the heads of it that were asked for."""

    def __init__(self, source: str, flags: ModelFlags, progress: bool) -> None:
        self.source, self.flags, self.progress = source, flags, progress
        try:
            self.checkpoint = open_checkpoint(source)
        except OSError as error:
            raise ValueError(f"{source[:80]} can't be read: {error.strerror or error}") from None
        stack = find_stack(self.checkpoint, stack=flags.stack)
        self.layers = stack.layers if flags.layer is None else stack.only(flags.layer).layers

    def read(self, layer: int | None = None) -> Iterator[Head]:
        """Heads of all layers, or of one, read one at a time."""
        return read_heads(self.checkpoint, heads=self.flags.heads, layer=layer, stack=self.flags.stack)

    def wanted(self, row: Row) -> bool:
        """Whether --layer and --head let a head through."""
        return self.flags.layer in (None, row.layer) and self.flags.head in (None, row.head)

    def collect(self, rows: Iterator[Row], record: Callable[[list[Row]], object]) -> object:
        """The record of the rows that are wanted; on Ctrl-C of those that are done."""
        done: list[Row] = []
        highest, layer = 0, self.layers[0]
        with bar("layers", len(self.layers), self.progress) as advance:
            try:
                for row in rows:
                    if row.layer != layer:
                        advance()
                    highest, layer = max(highest, row.head), row.layer
                    done += [row] if self.wanted(row) else []
            except KeyboardInterrupt as stop:
                raise Stopped(record(done) if done else None) from stop
        if not done:
            raise ValueError(f"head must be from 0 to {highest}, got {self.flags.head}")
        return record(done)


class Stopped(KeyboardInterrupt):
    """Ctrl-C: `record` holds what is done."""

    def __init__(self, record: object) -> None:
        super().__init__("interrupted: later heads are missing")
        self.record = record


def _described(opened: Opened, tokens: LabelledTokens | None, signal: SignalFlags, seed: int) -> object:
    """What each M looks like, and with tokens how much of their signal it reads."""
    flags = opened.flags
    shares = () if tokens is None else _shares(opened, tokens, signal, seed)
    rows = summarise_heads(opened.read(flags.layer), gain=flags.gain, fit_rank=flags.fit_rank)
    return opened.collect(rows, lambda done: HeadTable(opened.source, done, shares))


def _shares(
    opened: Opened, tokens: LabelledTokens, signal: SignalFlags, seed: int
) -> tuple[SignalShare, ...]:
    """Of the wanted heads, their p-values corrected over all heads of the model."""
    found = signal_shares(
        opened.read(),
        tokens.tokens,
        tokens.labels,
        count=TOP if signal.top is None else integer("top", signal.top, 1),
        gain=opened.flags.gain,
        permutations=PERMUTATIONS if signal.permutations is None else signal.permutations,
        seed=seed,
    )
    return tuple(filter(opened.wanted, found))
