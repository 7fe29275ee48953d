"""Saving a figure: the suffix is checked before any work, and the file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")


def checked_path(path: Path) -> Path:
    """path, or ValueError when its suffix or folder cannot be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"plot must end in {', '.join(SUFFIXES)}, got {path}")
    if path.is_dir():
        raise ValueError(f"plot must be a file, got the folder {path}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"plot must be in an existing folder that can be written to, got {path}")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write the figure next to path and move it there."""
    suffix = checked_path(path).suffix.lower()
    handle, name = tempfile.mkstemp(suffix=suffix, dir=path.parent)
    os.close(handle)
    try:
        figure.savefig(name, dpi=150)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
