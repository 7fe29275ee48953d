"""A view as Python and as a command: what a reader runs to get the numbers on the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from resolvent.explorer.view import ANGLES, DEFAULTS, NUMBERS, SIZES, TOKENS, View

MEASURED = 9  # points that are measured along the axis


def python_code(view: View, points: int, simulate: bool = False) -> str:
    """The curves by `sweep`, and the measured points if they are wanted."""
    lines = [
        "import numpy as np",
        "",
        "from resolvent import Setting, Tokens, Weights, sweep",
        "",
        f"setting = {_setting(view)}",
        f"curves = sweep(setting, {_over(view, points)})",
        "print(curves.predicted.to_series())",
    ]
    if simulate:
        sizes = ", ".join(f'"{name}": {view[name]}' for name in SIZES)
        lines += [
            f"points = sweep(setting, {_over(view, MEASURED)}, simulate={{{sizes}}})",
            "print(points.measured.to_series())",
        ]
    return "\n".join([*lines, ""])


def command_line(view: View, points: int, simulate: bool = False) -> str:
    """The same by `resolvent sweep`: a command, and another for the measured points."""
    commands = [["resolvent", "sweep", "--over", _range(view, points), *_flags(view), "--json"]]
    if simulate:
        sizes = [f"--{name}={view[name]}" for name in SIZES]
        over = ["--over", _range(view, MEASURED)]
        commands += [["resolvent", "sweep", *over, *_flags(view), "--simulate", *sizes, "--json"]]
    return "".join(f"{shlex.join(words)}\n" for words in commands)


def _range(view: View, points: int) -> str:
    axis = NUMBERS[view["over"]]
    return f"{view['over']}={axis.low!r}:{axis.high!r}:{points}" + (":log" if axis.geometric else "")


def _over(view: View, points: int) -> str:
    axis = NUMBERS[view["over"]]
    spaced = "geomspace" if axis.geometric else "linspace"
    return f'{{"{view["over"]}": np.{spaced}({axis.low!r}, {axis.high!r}, {points})}}'


def _setting(view: View) -> str:
    """A call of Setting that leaves out what is at its default."""
    tokens = ", ".join(f"{name}={view[name]!r}" for name in TOKENS if view[name] != DEFAULTS[name])
    if view["weights"] == "aligned":
        weights = f"Weights.aligned({view['align']!r})"
    else:
        weights = f"Weights.from_angles({', '.join(f'{name}={view[name]!r}' for name in ANGLES)})"
    options = [f"ridge={view['ridge']!r}"]
    options += [f"skip={view['skip']!r}"] if view["skip"] else []
    options += [f"beta={view['beta']!r}"] if view.softmax else []
    options += ["centred=False"] if view["centred"] == "0" else []
    options += ["keep_diagonal=True"] if view["keep_diagonal"] == "1" else []
    return f"Setting(Tokens({tokens}), {weights}, {view['f']!r}, {', '.join(options)})"


def _flags(view: View) -> Iterator[str]:
    """The flags of the setting, those at their defaults left out."""
    if view["f"] != DEFAULTS["f"]:
        yield f"--f={view['f']}"
    if view["centred"] == "0":
        yield "--uncentred"
    if view["keep_diagonal"] == "1":
        yield "--keep-diagonal"
    for name in view.free:
        if view[name] != DEFAULTS[name] or name in ("key_norm", "query_norm"):
            yield f"--{name.replace('_', '-')}={view[name]!r}"
