"""A progress bar with the time left, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str, total: int, shown: bool, done: int = 0) -> Iterator[Callable[[], None]]:
    """Shows how many of `total` are done; yields the function to call after each. Nothing unless shown."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(
        what,
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=total, completed=done)
        yield lambda: progress.advance(task)
