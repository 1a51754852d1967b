"""Pages and slides of labs: what is stored is what the program prints and draws."""

import io
import re
from difflib import SequenceMatcher
from importlib import import_module

import pytest
from PIL import Image

from dpbandit.experiments.labs import find, labs
from tests.docs.markdown import ROOT
from tests.each import by_rota
from tools.labs import OUTPUTS, drawn, is_fresh, run, stored, tagged

NUMBER = r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?"


@pytest.fixture
def lessons(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    return import_module("lessons")


def test_every_lab_has_a_page_and_slides(lessons):
    """A page has each exercise with a folded solution, each stored text and picture, and no check;
    slides have each picture inside, and lead nowhere. Of a lab that was not run, no outputs."""
    index = (OUTPUTS.parent / "index.md").read_text()
    for lab in labs():
        rel = lab.path.relative_to(ROOT).as_posix()
        stub = (OUTPUTS.parent / f"{lab.number:02}.md").read_text()
        assert stub == f"See [{rel}](../../{rel}).\n"
        assert f"{lab.number}. [{lab.title}](../../{rel})" in index
        page, cells = lessons.page(lab), stored(lab)["cells"]
        assert page.count('<details class="lab-solution">') == page.count("**Exercise ")
        assert page.count("</details>") == page.count("<details")
        assert not re.search(r"(?m)^check\(", page)
        if is_fresh(lab):
            assert all(cell["text"].strip() in page for cell in cells)
            pictures = [name for cell in cells for name in cell["pictures"]]
            assert f"{OUTPUTS.name}/lab_{lab.number:02}.png" in page
            assert all(f"]({OUTPUTS.name}/{name})" in page for name in pictures)
            slides = lessons.slides(lab)
            assert slides.count("data:image/png;base64,") == len(pictures)
            assert not re.search(r"(?:src|href)=\"(?!data:)", slides)
        else:
            assert "make labs" in page
            assert "lab-output" not in page
            assert not lessons.has_slides(lab)


def alike(new, old):
    """Nearly all words equal, as a busy machine prints progress and other seconds, and three of
    four numbers of equal lines within a tenth, as another processor may sum in another order."""
    lines = {re.sub(NUMBER, "#", line).strip(): line for line in new.splitlines()}
    kept = {re.sub(NUMBER, "#", line).strip(): line for line in old.splitlines()}
    near = [
        float(a.replace(",", "")) == pytest.approx(float(b.replace(",", "")), rel=0.1, abs=0.02)
        for words in lines.keys() & kept.keys()
        for a, b in zip(*(re.findall(NUMBER, one[words]) for one in (lines, kept)), strict=True)
    ]
    same = SequenceMatcher(None, " ".join(lines).split(), " ".join(kept).split()).ratio()
    return same >= 0.9 and sum(near) >= 0.75 * len(near)


@pytest.mark.parametrize("number", by_rota([lab.number for lab in labs() if is_fresh(lab)], 9))
def test_stored_outputs_are_those_of_the_program(number, monkeypatch, tmp_path):
    """Text, and each picture's size and description: titles, and where its lines end."""
    monkeypatch.chdir(tmp_path)
    lab, kept = find(number), iter(stored(find(number))["cells"])
    for cell, output in run(lab):
        if not tagged(cell, "check"):
            old = next(kept)
            assert alike(output.text, old["text"])
            for figure, name in zip(output.figures, old["pictures"], strict=True):
                with (
                    Image.open(OUTPUTS / name) as one,
                    Image.open(io.BytesIO(drawn(figure))) as new,
                ):
                    assert one.size == pytest.approx(new.size, abs=20)
                    assert alike(new.info["Description"], one.info["Description"])
    assert next(kept, None) is None
