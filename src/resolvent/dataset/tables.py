"""Tables, one row a token: csv, and parquet through pyarrow (the extra `io`).

One column, `label` or `labels`, holds the labels; every other column is one dimension.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from resolvent.dataset.memory import refuse_beyond_memory, tokens_bytes

LABEL_NAMES = ("label", "labels")
INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")


def read_csv(stream: IO[bytes], size: int) -> dict[str, NDArray[Any]]:
    """`tokens` (p x n, float64) and `labels` (strings) of `size` bytes of comma-separated lines, a header
    first.
    """
    refuse_beyond_memory(size, "its text")
    labels: list[str] = []
    numbers = array("d")
    with io.TextIOWrapper(stream, newline="", encoding="utf-8-sig") as text:
        rows = csv.reader(text, strict=True)
        names = next(rows, None)
        if names is None:
            raise ValueError("it is empty; a header line is wanted, with one column named label")
        at = label_column(names)
        for row in _rows(rows, len(names)):
            if not labels:
                tokens = math.ceil(size / sum(len(field) + 1 for field in row))
                refuse_beyond_memory(tokens_bytes(len(names) - 1, tokens), f"about {tokens} tokens")
            labels.append(row.pop(at).strip())
            numbers.extend(_floats(row, names[:at] + names[at + 1 :], rows.line_num))
    tokens_as_rows = np.frombuffer(numbers, dtype=np.float64).reshape(len(labels), len(names) - 1)
    return {"tokens": tokens_as_rows.T, "labels": np.array(labels, dtype=np.str_)}


def read_parquet(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    """`tokens` (p x n, float64) and `labels` of a parquet file. Raises ImportError without the extra `io`."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("reading parquet needs pyarrow: pip install 'resolvent[io]'") from None
    with parquet.ParquetFile(stream) as file:
        names = list(file.schema_arrow.names)
        at = label_column(names)
        n, p = file.metadata.num_rows, len(names) - 1
        for field in file.schema_arrow:
            if field.name != names[at] and not _is_real(str(field.type)):
                raise ValueError(f"column {field.name!r} must hold one real number a token, got {field.type}")
        refuse_beyond_memory(tokens_bytes(p, n), f"{n} tokens of {p} dimensions")
        table = file.read()
    tokens = np.empty((p, table.num_rows))
    for row, column in enumerate(j for j in range(p + 1) if j != at):
        tokens[row] = table.column(column).to_numpy()
    return {"tokens": tokens, "labels": _labels(table.column(at))}


def label_column(names: Sequence[str]) -> int:
    """Where the label column stands; refuses none, two, and the index column that a data frame may leave."""
    found = [j for j, name in enumerate(names) if name.strip().casefold() in LABEL_NAMES]
    if len(found) != 1:
        shown = ", ".join(repr(name[:30]) for name in names[:4]) + (", ..." if len(names) > 4 else "")
        raise ValueError(f"one column named label or labels is wanted, got {len(found)} (columns {shown})")
    indexes = [j for j, name in enumerate(names) if name.strip() in INDEX_NAMES]
    if indexes:
        raise ValueError(f"column {indexes[0] + 1} looks like a row index; write the table without it")
    if len(names) < 3:
        raise ValueError(f"tokens need at least 2 dimensions, got p = {len(names) - 1}")
    return found[0]


def _rows(rows: Any, width: int) -> Iterator[list[str]]:
    for row in rows:
        if row and len(row) != width:
            raise ValueError(f"line {rows.line_num} has {len(row)} fields where the header has {width}")
        if row:
            yield row


def _floats(fields: list[str], names: list[str], line: int) -> Iterator[float]:
    for field, name in zip(fields, names, strict=True):
        try:
            yield float(field)
        except ValueError:
            raise ValueError(f"line {line}, column {name[:30]!r}: {field[:30]!r} is not a number") from None


def _is_real(kind: str) -> bool:
    return kind in ("halffloat", "float", "double") or kind.removeprefix("u").startswith("int")


def _labels(column: Any) -> NDArray[Any]:
    values = column.to_pylist()
    if None in values:
        raise ValueError(f"the label of token {values.index(None)} is missing, counting from 0")
    return np.array(values)
