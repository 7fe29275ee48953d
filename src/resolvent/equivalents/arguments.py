"""Conversion and range checks of the keyword arguments of the public kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

ALLOWED: dict[str, tuple[str, Callable[[Array], NDArray[np.bool_]]]] = {
    "ratio": ("positive", lambda v: v > 0.0),
    "ridge": ("zero or positive", lambda v: v >= 0.0),
    "snr": ("zero or positive", lambda v: v >= 0.0),
    "sigma2": ("zero or positive", lambda v: v >= 0.0),
    "norm_variance": ("zero or positive", lambda v: v >= 0.0),
    "label_mean": ("between -1 and 1", lambda v: np.abs(v) < 1.0),
    "correlation": ("between -1 and 1, both included", lambda v: np.abs(v) <= 1.0),
    "kurtosis": ("at least 1", lambda v: v >= 1.0),
    "target_overlap": ("between -1 and 1, both included", lambda v: np.abs(v) <= 1.0),
}


def checked(**arguments: ArrayLike) -> dict[str, Array]:
    """The arguments as broadcast float64 arrays; ValueError names one that is not finite or out of range."""
    arrays = {name: numbers(name, value) for name, value in arguments.items()}
    for name, value in arrays.items():
        if name in ALLOWED:
            allowed, test = ALLOWED[name]
            require(name, value, test(value), allowed)
    try:
        broadcast = np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in arrays.items() if value.ndim)
        raise ValueError(f"arguments must broadcast together, got {shapes}") from None
    return dict(zip(arrays, broadcast, strict=True))


def numbers(name: str, value: ArrayLike) -> Array:
    """A float64 array of finite real numbers, or ValueError naming the argument."""
    raw = np.asarray(value)
    if raw.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be real numbers, got {value!r}")
    array = raw.astype(np.float64)
    require(name, array, np.isfinite(array), "finite")
    return array


def require(name: str, value: Array, good: NDArray[np.bool_], allowed: str) -> None:
    """ValueError naming the argument and its first value that is not good."""
    if not np.all(good):
        raise ValueError(f"{name} must be {allowed}, got {value[~good].flat[0]:.6g}")


def gram_matrix(value: ArrayLike) -> Array:
    """Inner products of mu, r keys, r queries, (..., 1 + 2r, 1 + 2r) and semi-definite, or ValueError."""
    gram = numbers("gram", value)
    size = gram.shape[-1] if gram.ndim else 0
    if gram.ndim < 2 or gram.shape[-2] != size or size < 3 or size % 2 == 0:
        raise ValueError(f"gram must have shape (..., 3, 3), or (..., 1 + 2r, 1 + 2r), got {gram.shape}")
    scale = np.abs(gram).max(axis=(-2, -1), initial=0.0)
    if np.any(np.abs(gram - np.swapaxes(gram, -1, -2)).max(axis=(-2, -1), initial=0.0) > 1e-10 * scale):
        raise ValueError("gram must be symmetric")
    gram = 0.5 * (gram + np.swapaxes(gram, -1, -2))
    if not np.all(_positive(gram)):
        raise ValueError("gram must be positive semi-definite: it holds the inner products of mu, w_K, w_Q")
    return gram


def _positive(gram: Array, slack: float = 1e-9) -> NDArray[np.bool_]:
    """Every principal minor non-negative, up to slack times the product of its diagonal."""
    if gram.shape[-1] > 3:
        eigenvalues = np.linalg.eigvalsh(gram)
        return np.asarray(eigenvalues[..., 0] >= -slack * np.abs(eigenvalues).max(axis=-1))
    a, b, c = (gram[..., i, i] for i in range(3))
    d, e, f = gram[..., 0, 1], gram[..., 0, 2], gram[..., 1, 2]
    pairs = (
        (d * d <= (1.0 + slack) * a * b) & (e * e <= (1.0 + slack) * a * c) & (f * f <= (1.0 + slack) * b * c)
    )
    determinant = a * b * c + 2.0 * d * e * f - a * f * f - b * e * e - c * d * d
    return (a >= 0.0) & (b >= 0.0) & (c >= 0.0) & pairs & (determinant >= -slack * a * b * c)


def plain(value: NDArray[Any]) -> Any:
    """A plain number for a zero-dimensional result, the array otherwise."""
    return value if value.ndim else value.item()
