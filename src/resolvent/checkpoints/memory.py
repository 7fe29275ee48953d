"""Weights that are already in memory: a torch module, a state dict, or any mapping of names to arrays.

torch isn't imported: its tensors are known by their methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.checkpoints.tensors import Checkpoint, Tensor


def read_memory(model: Any) -> Checkpoint:
    """The tensors of a module (by its `state_dict()` and, where it has one, its `config`) or of a mapping.

    Raises TypeError for anything else.
    """
    state = model.state_dict() if callable(getattr(model, "state_dict", None)) else model
    if not isinstance(state, Mapping):
        raise TypeError(
            f"weights must be a path, a hub id, a module or a mapping of arrays, got {type(model).__name__}"
        )
    tensors = {str(name): _tensor(value) for name, value in state.items() if hasattr(value, "shape")}
    return Checkpoint(type(model).__name__, tensors, _config(model))


def _tensor(value: Any) -> Tensor:
    return Tensor(tuple(int(length) for length in value.shape), lambda index: _array(value[index]))


def _array(value: Any) -> NDArray[Any]:
    if callable(getattr(value, "detach", None)):
        value = value.detach().cpu().float().numpy()  # NumPy has no bfloat16
    return np.asarray(value)


def _config(model: Any) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if config is not None and callable(getattr(config, "to_dict", None)):
        config = config.to_dict()
    return dict(config) if isinstance(config, Mapping) else {}
