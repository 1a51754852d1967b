"""Pages: links, formulas, figures, citations, and what is told to teachers."""

import html
import importlib.util
import re
import shlex
import sys
import tomllib

import pandas as pd
import pytest
import typer
import yaml
from latex2mathml.converter import convert
from PIL import Image

from dpbandit import Results, cli
from dpbandit.experiments.labs import labs
from dpbandit.version import VERSION
from tests.docs.markdown import ROOT, anchors, blocks, links, pages, readmes, text_of
from tests.each import each

PAGES = [*pages(), "CHANGELOG.md", *readmes()]


def broken(file, text):
    """The links of `text`, which stands in `file`, that lead nowhere."""
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(text_of(target) if path else text)):
            yield link


@each("name", PAGES)
def test_links_lead_somewhere(name):
    file = ROOT / name
    assert list(broken(file, file.read_text())) == []


def test_broken_links_are_found():
    """Broken on purpose: no such file, no such heading, of another page or of one's own; code is no
    link."""
    text = """# A page
[ok](start.md), [ok](../README.md#two-commands), [ok](#a-page), `[code](nowhere.md)`

    [indented](nowhere.md)

```
[block](nowhere.md)
```
[a](nowhere.md) ![b](nowhere.png) [c](../README.md#no-such) [d](#no-such) [e](/etc/passwd)
[f](https://example.org/nowhere.md)
"""
    found = ["nowhere.md", "nowhere.png", "../README.md#no-such", "#no-such", "/etc/passwd"]
    assert list(broken(ROOT / "docs" / "start.md", text)) == found


def test_headings_become_anchors():
    """Golden: the rules of GitHub, which MyST follows."""
    text = "# What was printed, and what holds\n## `a_b` & *c*\n## Twice\n## Twice\n"
    assert anchors(text) == {"what-was-printed-and-what-holds", "a_b--c", "twice", "twice-1"}


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


COMMAND = next(
    line.partition("/dpbandit ")[2]
    for block in blocks((ROOT / "README.md").read_text())
    for line in block.text.splitlines()
    if "dpbandit compare" in line
)


def ends(picture):
    """Title, and agent -> (mean regret, round) at the end of its line."""
    with Image.open(picture) as image:
        title, *lines = image.text["Description"].split("\n")
    found = [re.fullmatch(r"(\S+) \(.*\): (\S+) at (\S+)", line) for line in lines]
    return title, {line[1]: (float(line[2]), float(line[3])) for line in found}


def test_the_figure_is_of_the_command():
    """Environment, replicas, horizon, every agent and the baselines; no other agent."""
    command = typer.main.get_command(cli.app).get_command(None, "compare")
    given = command.make_context("compare", shlex.split(COMMAND)[1:]).params
    title, found = ends(ROOT / "docs" / "regret.png")
    assert title == f"{given['env']}: mean of {given['replicas']} replicas, 95 % bands"
    assert set(found) == {*given["agents"][0].split(","), "Uniform", "BestFixed"}
    assert {at for _, at in found.values()} == {given["horizon"]}


@pytest.mark.slow
def test_the_command_draws_the_figure(tmp_path, monkeypatch):
    """Within a standard error: another processor may change last bits, and then an action. The
    store of the headline has more replicas of FADE: within 4 errors. Catches a figure or a store
    that is older than an agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dpbandit", *shlex.split(COMMAND)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    title, found = ends(ROOT / "docs" / "regret.png")
    drawn_title, drawn = ends(tmp_path / "out" / "regret.png")
    spread = Results.load(tmp_path / "out").summary().set_index("agent")["se"]
    assert (title, found.keys()) == (drawn_title, drawn.keys())
    assert all(abs(found[name][0] - drawn[name][0]) <= spread[name] for name in found)
    store = pd.read_csv(ROOT / "experiments" / "pricing" / "numbers.csv", comment="#")
    ((mean, error),) = store[(store.run == "juice") & (store.agent == "fade")][
        ["mean", "se"]
    ].values
    assert abs(drawn["fade"][0] - mean) <= 4 * error


def test_citation_says_what_the_package_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == VERSION
    assert citation["license"] == project["license"]
    assert citation["title"] == project["name"]
    assert {"message", "type", "authors"} <= citation.keys()


def test_references_are_complete():
    """What Citation File Format 1.2.0 asks of a reference: type, title, authors; and a year."""
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert len(references) == 5
    for reference in references:
        assert {"type", "title", "authors", "year"} <= reference.keys()
        assert all({"family-names", "given-names"} == a.keys() for a in reference["authors"])
        if reference["type"] == "conference-paper":
            assert reference["conference"]["name"]


def test_labs_are_listed():
    text = (ROOT / "docs" / "howto" / "teach.md").read_text()
    listed = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| (\d+) \|", text)
    assert listed == [(str(lab.number), lab.title, str(lab.minutes)) for lab in labs()]
