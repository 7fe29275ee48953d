"""Safetensors: an 8-byte length, a JSON header {name: {dtype, shape, data_offsets}}, then the numbers.

Read from the format's description (https://huggingface.co/docs/safetensors) and not through the package,
which reads no bfloat16 into NumPy and gives no say over the size of a header. Sharded models have an index
file, {"weight_map": {name: file}}, whose files must lie beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resolvent.checkpoints.tensors import (
    Checkpoint,
    Tensor,
    config_beside,
    dense,
    map_file,
    parse_json,
    quoted,
)


def read_safetensors(path: Path) -> Checkpoint:
    """The tensors of one safetensors file, with the `config.json` beside it.

    Raises ValueError for a header that doesn't fit the file.
    """
    return Checkpoint(path.name, dict(_tensors(path)), config_beside(path))


def read_index(path: Path) -> Checkpoint:
    """The tensors of a sharded model, from its `*.safetensors.index.json`.

    Raises ValueError for a shard that is missing, holds less than promised, or is named with a path.
    """
    shards = parse_json(map_file(path), path.name).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ValueError(f"{path.name} has no weight_map: it is not the index of a sharded model")
    found: dict[str, Tensor] = {}
    for shard in dict.fromkeys(shards.values()):
        found.update(_tensors(path.parent / plain_name(shard, path.name)))
    for missing in shards.keys() - found.keys():
        raise ValueError(f"{path.name} places {quoted(missing)} in {quoted(shards[missing])}, which lacks it")
    return Checkpoint(path.name, found, config_beside(path))


def plain_name(name: Any, where: str) -> str:
    """A file name without any folder in it, so that a checkpoint can't reach outside its own folder."""
    if not isinstance(name, str) or not name or name in {".", ".."} or set(name) & set("/\\:\0"):
        raise ValueError(
            f"{where} names the file {quoted(name)}; only plain names in its own folder are read"
        )
    return name


def _tensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    if not path.is_file():
        raise ValueError(f"{quoted(path.name)} is missing from {path.parent}")
    memory = map_file(path)
    if len(memory) < 8:
        raise ValueError(f"{path.name} is truncated: {len(memory)} bytes")
    (length,) = struct.unpack("<Q", memory[:8])
    if length > len(memory) - 8:
        raise ValueError(f"{path.name} is truncated: its header takes {length} bytes of {len(memory) - 8}")
    header = parse_json(memory[8 : 8 + length], f"the header of {path.name}")
    header.pop("__metadata__", None)
    for name, entry in header.items():
        shape, dtype, (start, stop) = _entry(entry, name)
        yield name, dense(memory, 8 + length + start, stop - start, shape, dtype, name)


def _entry(entry: Any, name: str) -> tuple[tuple[int, ...], str, tuple[int, int]]:
    try:
        shape, dtype, (start, stop) = entry["shape"], entry["dtype"], entry["data_offsets"]
        whole = all(type(value) is int and value >= 0 for value in (*shape, start, stop))
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole or not isinstance(dtype, str) or len(shape) > 8:
        raise ValueError(f"tensor {quoted(name)} has no valid shape, dtype and data_offsets")
    return tuple(shape), dtype, (start, stop)
