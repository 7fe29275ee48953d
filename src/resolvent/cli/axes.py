"""What a flag such as `--over ridge=1e-4:10:50:log` says: the name of a field and its values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from resolvent.setting.variation import CHOICES

FORMS = "NAME=LOW:HIGH:COUNT, NAME=LOW:HIGH:COUNT:log or NAME=VALUE,VALUE,..."
COMMA = re.compile(r",(?![^()]*\))")  # not inside the brackets of an expression


def axis(flag: str, text: str) -> tuple[str, Any]:
    """Name and values; ValueError that names the flag, the text and what is allowed.

    >>> axis("--over", "snr=0:8:3")
    ('snr', array([0., 4., 8.]))
    >>> axis("--over", "f=tanh,max(t, 0)")
    ('f', ['tanh', 'max(t, 0)'])
    """
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not (name and equals and values.strip()):
        raise ValueError(f"{flag} must be {FORMS}, got {text!r}")
    try:
        return name, _values(name, values)
    except ValueError as error:
        raise ValueError(f"{flag} must be {FORMS}, got {text!r}{error}") from None


def axes(flag: str, texts: list[str]) -> dict[str, Any]:
    """Several, each name once."""
    found: dict[str, Any] = {}
    for text in texts:
        name, values = axis(flag, text)
        if name in found:
            raise ValueError(f"{flag} {name}=... may be given once")
        found[name] = values
    return found


def _values(name: str, text: str) -> Any:
    parts = [part.strip() for part in COMMA.split(text)]
    if name == "f":
        return parts
    if name in CHOICES:
        return [_truth(part) for part in parts]
    if ":" in text:
        return _range(text.split(":"))
    return [_number(part) for part in parts]


def _range(parts: list[str]) -> Any:
    """Evenly spaced values, or geometrically."""
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3].strip() != "log"):
        raise ValueError
    low, high, count = _number(parts[0]), _number(parts[1]), parts[2].strip()
    if not count.isdecimal() or int(count) < 2:
        raise ValueError(": COUNT is at least 2")
    if len(parts) == 3:
        return np.linspace(low, high, int(count))
    if min(low, high) <= 0.0:
        raise ValueError(": LOW and HIGH of a log range are positive")
    return np.geomspace(low, high, int(count))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f": {text.strip()!r} is no number") from None


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(": values are true and false")
    return text == "true"
