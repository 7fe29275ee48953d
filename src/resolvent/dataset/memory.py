"""Refuse what cannot fit before it is loaded, and say how much it would need."""

from __future__ import annotations

import os

FLOAT = 8
COPIES = 3  # the tokens read, the tokens standardised, and one working copy of them


def tokens_bytes(p: int, n: int) -> int:
    """Bytes that reading, standardising and estimating p x n tokens take, Gram matrix included."""
    return FLOAT * (COPIES * p * n + 2 * min(p, n) ** 2)


def refuse_beyond_memory(needed: int, what: str) -> None:
    """Raise ValueError if `needed` bytes exceed the memory now available (no check where that is unknown)."""
    available = available_bytes()
    if available is not None and needed > available:
        raise ValueError(f"{what} needs {_gib(needed)} of memory, {_gib(available)} is available")


def available_bytes() -> int | None:
    """Memory that can be had without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):
        return None


def _gib(size: int) -> str:
    gib = size / 2**30
    return f"{gib:.3g} GiB" if gib < 1000 else f"{gib:.0f} GiB"
