"""Docstrings as the documentation reads them: golden, one case for each rule."""

import re
import sys

import pytest

from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def to_rst():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        from docstrings import to_rst
    finally:
        sys.path.pop(0)
    return lambda text: "\n".join(to_rst(text.split("\n"))).strip("\n")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("An `x`, `two\nwords` and `f`(x).", r"An ``x``, ``two words`` and ``f``\ (x)."),
        ("|x| <= 2 * y_ and **bold**", r"\|x\| <= 2 \* y\_ and **bold**"),
        ("So:\n\n    1. a\n      2. b\n\nEnd.", "So:\n\n::\n\n    1. a\n      2. b\n\nEnd."),
        ("So:\n    a\nEnd.", "So:\n\n::\n\n    a\n\nEnd."),
        ("## Rewards\nDollars.", ".. rubric:: Rewards\n\nDollars."),
        ("* `a`: one,\n  and more\n* b", "* ``a``: one,\n  and more\n* b"),
        ("## It\n* a,\n  b", ".. rubric:: It\n\n* a,\n  b"),
        (
            "Is.\n\nGuarantee:\n    If |x|\n    then y.\n\nEnd.",
            "Is.\n\nGuarantee:\n    If \\|x\\|\n    then y.\n\nEnd.",
        ),
        (">>> f(*a)\n'*'\n\nEnd.", ">>> f(*a)\n'*'\n\nEnd."),
        (
            "Do.\n\nArgs:\n    x: a *b*,\n        more.\n    y: c\n\nRaises:\n    E: d",
            "Do.\n\nArgs:\n    x: a \\*b\\*,\n        more.\n    y: c\n\nRaises:\n    E: d",
        ),
    ],
    ids=[
        "code",
        "letters",
        "block",
        "tight-block",
        "heading",
        "bullets",
        "bullets-below-a-heading",
        "guarantee",
        "doctest",
        "sections",
    ],
)
def test_docstrings_become_rst(to_rst, written, read):
    assert to_rst(written) == read


def test_sections_are_google_s():
    """What standard tools read: `Guarantee:` and an indented text, not `Guarantee. Text`."""
    old = re.compile(
        r"(?m)^ *\**(Guarantee|Differs from the paper|Code)\b(?!:$)[^\n]{0,80}[.:]\**( |$)"
    )
    assert old.search("Is.\n\n**Guarantee.** None.")
    assert old.search("Is.\n\nDiffers from the paper (here). (1) A.")
    for folder in ("dpbandit", "agents", "envs", "experiments"):
        for file in (ROOT / folder).rglob("*.py"):
            assert not old.search(file.read_text()), file
