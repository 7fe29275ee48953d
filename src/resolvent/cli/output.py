"""Printing results: one JSON object, or the text of a record."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def show(record: Any, as_json: bool) -> None:
    """Print a record's `as_dict` as JSON, or its text."""
    print(json.dumps(_plain(record.as_dict()), allow_nan=False) if as_json else record)


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
        case np.ndarray():
            return _plain(value.tolist())
        case np.generic():
            return _plain(value.item())
        case float() if not np.isfinite(value):
            return None
    return value
