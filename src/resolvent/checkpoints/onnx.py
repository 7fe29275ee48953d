"""ONNX initialisers, read from the protobuf in place.

Protobuf is a sequence of (field number, wire type, value); a model's weights are ModelProto.graph (7) .
initializer (5), each a TensorProto with dims (1), data_type (2), float_data (4), name (8), raw_data (9),
external_data (13). The walk over these few fields maps the file instead of loading it, and needs no package.

Exporters fold a linear layer x W' + b into a MatMul with an unnamed, transposed initialiser. Its name is
found again from the bias added after it (`X.bias` gives `X.weight`), or from the node's own name
(`/X/MatMul`). Source: onnx/onnx.proto3 (https://github.com/onnx/onnx).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resolvent.checkpoints.safetensors import plain_name
from resolvent.checkpoints.tensors import (
    Checkpoint,
    Tensor,
    config_beside,
    dense,
    map_file,
    quoted,
    unreadable,
)

TYPES = {
    1: "F32",
    2: "U8",
    3: "I8",
    5: "I16",
    6: "I32",
    7: "I64",
    9: "BOOL",
    10: "F16",
    11: "F64",
    16: "BF16",
}
MOST_NODES = 2**20
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Value = int | memoryview
EMPTY = memoryview(b"")


@dataclass(frozen=True)
class Node:
    """One operation of the graph, as far as linear layers need it."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    transposed: bool  # Gemm with transB = 1, whose weight is stored as in `torch.nn.Linear`


def read_onnx(path: Path) -> Checkpoint:
    """The initialisers of an ONNX model, linear layers under the names `X.weight` (out x in) and `X.bias`.

    Raises ValueError for damaged protobuf, and for external data outside the model's folder.
    """
    memory = map_file(path)
    graphs = [value for number, value in _fields(memory, path.name) if number == 7]
    if len(graphs) != 1 or not isinstance(graphs[0], memoryview):
        raise ValueError(f"{path.name} is not an ONNX model: {len(graphs)} graphs found")
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    for number, value in _fields(graphs[0], path.name):
        if number not in (1, 5) or not isinstance(value, memoryview):
            continue
        if len(nodes) + len(tensors) >= MOST_NODES:
            raise ValueError(f"{path.name} has more than {MOST_NODES} nodes and initialisers")
        if number == 1:
            nodes.append(_node(value, path.name))
        else:
            name, tensor = _initialiser(value, path)
            tensors[name] = tensor
    return Checkpoint(path.name, tensors | dict(_linear_layers(nodes, tensors)), config_beside(path))


def _varint(memory: memoryview, at: int, what: str) -> tuple[int, int]:
    value = 0
    for i, byte in enumerate(memory[at : at + 10]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError(f"{what} is not valid protobuf: a number doesn't end")


def _fields(memory: memoryview, what: str) -> Iterator[tuple[int, Value]]:
    """The fields of one message in order, (number, value)."""
    at = 0
    while at < len(memory):
        tag, at = _varint(memory, at, what)
        wire, size = tag & 7, {FIXED64: 8, FIXED32: 4}.get(tag & 7)
        if wire == VARINT:
            value, at = _varint(memory, at, what)
            yield tag >> 3, value
            continue
        if wire == BYTES:
            size, at = _varint(memory, at, what)
        if size is None or tag >> 3 == 0 or at + size > len(memory):
            raise ValueError(f"{what} is not valid protobuf or is truncated")
        yield tag >> 3, memory[at : at + size]
        at += size


def _text(value: Value, what: str) -> str:
    if not isinstance(value, memoryview) or len(value) > 2**16:
        raise ValueError(f"{what} has a name that is not a short string")
    return bytes(value).decode("utf-8", "replace")


def _node(message: memoryview, what: str) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    op = name = ""
    transposed = False
    for number, value in _fields(message, what):
        if number == 1:
            inputs.append(_text(value, what))
        elif number == 2:
            outputs.append(_text(value, what))
        elif number == 3:
            name = _text(value, what)
        elif number == 4:
            op = _text(value, what)
        elif number == 5 and isinstance(value, memoryview):
            attribute = dict(_fields(value, what))
            transposed |= _text(attribute.get(1, EMPTY), what) == "transB" and attribute.get(3) == 1
    return Node(op, name, tuple(inputs), tuple(outputs), transposed)


def _initialiser(message: memoryview, path: Path) -> tuple[str, Tensor]:
    dims: list[int] = []
    name, kind, data, external = "", 0, EMPTY, dict[str, str]()
    for number, value in _fields(message, path.name):
        if number == 1:
            dims += [value] if isinstance(value, int) else _packed(value, path.name)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _text(value, path.name)
        elif number in (4, 9) and isinstance(value, memoryview):
            data = value
        elif number == 13 and isinstance(value, memoryview):
            entry = dict(_fields(value, path.name))
            external[_text(entry.get(1, EMPTY), path.name)] = _text(entry.get(2, EMPTY), path.name)
    shape = tuple(dims)
    if len(shape) > 8:
        raise ValueError(f"tensor {quoted(name)} has {len(shape)} axes, at most 8 are read")
    dtype = TYPES.get(kind)
    if dtype is None:
        return name, unreadable(shape, f"ONNX type {kind}", name)
    if external:
        data = _external(external, path, name)
    elif not data and 0 not in shape:
        return name, unreadable(shape, f"{dtype} in a typed field", name)
    return name, dense(data, 0, len(data), shape, dtype, name)


def _packed(value: memoryview, what: str) -> list[int]:
    numbers: list[int] = []
    at = 0
    while at < len(value) and len(numbers) <= 8:
        number, at = _varint(value, at, what)
        numbers.append(number)
    return numbers


def _external(entry: dict[str, str], path: Path, name: str) -> memoryview:
    """The bytes of a tensor kept in another file, which must lie beside the model."""
    file = path.parent / plain_name(entry.get("location"), path.name)
    if not file.is_file():
        raise ValueError(f"{path.name} keeps {quoted(name)} in {quoted(file.name)}, which is missing")
    memory = map_file(file)
    try:
        offset = int(entry.get("offset", "0"))
        length = int(entry.get("length", str(len(memory) - offset)))
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0 or offset + length > len(memory):
        raise ValueError(f"tensor {quoted(name)} lies outside {quoted(file.name)}")
    return memory[offset : offset + length]


def _linear_layers(nodes: list[Node], tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The weights of linear layers, out x in, under the names they had before the export."""
    biases = {
        value: other
        for node in nodes
        if node.op == "Add" and len(node.inputs) == 2
        for value, other in (node.inputs, node.inputs[::-1])
        if other.endswith(".bias") and other in tensors
    }
    for node in nodes:
        if node.op not in ("MatMul", "Gemm") or len(node.inputs) < 2 or node.inputs[1] not in tensors:
            continue
        weight = tensors[node.inputs[1]]
        bias = biases.get(node.outputs[0] if node.outputs else "", "")
        stem = bias.removesuffix(".bias") or node.name.strip("/").rpartition("/")[0].replace("/", ".")
        if stem and len(weight.shape) == 2:
            yield f"{stem}.weight", weight if node.transposed else weight.transposed
