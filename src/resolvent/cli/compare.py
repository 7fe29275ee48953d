"""`resolvent compare`, on synthetic tokens or on the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from resolvent.cli.flags import OUTPUT, TOKENS, Json, SettingFlags, SizeFlags
from resolvent.cli.output import progress_wanted, show
from resolvent.compare import compare as compare_setting
from resolvent.compare import compare_tokens
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
    whiten: Annotated[Whiten, Parameter(group=TOKENS, help="How tokens are whitened.")] = "auto",
    plot: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Draw error against ridge into a .png, .pdf or .svg.")
    ] = None,
    json: Json = False,
) -> None:
    """Predicted beside measured, attention beside linear regression, and who wins."""
    setting, progress = flags.setting(), progress_wanted(json)
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    if tokens is None:
        if labels is not None or whiten != "auto":
            raise ValueError(f"{'--labels' if labels is not None else '--whiten'} goes with --tokens FILE")
        result = compare_setting(setting, n=size.n, draws=size.draws, seed=size.seed, progress=progress)
        if plot is not None:
            from resolvent.plot import plot_comparison

            plot_comparison(result, plot, progress=progress)
        show(result, json)
        return
    from resolvent.dataset import read_tokens

    try:
        data = read_tokens(tokens, labels)
    except ValueError as error:
        raise ValueError(f"--tokens: {error}") from error
    own = compare_tokens(
        data,
        setting,
        whiten=whiten,
        draws=size.draws,
        seed=size.seed,
        progress=progress,
    )
    if plot is not None:
        from resolvent.plot import plot_token_comparison

        plot_token_comparison(own, plot)
    show(own, json)
