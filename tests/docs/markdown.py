"""Markdown of the repository, as far as tests read it: pages, fenced blocks, links, headings."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_SHOWN = re.compile(r"See \[([\w./]+\.(?:md|py))\]\(\S+\)\.\s*")
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^ *(?P=ticks) *$",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"<!-- not run: (\S.*\S) -->\s*\Z")
_PROGRAM = r"(?:\.venv/bin/)?(?:dpbandit|python3?|pip|pytest|sphinx-build|ruff|mypy)"
_INLINE = re.compile(rf"(?<!`)`(?P<command>{_PROGRAM}\s[^`]+)`(?!`)")
_INDENTED = re.compile(rf"(?m)(?:(?<=\n\n)|(?<=\A)) {{4}}(?P<command>{_PROGRAM} [^`\n]*)$")
_OPTIONAL = re.compile(r" \[--[^\]]*\]")
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)\)")


class Block(NamedTuple):
    """A fenced block, or a command in a line."""

    language: str
    text: str
    line: int
    """of its first line in the page"""
    not_run: str
    """why not; empty: it is run"""


def pages() -> list[str]:
    """All pages of docs/ whose text stands there, and those of the root, from the root."""
    inside = [p for p in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in p.parts]
    mine = [p for p in inside if not _SHOWN.fullmatch(p.read_text())]
    return [p.relative_to(ROOT).as_posix() for p in (ROOT / "README.md", CONTRIBUTING, *mine)]


CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def readmes() -> list[str]:
    """The pages beside code, some of which docs/ shows, from the root."""
    folders = ("benchmarks", "envs", "experiments")
    found = [file for folder in folders for file in (ROOT / folder).rglob("README.md")]
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found = []
    for fence in _FENCE.finditer(text):
        indent = len(fence["indent"])
        lines = [line[indent:] for line in fence["body"].splitlines()]
        why = _COMMENT.search(text[: fence.start()])
        number = text[: fence.start()].count("\n") + 2
        not_run = why[1] if why else ""
        found.append(Block(fence["info"].strip(), "\n".join(lines) + "\n", number, not_run))
    return found


def inline(text: str) -> list[Block]:
    """The commands outside fenced blocks: `dpbandit ...` in a line, or indented.

    What stands in brackets, `[--out DIR]`, may be left out, and is.
    """
    fences = [fence.span() for fence in _FENCE.finditer(text)]
    found = []
    for command in (*_INLINE.finditer(text), *_INDENTED.finditer(text)):
        if not any(first <= command.start() < last for first, last in fences):
            words = " ".join(_OPTIONAL.sub("", command["command"]).split())
            found.append(Block("sh", words + "\n", text[: command.start()].count("\n") + 1, ""))
    return found


def prose(text: str) -> str:
    """A page without its blocks, indented code and inline code."""
    text = _FENCE.sub("", text)
    text = re.sub(r"(?m)(?<=\n\n)(?: {4}.*\n)+", "", text)
    return re.sub(r"(`+)[^`].*?\1", "`code`", text, flags=re.DOTALL)


def links(text: str) -> list[str]:
    """The targets of the links and pictures of a page that stay in the repository."""
    targets = _LINK.findall(prose(text))
    return [target for target in targets if not re.match(r"\w+:", target)]


def text_of(file: Path) -> str:
    """The text of a page, or of the file that it shows in its place."""
    text = file.read_text()
    shown = _SHOWN.fullmatch(text)
    return (ROOT / shown[1]).read_text() if shown else text


def anchors(text: str) -> set[str]:
    """Targets of links to the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#{1,6} +(.+?) *#*$", _FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        numbered = (slug if n == 0 else f"{slug}-{n}" for n in range(99))
        found.add(next(name for name in numbered if name not in found))
    return found
