"""How much memory a draw needs, and how many may run at once."""

from __future__ import annotations

import os

from resolvent.simulate.features import BLOCK


def workers_for(p: int, n: int, fresh: int, draws: int, most: int | None = None) -> int:
    """Workers that fit cores and memory; ValueError, saying how much is needed, when not even one does."""
    cores = min(core_count(), most or core_count())
    fixed, block = 8 * (p * (3 * n + fresh) + 4 * min(n, p) ** 2), 8 * 2 * BLOCK * (n + p)
    available = _available()
    if fixed + block > available:
        raise ValueError(
            f"n = {n} and p = {p} need {(fixed + block) / 2**30:.3g} GiB of memory, "
            f"{available / 2**30:.1f} GiB are available: lower n or ratio"
        )
    if draws == 1:
        return max(1, min(cores, (available - fixed) // block))
    return max(1, min(cores, draws, available // (fixed + block)))


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _available() -> int:
    """Bytes of memory that can be used, as far as the system tells."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**63
