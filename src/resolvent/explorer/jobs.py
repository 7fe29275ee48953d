"""Long work in a process of its own, as server-sent events; it ends when the reader leaves or time is up.

A process can be stopped at any instant and takes nothing with it, which no thread can. The events are made
there; here they are passed on.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import anyio
from starlette.types import Receive, Scope, Send

Work = Callable[..., Iterator[tuple[str, dict[str, Any]]]]

PATIENCE = 0.2  # seconds between looks at the process


class Busy(Exception):
    """As much runs already as may."""


@dataclass
class Jobs:
    """At most `most` processes at a time, each at most `seconds` long."""

    most: int = 2
    seconds: float = 300.0
    running: set[Any] = field(default_factory=set)

    def start(self, work: Work, *arguments: Any) -> Job:
        """A process that runs work(*arguments); Busy when there are too many."""
        if len(self.running) >= self.most:
            raise Busy(f"at most {self.most} simulations run at a time: cancel one, or wait")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(theirs, work, arguments), daemon=True)
        self.running.add(process)
        return Job(self, process, ours, theirs)


@dataclass
class Job:
    """A response: the events of one process."""

    jobs: Jobs
    process: Any
    ours: Connection
    theirs: Connection

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send events until the work is done or the reader is gone."""
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await anyio.to_thread.run_sync(self.process.start)
            self.theirs.close()
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope.cancel)
                await self._pass_on(send)
                group.cancel_scope.cancel()
        finally:
            self._end()

    async def _pass_on(self, send: Send) -> None:
        deadline = time.monotonic() + self.jobs.seconds
        while time.monotonic() < deadline:
            try:
                if not await anyio.to_thread.run_sync(self.ours.poll, PATIENCE):
                    continue
                body = self.ours.recv_bytes()
            except (EOFError, OSError):
                await send({"type": "http.response.body", "body": b""})
                return
            await send({"type": "http.response.body", "body": body, "more_body": True})
        late = event("failed", {"error": f"stopped after {self.jobs.seconds:g} seconds"})
        await send({"type": "http.response.body", "body": late})

    def _end(self) -> None:
        self.jobs.running.discard(self.process)
        if self.process.pid is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
        self.ours.close()


def event(name: str, value: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(value, allow_nan=False)}\n\n".encode()


def one_line(error: BaseException) -> str:
    """What a person reads of an error."""
    return " ".join(str(error).split())[:500] or type(error).__name__


async def _until_gone(receive: Receive, cancel: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    cancel()


def _run(connection: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    """In the process: the events of the work, then `done` or `failed`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, which ends this process
    try:
        for name, value in work(*arguments):
            connection.send_bytes(event(name, value))
        connection.send_bytes(event("done", {}))
    except Exception as error:
        connection.send_bytes(event("failed", {"error": one_line(error)}))
    finally:
        connection.close()
