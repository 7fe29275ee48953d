"""The machine behind the numbers: processor, cores, load, versions and the BLAS kernel."""

import importlib.metadata
import importlib.util
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from threadpoolctl import threadpool_info

VERSIONS = ("resolvent", "numpy", "scipy", "numba", "scikit-learn", "dask")


def machine() -> dict[str, object]:
    import scipy.linalg  # noqa: F401  (loads its BLAS, so that threadpoolctl sees it)

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version for name in VERSIONS if (version := _version(name))},
        "blas": [
            {key: library.get(key) for key in ("internal_api", "version", "architecture", "num_threads")}
            for library in threadpool_info()
        ],
    }


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
