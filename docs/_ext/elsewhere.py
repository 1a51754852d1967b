"""Pages that live elsewhere in the repository, and links that hold on either side.

A page of docs/ whose text is `see PATH` shows the Markdown file at PATH (from the root), whose
links are rewritten. Links of other pages to such a file lead to its page, links to any other file
outside docs/ to a copy of it.
"""

import re
from os.path import relpath
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
_SEE = re.compile(r"see ([\w./]+\.md)\s*")
_TARGET = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def setup(app: Any) -> dict[str, bool]:
    """Texts are rewritten as they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def pages() -> dict[Path, Path]:
    """Files elsewhere -> the pages that show them."""
    found = {}
    for page in DOCS.rglob("*.md"):
        if shown := _SEE.fullmatch(page.read_text(encoding="utf-8")):
            found[ROOT / shown[1]] = page
    return found


def _read(app: Any, docname: str, source: list[str]) -> None:
    page = original = DOCS / f"{docname}.md"
    if shown := _SEE.fullmatch(source[0]):
        original = ROOT / shown[1]
        source[0] = original.read_text(encoding="utf-8")
        app.env.note_dependency(str(original))
    shown_by = pages()

    def target(found: re.Match[str]) -> str:
        file = (original.parent / found[0]).resolve()
        return Path(relpath(shown_by.get(file, file), page.parent)).as_posix()

    source[0] = _TARGET.sub(target, source[0])
