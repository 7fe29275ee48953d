"""What the commands load: starting up must not pay for what a command does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("matplotlib", "scipy", "numba", "xarray", "pandas", "pyarrow", "sklearn")
CODE = """
import sys
{}
print(*{{name.split(".")[0] for name in sys.modules}}, file=sys.stderr)
"""


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(statement)], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())


def command(*arguments: str) -> str:
    return f"from resolvent.cli.app import run; assert run({list(arguments)}) == 0"


def test_help_needs_no_numbers():
    assert loaded_by(command("--help")).isdisjoint((*SLOW, "numpy", "threadpoolctl"))
    assert "numpy" not in loaded_by("import resolvent; resolvent.__version__, dir(resolvent)")


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict",),
        ("predict", "--f", "relu", "--align", "1"),
        ("nonlinearity", "tanh"),
        ("compare", "--n", "16", "--draws", "2"),
        ("simulate", "--help"),
    ],
    ids=" ".join,
)
def test_commands_load_what_they_use(arguments):
    unused = SLOW if "--help" in arguments else (*SLOW, "rich")
    assert loaded_by(command(*arguments)).isdisjoint(unused)
