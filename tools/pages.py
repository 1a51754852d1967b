"""Write what pages say from docstrings, as Markdown that shows where the repository is browsed.

comment in a page                    followed by
<!-- agent: ID, ID -->               the docstring of each agent: steps, guarantee, differences
<!-- settings: ID, ID -->            for each agent a table: setting, default, values, meaning
<!-- algorithms -->                  a list of the pages of algorithms, with their agents
<!-- api DIRECTIVES -->              a table of what Sphinx documents there in full

and by `<!-- end of NAME -->`. `tools/catalogue.py` writes all of them, and
`tests/docs/test_algorithm_pages.py` fails where one is stale.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from os.path import relpath
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from dpbandit import agents
from dpbandit.agents.catalogue import entries
from dpbandit.base import described, first_line

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(  # a comment that describes a block, and the block
    r"<!-- (?P<name>agent|settings|algorithms|api)(?P<words>(?::[^\n]*?|\n[^>]*?\n)?) ?-->\n"
    r"(?P<text>.*?)<!-- end of (?P=name) -->",
    re.DOTALL,
)
MAX_UNFOLDED = 2
"""Largest number of agents on a page whose settings are not folded."""
_ITEM = re.compile(r"(?:\d+\.|[*-]) +")  # beginning of an item of a list
_SECTION = re.compile(r"([A-Z][\w ]*):")  # heading in a docstring, with indented text below it
_DIRECTIVE = re.compile(r"(?m)^\.\. (\w+):: (.*)((?:\n   :[^\n]*)*)$")


def written(page: Path) -> str:
    """Return the text of a page with all its blocks written anew."""

    def block(found: re.Match[str]) -> str:
        head = found[0][: found.start("text") - found.start()]
        words = found["words"].removeprefix(":").strip()
        text = {"agent": _agents, "settings": _settings, "algorithms": _algorithms, "api": _api}
        return f"{head}{text[found['name']](page, words)}<!-- end of {found['name']} -->"

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def pages() -> dict[Path, str]:
    """Return path -> text of every page that has such a block."""
    found = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
    return {page: written(page) for page, text in found.items() if BLOCK.search(text)}


def _agents(page: Path, words: str) -> str:
    names = words.split(", ")
    texts = [markdown(inspect.getdoc(agents.AGENTS[name]) or "") for name in names]
    if len(names) > 1:
        texts = [f"### `{name}`\n\n{text}" for name, text in zip(names, texts, strict=True)]
    return "\n" + "\n".join(texts) + "\n"


def markdown(text: str) -> str:
    """Return a docstring, which is reStructuredText in Google's style, as Markdown.

    >>> print(markdown('Each round::\\n\\n    play\\n\\nGuarantee:\\n    None, as\\n    x.'))
    Each round:
    <BLANKLINE>
    ```text
    play
    ```
    <BLANKLINE>
    **Guarantee.** None, as x.
    <BLANKLINE>
    """
    return "\n\n".join(_blocks(text.split("\n"))) + "\n"


def _blocks(lines: list[str]) -> Iterator[str]:
    """Yield paragraphs, lists, examples and drawings as blocks of Markdown."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith(">>>"):
            end = _end(lines, at, lambda one: not one.strip())
            yield "\n".join(["```python-console", *lines[at:end], "```"])
            at = end
        elif section := _SECTION.fullmatch(line):
            end = _end(lines, at + 1, lambda one: one.strip() and not one.startswith("    "))
            first, *rest = _blocks(dedent("\n".join(lines[at + 1 : end])).split("\n"))
            heading = f"**{section[1]}.**"
            yield f"{heading}\n\n{first}" if _ITEM.match(first) else f"{heading} {first}"
            yield from rest
            at = end
        else:
            end = _end(lines, at + 1, lambda one: not one.strip())
            yield from _paragraph(lines[at:end])
            if lines[end - 1].endswith("::"):
                start, indent = end + 1, re.match(" *", lines[at])[0]  # type: ignore[index]
                end = _end(lines, start, re.compile(rf"(?!{indent} )(?=.*\S)").match)
                drawing = dedent("\n".join(lines[start:end])).strip("\n").split("\n")
                yield "\n".join(f"{indent}{one}".rstrip() for one in ["```text", *drawing, "```"])
            at = end


def _end(lines: list[str], at: int, stop: Any) -> int:
    """Return the index of the first line from `at` on where `stop` is true."""
    return next((n for n in range(at, len(lines)) if stop(lines[n])), len(lines))


def _paragraph(lines: list[str]) -> Iterator[str]:
    """Yield a paragraph on one line, or the items of a list, each on a line."""
    joined: list[str] = []
    for line in lines:
        if not joined or (_ITEM.match(line.strip()) and _ITEM.match(joined[0].strip())):
            joined.append(line.rstrip())
        else:
            joined[-1] += f" {line.strip()}"
    text = re.sub(r"::$", ":", "\n".join(joined))
    if text.strip() != ":":
        yield text


def _settings(page: Path, words: str) -> str:
    names = words.split(", ")
    parts = []
    for place, name in enumerate(names):
        rows = "".join(
            f"| `{one.name}` | `{one.default}` | {one.values} | {_cell(one.text)} |\n"
            for one in described(agents.AGENTS[name])
        )
        table = f"\n| `{name}` | default | values | meaning |\n|---|---|---|---|\n{rows}"
        if not rows:
            table = f"\n`{name}` has no settings.\n"
        elif place and len(names) > MAX_UNFOLDED:
            table = f"\n<details>\n<summary>{name}</summary>\n{table}\n</details>\n"
        parts.append(table)
    return "".join(parts) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _algorithms(page: Path, words: str) -> str:
    """Return a list for each group of the catalogue: pages, with the agents of each."""
    groups: dict[str, dict[str, list[str]]] = {}
    seen: set[str] = set()
    for one in entries():
        here = groups.setdefault(one.plays, {})
        if one.page in here or one.page not in seen:
            here.setdefault(one.page, []).append(one.id)
        seen.add(one.page)
    parts = []
    for group, names in groups.items():
        lines = [f"\n## {group}\n\n"] if names else []
        for name, ids in sorted(names.items()):
            text = (page.parent / f"{name}.md").read_text(encoding="utf-8")
            title = re.search(r"(?m)^# (.+)$", text)
            listed = ", ".join(f"`{one}`" for one in ids)
            lines.append(f"* [{title[1] if title else name}]({name}.md): {listed}\n")
        parts.append("".join(lines))
    return "".join(parts) + "\n"


def _api(page: Path, words: str) -> str:
    rows = []
    for kind, target, options in _DIRECTIVE.findall(words):
        for full_name, thing in _documented(kind, target.strip(), options).items():
            file = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").resolve()
            name = f'[`{full_name.rpartition(".")[2]}`]({relpath(file, page.parent)} "{full_name}")'
            rows.append(f"| {name} | {_cell(first_line(thing).rstrip(':'))} |\n")
    return f"\n| name | what it is |\n|---|---|\n{''.join(rows)}\n" if rows else ""


def _documented(kind: str, target: str, options: str) -> dict[str, Any]:
    """Return full name -> object for what a directive of Sphinx documents."""
    if kind in ("autoclass", "autofunction"):
        module, _, name = (target if "." in target else f"dpbandit.{target}").rpartition(".")
        return {f"{module}.{name}": getattr(import_module(module), name)}
    if kind not in ("automodule", "families", "names") or ":no-members:" in options:
        return {}
    home = agents if kind == "families" else import_module(target)
    names = re.findall(r" :members: (.+)", options) or [", ".join(_public(home))]
    names = [name for name in names[0].split(", ") if not re.search(rf":exc.*\b{name}\b", options)]
    modules = tuple(f"dpbandit.agents.{one}" for one in target.split())
    if kind != "families":
        modules = ("dpbandit.",) if ":imported-members:" in options else (target,)
    things = {name: getattr(home, name) for name in names}
    return {
        f"{thing.__module__ if kind == 'names' else home.__name__}.{name}": thing
        for name, thing in things.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
        if thing.__module__.startswith(modules)
    }


def _public(module: ModuleType) -> list[str]:
    return getattr(module, "__all__", [name for name in dir(module) if name[0] != "_"])
