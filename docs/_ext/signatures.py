"""Signatures and attributes as they are written: arrays by the names of `dpbandit.base.arrays`."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

_ARRAY = r"(?:~numpy\.)?ndarray\[tuple\[(?:~typing\.)?Any, \.\.\.\], (?:~numpy\.)?dtype\[({})\]\]"
_ALIASES = {
    "Floats": re.compile(_ARRAY.format(r"(?:~numpy\.)?floating\[(?:~typing\.)?Any\]")),
    "Ints": re.compile(_ARRAY.format(r"(?:~numpy\.)?int64")),
    "Bools": re.compile(_ARRAY.format(r"(?:~numpy\.)?bool")),
    "AnyArray": re.compile(_ARRAY.format(r"[^\[\]]*")),
}


def setup(app: Any) -> dict[str, bool]:
    """Of functions and classes as they are signed, of attributes as they are drawn."""
    app.connect("autodoc-process-signature", _sign)
    app.connect("autodoc-process-docstring", _document)
    app.connect("doctree-resolved", _annotate)
    return {"parallel_read_safe": True}


def _sign(
    app: Any,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    return _aliased(signature), _aliased(returns)


def _document(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """What Python says of a field of a named tuple says nothing."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def _annotate(app: Any, doctree: nodes.document, docname: str) -> None:
    for node in doctree.findall(addnodes.desc_annotation):
        text = node.astext()
        if text != (short := _aliased(text)):
            node.children = []
            node += nodes.Text(short or "")


def _aliased(types: str | None) -> str | None:
    for alias, written in _ALIASES.items() if types else ():
        types = written.sub(alias, types or "")
    return types
