"""Labelled tokens from a file: npz, a pair of npy files, parquet or csv.

Whatever is wrong with the file, the user gets one line: a ValueError that names it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from resolvent.dataset.arrays import read_npy, read_npz
from resolvent.dataset.labelled import LabelledTokens
from resolvent.dataset.tables import read_csv, read_parquet

SUFFIXES = (".npz", ".npy", ".parquet", ".csv")
StrPath = str | os.PathLike[str]


def read_tokens(path: StrPath, labels: StrPath | None = None) -> LabelledTokens:
    """Read labelled tokens.

    `.npz`      arrays `tokens` (p x n), `labels` (n), optionally `background_mean` (p), `background_cov` (p x
    p)
    `.npy`      `tokens` (p x n); the labels are a second `.npy` file, given as `labels`
    `.parquet`  one row a token, one column `label` or `labels`, all others real numbers (the extra `io`)
    `.csv`      the same, comma-separated with a header line

    Nothing in the file is executed: pickled arrays are refused. Headers are checked against the memory
    available before data is read. Raises ValueError with one line, naming the file, for everything wrong with
    it, and ImportError where parquet needs the extra. The checks on the values are those of
    `LabelledTokens.from_arrays`.
    """
    file = _existing(path)
    second = None if labels is None else _existing(labels)
    if (second is not None) != (file.suffix.lower() == ".npy"):
        raise ValueError(
            f"{file}: a second file with the labels (--labels) goes with a .npy file of tokens, "
            "and only with one"
        )
    try:
        arrays, notes = _load(file, second)
    except ImportError:
        raise
    except Exception as error:  # parsers of foreign bytes raise what they like
        raise ValueError(f"{file}: {_one_line(error)}") from error
    try:
        return LabelledTokens.from_arrays(**arrays, source=str(file), notes=tuple(notes))
    except ValueError as error:
        raise ValueError(f"{file}: {_one_line(error)}") from None


def _load(path: Path, labels: Path | None) -> tuple[dict[str, NDArray[Any]], list[str]]:
    if labels is not None:
        return {"tokens": read_npy(path, "tokens", 2), "labels": read_npy(labels, "labels", 1)}, []
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    return (read_csv if path.suffix.lower() == ".csv" else read_parquet)(path), []


def _existing(path: StrPath) -> Path:
    file = Path(path)
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{str(file)!r} cannot be read: {reason}") from None
    if not file.is_file():
        raise ValueError(f"{file} is not a file")
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{file}: the name must end in one of {', '.join(SUFFIXES)}")
    if size == 0:
        raise ValueError(f"{file}: it is empty")
    return file


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else text[:297] + "..."
    return text if isinstance(error, ValueError) else f"not readable ({type(error).__name__}: {text})"
