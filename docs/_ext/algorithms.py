"""Sphinx extension: docstrings and settings of agents on their pages.

directive                      replaced by
```{agent} ID, ID              the docstring of each agent, as autodoc reads it
```{settings} ID, ID           for each agent a table: setting, default, meaning
"""

import re
from collections.abc import Callable
from dataclasses import Field, fields
from inspect import getdoc, getsourcefile
from typing import Any, Literal, get_args, get_origin

from sphinx.pycode import ModuleAnalyzer

from dpbandit.agents import AGENTS

_DIRECTIVE = re.compile(r"(?ms)^```\{(agent|settings)\} ([^\n]*)\n```$")  # its name, and ids
_RST = "````{{eval-rst}}\n{}\n````"  # reStructuredText in Markdown
_SETTINGS_TABLE = """.. list-table:: {}
   :header-rows: 1

   * - setting
     - default
     - meaning
"""  # reStructuredText above the rows of settings

_SHARED_MEANINGS = {
    "calibration": "`certified` is the least noise whose certificate meets the target, "
    "`paper` as printed",
    "regularization": "ridge, the precision of the prior; where there is noise the least shift",
}
"""Meanings of settings without a docstring, the same for all agents."""

Render = Callable[[str, str, Any, list[str]], list[str]]
"""Function of (kind, name, object, lines of its docstring) that returns reStructuredText lines"""


def setup(app: Any) -> dict[str, bool]:
    """Register the function that replaces the directives of a page when Sphinx reads it."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(app: Any, docname: str, source: list[str]) -> None:
    def rendered(what: str, name: str, thing: Any, lines: list[str]) -> list[str]:
        app.emit("autodoc-process-docstring", what, name, thing, {}, lines)
        return lines

    def written(found: re.Match[str]) -> str:
        names = found[2].split(", ")
        for cls in (cls for name in names for cls in _documented(AGENTS[name])):
            app.env.note_dependency(getsourcefile(cls))
        parts = [(agent if found[1] == "agent" else settings)(name, rendered) for name in names]
        if found[1] == "agent" and len(names) > 1:
            parts = [f"### `{name}`\n\n{part}" for name, part in zip(names, parts, strict=True)]
        return "\n\n".join(parts)

    source[0] = _DIRECTIVE.sub(written, source[0])


def agent(name: str, render: Render) -> str:
    """Return the docstring of an agent's config, as reStructuredText for a Markdown page."""
    config = AGENTS[name]
    lines = (getdoc(config) or "").split("\n")
    full_name = f"{config.__module__}.{config.__qualname__}"
    return _RST.format("\n".join(render("class", full_name, config, [*lines, ""])))


def settings(name: str, render: Render) -> str:
    """Return the table of an agent's settings, as reStructuredText for a Markdown page."""
    config, rows = AGENTS[name], []
    for field in fields(config):
        text = "\n       ".join(meaning(config, field, render))
        rows.append(f"   * - ``{field.name}``\n     - ``{field.default}``\n     - {text}\n")
    table = _SETTINGS_TABLE.format(f"``{name}``") + "".join(rows)
    return _RST.format(table) if rows else f"`{name}` has no settings."


def meaning(config: type, field: Field[Any], render: Render) -> list[str]:
    """Return the docstring of a setting; if it omits an allowed value, put all values first."""
    keys = ((cls, (cls.__qualname__, field.name)) for cls in _documented(config))
    written = next(filter(None, (_docstrings(cls).get(key) for cls, key in keys)), [])
    text = written or _SHARED_MEANINGS.get(field.name, "").splitlines()
    lines = (
        render("attribute", f"{config.__qualname__}.{field.name}", None, [*text]) if text else []
    )
    named = [value for value in _choices(field.type) if value not in " ".join(text)]
    if not named:
        return lines
    *others, last = (f"``{value}``" for value in _choices(field.type))
    choices = f"{', '.join(others)} or {last}"
    return [f"{choices}; {lines[0]}", *lines[1:]] if lines else [choices]


def _documented(config: type) -> list[type]:
    return [cls for cls in config.__mro__ if cls is not object]


def _docstrings(cls: type) -> dict[tuple[str, str], list[str]]:
    """Return docstrings of attributes by (class, attribute), read from the source as in autodoc."""
    analyzer = ModuleAnalyzer.for_module(cls.__module__)
    analyzer.analyze()
    return analyzer.attr_docs


def _choices(annotation: Any) -> list[str]:
    """Return the values of all `Literal` types within a type annotation."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in _choices(part)]
