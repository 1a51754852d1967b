"""Sphinx extension: tables of contents, and API pages, from pages without any directive.

A page shows where the repository is browsed, too, so comments hold what only Sphinx reads:

<!-- contents: CAPTION -->          links up to `<!-- end of contents -->` stay, and are put into
                                    Sphinx's table of contents, below the caption if there is one
<!-- api DIRECTIVES -->             the directives replace the table up to `<!-- end of api -->`,
                                    which `tools/catalogue.py` writes

Tables of names with first lines of docstrings are at the top of API pages, in place of Sphinx's
own, which list every member of every class everywhere.

directive                           replaced by
.. automodule:: M, and below it
   :imported-members:               a table of what M re-exports, then the same directive
.. modules::                        a table of the modules without `:imported-members:` on this page
.. families:: FOLDER [FOLDER ...]   a table of the agents in these folders, then each agent
.. names:: PACKAGE                  a table of the re-exports of a package, with links

Any other `.. automodule::` stays as it is.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from dpbandit import agents

_CONTENTS = re.compile(r"(?s)<!-- contents(?:: ([^\n]*))? -->\n(.*?)<!-- end of contents -->")
_PAGE = re.compile(r"\]\(([\w./-]+)\.md[)#]")  # target of a link to a page, without its ending
_API = re.compile(r"(?s)<!-- api\n(.*?)-->\n.*?<!-- end of api -->")  # directives, and a table
_MODULE = re.compile(r"(?m)^\.\. automodule:: (\S+)\n(?!   :imported-members:)")  # name of a module
_PACKAGE = re.compile(r"(?m)^\.\. automodule:: (\S+)\n   :imported-members:\n")  # name of a package
_FAMILIES = re.compile(r"^\.\. families:: (.+)\n", re.MULTILINE)  # folders of agents
_NAMES = re.compile(r"^\.\. names:: (\S+)\n", re.MULTILINE)  # name of a package
_IDS = {config: name for name, config in agents.AGENTS.items()}  # class -> id of the agent
_OVERVIEW_TABLE = ".. list-table::\n   :widths: auto\n   :class: overview\n\n"


def setup(app: Any) -> dict[str, bool]:
    """Register the function that replaces the directives of a page when Sphinx reads it."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = _API.sub(r"```{eval-rst}\n\1```", _CONTENTS.sub(_listed, source[0]))
    for line, written in ((_PACKAGE, _package), (_FAMILIES, _families), (_NAMES, _names)):
        source[0] = line.sub(written, source[0])
    if ".. modules::\n" in source[0]:
        names = _MODULE.findall(source[0])
        rows = [(f":py:mod:`{_short(name)} <{name}>`", import_module(name)) for name in names]
        source[0] = source[0].replace(".. modules::\n", _table(rows))


def _listed(found: re.Match[str]) -> str:
    """Return the links of a page, and after them a hidden directive that lists their pages."""
    caption = f":caption: {found[1]}\n" if found[1] else ""
    names = "\n".join(dict.fromkeys(_PAGE.findall(found[2])))
    return f"{found[2]}\n```{{toctree}}\n:hidden:\n{caption}\n{names}\n```\n"


def _package(found: re.Match[str]) -> str:
    package = import_module(found[1])
    public = getattr(package, "__all__", [name for name in vars(package) if name[0] != "_"])
    things = {name: getattr(package, name) for name in public}
    rows = [(f":py:obj:`~{found[1]}.{name}`", thing) for name, thing in things.items()]
    return _table([row for row in rows if _documented(row[1])]) + found[0]


def _families(found: re.Match[str]) -> str:
    folders = tuple(f"dpbandit.agents.{folder}" for folder in found[1].split())
    members = {n: c for n, c in vars(agents).items() if inspect.isclass(c) and n[0] != "_"}
    mine = {n: c for n, c in members.items() if c.__module__.startswith(folders)}
    rows = [(_with_id(f":py:obj:`~dpbandit.agents.{n}`", c), c) for n, c in mine.items()]
    return _table(rows) + "".join(f".. autoclass:: dpbandit.agents.{name}\n" for name in mine)


def _names(found: re.Match[str]) -> str:
    package = import_module(found[1])
    things = {name: getattr(package, name) for name in dir(package) if name[0] != "_"}
    mine = {n: t for n, t in things.items() if getattr(t, "__module__", "").startswith(found[1])}
    rows = [(f":py:obj:`{n} <{t.__module__}.{n}>`", t) for n, t in mine.items()]
    return _table(rows)


def _table(rows: list[tuple[str, Any]]) -> str:
    return _OVERVIEW_TABLE + "".join(_row(name, _first_line(thing)) for name, thing in rows) + "\n"


def _row(name: str, text: str) -> str:
    return f"   * - {name}\n     - {text}\n"


def _first_line(thing: Any) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return f"{text.removesuffix('::').removesuffix(':')}"


def _with_id(link: str, config: type) -> str:
    return f"{link}, ``{_IDS[config]}``" if config in _IDS else link


def _short(module: str) -> str:
    return module.removeprefix("dpbandit.").removeprefix("privacy.")


def _documented(thing: Any) -> bool:
    return inspect.isclass(thing) or inspect.isfunction(thing)
