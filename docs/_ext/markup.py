"""Sphinx extension: links, pictures, formulas and signatures of pages and docstrings.

A page of docs/ with the text `See [PATH](LINK).` shows the Markdown file at PATH (from the root),
with its links rewritten. Links of other pages to such a file lead to its page, links to any
other file outside docs/ to a copy of it. A picture that has to be scaled down links to its file,
in full size. Formulas are MathML, which browsers draw without a script and without a network.
Signatures and attributes name types of arrays as the source does, `Floats` of
`dpbandit.base.arrays`.
"""

import re
from os.path import relpath
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

DOCS = Path(__file__).resolve().parent.parent  # folder docs/
ROOT = DOCS.parent  # of the repository
_SEE = re.compile(r"See \[([\w./]+\.(?:md|py))\]\(\S+\)\.\s*")  # a page that shows this file
_TARGET = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")  # target of a link, if it is a file
_ARRAY = r"(?:~numpy\.)?ndarray\[tuple\[(?:~typing\.)?Any, \.\.\.\], (?:~numpy\.)?dtype\[({})\]\]"
_ALIASES = {  # name in the source -> type as Sphinx writes it out
    "Floats": re.compile(_ARRAY.format(r"(?:~numpy\.)?floating\[(?:~typing\.)?Any\]")),
    "Ints": re.compile(_ARRAY.format(r"(?:~numpy\.)?int64")),
    "Bools": re.compile(_ARRAY.format(r"(?:~numpy\.)?bool")),
    "AnyArray": re.compile(_ARRAY.format(r"[^\[\]]*")),
}


def setup(app: Any) -> dict[str, bool]:
    """Register functions that rewrite pages, and the renderer `html_math_renderer = "mathml"`."""
    app.connect("source-read", _read)
    app.connect("doctree-read", _linked)
    app.connect("autodoc-process-signature", _sign)
    app.connect("autodoc-process-docstring", _document)
    app.connect("doctree-resolved", _annotate)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages() -> dict[Path, Path]:
    """Return the files outside docs/ that pages show: path of the file -> path of its page."""
    found = {}
    for page in DOCS.rglob("*.md"):
        if see := _SEE.fullmatch(page.read_text(encoding="utf-8")):
            found[ROOT / see[1]] = page
    return found


def _read(app: Any, docname: str, source: list[str]) -> None:
    page = original = DOCS / f"{docname}.md"
    if see := _SEE.fullmatch(source[0]):
        original = ROOT / see[1]
        source[0] = original.read_text(encoding="utf-8")
        app.env.note_dependency(str(original))
    page_of = pages()

    def target(found: re.Match[str]) -> str:
        file = (original.parent / found[0]).resolve()
        return Path(relpath(page_of.get(file, file), page.parent)).as_posix()

    source[0] = _TARGET.sub(target, source[0])


def _linked(app: Any, doctree: nodes.document) -> None:
    for image in doctree.findall(nodes.image):
        if image["uri"].endswith(".png"):
            image["width"] = "100%"  # Sphinx links those that are scaled; custom.css unscales them


def drawn(formula: str, display: str) -> str:
    """Convert LaTeX to MathML, with thin spaces after ln, log, max, and norm bars of one height."""
    functions = r"(<mi>(?:ln|log|exp|max|min|sup)</mi>)(?=<m(?:i|n|frac|sqrt)>)"
    spaced = re.sub(functions, r'\1<mspace width="0.167em" />', convert(formula, display=display))
    return spaced.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(drawn(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(drawn(node.astext(), "block"))
    raise nodes.SkipNode


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
    """Remove the docstrings that Python gives to fields of named tuples."""
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
