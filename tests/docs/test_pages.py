"""Pages and docstrings: links, formulas, figures, citations, sections; what they show works."""

import ast
import html
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from itertools import pairwise
from runpy import run_path
from types import ModuleType

import pytest
import yaml
from latex2mathml.converter import convert
from PIL import Image

from dpbandit.experiments.labs import labs
from dpbandit.specs import ContextualSpec
from dpbandit.suite import problems
from dpbandit.testing import check_agent
from dpbandit.version import VERSION
from tests.docs.markdown import ROOT, anchors, blocks, links, pages, readmes, text_of
from tests.each import in_turn
from tools import readme

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
[ok](start.md), [ok](../README.md#the-answer), [ok](#a-page), `[code](nowhere.md)`

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


_RAW = re.compile(r"(?m)^ *(?:`{3,}|~{3,})\{.*|^:::.*|(?<!`)\{[\w:-]+\}`[^`]*`")
"""A directive or a role of Sphinx, which shows as it is where the repository is browsed."""


def unfinished(text):
    """Directives that a page shows raw, and the page itself if it is a stub."""
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    return _RAW.findall(text) + [text] * (len(text.strip().splitlines()) < 3)


def test_what_readme_leads_to_is_readable_where_it_is_browsed():
    """Within two clicks, by links between pages; broken on purpose: directives, a role, a stub."""
    seen = last = {ROOT / "README.md"}
    for _ in range(2):
        found = {(page.parent / to.partition("#")[0]) for page in last for to in links_of(page)}
        last = {page.resolve() for page in found if page.suffix == ".md"} - seen
        seen = seen | last
    assert len(seen) > 100
    assert {page.name: raw for page in seen if (raw := unfinished(page.read_text()))} == {}
    broken = "# A\n\n```{toctree}\n```\n:::{note}\n{py:class}`a.B`\n`{not}` `it`\n"
    assert unfinished(broken) == ["```{toctree}", ":::{note}", "{py:class}`a.B`"]
    assert unfinished("See [a](a.md).\n<!-- ```{toctree} -->\n") != []


def links_of(page):
    return links(page.read_text())


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


README = (ROOT / "README.md").read_text()
SHOWN = {
    agent: float(n.replace(",", "")) for agent, n in re.findall(r"(?m)^│ (\S+) +│ +(\S+)", README)
}
"""Agent -> mean regret in README."""


def test_readme_is_short_and_in_agreement():
    """With the address that pyproject.toml states, the curves that it shows, and with docs/index.md
    and docs/suite.md on the number of problems."""
    assert len(README.splitlines()) <= 90
    assert f"git clone {readme.url()} " in README
    with Image.open(readme.CURVES) as image:
        _, *lines = image.text["Description"].split("\n")
    drawn = [float(re.search(r": (\S+) at 10000$", line)[1]) for line in lines]
    assert sorted(drawn) == pytest.approx(sorted(SHOWN.values()), rel=1e-3)
    assert len(SHOWN) == 5
    for page in ("README.md", "docs/index.md", "docs/suite.md"):
        said = re.findall(r"(\d+) problems", (ROOT / page).read_text())
        assert {*said} == {str(len(problems()))}, page


@in_turn(1, slow=True)
def test_the_command_prints_what_readme_shows(tmp_path):
    """Within a standard error, as another processor may change an action; and the Python block to a
    tenth. Catches a README older than an agent: `python tools/readme.py`."""
    found = readme.curves(tmp_path / "out").summary().set_index("agent")
    assert {*found.index} == {*SHOWN}
    assert all(abs(found["mean"][name] - SHOWN[name]) <= found["se"][name] for name in SHOWN)
    (python,) = re.finditer(r"(?s)```python\n(.*?)```\n\n```text\n(.*?)```", README)
    for new, old in zip(readme.played(python[1]).split(), python[2].split(), strict=True):
        number = re.fullmatch(r"-?[\d.]+", old)
        assert float(new) == pytest.approx(float(old), rel=0.1) if number else new == old


def test_citation_says_what_the_package_says():
    """References have what Citation File Format 1.2.0 demands, type, title, authors; and a year."""
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


def numbers(words):
    """The numbers of labs in order: 1, 2, 3 and 10 in "1 to 3, 10"."""
    spans = re.findall(r"(\d+)(?: to (\d+))?", words)
    return [n for first, last in spans for n in range(int(first), int(last or first) + 1)]


def test_whoever_follows_a_selection_of_labs_has_done_what_each_needs():
    """Both courses, week by week, and every other selection; of what a lab needs, the part before
    a semicolon: the rest is about one section."""
    text = (ROOT / "docs" / "howto" / "teach.md").read_text()
    course, others = text.partition("| week |")[2].split("Other selections:")
    weeks = [line.split("|") for line in course.splitlines() if re.match(r"\| \d", line)]
    rows = [line.split("|") for line in others.splitlines() if re.match(r"\| [a-z].*\d", line)]
    selections = [",".join(row[column] for row in weeks) for column in (2, 4)]
    selections += [row[2].partition("with")[0].partition("then")[0] for row in rows]
    assert len(selections) == 10
    needs = {lab.number: lab.needs.partition(";")[0] for lab in labs()}
    needs = {n: numbers(re.sub(r"section \d+ of ", "", words)) for n, words in needs.items()}
    assert needs[4] == [1, 2, 3]
    assert needs[9] == [1, 2, 3, 6]
    for selection in selections:
        chosen = numbers(selection)
        for place, number in enumerate(chosen):
            assert {*needs[number]} <= {*chosen[:place]}, (selection, number)


HOWTO = ROOT / "docs" / "howto"
OURS = re.compile(r"""gym\.make(?:_vec)?\(\s*["']dpbandit/""")


def block(page, text):
    """The one block of a page that has this text."""
    (found,) = [b.text for b in blocks((HOWTO / page).read_text()) if text in b.text]
    return found


def test_who_makes_our_environment_imports_us_first():
    """Else Gymnasium knows no namespace dpbandit; a block is copied without those above it."""
    shown = [(page, block.text) for page in pages() for block in blocks((ROOT / page).read_text())]
    making = [(page, text) for page, text in shown if OURS.search(text)]
    assert making
    for page, text in making:
        assert re.search(r"(?m)^(import|from) dpbandit\b", text), f"{page}: {text}"


def test_an_environment_in_the_current_folder(tmp_path):
    """coffee.py as its page has it, and the program as pip installs it: not beside coffee.py."""
    registered, _, _ = block("environment.md", "gym.register(").partition("env = ")
    (tmp_path / "coffee.py").write_text(block("environment.md", "# coffee.py") + registered)
    (tmp_path / "bin").mkdir()
    script = "import sys\nfrom dpbandit.cli import main\nsys.exit(main())\n"
    (tmp_path / "bin" / "dpbandit").write_text(script)
    page = (HOWTO / "environment.md").read_text()
    (command,) = re.findall(r"`dpbandit (compare coffee[^`]+)`", page)
    words = ["bin/dpbandit", *command.split(), "--horizon", "20", "--replicas", "2"]
    how = {"env": {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}, "text": True}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, **how)
    assert done.returncode == 0, done.stderr
    assert "cafe/Coffee" in done.stdout


def test_an_agent_keeps_what_it_promises(monkeypatch):
    """Checks print what its page has, and fail if a user of another arm moves one cell, not two."""
    module = ModuleType("private_segments")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(block("agent.md", "# private_segments.py"), vars(module))
    small = ContextualSpec(n_actions=3, dim=2, horizon=24)
    found = check_agent(module.PrivateSegments(), small)
    assert "\n".join(found) == block("agent.md", "billboard: ").strip()
    monkeypatch.setattr(module.ArmSums, "sensitivity", 2**0.5)
    with pytest.raises(AssertionError, match="their sensitivity"):
        check_agent(module.PrivateSegments(), small)


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


def string_of(statement):
    """The text of a statement that is a string alone, else ""."""
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
            documented.append((target.id, string_of(statement)))
        elif "property" in "".join(map(ast.unparse, getattr(named, "decorator_list", []))):
            documented.append((named.name, string_of(named.body[0])))
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
            texts = map(string_of, body)
            drawn = [line for text in texts if text for line in unannounced(text)]
            wrong += [f"{file}: no :: above {line!r}" for line in drawn]
            wrong += [f"{file}: a colon in {line!r}, read as a type" for line in typed(body)]
        wrong += [f"{file}: {old[0]}" for old in NO_SECTION.finditer(source)]
    assert wrong == []
