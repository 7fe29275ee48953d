"""draw_figure: from a name to its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from resolvent.figures.files import checked_folder, write
from resolvent.figures.registry import FIGURES


@dataclass(frozen=True)
class Drawn:
    """What was written: the figure's name, its caption and its files."""

    name: str
    caption: str
    files: tuple[Path, ...]

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(map(str, self.files))}\n{self.caption}"


def draw_figure(
    name: str, folder: Path | str = ".", *, quick: bool = False, checkpoint: Path | None = None
) -> Drawn:
    """Measure a figure's points, draw them over the predicted curves, and write NAME.png, NAME.pdf, NAME.csv.

    `quick` takes fewer tokens and draws and leaves nothing out; `checkpoint` is the model whose head the
    figure `head` reads. Numbers depend on neither threads nor time.

    Raises ValueError for an unknown name, and for a folder that can't be written to.

    >>> draw_figure("bar")
    Traceback (most recent call last):
    ValueError: figure must be one of linear-ridge, ..., got 'bar'
    """
    if name not in FIGURES:
        raise ValueError(f"figure must be one of {', '.join(FIGURES)}, got {name!r}")
    figure, place = FIGURES[name], checked_folder(Path(folder))
    plan = (figure.quick if quick else figure.full)._replace(checkpoint=checkpoint)
    with threadpool_limits(1, user_api="blas"):  # draws share the cores; the refined equations are small
        panels = figure.panels(plan)
    caption = figure.caption(panels, plan)
    return Drawn(name, caption, tuple(write(name, panels, caption, place)))
