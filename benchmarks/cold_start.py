"""Whole processes from nothing: help, a prediction, a small comparison, beside Python with NumPy alone."""

import subprocess
import sys

from benchmarks.clock import timed
from benchmarks.registry import Row, benchmark

COMMANDS = {
    "python -c 'import numpy'": ["-c", "import numpy"],
    "resolvent --help": ["-m", "resolvent", "--help"],
    "resolvent predict": ["-m", "resolvent", "predict"],
    "resolvent compare --n 512 --draws 4": ["-m", "resolvent", "compare", "--n", "512", "--draws", "4"],
}


@benchmark("cold_start", "how long does a command take as a whole process?")
def cold_start(quick: bool) -> list[Row]:
    took = {}
    for name, arguments in COMMANDS.items():
        call = [sys.executable, *arguments]
        took[name] = timed(
            lambda call=call: subprocess.run(call, check=True, capture_output=True), 2 if quick else 5
        )
    first = next(iter(took.values()))
    return [
        {
            "process": name,
            "seconds": timing.wall,
            "of one core": timing.cpu,
            "x python with numpy": timing.wall / first.wall,
        }
        for name, timing in took.items()
    ]
