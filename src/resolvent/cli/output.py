"""Printing results: one JSON object, or the text of a record."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def show(record: Any, as_json: bool) -> None:
    """Print a record's `as_dict` as JSON, or its text."""
    print(as_line(record.as_dict()) if as_json else record)


def as_line(values: dict[str, object]) -> str:
    """One JSON object."""
    return json.dumps(_plain(values), allow_nan=False)


def progress_wanted(as_json: bool) -> bool:
    """Whether to draw a progress bar: on a terminal, and not for machines."""
    return sys.stderr.isatty() and not as_json


def _plain(value: Any) -> Any:
    """Plain Python values; numbers that JSON does not know become null."""
    match value:
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case float() if not math.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
    return _plain(value.tolist())  # NumPy's scalars and arrays
