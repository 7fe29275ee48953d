"""What every file format gives: named tensors that are read in slices, and the model's configuration.

A tensor stays in the mapped file until a slice of it is asked for, so a reader never holds more than one
head. Every length that a file states is checked against the file's own size before anything is allocated.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DENSE = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "u1",
}
LARGEST_JSON = 10 * 2**20  # bytes; the header of a model with 90 000 tensors, and 300 MB once parsed at worst

Take = Callable[[tuple[slice, ...]], NDArray[Any]]


@dataclass(frozen=True)
class Tensor:
    """A tensor in a file: its shape, and `take`, which reads one slice per axis of it."""

    shape: tuple[int, ...]
    take: Take

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[np.floating[Any]]:
        """The slice as a new floating-point array (float64 stays, all else becomes float32)."""
        values = self.take(index)
        return np.array(values, dtype=np.float64 if values.dtype == np.float64 else np.float32)

    def read(self) -> NDArray[np.floating[Any]]:
        """All of the tensor."""
        return self[tuple(slice(None) for _ in self.shape)]

    @property
    def transposed(self) -> Tensor:
        """The same matrix with its axes exchanged."""
        return Tensor(self.shape[::-1], lambda index: self.take(index[::-1]).T)

    @property
    def stacked(self) -> Tensor:
        """Of shape (heads, d_model, d_head): the (heads d_head) x d_model matrix of all heads' rows."""
        heads, d_model, d_head = self.shape

        def take(index: tuple[slice, ...]) -> NDArray[Any]:
            whole, part = _covering(index[0], heads, d_head)
            blocks = self.take((whole, index[1], slice(None)))
            rows: NDArray[Any] = blocks.swapaxes(1, 2).reshape(-1, blocks.shape[1])[part]
            return rows

        return Tensor((heads * d_head, d_model), take)

    @property
    def flat(self) -> Tensor:
        """The entries of a matrix one after another."""
        rows, width = self.shape

        def take(index: tuple[slice, ...]) -> NDArray[Any]:
            whole, part = _covering(index[0], rows, width)
            return self.take((whole, slice(None))).ravel()[part]

        return Tensor((rows * width,), take)


def _covering(part: slice, blocks: int, width: int) -> tuple[slice, slice]:
    """The blocks of `width` entries that hold a slice of all entries, and the slice within these."""
    start, stop, _ = part.indices(blocks * width)
    first, last = start // width, -(-stop // width)
    return slice(first, last), slice(start - first * width, stop - first * width)


@dataclass(frozen=True)
class Checkpoint:
    """Named tensors with the model's configuration, under the key names of Hugging Face's `config.json`."""

    source: str
    tensors: Mapping[str, Tensor]
    config: Mapping[str, Any] = field(default_factory=dict)


def quoted(name: object) -> str:
    """A name from a file, safe to print on one line."""
    text = ascii(name)
    return text if len(text) <= 80 else text[:60] + "...'"


def map_file(path: Path) -> memoryview:
    """The file as read-only memory that the system pages in on use."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            raise ValueError(f"{path.name} is empty")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def dense(
    memory: memoryview, offset: int, size: int, shape: tuple[int, ...], dtype: str, name: str
) -> Tensor:
    """A row-major tensor of `size` bytes at `offset`, checked; one of an unreadable type raises when read."""
    if offset < 0 or size < 0 or offset + size > len(memory):
        raise ValueError(
            f"tensor {quoted(name)} ends at byte {offset + size} of {len(memory)}: truncated file?"
        )
    if dtype not in DENSE:
        return unreadable(shape, dtype, name)
    stored = np.dtype(DENSE[dtype])
    if min(shape, default=0) < 0 or math.prod(shape) * stored.itemsize != size:
        raise ValueError(f"tensor {quoted(name)} of shape {shape} and type {dtype} can't take {size} bytes")

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        flat = np.frombuffer(memory, stored, count=math.prod(shape), offset=offset)
        values: NDArray[Any] = flat.reshape(shape)[index]
        return bfloat16(values) if dtype == "BF16" else values

    return Tensor(shape, take)


def unreadable(shape: tuple[int, ...], dtype: str, name: str) -> Tensor:
    """A tensor whose type isn't read: it can be listed, and says so when it is wanted."""

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        del index
        raise ValueError(
            f"tensor {quoted(name)} is stored as {quoted(dtype)}, which isn't read; convert it to F16"
        )

    return Tensor(shape, take)


def bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The upper halves of float32 numbers."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def parse_json(data: bytes | memoryview, what: str) -> dict[str, Any]:
    """A JSON object of bounded size, or one line saying why not."""
    if len(data) > LARGEST_JSON:
        raise ValueError(f"{what} takes {len(data)} bytes, at most {LARGEST_JSON} are read")
    try:
        value = json.loads(bytes(data).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {str(error).splitlines()[0][:80]}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a JSON object, got {type(value).__name__}")
    return value


def config_beside(path: Path) -> dict[str, Any]:
    """`config.json` in the file's folder (or above a folder named `onnx`), empty when there is none."""
    folders = [path.parent, path.parent.parent] if path.parent.name == "onnx" else [path.parent]
    for config in (folder / "config.json" for folder in folders):
        if config.is_file():
            return parse_json(map_file(config), config.name)
    return {}


class Cursor:
    """Reads little-endian values in order and refuses to step past the end."""

    def __init__(self, memory: memoryview, what: str) -> None:
        self.memory, self.what, self.at = memory, what, 0

    def bytes(self, count: int) -> memoryview:
        """The next `count` bytes, not copied."""
        if count > len(self.memory) - self.at:
            left = len(self.memory) - self.at
            raise ValueError(f"{self.what} is truncated: {count} bytes wanted at byte {self.at}, {left} left")
        self.at += count
        return self.memory[self.at - count : self.at]

    def number(self, code: str) -> Any:
        """One number with the `struct` code given."""
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def text(self, length: int, limit: int = 2**16) -> str:
        """A UTF-8 string of the length given."""
        if length > limit:
            raise ValueError(
                f"{self.what} has a name of {length} bytes at byte {self.at}, at most {limit} are read"
            )
        try:
            return bytes(self.bytes(length)).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{self.what} has a name that is not UTF-8 at byte {self.at - length}") from None
