"""What --weights, --covariance and --head hold: arrays in NumPy files, and a head in one line of text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity import Nonlinearity, Softmax, nonlinearity
from resolvent.setting import MatrixWeights, Weights
from resolvent.setting.matrix import LARGEST

LARGEST_FILE = 8 * LARGEST**2 + 2**20  # bytes
FORM = '"f=NAME [beta=B] [align=A]", or with norms and cosines in place of align'
ANGLES = ("key_norm", "query_norm", "key_cos", "query_cos", "key_query_cos")


def read_weights(path: Path, **options: Any) -> MatrixWeights:
    """M from a .npy file, or W_K and W_Q, or M, from a .npz file."""
    found = _load(path)
    if isinstance(found, np.ndarray):
        return Weights.matrix(found, **options)
    if "M" in found:
        return Weights.matrix(found["M"], **options)
    if {"W_K", "W_Q"} <= found.keys():
        return Weights.factors(found["W_K"], found["W_Q"], **options)
    raise ValueError(f"{path} must hold M, or W_K and W_Q, got {', '.join(sorted(found)) or 'nothing'}")


def read_array(path: Path, name: str) -> NDArray[Any]:
    """The one array of a .npy file."""
    found = _load(path)
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name} must be one array in a .npy file, got {path}")
    return found


def _load(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"must be a .npy or .npz file, got {path}")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is too large: at most {LARGEST} x {LARGEST} numbers")
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            _refuse_bombs(archive)
            return {name: archive[name] for name in archive.files if name in ("M", "W_K", "W_Q")}
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror or error}") from None
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} is not a whole NumPy file of plain numbers: {error}") from None
    except Exception as error:  # zipfile, zlib and struct have their own
        raise ValueError(f"{path} is not a whole NumPy file: {error}") from None


def _refuse_bombs(archive: Any) -> None:
    """Members that inflate beyond what a matrix may hold."""
    for info in archive.zip.infolist():
        if info.file_size > LARGEST_FILE:
            raise ValueError(f"{info.filename} is too large: at most {LARGEST} x {LARGEST} numbers")


def another_head(text: str) -> tuple[Nonlinearity | Softmax, Weights]:
    """f and weights of a head written as `f=relu align=0.5`.

    >>> another_head("f=softmax beta=0.5")[0]
    Softmax(beta=0.5)
    """
    try:
        pairs = dict(part.split("=", 1) for part in shlex.split(text))
        name = pairs.pop("f")
        values = {key: float(value) for key, value in pairs.items()}
    except (ValueError, KeyError):
        raise ValueError(f"--head must be {FORM}, got {text!r}") from None
    try:
        return _function(name, values), _weights(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"--head {text!r}: {error}") from None


def _function(name: str, values: dict[str, float]) -> Nonlinearity | Softmax:
    if name == "softmax":
        return Softmax(values.pop("beta", 1.0))
    f = nonlinearity(name)
    f.coefficients()
    return f


def _weights(values: dict[str, float]) -> Weights:
    unknown = values.keys() - {"align", *ANGLES}
    if unknown:
        raise ValueError(f"{min(unknown)} is not known here: {FORM}")
    align = values.pop("align", None)
    if values:
        if align is not None:
            raise ValueError("align already fixes the weights")
        return Weights.from_angles(**{"key_norm": 1.0, "query_norm": 1.0} | values)
    return Weights.aligned(align or 0.0)
