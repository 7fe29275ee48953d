"""python -m benchmarks [NAME ...] [--quick] [-o FILE]."""

import argparse
import json
from pathlib import Path

from benchmarks import (  # noqa: F401  (each import registers one)
    bidiagonal,
    cold_start,
    dask_overhead,
    devices,
    engine,
    ridge_curve,
    scaling,
    settings_per_second,
    sweeps,
)
from benchmarks.machine import machine
from benchmarks.registry import BENCHMARKS, Row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks.json"))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}, choose from {', '.join(BENCHMARKS)}")
    report: dict[str, object] = {"machine": machine()}
    print(json.dumps(report["machine"], indent=1))
    for name in args.names or BENCHMARKS:
        rows = BENCHMARKS[name].run(args.quick)
        report[name] = rows
        print(f"\n{name}: {BENCHMARKS[name].question}\n{table(rows)}", flush=True)
    args.output.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwritten to {args.output}")


def table(rows: list[Row]) -> str:
    """Columns as wide as their longest entry."""
    header = list(rows[0])
    cells = [header, *([_cell(row[key]) for key in header] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _cell(value: str | float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
