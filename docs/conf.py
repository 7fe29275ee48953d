"""Sphinx configuration: furo, MyST pages, formulas as MathML. Nothing is fetched, to build or to read.

sphinx-build -W -b html docs docs/_build
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import resolvent

project = "resolvent"
author = "The resolvent developers"
copyright = "the resolvent developers"
release = version = resolvent.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "docstrings",
    "unlisted",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext", "_templates"]
nitpicky = False

html_theme = "furo"
html_title = "resolvent"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["resolvent.css"]
html_copy_source = False
html_show_sourcelink = False

templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike")}
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "count, index"}
napoleon_google_docstring = False
python_use_unqualified_type_names = True
