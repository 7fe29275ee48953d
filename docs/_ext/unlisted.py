"""Pages that no table of contents names are listed under More, so that a new page is never lost."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

TOCTREE = re.compile(r"```\{toctree\}.*?```", re.DOTALL)


def list_the_rest(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the pages that the index leaves out."""
    if docname != app.config.root_doc:
        return
    named = {line.strip() for tree in TOCTREE.findall(source[0]) for line in tree.splitlines()} | {docname}
    rest = sorted(page for page in app.env.found_docs if "/" not in page and page not in named)
    if rest:
        source[0] += "\n".join(["\n```{toctree}", ":caption: More", ":hidden:", "", *rest, "```\n"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Before the index is parsed."""
    app.connect("source-read", list_the_rest)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
