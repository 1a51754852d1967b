"""Pages: links, formulas, figures, citations, and what is told to teachers."""

import html
import re
import shlex
import tomllib
from importlib import import_module

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

PAGES = [*pages(), "CHANGELOG.md", *readmes()]


def broken(file, text):
    """The links of `text`, which stands in `file`, that lead nowhere."""
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(text_of(target) if path else text)):
            yield link


def test_links_lead_somewhere():
    """Broken on purpose: no such file, no such heading, of another page or of one's own; code is no
    link. Golden: anchors by the rules of GitHub, which MyST follows."""
    for name in PAGES:
        file = ROOT / name
        assert list(broken(file, file.read_text())) == [], name
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
    text = "# What was printed, and what holds\n## `a_b` & *c*\n## Twice\n## Twice\n"
    assert anchors(text) == {"what-was-printed-and-what-holds", "a_b--c", "twice", "twice-1"}


_FORMULA = re.compile(r"(?s)\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+(?:\n[^$\n]+)?)\$")


def test_every_letter_of_a_formula_is_in_the_font(monkeypatch):
    """Another would come from some font that the reader has, if any, without a table of maths. The
    font is shipped with its licence."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    font, letters = import_module("maths_font"), set()
    for name in pages():
        text = re.sub(r"(?s)```.*?```|`[^`]*`", "", (ROOT / name).read_text())
        for formula in map("".join, _FORMULA.findall(text)):
            drawn = re.sub(r"<[^>]*>", "", convert(formula))
            letters |= set(html.unescape(drawn))
    assert {"ε", "λ", "⟨"} <= letters  # formulas are found
    assert {letter for letter in letters if not font.covers(letter)} == set()
    folder = font.FONT.parent
    assert font.FONT.read_bytes()[:4] == b"wOF2"
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
def test_the_command_draws_the_figure(run, tmp_path, monkeypatch):
    """Within a standard error, as another processor may change an action; the store of the headline
    has more replicas of FADE: within 4. Catches a figure or a store older than an agent."""
    monkeypatch.chdir(tmp_path)
    assert run(*shlex.split(COMMAND))[0] == 0
    title, found = ends(ROOT / "docs" / "regret.png")
    drawn_title, drawn = ends(tmp_path / "out" / "regret.png")
    spread = Results.load(tmp_path / "out").summary().set_index("agent")["se"]
    assert (title, found.keys()) == (drawn_title, drawn.keys())
    assert all(abs(found[name][0] - drawn[name][0]) <= spread[name] for name in found)
    store = pd.read_csv(ROOT / "experiments" / "pricing" / "numbers.csv", comment="#")
    row = store[(store.run == "juice") & (store.agent == "fade")].iloc[0]
    assert abs(drawn["fade"][0] - row["mean"]) <= 4 * row["se"]


def test_citation_says_what_the_package_says():
    """And what Citation File Format 1.2.0 asks of a reference: type, title, authors; and a year."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == VERSION
    assert citation["license"] == project["license"]
    assert citation["title"] == project["name"]
    assert {"message", "type", "authors"} <= citation.keys()
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert {"type", "title", "authors", "year"} <= reference.keys()
        assert all({"family-names", "given-names"} == a.keys() for a in reference["authors"])
        assert reference["type"] != "conference-paper" or reference["conference"]["name"]


def test_labs_are_listed():
    text = (ROOT / "docs" / "howto" / "teach.md").read_text()
    listed = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| (\d+) \|", text)
    assert listed == [(str(lab.number), lab.title, str(lab.minutes)) for lab in labs()]
