"""`resolvent advise`, for a setting or for the user's own tokens."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.advise import advise as advise_setting
from resolvent.advise.advice import Budget
from resolvent.cli.flags import PROBE, Json, SettingFlags, naming, number
from resolvent.cli.output import show
from resolvent.nonlinearity import Nonlinearity, nonlinearity

CHOICE = Group("Choice", sort_key=0)

_DEFAULT = SettingFlags()


def advise(
    *,
    flags: SettingFlags = _DEFAULT,
    also: Annotated[
        list[str] | None,
        Parameter(
            group=CHOICE,
            negative="",
            allow_leading_hyphen=True,
            help="One more nonlinearity to rank, beside every known name; may be given more than once.",
        ),
    ] = None,
    equal_ridge: Annotated[
        bool,
        Parameter(group=CHOICE, negative="", help="Rank at --ridge, and not at each one's best ridge."),
    ] = False,
    p: Annotated[int | None, number(PROBE, "Dimension at which errors are refined.")] = None,
    json: Json = False,
) -> None:
    """Which nonlinearity, ridge and alignment to choose, or linear regression; and why."""
    budget: Budget = "equal" if equal_ridge else "best"
    show(advise_setting(flags.setting(), _functions(also or [], flags.centred), p=p, budget=budget), json)


def _functions(texts: list[str], centred: bool) -> list[Nonlinearity]:
    """The nonlinearities that --also names."""
    with naming("--also"):
        return [nonlinearity(text, centred=centred) for text in texts]
