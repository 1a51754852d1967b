"""Pages and slides of labs: what is stored is what the program prints and draws."""

import io
import re
import sys
from importlib import import_module

import pytest
from PIL import Image

from dpbandit.experiments.labs import Lab, find, labs
from tests.docs.markdown import ROOT
from tests.each import by_rota
from tools.labs import OUTPUTS, drawn, is_fresh, run, stored, tagged

SECONDS = r"[\d.,]+ s\b"
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


def test_a_lab_leaves_imported_modules_in_place(tmp_path, monkeypatch):
    """A second import of a module would make new classes, which the next lab mixes with the old."""
    (tmp_path / "imported_by_a_lab.py").touch()
    path = tmp_path / "lab_01_imports.py"
    path.write_text("# %%\nimport imported_by_a_lab\nprint(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    main = sys.modules["__main__"]
    ((_, output),) = run(Lab(path))
    assert output.text == "__main__\n"
    assert sys.modules["__main__"] is main
    assert sys.modules.pop("imported_by_a_lab", None)


def alike(new, old):
    """Equal words, and each number but seconds within a tenth, as another processor may sum in
    another order, after which a run goes another way."""
    new, old = (re.sub(SECONDS, "", text) for text in (new, old))
    pairs = zip(re.findall(NUMBER, new), re.findall(NUMBER, old), strict=True)
    near = all(
        float(a.replace(",", "")) == pytest.approx(float(b.replace(",", "")), rel=0.1, abs=0.02)
        for a, b in pairs
    )
    return near and re.sub(NUMBER, "", new).split() == re.sub(NUMBER, "", old).split()


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
