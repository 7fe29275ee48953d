"""`resolvent nonlinearity`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import OUTPUT, PROBE, Json, naming, number
from resolvent.cli.output import show
from resolvent.nonlinearity import card
from resolvent.nonlinearity import nonlinearity as resolve


def nonlinearity(
    f: Annotated[
        str,
        Parameter(help='A name, or an expression in t such as "t*tanh(t)".', allow_leading_hyphen=True),
    ],
    file: Annotated[Path | None, Parameter(help="Where --plot saves a .png, .pdf or .svg.")] = None,
    /,
    *,
    centred: Annotated[
        bool, Parameter(group=PROBE, negative="--uncentred", help="Remove the mean of f, or keep it.")
    ] = True,
    p: Annotated[int | None, number(PROBE, "Dimension of the kept-diagonal shift.")] = None,
    plot: Annotated[
        bool, Parameter(group=OUTPUT, negative="", help="Draw f and its powers: here, or into FILE.")
    ] = False,
    json: Json = False,
) -> None:
    """The card of a nonlinearity: Hermite coefficients and what the theory says it can and cannot do."""
    if file is not None and not plot:
        raise ValueError(f"{str(file)!r} is not used: a file goes with --plot")
    if plot and json and file is None:
        raise ValueError("--plot needs a FILE with --json, which leaves no room for a drawing")
    with naming("F"):
        found = resolve(f, centred=centred)
        found.coefficients()
    if file is not None:
        from resolvent.plot import checked_path

        checked_path(file)
    show(card(found, p), json)
    if file is not None:
        from resolvent.plot import plot_nonlinearity

        plot_nonlinearity(found, file)
    elif plot:
        from resolvent.plot.terminal import draw

        print(draw(found.evaluate))
