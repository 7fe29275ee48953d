"""`resolvent compare`, on synthetic tokens or on the user's own."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import ANGLES, MODEL, OUTPUT, TOKENS, Json, SettingFlags, SizeFlags, flag, naming
from resolvent.cli.output import progress_wanted, show
from resolvent.compare import Comparison, TokenComparison, compare_tokens
from resolvent.compare import compare as compare_setting
from resolvent.dataset.standard import Whiten

_DEFAULT, _SIZE = SettingFlags(), SizeFlags()


def compare(
    *,
    flags: SettingFlags = _DEFAULT,
    size: SizeFlags = _SIZE,
    tokens: Annotated[
        Path | None, Parameter(group=TOKENS, help="Your labelled tokens: .npz, .npy, .parquet or .csv.")
    ] = None,
    labels: Annotated[Path | None, Parameter(group=TOKENS, help="Labels of an .npy file.")] = None,
    whiten: Annotated[
        Whiten | None, Parameter(group=TOKENS, help="How tokens are whitened.", show_default="auto")
    ] = None,
    plot: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Draw error against ridge into a .png, .pdf or .svg.")
    ] = None,
    json: Json = False,
) -> None:
    """Predicted beside measured, attention beside linear regression, and who wins."""
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    progress = progress_wanted(json)
    result: Comparison | TokenComparison
    if tokens is None:
        for name, value in (("--labels", labels), ("--whiten", whiten)):
            if value is not None:
                raise ValueError(f"{name} {value} goes with --tokens FILE")
        result = compare_setting(flags.setting(), **size.given(), progress=progress)
    else:
        result = _own(tokens, labels, whiten or "auto", flags, size, progress)
    show(result, json)
    if plot is not None:
        _plot(result, plot, progress)


def _own(
    tokens: Path, labels: Path | None, whiten: Whiten, flags: SettingFlags, size: SizeFlags, progress: bool
) -> TokenComparison:
    """Compare on the user's tokens, which say themselves what some flags say of synthetic ones."""
    given = flags.given(*MODEL, *ANGLES, "noise", "covariance", "norm_spread", "normalise", "signal") | {
        name: v for name, v in size.given().items() if name == "n"
    }
    for name, value in given.items():
        why = "only --align sets the weights there" if name in ANGLES else "the tokens decide it"
        raise ValueError(f"{flag(name)} {value} cannot be given with --tokens: {why}")
    from resolvent.dataset import read_tokens

    setting = flags.setting()
    with naming("--tokens"):
        data = read_tokens(tokens, labels)
    return compare_tokens(data, setting, whiten=whiten, **size.given(), progress=progress)


def _plot(result: Comparison | TokenComparison, path: Path, progress: bool) -> None:
    """Draw a comparison that has been printed: an interrupt leaves only the picture undone."""
    from resolvent.plot import plot_comparison, plot_token_comparison

    try:
        if isinstance(result, Comparison):
            plot_comparison(result, path, progress=progress)
        else:
            plot_token_comparison(result, path)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted: {path} was not written") from None
