"""`resolvent sweep`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Group, Parameter

from resolvent.cli.axes import axes
from resolvent.cli.flags import OUTPUT, Json, SettingFlags, SizeFlags, naming, number
from resolvent.cli.output import progress_wanted, show
from resolvent.sweep import DamagedJournal
from resolvent.sweep import sweep as sweep_grid
from resolvent.sweep.files import checked_path

if TYPE_CHECKING:
    import xarray

GRID = Group("Grid", sort_key=0)

_DEFAULT, _SIZE = SettingFlags(), SizeFlags()


def sweep(
    *,
    over: Annotated[
        list[str],
        Parameter(
            group=GRID,
            help="What varies: NAME=LOW:HIGH:COUNT[:log] or NAME=VALUE,VALUE,...; once for each NAME.",
            negative="",
        ),
    ],
    flags: SettingFlags = _DEFAULT,
    simulate: Annotated[
        bool, Parameter(group=GRID, negative="", help="Measure too, each point by exact simulation.")
    ] = False,
    size: SizeFlags = _SIZE,
    workers: Annotated[int | None, number(GRID, "Processes that simulate.", 1)] = None,
    scheduler: Annotated[
        str | None, Parameter(group=GRID, help="Address of a Dask scheduler that simulates instead.")
    ] = None,
    output: Annotated[
        Path | None,
        Parameter(
            name=["--output", "-o"],
            group=OUTPUT,
            help="Save into a .nc, .zarr or .parquet; the same command resumes.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """A grid of settings: predictions in one go, simulations that can be stopped, killed and resumed."""
    sizes = size.given()
    if not simulate:
        alone = {f"--{name}": value for name, value in sizes.items()}
        for name, value in (alone | {"--workers": workers, "--scheduler": scheduler}).items():
            if value is not None:
                raise ValueError(f"{name} {value} goes with --simulate")
    if workers is not None and scheduler is not None:
        raise ValueError("--workers cannot be given with --scheduler, whose cluster has its own")
    if output is not None:
        with naming("--output"):
            checked_path(output)
    with _damage_in_one_line():
        dataset = sweep_grid(
            flags.setting(),
            axes("--over", over),
            simulate=sizes if simulate else None,
            path=output,
            executor=scheduler,
            workers=1 if workers is None else workers,
            progress=progress_wanted(json),
        )
    show(_Sweep(dataset, output), json)


@dataclass(frozen=True)
class _Sweep:
    """How a finished sweep is printed."""

    dataset: xarray.Dataset
    path: Path | None

    def as_dict(self) -> dict[str, Any]:
        """The fields of `resolvent sweep --json`; errors are nested lists in the order of `over`."""
        d = self.dataset
        out = {
            "setting": {k: bool(v) if k in FLAGS else v for k, v in d.attrs.items()},
            "over": {str(name): values.values for name, values in d.coords.items() if name not in PARTS},
            "predicted": _nested(d["predicted"]),
            "solver": {name: d[name].values for name in ("converged", "residual", "iterations")},
            "file": None if self.path is None else str(self.path),
        }
        if "measured" in d:
            out["measured"] = _nested(d["measured"], d["standard_error"])
            out["difference"] = _nested(d["difference"], d["difference_se"])
        return out

    def __str__(self) -> str:
        d = self.dataset
        dims = [str(dim) for dim in d["residual"].dims]
        attention, linear = (d["predicted"].sel({"method": method}) for method in ("attention", "linear"))
        train, test = (100.0 * float((attention < linear).sel(error=e).mean()) for e in ("train", "test"))
        lines = [
            f"{' x '.join(f'{d.sizes[dim]} {dim}' for dim in dims)}: {d['residual'].size} points, "
            f"{int(d['converged'].sum())} converged",
            f"Attention is predicted to win at {train:.1f} % of them in training, "
            f"at {test:.1f} % on fresh tokens.",
        ]
        if "measured" in d:
            clear = abs(d["difference"]) > 2.0 * d["difference_se"]
            against = 100.0 * float((clear & ((attention - linear) * d["difference"] < 0.0)).mean())
            lines.append(f"Measured beyond two standard errors, the other wins at {against:.1f} % of all.")
        return "\n".join([*lines, *([] if self.path is None else [f"Saved in {self.path}"])])


PARTS = ("method", "error")
FLAGS = ("centred", "keep_diagonal")  # numbers in a file, which knows no truth


def _nested(mean: xarray.DataArray, se: xarray.DataArray | None = None) -> Any:
    """By method and error, as dicts; with standard errors, as {"mean", "se"}."""
    for dim in PARTS:
        if dim in mean.dims:
            keys = mean[dim].values.tolist()
            return {k: _nested(mean.sel({dim: k}), None if se is None else se.sel({dim: k})) for k in keys}
    return mean.values if se is None else {"mean": mean.values, "se": se.values}


@contextmanager
def _damage_in_one_line() -> Iterator[None]:
    """Report a damaged journal as the commands report everything."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DamagedJournal)
        shown = warnings.showwarning

        def line(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, DamagedJournal):
                print(f"resolvent: {message}", file=sys.stderr)
            else:
                shown(message, category, filename, lineno, file, line)

        warnings.showwarning = line
        yield
