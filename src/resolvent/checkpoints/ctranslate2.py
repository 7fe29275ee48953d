"""CTranslate2's `model.bin`: a version, the specification's name, then each variable with its shape and
numbers.

Strings carry a 16-bit length that counts their final zero byte; variables have a type number and a byte count
(binary version 4 to 6); aliases follow. Integer weights come with a scale: q = round(scale w), per row or
for all. Source: the specification writer of CTranslate2, python/ctranslate2/specs/model_spec.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from resolvent.checkpoints.tensors import Checkpoint, Cursor, Tensor, dense, map_file, quoted, unreadable

TYPES = ("F32", "I8", "I16", "I32", "F16", "BF16")
VERSIONS = (4, 5, 6)


def read_ctranslate2(path: Path) -> Checkpoint:
    """The variables of a CTranslate2 model, integer weights divided by their scale.

    Raises ValueError for another binary version and for sizes that don't fit the file.
    """
    cursor = Cursor(map_file(path), path.name)
    version = cursor.number("I")
    if version not in VERSIONS:
        raise ValueError(f"{path.name} must have CTranslate2 binary version 4 to 6, got {version}")
    spec = _text(cursor)
    cursor.number("I")
    variables: dict[str, Tensor] = {}
    for _ in range(cursor.number("I")):
        name = _text(cursor)
        if name in variables:
            raise ValueError(f"{path.name} has the variable {quoted(name)} twice")
        variables[name] = _variable(cursor, name)
    for _ in range(cursor.number("I")):
        alias, name = _text(cursor), _text(cursor)
        if name not in variables:
            raise ValueError(f"{path.name} aliases {quoted(alias)} to {quoted(name)}, which it lacks")
        variables[alias] = variables[name]
    scaled = {name: _scaled(tensor, variables.get(f"{name}_scale")) for name, tensor in variables.items()}
    return Checkpoint(path.name, _without_post_norms(scaled), _config(spec, scaled))


def _text(cursor: Cursor) -> str:
    return cursor.text(cursor.number("H")).removesuffix("\0")


def _variable(cursor: Cursor, name: str) -> Tensor:
    shape = tuple(cursor.number("I") for _ in range(cursor.number("B")))
    kind, size = cursor.number("B"), cursor.number("I")
    start = cursor.at
    cursor.bytes(size)
    if kind >= len(TYPES):
        return unreadable(shape, f"type {kind}", name)
    return dense(cursor.memory, start, size, shape, TYPES[kind], name)


def _scaled(tensor: Tensor, scale: Tensor | None) -> Tensor:
    if scale is None:
        return tensor

    def take(index: tuple[slice, ...]) -> NDArray[Any]:
        divisor = scale[index[: len(scale.shape)]]
        return tensor[index] / divisor.reshape(divisor.shape + (1,) * (len(tensor.shape) - divisor.ndim))

    return Tensor(tensor.shape, take)


def _scalar(variables: Mapping[str, Tensor], name: str, default: int) -> int:
    tensor = variables.get(name)
    return default if tensor is None or tensor.shape != () else int(tensor.read())


def _config(spec: str, variables: Mapping[str, Tensor]) -> dict[str, Any]:
    config: dict[str, Any] = {"model_type": spec.removesuffix("Spec").lower()}
    for side in ("encoder", "decoder"):
        if f"{side}/num_heads" in variables:
            heads = _scalar(variables, f"{side}/num_heads", 0)
            config[f"{side}_attention_heads"] = heads
            config[f"{side}_key_value_heads"] = _scalar(variables, f"{side}/num_heads_kv", heads)
    config["rotary"] = any(name.endswith("/self_attention/rotary_dim") for name in variables)
    return config


def _without_post_norms(variables: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Drops the norms that follow attention (`pre_norm` false): they don't shape what the head reads."""
    post = tuple(
        f"{side}/layer_" for side in ("encoder", "decoder") if not _scalar(variables, f"{side}/pre_norm", 1)
    )
    return {
        name: tensor
        for name, tensor in variables.items()
        if not (name.startswith(post) and name.endswith("/self_attention/layer_norm/gamma"))
    }
