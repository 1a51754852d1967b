"""The house's docstrings, plain text with `backticks`, as the reStructuredText that Sphinx reads.

what is written                    what becomes of it
`name`                             a literal
an indented block                  a literal block: an algorithm, a drawing, a table
## Heading                         a rubric
Args: Guarantee: and so on         left to napoleon, see conf.py
* | _ and backslashes elsewhere    escaped: they are letters, not markup
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Any

_ARRAY = r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[({})\]\]"
_ALIASES = {
    "Floats": re.compile(_ARRAY.format(r"~numpy\.floating\[~typing\.Any\]")),
    "Ints": re.compile(_ARRAY.format(r"~numpy\.int64")),
    "NDArray": re.compile(_ARRAY.format(r"[^\[\]]*")),
}
"""What types of arrays are called, see `dpbandit.base.arrays`."""
_OURS = ("Guarantee:", "Differs from the paper:", "Code:")
_SECTION = re.compile(rf"Args:$|Raises:$|Returns:$|Yields:$|{'$|'.join(_OURS)}$")
_BULLET = re.compile(r"([*-]|\d+\.) ")
_LETTERS = re.compile(r"(^\* )|([\\*|`]|_(?!\w))", re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Before napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-signature", _sign)
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


def _aliased(types: str | None) -> str | None:
    for alias, written in _ALIASES.items() if types else ():
        types = written.sub(alias, types or "")
    return types


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    # napoleon reads "word: text" in the first line of an attribute as its type: an empty comment
    first = ["..", ""] if what in ("attribute", "data", "property") else []
    lines[:] = first + to_rst(lines)


def to_rst(lines: list[str]) -> list[str]:
    """One docstring, already dedented."""
    made: list[str] = []
    for kind, block in _blocks(lines):
        if kind == "literal":
            dedented = textwrap.dedent("\n".join(block)).split("\n")
            made += ["::", "", *(f"    {line}" for line in dedented), ""]
        elif kind == "doctest":
            made += [*block, ""]
        elif kind == "section" and block[0] in _OURS:
            inside = to_rst(textwrap.dedent("\n".join(block[1:])).split("\n"))
            made += [block[0], *(f"    {line}".rstrip() for line in inside)]
        elif kind == "section":
            made += [*_escaped("\n".join(block)).split("\n"), ""]
        else:
            made += [*_paragraph(block), ""]
    return made


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What stands together, and as what: "text", "literal", "doctest" or "section"."""
    block: list[str] = []
    kind = "text"
    for line in [*lines, "", "end"]:
        new = _kind(line, kind, block)
        if new != kind or (new == "section" and _SECTION.match(line)):
            if any(part.strip() for part in block):
                yield kind, "\n".join(block).strip("\n").split("\n")
            block, kind = [], new
        block.append(line)


def _kind(line: str, before: str, block: list[str]) -> str:
    """Of a line that follows `block`, whose kind is `before`."""
    if not line.strip():
        return before if before in ("literal", "section") else "blank"
    if line.startswith(">>> "):
        return "doctest"
    if _SECTION.match(line):
        return "section"
    if not line.startswith("  "):
        return before if before == "doctest" else "text"
    heads = [head for head in block if head[:1].strip()]  # what an indented line goes on with
    in_a_list = before == "text" and heads and _BULLET.match(heads[-1])
    return before if in_a_list or before in ("section", "doctest") else "literal"


def _paragraph(block: list[str]) -> list[str]:
    text = "\n".join(block)
    if text.startswith("## "):
        title, *rest = block
        return [f".. rubric:: {_escaped(title[3:])}", "", *to_rst(rest)]
    return _escaped(text).split("\n")


def _escaped(text: str) -> str:
    """Markup characters escaped, `code` as literals, **bold** kept; words may touch them."""
    parts = re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text)
    for i, part in enumerate(parts):
        if i % 2:
            before = r"\ " if re.search(r"[^\s'\"(\[{<\-/:]$", parts[i - 1]) else ""
            after = r"\ " if re.match(r"[^\s'\")\]}>\-/:.,;!?]", parts[i + 1]) else ""
            words = " ".join(part.split())
            parts[i] = before + (f"`{words}`" if part[0] == "`" else words) + after
        else:
            parts[i] = _LETTERS.sub(lambda found: found[1] or "\\" + found[2], part)
    return "".join(parts)
