"""Run the fenced blocks of a Markdown page, in order and in one namespace, in the current folder.

    python        `>>>` examples must print what is shown; code without prompts must run
    console       `$ resolvent ...` must print what is shown below it, if anything is, and succeed; to show
                  a failure, show its message
    sh            lines that start with `resolvent` must succeed

A block inside a comment runs too, unseen by the reader: it prepares what later ones need. The comment
`<!-- not run: WHY -->` above a block skips it. Other languages are prose.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?"
    r"(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
PROMPT = re.compile(r"^(>>>|\$ resolvent) ", re.MULTILINE)
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONGEST = 300.0  # seconds that one command may take before it counts as hung


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the page's line of its first line, from 1."""

    language: str
    body: str
    line: int
    skipped: bool


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        yield Block(match["language"], dedent(match["body"]), line, match["skip"] is not None)


def run_page(path: Path) -> int:
    """Run a page and return how many examples it has; AssertionError names the line of one that fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 0, f"{path.name}: a fence is not closed"
    return sum(_run(block, path.name, namespace) for block in blocks(text) if not block.skipped)


def _run(block: Block, page: str, namespace: dict[str, Any]) -> int:
    match block.language:
        case "python" if PROMPT.search(block.body):
            return _run_examples(block, page, namespace)
        case "python":
            exec(compile("\n" * (block.line - 1) + block.body, page, "exec"), namespace)
            return 1
        case "console":
            return sum(_run_command(*shown, f"{page}:{block.line}") for shown in _console(block.body))
        case "sh":
            commands = re.findall(r"^resolvent .*", block.body.replace("\\\n", ""), re.MULTILINE)
            return sum(_run_command(command, "", f"{page}:{block.line}") for command in commands)
    assert not PROMPT.search(block.body), f"{page}:{block.line}: a {block.language!r} block is not run"
    return 0


def _run_examples(block: Block, page: str, namespace: dict[str, Any]) -> int:
    test = doctest.DocTestParser().get_doctest(block.body, {}, page, page, block.line - 1)
    test.globs = namespace
    report: list[str] = []
    doctest.DocTestRunner(optionflags=LENIENT).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    return len(test.examples)


def _console(body: str) -> Iterator[tuple[str, str]]:
    """The `resolvent` commands of a console block, each with the output shown below it."""
    for entry in re.split(r"^\$ ", body.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, shown = entry.partition("\n")
        if command.startswith("resolvent "):
            yield command, shown


def _run_command(command: str, shown: str, place: str) -> int:
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"PATH": scripts},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0 or shown, f"{place}: {command}\nexit {done.returncode}\n{done.stderr}"
    printed = done.stdout if done.returncode == 0 else done.stderr
    same = doctest.OutputChecker().check_output(shown, printed, LENIENT)
    assert same or not shown, f"{place}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
    return 1
