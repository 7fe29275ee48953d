"""A sweep as a labelled dataset: coordinates are what varies, attributes the rest of the setting.

`identity` is what two sweeps must share to be the same computation: every coordinate and every attribute.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.entrywise import Entrywise
from resolvent.sweep.cells import SUMMARY, Sizes
from resolvent.sweep.grid import Grid
from resolvent.sweep.prediction import Predicted

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

METHODS, ERRORS = ("attention", "linear"), ("train", "test")


def labelled(grid: Grid, limits: Predicted, sizes: Sizes | None) -> xarray.Dataset:
    """Predictions as a dataset."""
    import xarray

    dims = tuple(grid.axes)
    return xarray.Dataset(
        {
            "predicted": (("method", "error", *dims), limits.errors),
            "residual": (dims, limits.residual),
            "iterations": (dims, limits.iterations),
            "converged": (dims, limits.converged),
        },
        coords={"method": list(METHODS), "error": list(ERRORS), **grid.axes},
        attrs=_attributes(grid, sizes),
    )


def with_measured(dataset: xarray.Dataset, grid: Grid, done: dict[int, Array]) -> xarray.Dataset:
    """The dataset with the cells that were measured; the others are NaN."""
    values = np.full((*SUMMARY, *grid.shape), np.nan)
    for cell, summary in done.items():
        at = grid.place(cell)
        values[(..., *at)] = summary if "ridge" in grid.axes else summary[..., 0]
    mean, se = values
    dims = tuple(grid.axes)
    return dataset.assign(
        measured=(("method", "error", *dims), mean[:2]),
        standard_error=(("method", "error", *dims), se[:2]),
        difference=(("error", *dims), mean[2]),
        difference_se=(("error", *dims), se[2]),
    )


def identity(dataset: xarray.Dataset) -> dict[str, Any]:
    """Coordinates and attributes, in plain values."""
    coords = {str(name): values.values.tolist() for name, values in dataset.coords.items()}
    plain = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in dataset.attrs.items()}
    return coords | plain


def differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """What differs, in words; empty when nothing does."""
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    return ", ".join(f"{name} is {_short(there, name)} there and {_short(here, name)} here" for name in names)


def _attributes(grid: Grid, sizes: Sizes | None) -> dict[str, Any]:
    fixed = {k: int(v) if isinstance(v, bool) else v for k, v in grid.fixed().items()}  # netCDF has no bool
    if "f" in fixed and isinstance(
        getattr(grid.setting.heads[0].f, "function", None), Entrywise
    ):  # whose name says little
        fixed["coefficients"] = str(grid.setting.heads[0].f.coefficients())
    size = {} if sizes is None else sizes._asdict()
    return fixed | size | {name: version(name) for name in ("resolvent", "numpy", "scipy")}


def _short(values: dict[str, Any], name: str) -> str:
    """A value, or the range of many."""
    if name not in values:
        return "not set"
    value = values[name]
    if isinstance(value, list):
        ends = value if len(value) < 4 else [value[0], "...", value[-1]]
        return f"{len(value)} values ({', '.join(map(str, ends))})"
    return str(value)
