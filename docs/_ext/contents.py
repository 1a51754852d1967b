"""Sphinx extension: tables of contents, and API pages, from pages without any directive.

A page shows where the repository is browsed, too, so comments hold what only Sphinx reads:

<!-- contents: CAPTION -->   links up to `<!-- end of contents -->` stay, and are put into Sphinx's
                             table of contents, below the caption if there is one
<!-- api DIRECTIVES -->      the directives follow the table that `tools/catalogue.py` writes there,
                             and its names lead to them

Among them `.. families:: FOLDER [FOLDER ...]` stands for each agent in these folders, and
`.. names:: PACKAGE` for nothing: what the table has is documented elsewhere.
"""

import inspect
import re
from typing import Any

from dpbandit import agents

_CONTENTS = re.compile(r"(?s)<!-- contents(?:: ([^\n]*))? -->\n(.*?)<!-- end of contents -->")
_PAGE = re.compile(r"\]\(([\w./-]+)\.md[)#]")  # target of a link to a page, without its ending
_API = re.compile(r"(?s)<!-- api\n(.*?)-->\n(.*?)<!-- end of api -->")  # directives, and a table
_NAME = re.compile(r'\[`[\w.]+`\]\(\S+ "([\w.]+)"\)')  # name in such a table, with its full name
_NAMES = re.compile(r"^\.\. names:: .+\n", re.MULTILINE)
_FAMILIES = re.compile(r"^\.\. families:: (.+)\n", re.MULTILINE)  # folders of agents


def setup(app: Any) -> dict[str, bool]:
    """Register the function that rewrites a page when Sphinx reads it."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = _API.sub(_documented, _CONTENTS.sub(_listed, source[0]))


def _listed(found: re.Match[str]) -> str:
    """Return the links of a page, and after them a hidden directive that lists their pages."""
    caption = f":caption: {found[1]}\n" if found[1] else ""
    names = "\n".join(dict.fromkeys(_PAGE.findall(found[2])))
    return f"{found[2]}\n```{{toctree}}\n:hidden:\n{caption}\n{names}\n```\n"


def _documented(found: re.Match[str]) -> str:
    table = _NAME.sub(r"{py:obj}`~\1`", found[2])
    directives = _NAMES.sub("", _FAMILIES.sub(_families, found[1]))
    return f"{table}\n```{{eval-rst}}\n{directives}```"


def _families(found: re.Match[str]) -> str:
    homes = tuple(f"dpbandit.agents.{folder}" for folder in found[1].split())
    members = {n: c for n, c in vars(agents).items() if inspect.isclass(c) and n[0] != "_"}
    mine = [name for name, kind in members.items() if kind.__module__.startswith(homes)]
    return "".join(f".. autoclass:: dpbandit.agents.{name}\n" for name in mine)
