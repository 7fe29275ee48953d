"""Saving a sweep: netCDF, zarr or parquet by suffix, checked before any work, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from resolvent.sweep.labelled import identity

if TYPE_CHECKING:
    import xarray

NEEDS = {".nc": "netCDF4", ".zarr": "zarr", ".parquet": "pyarrow"}
KEY = b"resolvent"  # of a parquet file's metadata


def checked_path(path: str | Path) -> Path:
    """path; ValueError for another suffix or no folder, ImportError when its library is missing."""
    path = Path(path)
    if path.suffix not in NEEDS:
        raise ValueError(f"path must end in {', '.join(NEEDS)}, got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"path must be in an existing folder, got {path}")
    if find_spec(NEEDS[path.suffix]) is None:
        raise ImportError(f"writing {path.suffix} needs the extra io: pip install 'resolvent[io]'")
    return path


def saved_identity(path: Path) -> dict[str, Any] | None:
    """The `identity` of the sweep in a file, None without one; ValueError for another thing."""
    if not path.exists():
        return None
    try:
        found = _READERS[path.suffix](path)
    except Exception:  # whatever a library raises on a file that is not its own
        found = {}
    if "predicted" not in found:
        raise ValueError(f"{path} exists and is not a sweep: choose another file or remove it")
    return dict(found["predicted"])


def save(dataset: xarray.Dataset, path: Path) -> None:
    """Write the dataset beside path and move it there. A zarr folder is absent for an instant."""
    new = path.with_name(f".{uuid4().hex[:8]}{path.suffix}")
    try:
        _WRITERS[path.suffix](dataset, new)
        old = path.with_name(f".{uuid4().hex[:8]}.old")
        if path.is_dir():
            os.replace(path, old)
        os.replace(new, path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        if new.is_dir():
            shutil.rmtree(new, ignore_errors=True)
        else:
            new.unlink(missing_ok=True)


def _write_netcdf(dataset: xarray.Dataset, path: Path) -> None:
    dataset.to_netcdf(path, engine="netcdf4")


def _write_zarr(dataset: xarray.Dataset, path: Path) -> None:
    dataset.to_zarr(path, mode="w", zarr_format=2)


def _write_parquet(dataset: xarray.Dataset, path: Path) -> None:
    """One row a point of the grid; a column each for method and error."""
    import pyarrow
    import pyarrow.parquet

    dims = list(dataset["residual"].dims)
    points = np.meshgrid(*(dataset[dim].values for dim in dims), indexing="ij")
    columns = {str(dim): at.ravel() for dim, at in zip(dims, points, strict=True)}
    for name, values in dataset.data_vars.items():
        columns |= {label: part.values.ravel() for label, part in _columns(str(name), values)}
    about = json.dumps({"predicted": identity(dataset)}).encode()
    pyarrow.parquet.write_table(pyarrow.table(columns).replace_schema_metadata({KEY: about}), path)


def _columns(name: str, values: xarray.DataArray) -> list[tuple[str, xarray.DataArray]]:
    """`predicted` to predicted_attention_train and so on."""
    parts = [(name, values)]
    for dim in ("method", "error"):
        if dim in values.dims:
            parts = [
                (f"{label}_{key}", part.sel({dim: key}))
                for label, part in parts
                for key in values[dim].values.tolist()
            ]
    return parts


def _read_netcdf(path: Path) -> dict[str, Any]:
    import xarray

    with xarray.open_dataset(path, engine="netcdf4") as dataset:
        return _described(dataset)


def _read_zarr(path: Path) -> dict[str, Any]:
    import xarray

    with xarray.open_zarr(path, chunks=None) as dataset:
        return _described(dataset)


def _read_parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet

    return dict(json.loads(pyarrow.parquet.read_schema(path).metadata[KEY]))


def _described(dataset: xarray.Dataset) -> dict[str, Any]:
    return {"predicted": identity(dataset)} if "predicted" in dataset else {}


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".nc": _read_netcdf,
    ".zarr": _read_zarr,
    ".parquet": _read_parquet,
}
_WRITERS: dict[str, Callable[[xarray.Dataset, Path], None]] = {
    ".nc": _write_netcdf,
    ".zarr": _write_zarr,
    ".parquet": _write_parquet,
}
