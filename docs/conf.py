"""Sphinx, offline: `sphinx-build -W --keep-going docs docs/_build`."""

import sys
from pathlib import Path

_DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(_DOCS / "_ext"), str(_DOCS.parent)]

from dpbandit.version import VERSION  # noqa: E402

project = "dpbandit"
author = "The dpbandit developers"
project_copyright = author
version = release = VERSION

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "lessons",  # before "markup", too
    "markup",  # before "contents": it makes links lead to pages
    "contents",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"

autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_custom_sections = [
    *("Guarantee", "Differs from the paper", "Differs from the program", "Code"),
    *("Description", "Action space", "Observation space", "Rewards", "Starting state"),
    *("Episode end", "Arguments"),
]
default_role = "code"
python_maximum_signature_line_length = 80
toc_object_entries = False
python_use_unqualified_type_names = True

highlight_language = "text"

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"dpbandit {VERSION}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["labs.js"]
html_search_scorer = str(_DOCS / "_static" / "scorer.js")
html_copy_source = False
html_show_sphinx = False
html_domain_indices = False
