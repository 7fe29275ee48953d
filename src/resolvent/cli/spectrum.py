"""`resolvent spectrum`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.cli.flags import OUTPUT, SIZE, Json, SettingFlags, number
from resolvent.cli.output import show
from resolvent.simulate.eigenvalues import Of
from resolvent.spectrum import spectrum as spectrum_of

MATRIX = Group("Matrix", sort_key=0)

_DEFAULT = SettingFlags()


def spectrum(
    *,
    of: Annotated[
        Of, Parameter(group=MATRIX, help="The features' H'H/n, or the attention matrix K.")
    ] = "features",
    flags: SettingFlags = _DEFAULT,
    n: Annotated[int, number(SIZE, "Tokens of the sampled matrix; p = round(ratio n).", 1024)] = 1024,
    seed: Annotated[int, number(SIZE, "The integer that decides all randomness.", 0)] = 0,
    plot: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Draw density over histogram into a .png, .pdf or .svg.")
    ] = None,
    json: Json = False,
) -> None:
    """Limiting spectrum, edges and isolated eigenvalues of H'H/n or of K, beside one sampled matrix."""
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    result = spectrum_of(flags.setting(), of=of, n=n, seed=seed)
    show(result, json)
    if plot is not None:
        from resolvent.plot import plot_spectrum

        plot_spectrum(result, plot)
