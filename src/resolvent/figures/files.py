"""A figure on disk: NAME.png, NAME.pdf and NAME.csv in a folder, each whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

from resolvent.figures.drawing import draw
from resolvent.figures.record import Panels
from resolvent.plot.files import save


def checked_folder(folder: Path) -> Path:
    """The folder, made where it is missing; ValueError when it can't be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise ValueError(f"folder must be one that can be written to, got {folder}") from None
    if not os.access(folder, os.W_OK):
        raise ValueError(f"folder must be one that can be written to, got {folder}")
    return folder


def write(name: str, panels: Panels, caption: str, folder: Path) -> list[Path]:
    """Write the numbers and both pictures; the paths."""
    table, *pictures = (folder / f"{name}.{suffix}" for suffix in ("csv", "png", "pdf"))
    _write_table(panels, table)
    picture = draw(panels, caption)
    for path in pictures:
        save(picture, path)
    return [*pictures, table]


def _write_table(panels: Panels, path: Path) -> None:
    rows = [row for panel in panels for row in panel.rows()]
    values = ("predicted", "refined", "measured", "se")
    places = dict.fromkeys(key for row in rows for key in row if key not in values)
    with tempfile.TemporaryDirectory(prefix=".resolvent-", dir=path.parent) as folder:
        whole = Path(folder) / path.name
        with whole.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*places, *values])
            writer.writeheader()
            writer.writerows(rows)
        os.replace(whole, path)
