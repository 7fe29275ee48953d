"""Labelled tokens from a file: npz, a pair of npy files, parquet or csv.

Whatever is wrong with the file, the user gets one line: a ValueError that names it.
"""

from __future__ import annotations

import io
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from resolvent.dataset.arrays import read_npy, read_npz
from resolvent.dataset.labelled import LabelledTokens
from resolvent.dataset.tables import read_csv, read_parquet

SUFFIXES = (".npz", ".npy", ".parquet", ".csv")
IN_MEMORY = (".npz", ".parquet", ".csv")  # those that one file holds
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
    with ExitStack() as opened:
        try:
            streams = [opened.enter_context(name.open("rb")) for name in (file, second) if name is not None]
        except OSError as error:
            raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from None
        return _tokens(str(file), *streams)


def read_token_bytes(name: str, content: bytes) -> LabelledTokens:
    """The same from the content of a `.npz`, `.parquet` or `.csv` file in memory, called `name`.

    >>> print(read_token_bytes("words.csv", b"label,x,y\\nbad,1,2\\nbad,2,1\\ngood,3,5\\ngood,4,4"))
    words.csv: 4 tokens of 2 dimensions, no background
    Tokens are the 4 columns of a 2 x 4 matrix.
    Label 'good' is +1 and 'bad' is -1.
    """
    if Path(name).suffix.lower() not in IN_MEMORY:
        raise ValueError(f"{name}: the name must end in one of {', '.join(IN_MEMORY)}")
    return _tokens(name, io.BytesIO(content))


def _tokens(name: str, stream: IO[bytes], labels: IO[bytes] | None = None) -> LabelledTokens:
    """Labelled tokens of open files, `name` the first one's; whatever is wrong is one line that names it."""
    try:
        arrays, notes = _load(Path(name).suffix.lower(), stream, labels)
    except ImportError:
        raise
    except Exception as error:  # parsers of foreign bytes raise what they like
        raise ValueError(f"{name}: {_one_line(error)}") from error
    try:
        return LabelledTokens.from_arrays(**arrays, source=name, notes=tuple(notes))
    except ValueError as error:
        raise ValueError(f"{name}: {_one_line(error)}") from None


def _load(
    suffix: str, stream: IO[bytes], labels: IO[bytes] | None
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    if labels is not None:
        tokens = read_npy(stream, _size(stream), "tokens", 2)
        return {"tokens": tokens, "labels": read_npy(labels, _size(labels), "labels", 1)}, []
    if suffix == ".npz":
        return read_npz(stream)
    return read_csv(stream, _size(stream)) if suffix == ".csv" else read_parquet(stream), []


def _size(stream: IO[bytes]) -> int:
    """Bytes in a stream that stands at its start."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return size


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
