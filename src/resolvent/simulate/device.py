"""Where a draw computes when not in NumPy: a library of the array API standard, and one of its devices.

`array_api_compat` gives every library the standard's names; nothing here writes into an array, so that
libraries whose arrays can't be written (JAX) need no code of their own. Tokens are sampled by NumPy whatever
the device, so that a seed means the same data everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Nonlinearity
from resolvent.nonlinearity.functions import FUNCTIONS

Array = NDArray[np.float64]
Foreign = Any  # an array of the library

LIBRARIES = ("torch", "cupy", "jax", "array_api_strict")

# f with the standard's functions alone; every other f visits NumPy
PORTABLE: dict[str, Callable[[Any, Foreign], Foreign]] = {
    "identity": lambda _, t: t,
    "tanh": lambda xp, t: xp.tanh(t),
    "sigmoid": lambda xp, t: 0.5 + 0.5 * xp.tanh(0.5 * t),
    "silu": lambda xp, t: t * (0.5 + 0.5 * xp.tanh(0.5 * t)),
    "relu": lambda xp, t: xp.where(t > 0.0, t, 0.0 * t),
    "leaky_relu": lambda xp, t: xp.where(t > 0.0, t, 0.01 * t),
    "elu": lambda xp, t: xp.where(t > 0.0, t, xp.expm1(xp.where(t > 0.0, 0.0 * t, t))),
    "softplus": lambda xp, t: xp.where(t > 0.0, t, 0.0 * t) + xp.log1p(xp.exp(-xp.abs(t))),
    "relu2": lambda xp, t: xp.where(t > 0.0, t * t, 0.0 * t),
    "abs": lambda xp, t: xp.abs(t),
    "sign": lambda xp, t: xp.sign(t),
    "sin": lambda xp, t: xp.sin(t),
    "cos": lambda xp, t: xp.cos(t),
    "exp": lambda xp, t: xp.exp(t),
    "hermite2": lambda _, t: t * t - 1.0,
    "hermite3": lambda _, t: t * (t * t - 3.0),
    "quadratic": lambda _, t: t * t,
    "cubic": lambda _, t: t * t * t,
}


@dataclass(frozen=True)
class Device:
    """A library and, if named, one of its devices."""

    name: str
    xp: Any
    place: Any

    def array(self, values: Array) -> Foreign:
        """values on the device, in float64."""
        return self.xp.asarray(values, dtype=self.xp.float64, device=self.place)

    def numpy(self, values: Foreign) -> Array:
        """values back in NumPy."""
        if hasattr(values, "get"):  # CuPy
            return np.asarray(values.get(), dtype=np.float64)
        return np.from_dlpack(_on_the_host(values)).astype(np.float64)

    def entrywise(self, f: Nonlinearity, scores: Foreign, scale: float = 1.0) -> Foreign:
        """f of the scores: on the device where it can be written there, else by way of NumPy."""
        named, _ = FUNCTIONS.get(f.name, (None, ()))
        if f.name not in PORTABLE or f.function is not named:  # a user's function may have any name
            return self.array(f.evaluate(self.numpy(scores), scale))
        return PORTABLE[f.name](self.xp, scores) - f.offset(scale)


def device(name: str) -> Device:
    """The device called LIBRARY or LIBRARY:PLACE, such as torch, torch:cuda or jax.

    Raises ValueError for another library, a place that it lacks or one without float64, and ImportError when
    the library is not installed.
    """
    library, _, place = name.partition(":")
    if library not in LIBRARIES:
        raise ValueError(f"device must be one of {', '.join(LIBRARIES)}, with :PLACE if wanted, got {name!r}")
    try:
        found = Device(name, _namespace(library), place or None)
    except ImportError as error:
        raise ImportError(f"device {name!r} needs {error.name or library}: it is not installed") from None
    try:
        kept = found.numpy(found.array(np.array([1.0 + 1e-12])))
    except Exception as error:  # each library has its own
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"device {name!r} can't be used: {reason}") from None
    if kept[0] == 1.0:
        raise ValueError(f"device {name!r} has no float64: turn it on (for JAX, jax_enable_x64)")
    return found


def _namespace(library: str) -> Any:
    """The library under the standard's names."""
    from importlib import import_module

    if library in ("torch", "cupy"):
        return import_module(f"array_api_compat.{library}")
    return import_module("jax.numpy" if library == "jax" else library)


def _on_the_host(values: Foreign) -> Foreign:
    return values.cpu() if hasattr(values, "cpu") else values  # torch
