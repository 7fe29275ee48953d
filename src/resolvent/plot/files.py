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
    """Write the figure beside path and move it there."""
    checked_path(path)
    with tempfile.TemporaryDirectory(prefix=".resolvent-", dir=path.parent) as folder:
        whole = Path(folder) / path.name
        figure.savefig(whole, dpi=150)
        os.replace(whole, path)
