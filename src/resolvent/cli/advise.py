"""`resolvent advise`, for a setting or for the user's own tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from resolvent.advise import advise as advise_setting
from resolvent.advise import advise_tokens
from resolvent.advise.advice import Budget
from resolvent.cli.flags import ANGLES, MODEL, PROBE, SIZE, TOKENS, Json, SettingFlags, flag, naming, number
from resolvent.cli.output import progress_wanted, show
from resolvent.dataset import read_tokens
from resolvent.dataset.standard import Whiten
from resolvent.nonlinearity import Nonlinearity, nonlinearity

LAW = ("noise", "covariance", "norm_spread", "normalise", "signal")
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
    tokens: Annotated[
        Path | None, Parameter(group=TOKENS, help="Your labelled tokens: .npz, .npy, .parquet or .csv.")
    ] = None,
    labels: Annotated[Path | None, Parameter(group=TOKENS, help="Labels of an .npy file.")] = None,
    whiten: Annotated[
        Whiten | None, Parameter(group=TOKENS, help="How tokens are whitened.", show_default="auto")
    ] = None,
    top: Annotated[int | None, number(SIZE, "Choices measured on your tokens.", 2)] = None,
    draws: Annotated[int | None, number(SIZE, "Splits of your tokens.", 10)] = None,
    seed: Annotated[int | None, number(SIZE, "The integer that decides all randomness.", 0)] = None,
    json: Json = False,
) -> None:
    """Which nonlinearity, ridge and alignment to choose, or linear regression; and why.

    With --tokens the setting is estimated, and the first choices are measured on splits of the tokens.
    """
    measured = {"whiten": whiten, "top": top, "draws": draws, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in measured.items() if value is not None}
    if tokens is not None:
        own = flags.given(
            *MODEL, *ANGLES, "ridge", "noise", "covariance", "norm_spread", "normalise", "signal"
        )
        for name, value in (own | ({} if p is None else {"p": p})).items():
            raise ValueError(f"{flag(name)} {value} cannot be given with --tokens, which decide it")
        if equal_ridge:
            raise ValueError("--equal-ridge cannot be given with --tokens: each has its best ridge")
        with naming("--tokens"):
            data = read_tokens(tokens, labels)
        also_ranked = _functions(also or [], flags.centred)
        progress = progress_wanted(json)
        show(advise_tokens(data, flags.setting(), also_ranked, **given, progress=progress), json)
        return
    for name, value in ({"labels": labels} | given).items():
        if value is not None:
            raise ValueError(f"{flag(name)} {value} goes with --tokens FILE")
    budget: Budget = "equal" if equal_ridge else "best"
    show(advise_setting(flags.setting(), _functions(also or [], flags.centred), p=p, budget=budget), json)


def _functions(texts: list[str], centred: bool) -> list[Nonlinearity]:
    """The nonlinearities that --also names."""
    with naming("--also"):
        return [nonlinearity(text, centred=centred) for text in texts]
