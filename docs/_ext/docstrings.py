"""Docstrings as they are written, plain text with indented formulas, to what Sphinx reads.

`name` becomes code, an indented paragraph after a blank line becomes a literal block, and the characters that
mean something to reStructuredText (|mu|^2, f*g, x_) lose their meaning. Examples are left alone. An object
that is public in two modules is described once.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FIRST: dict[str, str] = {}  # the page that describes an object
ARRAY = re.compile(
    r"(numpy\.)?ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]|TypeAliasForwardRef\('(Array)'\)"
)
SPECIAL = re.compile(r"(``.*?``)|([|*\\]|_(?!\w))")


def process(_app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite the lines in place."""
    out: list[str] = []
    before, literal, example = 0, None, False  # indentation of the last line that is not blank
    for line in lines:
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if not text:
            example = False
            out.append("")
            continue
        example = example or text.startswith(">>>")
        if literal is not None and indent < literal:
            literal = None
        if literal is None and not example and out and out[-1] == "" and indent > before:
            out[-1:] = ["", " " * before + "::", ""]
            literal = indent
        out.append(line if literal is not None or example else " " * indent + _escaped(text))
        before = indent if literal is None else before
    lines[:] = out


def _escaped(text: str) -> str:
    if set(text) <= set("-=~"):  # the rule below a heading
        return text
    text = CODE.sub(r"``\1``", text)
    return SPECIAL.sub(lambda m: m[1] or "\\" + m[2], text)


def shorten(
    _app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, *signature: str
) -> tuple[str, ...]:
    """Arrays by that name alone: docstrings give shapes, and say where they are not float64."""
    return tuple(part and ARRAY.sub("Array", part) for part in signature)


def once(app: Sphinx, what: str, name: str, of: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out what an earlier page describes: some names are public in two modules."""
    if what != "module" or skip or not hasattr(of, "__module__"):
        return None
    first = FIRST.setdefault(f"{of.__module__}.{name}", app.env.docname)
    return True if first != app.env.docname else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
