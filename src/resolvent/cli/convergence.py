"""`resolvent convergence`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import OUTPUT, SIZE, Json, SettingFlags, number
from resolvent.cli.output import progress_wanted, show
from resolvent.convergence import convergence as convergence_of

_DEFAULT = SettingFlags()


def convergence(
    *,
    flags: SettingFlags = _DEFAULT,
    sizes: Annotated[
        str, Parameter(group=SIZE, help="Tokens n of each size, separated by commas.")
    ] = "128,256,512,1024",
    draws: Annotated[int, number(SIZE, "Independent repetitions at each size.", 20)] = 20,
    seed: Annotated[int, number(SIZE, "The integer that decides all randomness.", 0)] = 0,
    tolerance: Annotated[float, number(SIZE, "Of the prediction: what is close enough.", 0.03)] = 0.03,
    plot: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Draw errors and gaps over n into a .png, .pdf or .svg.")
    ] = None,
    json: Json = False,
) -> None:
    """Predicted less measured at several n: at which rate it falls, and from where on the limit is right."""
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    result = convergence_of(
        flags.setting(),
        sizes=_integers(sizes),
        draws=draws,
        seed=seed,
        tolerance=tolerance,
        progress=progress_wanted(json),
    )
    show(result, json)
    if plot is not None:
        from resolvent.plot import plot_convergence

        plot_convergence(result, plot)


def _integers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes must be integers with commas between them, got {text!r}") from None
