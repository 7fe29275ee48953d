"""Open a checkpoint by what it holds, not by what it is called.

The first bytes decide. Pickles (PyTorch's .bin, .pt, .pth; joblib) can run code when they are opened, so
they are refused with the conversion to do, whatever their suffix.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resolvent.checkpoints.ctranslate2 import read_ctranslate2
from resolvent.checkpoints.gguf import read_gguf
from resolvent.checkpoints.head import Head
from resolvent.checkpoints.heads import cut_heads, find_stack
from resolvent.checkpoints.hub import download
from resolvent.checkpoints.layouts import Layout
from resolvent.checkpoints.memory import read_memory
from resolvent.checkpoints.npz import read_npz
from resolvent.checkpoints.onnx import read_onnx
from resolvent.checkpoints.safetensors import read_index, read_safetensors
from resolvent.checkpoints.tensors import Checkpoint

FORMATS = "safetensors (or its index.json), GGUF, ONNX, npz, CTranslate2 model.bin"
IN_A_FOLDER = (
    *("*.safetensors.index.json", "model.safetensors", "*.safetensors", "*.gguf", "model.bin", "*.npz"),
    *("model.onnx", "onnx/model.onnx", "*.onnx", "*.bin", "*.pt", "*.pth"),
)
OTHERS = {b"\x89HDF": "HDF5", b"\x1f\x8b": "gzip", b"\xfd7zX": "xz", b"\x93NUM": "a single npy array"}


def read_heads(
    source: Any,
    *,
    heads: int | None = None,
    layer: int | None = None,
    stack: str | None = None,
    layout: Layout | None = None,
) -> Iterator[Head]:
    """The self-attention heads of a pretrained model, layer by layer; with grouped keys one per query head.

    `source` is a file, a folder, an id on the Hugging Face hub ("org/name"), a torch module, or a mapping of
    names to arrays. `heads` gives the number of heads per layer where no configuration does, `layer` reads
    one layer alone, `stack` picks one tower of a model with several (part of its name prefix; by default the
    decoder), `layout` describes one not yet known. The file is opened at once, heads are read from it one at
    a time.

    Raises ValueError, in one line, for files that are damaged, pickled, or of an unknown format or layout,
    and for a layer that isn't there.

    >>> import numpy as np
    >>> weights = {"h.0.attn.c_attn.weight": np.ones((6, 18)), "h.0.attn.c_attn.bias": np.ones(18)}
    >>> [str(head) for head in read_heads(weights, heads=2)]
    ['layer 0 head 0 (gpt2, 3 of 6)', 'layer 0 head 1 (gpt2, 3 of 6)']
    """
    if heads is not None and (isinstance(heads, bool) or not isinstance(heads, int) or heads < 1):
        raise ValueError(f"heads must be a positive integer, got {heads!r}")
    checkpoint = open_checkpoint(source)
    found = find_stack(checkpoint, layout, stack)
    return cut_heads(checkpoint, found if layer is None else found.only(layer), heads)


def open_checkpoint(source: Any) -> Checkpoint:
    """The tensors and the configuration of a model; see `read_heads` for what `source` may be."""
    if not isinstance(source, str | os.PathLike):
        return source if isinstance(source, Checkpoint) else read_memory(source)
    path = Path(source)
    if not path.exists() and isinstance(source, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", source):
        path = download(source)
    if path.is_dir():
        path = _in_folder(path)
    if not path.is_file():
        raise ValueError(f"no such file or folder: {str(source)!r}")
    return _reader(path)(path)


def _in_folder(folder: Path) -> Path:
    for pattern in IN_A_FOLDER:
        for path in sorted(folder.glob(pattern)):
            return path
    raise ValueError(f"no checkpoint in the folder {str(folder)!r}; readable are {FORMATS}")


def _reader(path: Path) -> Callable[[Path], Checkpoint]:
    """The reader for a file, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise ValueError(f"{path.name} is empty")
    if start[:4] == b"GGUF":
        return read_gguf
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        _refuse_pickled_zip(path)
        return read_npz
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < path.stat().st_size:
        return read_safetensors
    if start[:1] == b"\x80" and 2 <= start[1] <= 5:
        raise ValueError(_pickled(path))
    if start[:1] == b"{":
        return read_index
    if start[8:9] == b"{":
        return read_safetensors  # which says that it is truncated
    if 1 <= int.from_bytes(start[:4], "little") <= 255 and re.match(rb"[\w ]+\0", start[6:]):
        return read_ctranslate2
    if start[:1] in (b"\x08", b"\x12", b"\x3a"):
        return read_onnx
    found = next((name for magic, name in OTHERS.items() if start.startswith(magic)), "an unknown format")
    raise ValueError(f"{path.name} holds {found}; readable are {FORMATS}")


def _refuse_pickled_zip(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise ValueError(f"{path.name} is a damaged zip: {str(error)[:80]}") from None
    if any(name.endswith((".pkl", ".pickle")) for name in names):
        raise ValueError(_pickled(path))


def _pickled(path: Path) -> str:
    return (
        f"{path.name} is a pickle, which can run code when opened; where you trust it, convert it: "
        "safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'model.safetensors')"
    )
