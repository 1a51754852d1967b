"""Formulas of the pages are drawn with the font that is shipped."""

import html
import importlib.util
import re

from latex2mathml.converter import convert

from tests.docs.markdown import ROOT, pages

_FORMULA = re.compile(r"(?s)\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+(?:\n[^$\n]+)?)\$")


def font():
    path = ROOT / "tools" / "maths_font.py"
    spec = importlib.util.spec_from_file_location("maths_font", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_letter_of_a_formula_is_in_the_font():
    """Another would come from some font that the reader has, if any, without a table of maths."""
    letters, covers = set(), font().covers
    for name in pages():
        text = re.sub(r"(?s)```.*?```|`[^`]*`", "", (ROOT / name).read_text())
        for formula in map("".join, _FORMULA.findall(text)):
            drawn = re.sub(r"<[^>]*>", "", convert(formula))
            letters |= set(html.unescape(drawn))
    assert {"ε", "λ", "⟨"} <= letters  # formulas are found
    assert {letter for letter in letters if not covers(letter)} == set()


def test_the_font_is_shipped_with_its_licence():
    folder = font().FONT.parent
    assert font().FONT.read_bytes()[:4] == b"wOF2"
    assert "GUST" in (folder / "GUST-FONT-LICENSE.txt").read_text()
    assert "fonts/formulas.woff2" in (folder.parent / "custom.css").read_text()
