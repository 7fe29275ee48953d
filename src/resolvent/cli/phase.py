"""`resolvent phase`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.cli.axes import axis
from resolvent.cli.flags import OUTPUT, Json, SettingFlags
from resolvent.cli.output import show
from resolvent.phase import phase as phase_diagram

PLANE = Group("Plane", sort_key=0)

_DEFAULT = SettingFlags()


def phase(
    *,
    x: Annotated[str, Parameter(group=PLANE, help="What varies along x: NAME=LOW:HIGH:COUNT[:log].")],
    y: Annotated[str, Parameter(group=PLANE, help="What varies along y.")],
    flags: SettingFlags = _DEFAULT,
    best_ridge: Annotated[
        bool, Parameter(group=PLANE, negative="", help="Compare each method at its own best ridge.")
    ] = False,
    plot: Annotated[
        Path | None,
        Parameter(
            group=OUTPUT, help="Draw into a .png, .pdf or .svg; with --best-ridge, equal ridge above it."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Where attention beats linear regression, and the boundary."""
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    setting, across, up = flags.setting(), axis("--x", x), axis("--y", y)
    result = phase_diagram(setting, across, up, best_ridge=best_ridge)
    if plot is not None:
        from resolvent.plot import plot_phase

        plot_phase(plot, *([phase_diagram(setting, across, up)] if best_ridge else []), result)
    show(result, json)
