"""Docstrings are Google's style in reStructuredText; here is what Sphinx would not warn of."""

import ast
import inspect
import re
from itertools import pairwise
from runpy import run_path

import pytest

from tests.docs.markdown import ROOT

FOLDERS = ("dpbandit", "agents", "envs", "experiments")
FIELDS = {"Args:", "Raises:", "Returns:", "Yields:"}
SECTIONS = {f"{name}:" for name in run_path(f"{ROOT}/docs/conf.py")["napoleon_custom_sections"]}
ITEM = re.compile(r"[*-] |\d+\. ")
COLON = re.compile(r"(?<!:):(?!:)")


def bodies(node):
    """The statements of a module, and of what is defined in it, as lists."""
    yield node.body
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef):
            yield from bodies(inner)


def text_of(statement):
    """Of a statement that is nothing but a string, else nothing."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return inspect.cleandoc(value.value)
    return ""


def unannounced(text):
    """Indented lines that stand below neither a `::` nor a section nor an item of a list."""
    found, above = [], []
    for line in re.sub(r"(?m)^ *>>> (.+\n?)*", "", text).split("\n"):
        width = len(line) - len(line.lstrip())
        above = [(before, other) for before, other in above if before < width or not line.strip()]
        opened = any(other.endswith("::") or other in FIELDS for _, other in above)
        if line.strip() and above and not opened:
            parent = above[-1][1]
            found += [] if parent in SECTIONS or ITEM.match(parent) else [line]
        above += [(width, line.strip())] if line.strip() else []
    return found


def typed(body):
    """First lines with a colon, read as "type: text", of public attributes and properties."""
    documented = []
    for named, statement in pairwise([*body, None]):
        target = getattr(named, "target", None) or getattr(named, "targets", [None])[0]
        if isinstance(target, ast.Name):
            documented.append((target.id, text_of(statement)))
        elif "property" in "".join(map(ast.unparse, getattr(named, "decorator_list", []))):
            documented.append((named.name, text_of(named.body[0])))
    for name, text in documented:
        line = text.split("\n")[0]
        if name[0] != "_" and COLON.search(line):
            yield line


NO_SECTION = re.compile(
    r"(?m)^ *\**(Guarantee|Differs from the paper|Code)\b(?!:$)[^\n]{0,80}[.:]\**( |$)"
)


def test_checks_see_what_is_wrong():
    assert unannounced("So:\n\n    drawing") == unannounced("So\n    drawing") == ["    drawing"]
    assert unannounced("Guarantee:\n    Is\n\n        drawing") == ["        drawing"]
    right = (
        "So::\n\n    drawing\n      more\n\n* a\n  b\n\nArgs:\n    x: a\n        b\n\n>>> f()\n  1"
    )
    assert unannounced(right) == []
    typed_too = "x = 1\n'L: one'\n_y = 2\n'M: two'\n@property\ndef z(self):\n    'N: three'"
    assert [*typed(ast.parse(typed_too).body)] == ["L: one", "N: three"]
    assert NO_SECTION.search("Is.\n\n**Guarantee.** None.")
    assert NO_SECTION.search("Is.\n\nDiffers from the paper (here). (1) A.")


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_are_as_they_are_read(folder):
    """No drawing that would be set as running text, no attribute whose text begins with a type, and
    sections that standard tools read: `Guarantee:` and an indented text, not `Guarantee. Text`."""
    wrong = []
    for file in (ROOT / folder).rglob("*.py"):
        source = file.read_text()
        for body in bodies(ast.parse(source)):
            texts = map(text_of, body)
            drawn = [line for text in texts if text for line in unannounced(text)]
            wrong += [f"{file}: no :: above {line!r}" for line in drawn]
            wrong += [f"{file}: a colon in {line!r}, read as a type" for line in typed(body)]
        wrong += [f"{file}: {old[0]}" for old in NO_SECTION.finditer(source)]
    assert wrong == []
