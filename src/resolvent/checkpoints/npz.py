"""NumPy's npz: a zip of npy files, one tensor each. Nothing in it is ever unpickled.

Stored members are read from the mapped file. Compressed ones must be unpacked whole: one at a time, and only
up to a size that a head's layer can have, so that a small file can't claim all memory.
"""

from __future__ import annotations

import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.checkpoints.tensors import (
    Checkpoint,
    Tensor,
    config_beside,
    dense,
    map_file,
    parse_json,
    quoted,
    unreadable,
)

LARGEST_UNPACKED = 64 * 2**20  # bytes: 4096 x 4096 in float32
LONGEST_HEADER = 4096
LONGEST_CONFIG = 2**20
CONFIG_KEY = "__config__"


def read_npz(path: Path) -> Checkpoint:
    """The tensors of an npz file; a member `__config__` with a JSON string is its configuration.

    Raises ValueError for a damaged zip and for members of pickled objects.
    """
    memory, unpack = map_file(path), _unpacker(path)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise ValueError(f"{path.name} is not a readable zip: {str(error)[:80]}") from None
    with archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        tensors: dict[str, Tensor] = {}
        config: dict[str, Any] = {}
        for info in members:
            name = info.filename.removesuffix(".npy")
            if name in tensors:
                raise ValueError(f"{path.name} has the member {quoted(name)} twice")
            shape, dtype, header = _header(archive, info)
            if name == CONFIG_KEY and dtype.kind == "U" and shape == ():
                config = _config(archive, info, dtype, header)
            else:
                tensors[name] = _tensor(memory, unpack, info, shape, dtype, header)
    return Checkpoint(path.name, tensors, config or config_beside(path))


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and length of the npy header, from its first few kB."""
    start = io.BytesIO(_unpacked(archive, info, LONGEST_HEADER))
    try:
        version = np.lib.format.read_magic(start)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(start, max_header_size=LONGEST_HEADER)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        reason = (str(error).splitlines() or ["?"])[0][:80]
        raise ValueError(f"member {quoted(info.filename)} has no valid npy header: {reason}") from None
    if dtype.hasobject:
        raise ValueError(
            f"member {quoted(info.filename)} holds pickled objects, which can run code when opened; "
            "save plain arrays with numpy.savez(FILE, name=array)"
        )
    if math.prod(shape) * dtype.itemsize != info.file_size - start.tell():
        raise ValueError(
            f"member {quoted(info.filename)} of shape {shape} and type {dtype} has the wrong length"
        )
    if fortran and len(shape) > 1:
        raise ValueError(
            f"member {quoted(info.filename)} is in Fortran order; save numpy.ascontiguousarray of it"
        )
    return shape, dtype, start.tell()


def _config(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype: np.dtype[Any], header: int
) -> dict[str, Any]:
    text = np.frombuffer(_unpacked(archive, info, LONGEST_CONFIG)[header:], dtype)
    return parse_json("".join(text.tolist()).encode(), quoted(info.filename))


def _tensor(
    memory: memoryview,
    unpack: Callable[[str], bytes],
    info: zipfile.ZipInfo,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    header: int,
) -> Tensor:
    types = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "|i1": "I8", "|u1": "U8"}
    stored, size = types.get(dtype.str), info.file_size - header
    if stored is None:
        return unreadable(shape, dtype.str, info.filename)
    if info.compress_type == zipfile.ZIP_STORED:
        return dense(memory, _data_start(memory, info) + header, size, shape, stored, info.filename)

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        if size > LARGEST_UNPACKED:
            raise ValueError(
                f"member {quoted(info.filename)} unpacks to {size} bytes, more than {LARGEST_UNPACKED}; "
                "save it with numpy.savez (not compressed) to read it in place"
            )
        values: NDArray[Any] = np.frombuffer(unpack(info.filename), dtype, offset=header).reshape(shape)[
            index
        ]
        return values

    return Tensor(shape, take)


def _data_start(memory: memoryview, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: its local header may be padded unlike the directory's copy."""
    local = bytes(memory[info.header_offset : info.header_offset + 30])
    if len(local) < 30 or local[:4] != b"PK\x03\x04":
        raise ValueError(f"member {quoted(info.filename)} has no local header: damaged zip")
    name, extra = int.from_bytes(local[26:28], "little"), int.from_bytes(local[28:30], "little")
    return info.header_offset + 30 + name + extra


def _unpacker(path: Path) -> Callable[[str], bytes]:
    """Unpacks whole members and keeps the last two: the keys and queries of one layer."""

    @lru_cache(maxsize=2)
    def unpack(name: str) -> bytes:
        with zipfile.ZipFile(path) as archive:
            return _unpacked(archive, archive.getinfo(name), archive.getinfo(name).file_size)

    return unpack


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    try:
        with archive.open(info) as member:
            data = member.read(limit)
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        OSError,
        EOFError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ValueError(f"member {quoted(info.filename)} can't be unpacked: {str(error)[:80]}") from None
    if len(data) < min(limit, info.file_size):
        raise ValueError(f"member {quoted(info.filename)} is shorter than it says: damaged zip")
    return data
