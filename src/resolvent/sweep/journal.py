"""What a sweep has measured so far: a folder beside its file, that survives whatever happens to a process.

`header.json` says which sweep it is. Every process that measures appends to a file of its own, one line a
finished cell, flushed and synced before the next begins:

    {"cell": 7, "values": [...], "check": "5a3c11f0"}

with values[mean, se][attention, linear, difference][train, test][ridge] in digits that give the same doubles
back, and the CRC-32 of the line without its check. A line that a crash cut or a disk damaged fails it.
"""

from __future__ import annotations

import json
import os
import socket
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HEADER = "header.json"


class DamagedJournal(UserWarning):
    """Lines of a journal that can't be read: their cells are measured again."""


@dataclass
class Journal:
    """A folder of finished cells; copies in other processes write to files of their own."""

    folder: Path
    _file: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_file": None}

    def open(self, header: dict[str, Any]) -> dict[str, Any]:
        """The header of the sweep that the folder belongs to: `header` if it is new."""
        path = self.folder / HEADER
        self.folder.mkdir(exist_ok=True)
        if not path.exists():
            if any(self.folder.iterdir()):
                raise ValueError(f"{self.folder} has no {HEADER}: remove it or choose another file")
            replace(path, json.dumps(header, indent=1).encode())
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
            return dict(found)
        except (ValueError, TypeError):
            raise ValueError(f"{path} can't be read: remove {self.folder} or choose another file") from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out of the folder. The lock is the system's and ends with this process, however
        that ends; where there is none (Windows, some network disks) two runs measure cells twice.

        Raises BlockingIOError when another run holds the folder.
        """
        try:
            from fcntl import LOCK_EX, LOCK_NB, flock
        except ImportError:
            yield
            return
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                flock(folder, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(f"{self.folder} is in use by another sweep: wait for its end") from None
            except OSError:
                pass  # the disk knows no locks
            yield
        finally:
            os.close(folder)

    def append(self, cell: int, values: Array) -> None:
        """Write a finished cell, on the disk when this returns."""
        if self._file is None:
            name = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}.jsonl"
            self._file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        line = _line(cell, values)
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)

    def close(self) -> None:
        """Close this process's file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read(self, cells: int, shape: tuple[int, ...]) -> dict[int, Array]:
        """Finished cells by index. Damaged lines are removed, with a warning that counts them."""
        done: dict[int, Array] = {}
        damaged = 0
        for path in sorted(self.folder.glob("*.jsonl")):
            lines = path.read_bytes().splitlines(keepends=True)
            read = [_cell(line, cells, shape) for line in lines]
            for found in read:
                if found is not None:
                    done.setdefault(*found)
            if None in read:
                damaged += read.count(None)
                good = [line for line, found in zip(lines, read, strict=True) if found is not None]
                replace(path, b"".join(good))
        if damaged:
            warnings.warn(
                f"{damaged} damaged line{'s' * (damaged > 1)} in {self.folder}: measured again",
                DamagedJournal,
                stacklevel=2,
            )
        return done


def replace(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    new = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _line(cell: int, values: Array) -> bytes:
    entry = {"cell": cell, "values": values.tolist()}
    return json.dumps(entry | {"check": _check(entry)}).encode() + b"\n"


def _cell(line: bytes, cells: int, shape: tuple[int, ...]) -> tuple[int, Array] | None:
    """A line's cell, or None when anything about it is wrong."""
    try:
        entry = json.loads(line)
        check = entry.pop("check")
        cell, values = entry["cell"], np.array(entry["values"], dtype=float)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    good = line.endswith(b"\n") and check == _check(entry) and values.shape == shape
    return (cell, values) if good and isinstance(cell, int) and 0 <= cell < cells else None


def _check(entry: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(entry).encode()):08x}"
