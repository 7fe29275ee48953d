"""Which heads of a checkpoint a command is about, and going through them with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeVar

from cyclopts import Group, Parameter

from resolvent.checkpoints import Head, open_checkpoint, read_heads
from resolvent.checkpoints.heads import find_stack
from resolvent.cli.flags import number
from resolvent.simulate.progress import bar

MODEL = Group("Model", sort_key=0)


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


class _OfHead(Protocol):
    @property
    def layer(self) -> int: ...

    @property
    def head(self) -> int: ...


Row = TypeVar("Row", bound=_OfHead)
Record = TypeVar("Record")


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

    def wanted(self, row: _OfHead) -> bool:
        """Whether --layer and --head let a head through."""
        return self.flags.layer in (None, row.layer) and self.flags.head in (None, row.head)

    def collect(self, rows: Iterator[Row], record: Callable[[list[Row]], Record]) -> Record:
        """The record of the rows that are wanted; on Ctrl-C of those that are done."""
        done: list[Row] = []
        layer = self.layers[0]
        with bar("layers", len(self.layers), self.progress) as advance:
            try:
                for row in rows:
                    if row.layer != layer:
                        advance()
                    layer = row.layer
                    done += [row] if self.wanted(row) else []
            except KeyboardInterrupt as stop:
                raise Stopped(record(done) if done else None) from stop
        if not done:
            raise self.no_such_head()
        return record(done)

    def one(self) -> Head:
        """The head of --layer and --head."""
        for name in ("layer", "head"):
            if getattr(self.flags, name) is None:
                raise ValueError(f"--compare takes one head, so --{name} must be given too")
        for head in filter(self.wanted, self.read(self.flags.layer)):
            return head
        raise self.no_such_head()

    def no_such_head(self) -> ValueError:
        """That --head is too high."""
        highest = max(head.head for head in self.read(self.layers[0]))
        return ValueError(f"head must be from 0 to {highest}, got {self.flags.head}")


class Stopped(KeyboardInterrupt):
    """Ctrl-C: `record` holds what is done."""

    def __init__(self, record: object) -> None:
        super().__init__("interrupted: later heads are missing")
        self.record = record
