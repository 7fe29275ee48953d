"""`resolvent figure`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import OUTPUT, Json
from resolvent.cli.output import as_line, progress_wanted


def figure(
    name: Annotated[str, Parameter(help="A figure, or all.")],
    /,
    *,
    folder: Annotated[
        Path, Parameter(name=["--folder", "-o"], group=OUTPUT, help="Where NAME.png, .pdf and .csv go.")
    ] = Path(),
    quick: Annotated[
        bool, Parameter(negative="", help="Fewer tokens and draws; nothing is left out.")
    ] = False,
    checkpoint: Annotated[
        Path | None, Parameter(help="The model whose head the figure head reads; a random one without it.")
    ] = None,
    json: Json = False,
) -> None:
    """The figures of the theory: measured points over predicted curves, with captions that say what holds."""
    from resolvent.figures import FIGURES, draw_figure

    names = list(FIGURES) if name == "all" else [name]
    drawn = []
    for count, each in enumerate(names):
        if progress_wanted(json):
            print(f"{count + 1} of {len(names)}: {each}", file=sys.stderr, flush=True)
        try:
            drawn.append(draw_figure(each, folder, quick=quick, checkpoint=checkpoint))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted: {len(drawn)} of {len(names)} figures were written"
            ) from None
        if not json:
            print(f"{drawn[-1]}\n", flush=True)
    if json:
        captions = {d.name: d.caption for d in drawn}
        print(as_line({"files": [str(file) for d in drawn for file in d.files], "captions": captions}))
