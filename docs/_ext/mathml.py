"""Formulas as MathML, written at build time: nothing to load in the browser, and readable aloud."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML(macros={"tr": r"\operatorname{tr}", "E": r"\mathbb{E}"})


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(_mathml(node, display=False))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own, with its number and a link to it where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(_mathml(node, display=True))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _mathml(node: nodes.Element, display: bool) -> str:
    try:
        return CONVERTER.convert_with_local_state(node.astext().strip(), displaystyle=display)
    except LatexError as error:
        raise ExtensionError(f"{node.source}:{node.line}: {escape(str(error))}") from error


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
