"""GGUF, the file of llama.cpp: typed key-value pairs, tensor descriptions, aligned (quantised) data.

The header is parsed here, bounds checked and without loading the vocabulary; quantised rows are dequantised
by the `gguf` package. Converting a LLaMA-like model to GGUF reorders the rows of each head's W_Q and W_K
from the halves that Hugging Face rotates, (j, j + d_head/2), to neighbouring pairs, (2j, 2j + 1). That is
undone here, so a row means the same in both formats. (M = W_K' W_Q sums over rows and doesn't see the order.)

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's conversion script.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.checkpoints.tensors import (
    Checkpoint,
    Cursor,
    Tensor,
    dense,
    map_file,
    quoted,
    unreadable,
)

TYPES = {  # id: name, numbers per block, bytes per block
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    30: ("BF16", 1, 2),
}
PAIRED = {  # architectures whose rows the conversion reorders
    *("llama", "deci", "baichuan", "xverse", "minicpm", "olmo", "arctic", "granite", "granitemoe"),
    *("internlm2", "smollm3", "arcee"),
}
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
LONGEST_ARRAY = 2**22  # elements; vocabularies have up to a few hundred thousand


def read_gguf(path: Path) -> Checkpoint:
    """The tensors of a GGUF file, configuration keys renamed to those of `config.json`.

    Raises ValueError for a file that is truncated, split, big-endian or of another version than 2 and 3.
    """
    memory = map_file(path)
    cursor = Cursor(memory, path.name)
    cursor.bytes(4)
    version, tensors, pairs = cursor.number("I"), cursor.number("Q"), cursor.number("Q")
    if version not in (2, 3):
        raise ValueError(f"{path.name} must be GGUF of version 2 or 3 (little-endian), got version {version}")
    fields: dict[str, Any] = {}
    for _ in range(pairs):
        key = cursor.text(cursor.number("Q"))
        if key in fields:
            raise ValueError(f"{path.name} has the key {quoted(key)} twice")
        fields[key] = _value(cursor, cursor.number("I"))
    if fields.get("split.count", 0) not in (0, 1):
        raise ValueError(
            f"{path.name} is one part of a split model: merge it with `llama-gguf-split --merge`"
        )
    config = _config(fields)
    return Checkpoint(path.name, _tensors(cursor, tensors, _alignment(fields, path.name), config), config)


def _value(cursor: Cursor, kind: int) -> Any:
    """One value; None for the long arrays (vocabularies), which are stepped over."""
    if kind in SCALARS:
        return cursor.number(SCALARS[kind])
    if kind == STRING:
        text = cursor.bytes(cursor.number("Q"))
        return bytes(text[: 2**10]).decode("utf-8", "replace")
    if kind != ARRAY:
        raise ValueError(f"{cursor.what} has a value of unknown type {kind} at byte {cursor.at}")
    kind, count = cursor.number("I"), cursor.number("Q")
    if count > LONGEST_ARRAY:
        raise ValueError(f"{cursor.what} has an array of {count} values, at most {LONGEST_ARRAY} are read")
    if kind == STRING:
        for _ in range(count):
            cursor.bytes(cursor.number("Q"))
        return None
    if kind not in SCALARS:
        raise ValueError(f"{cursor.what} has an array of unknown type {kind} at byte {cursor.at}")
    values = np.frombuffer(cursor.bytes(count * np.dtype(SCALARS[kind]).itemsize), "<" + SCALARS[kind])
    return values.tolist() if count <= 1024 else None


def _alignment(fields: dict[str, Any], what: str) -> int:
    alignment = fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**16:
        raise ValueError(f"{what} has the alignment {quoted(alignment)}, allowed are 1 to 65536")
    return alignment


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    arch = str(fields.get("general.architecture", ""))
    names = {
        "num_attention_heads": f"{arch}.attention.head_count",
        "num_key_value_heads": f"{arch}.attention.head_count_kv",
        "head_dim": f"{arch}.attention.key_length",
        "hidden_size": f"{arch}.embedding_length",
    }
    config = {ours: fields[theirs] for ours, theirs in names.items() if fields.get(theirs) is not None}
    rotary = any(key.startswith(f"{arch}.rope.") for key in fields)
    return config | {"model_type": arch, "rotary": rotary}


def _tensors(cursor: Cursor, count: int, alignment: int, config: dict[str, Any]) -> dict[str, Tensor]:
    described: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(count):
        name = cursor.text(cursor.number("Q"))
        rank = cursor.number("I")
        if name in described or rank > 4:
            raise ValueError(f"{cursor.what} has the tensor {quoted(name)} twice or with {rank} axes")
        shape = tuple(cursor.number("Q") for _ in range(rank))[::-1]
        described[name] = (shape, cursor.number("I"), cursor.number("Q"))
    start = -(-cursor.at // alignment) * alignment
    return {
        name: _in_halves(_tensor(cursor.memory, start + offset, shape, kind, name), name, config)
        for name, (shape, kind, offset) in described.items()
    }


def _tensor(memory: memoryview, offset: int, shape: tuple[int, ...], kind: int, name: str) -> Tensor:
    if kind not in TYPES:
        return unreadable(shape, f"GGML type {kind}", name)
    dtype, block, bytes_per_block = TYPES[kind]
    *rows, columns = shape or (1,)
    if columns % block:
        raise ValueError(
            f"tensor {quoted(name)} has rows of {columns} numbers, {dtype} needs a multiple of {block}"
        )
    width = columns // block * bytes_per_block
    size = width
    for length in rows:
        size *= length
    if block == 1:
        return dense(memory, offset, size, shape, dtype, name)
    packed = dense(memory, offset, size, (*rows, width), "U8", name)

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        return _dequantise(packed.take(index[:-1]), dtype)[(..., index[-1])]

    return Tensor(shape, take)


def _dequantise(rows: NDArray[Any], dtype: str) -> NDArray[Any]:
    try:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError:
        raise ValueError(
            f"{dtype} weights need the gguf package: pip install 'resolvent[checkpoints]'"
        ) from None
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # a damaged scale; the analysis refuses what isn't finite
        return dequantize(rows, GGMLQuantizationType[dtype])


def _in_halves(tensor: Tensor, name: str, config: dict[str, Any]) -> Tensor:
    """The tensor with each head's rows back in the order (j, j + d_head/2), where they were paired."""
    side = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(name.split(".")[-2:][0])
    heads = config.get(side or "", config.get("num_attention_heads"))
    if side is None or config["model_type"] not in PAIRED or not isinstance(heads, int) or heads < 1:
        return tensor
    rows = tensor.shape[0]
    if rows % (2 * heads):
        raise ValueError(f"tensor {quoted(name)} has {rows} rows, not twice a multiple of {heads} heads")

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        order = np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).ravel()
        wanted = order[index[0]]
        if wanted.size == 0:
            return tensor.take(index)
        first = int(wanted.min())
        return tensor.take((slice(first, int(wanted.max()) + 1), *index[1:]))[wanted - first]

    return Tensor(tensor.shape, take)
