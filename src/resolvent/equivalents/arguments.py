"""Conversion and range checks of the keyword arguments of the public kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LARGEST_PRODUCT = 1e12  # of two vectors; beyond it double precision loses the test error
ROWS_AT_ONCE = 16384  # keeps the temporaries of a check in cache

ALLOWED: dict[str, tuple[str, Callable[[Array], NDArray[np.bool_]]]] = {
    "ratio": ("positive", lambda v: v > 0.0),
    "ridge": ("zero or positive", lambda v: v >= 0.0),
    "snr": ("zero or positive", lambda v: v >= 0.0),
    "sigma2": ("zero or positive", lambda v: v >= 0.0),
    "norm_variance": ("zero or positive", lambda v: v >= 0.0),
    "label_mean": ("between -1 and 1 (bounds excluded)", lambda v: np.abs(v) < 1.0),
    "correlation": ("between -1 and 1", lambda v: np.abs(v) <= 1.0),
    "kurtosis": ("at least 1", lambda v: v >= 1.0),
    "target_overlap": ("between -1 and 1", lambda v: np.abs(v) <= 1.0),
}


def checked(**arguments: ArrayLike) -> dict[str, Array]:
    """The arguments as broadcast float64 arrays; an error names one that is not finite or out of range."""
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
    """A float64 array of finite real numbers, or TypeError or ValueError naming the argument."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise TypeError(f"{name} must be a real number or an array of them, got a ragged sequence") from None
    if raw.dtype.kind not in "fiu":
        given = f"an array of {raw.dtype}" if raw.ndim else repr(value)
        raise TypeError(f"{name} must be a real number, got {given}")
    array = raw.astype(np.float64, copy=False)
    require(name, array, np.isfinite(array), "finite")
    return array


def require(name: str, value: Array, good: NDArray[np.bool_], allowed: str) -> None:
    """ValueError naming the argument and its first value that is not good."""
    if not np.all(good):
        raise ValueError(f"{name} must be {allowed}, got {value[~good].flat[0]:.6g}")


def gram_matrix(value: ArrayLike) -> Array:
    """Inner products of (mu, w_K, w_Q): (..., 3, 3), symmetric and positive semi-definite, or ValueError."""
    gram = numbers("gram", value)
    if gram.ndim < 2 or gram.shape[-2:] != (3, 3):
        raise ValueError(f"gram must have shape (..., 3, 3), got {gram.shape}")
    require("gram", gram, np.abs(gram) <= LARGEST_PRODUCT, f"at most {LARGEST_PRODUCT:g} in size")
    flat = gram.reshape(-1, 3, 3)
    for start in range(0, flat.shape[0], ROWS_AT_ONCE):
        entries = flat[start : start + ROWS_AT_ONCE].reshape(-1, 9).T.copy()
        if not np.all(_symmetric(entries)):
            raise ValueError("gram must be symmetric")
        if not np.all(_positive(entries)):
            raise ValueError(
                "gram must be positive semi-definite: it holds the inner products of mu, w_K, w_Q"
            )
    return gram


def _symmetric(entries: Array, slack: float = 1e-10) -> NDArray[np.bool_]:
    """Pairs across the diagonal agree, up to slack times the largest entry; for the nine entries in rows."""
    size = slack * np.abs(entries).max(axis=0)
    gaps = (np.abs(entries[i] - entries[j]) for i, j in ((1, 3), (2, 6), (5, 7)))
    agree: NDArray[np.bool_] = np.logical_and.reduce([gap <= size for gap in gaps])
    return agree


def _positive(entries: Array, slack: float = 1e-9) -> NDArray[np.bool_]:
    """Every principal minor non-negative, up to slack times the product of its diagonal."""
    a, d, e, _, b, f, _, _, c = entries
    ab, ac, bc, dd, ee, ff = a * b, a * c, b * c, d * d, e * e, f * f
    above = 1.0 + slack
    pairs = (dd <= above * ab) & (ee <= above * ac) & (ff <= above * bc)
    determinant = ab * c + 2.0 * d * e * f - a * ff - b * ee - c * dd
    good: NDArray[np.bool_] = (a >= 0.0) & (b >= 0.0) & (c >= 0.0) & pairs & (determinant >= -slack * ab * c)
    return good


def plain(value: NDArray[Any]) -> Any:
    """A plain number for a zero-dimensional result, the array otherwise."""
    return value if value.ndim else value.item()
