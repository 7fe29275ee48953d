"""NumPy files, header first: dtype, shape and size are judged before a byte of data is read.

Pickled objects are never loaded. The header is parsed from a bounded prefix, so that neither a huge header
nor a member of a zip archive that inflates without end is ever expanded (format: NumPy enhancement proposal
1).
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from resolvent.dataset.memory import refuse_beyond_memory, tokens_bytes

HEADER_LIMIT = 10_000
REAL = "iuf"
LABEL = "biufU"
OPTIONAL = {"background_mean": 1, "background_cov": 2}


class Header(NamedTuple):
    """What a .npy header promises, and where its data starts."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of data, in Python integers: a hostile shape must not wrap around."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npz(stream: IO[bytes]) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays `tokens`, `labels` and, where present, the background; and notes on what was not used."""
    with zipfile.ZipFile(stream) as archive:
        sizes = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        absent = [name for name in ("tokens", "labels") if name not in sizes]
        if absent:
            raise ValueError(f"no array named {' or '.join(absent)}; it holds {_listed(sorted(sizes))}")
        dimensions = {"tokens": 2, "labels": 1} | {name: d for name, d in OPTIONAL.items() if name in sizes}
        arrays = {}
        for name, ndim in dimensions.items():
            with archive.open(sizes[name]) as member:
                arrays[name] = _read(member, name, sizes[name].file_size, ndim)
    unused = sorted(sizes.keys() - dimensions.keys())
    return arrays, [f"Not used: {_listed(unused)}."] if unused else []


def read_npy(stream: IO[bytes], size: int, name: str, ndim: int) -> NDArray[Any]:
    """The one array of a .npy file of `size` bytes, called `name` in messages."""
    return _read(stream, name, size, ndim)


def _read(stream: IO[bytes], name: str, size: int, ndim: int) -> NDArray[Any]:
    header = _header(stream.read(HEADER_LIMIT))
    _refuse(header, name, ndim)
    extra = tokens_bytes(*header.shape) if name == "tokens" else 0
    refuse_beyond_memory(header.nbytes + extra, f"{name} of shape {header.shape}")
    if size - header.start < header.nbytes:
        raise ValueError(f"{name} is cut short: {header.nbytes} bytes promised, {size - header.start} there")
    stream.seek(0)
    return npy.read_array(stream, allow_pickle=False)


def _header(prefix: bytes) -> Header:
    stream = io.BytesIO(prefix)
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version[0]}.{version[1]} of the npy format holds no plain array")
    return Header(shape, dtype, stream.tell())


def _refuse(header: Header, name: str, ndim: int) -> None:
    allowed = LABEL if name == "labels" else REAL
    if header.dtype.hasobject:
        raise ValueError(f"{name} holds pickled Python objects, which are never loaded; save a plain array")
    if header.dtype.kind not in allowed:
        wanted = "booleans, real numbers or strings" if name == "labels" else "real numbers"
        raise ValueError(f"{name} must be {wanted}, got {header.dtype}")
    if len(header.shape) != ndim or min(header.shape) < 0:
        wanted = "a matrix (p x n, or p x p for a covariance)" if ndim == 2 else "a vector"
        raise ValueError(f"{name} must be {wanted}, got shape {header.shape}")


def _listed(names: list[str], most: int = 6) -> str:
    return (", ".join(names[:most]) + (", ..." if len(names) > most else "")) or "nothing"
