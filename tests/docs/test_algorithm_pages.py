"""Pages of algorithms: their sections, their agents' settings, their certificates as stated.

A page says what a calibration is worth in a form that is read here:

    certified epsilon 0.0501 (`dpbandit certify pftal:calibration=paper --env dpbandit/...`)
"""

import doctest
import inspect
import re
import shlex
from importlib import import_module
from pathlib import Path

import typer

from dpbandit.agents import AGENTS
from dpbandit.agents.catalogue import entries
from dpbandit.base.fields import parse_settings
from dpbandit.cli import app
from dpbandit.running.compare import certify
from dpbandit.running.environments import problem_maker
from dpbandit.running.settings import agent_id, parse_agent, setting_names
from tests.docs.markdown import ROOT, links
from tests.each import each
from tools import catalogue, pages
from tools.pages import BLOCK

FOLDER = ROOT / "docs" / "algorithms"
PAGES = {page.stem: page.read_text() for page in FOLDER.glob("*.md") if page.stem != "index"}
OWN = {page: BLOCK.sub("", text) for page, text in PAGES.items()}
"""Page -> its text without the blocks that `tools/pages.py` writes from docstrings."""
SECTIONS = "Problem Algorithm (Notes )?Our numbers Try it Settings( References)?"
CERTIFY = typer.main.get_command(app).get_command(None, "certify")


def section(text, heading):
    """The text below a heading of the second level."""
    return re.search(rf"(?ms)^## {heading}\n(.*?)(?=^## |\Z)", text)[1]


def agents(text, what="settings"):
    """The ids of the agents whose settings, or docstrings, a page shows."""
    return re.search(rf"(?m)^<!-- {what}: (.*) -->$", text)[1].split(", ")


def certificates(text):
    """(epsilon as stated, the words after `dpbandit certify`)."""
    stated = r"certified\s+epsilon\s+([\d.]+|inf)\s+\(`dpbandit\s+certify\s+([^`]+)`\)"
    return [(epsilon, shlex.split(line)) for epsilon, line in re.findall(stated, text)]


OTHERS = {f"docs/{page.stem}": page.read_text() for page in (ROOT / "docs").glob("*.md")}
CERTIFIED = {page: text for page, text in {**OWN, **OTHERS}.items() if certificates(text)}


def recomputed(words):
    """The epsilon of `dpbandit certify` with these words."""
    given = CERTIFY.make_context("certify", list(words)).params
    sizes = {**parse_settings(given["settings"]), "horizon": given["horizon"]}
    config = parse_agent(given["agent"], epsilon=given["epsilon"], delta=given["delta"])
    return certify(config, problem_maker(given["env"])(**sizes).spec, accountants=False).epsilon


def agrees(stated, epsilon):
    """To three digits."""
    return float(stated) == float(f"{epsilon:.3g}")


def test_the_catalogue_leads_to_the_one_page_of_every_agent():
    """Caught are an agent that it leaves out, a stale first line, an import that type checkers
    miss, and a page not written anew: of every agent the docstring, with a guarantee, and every
    setting with its default and a meaning."""
    covered = sorted(name for text in PAGES.values() for name in agents(text))
    assert covered == sorted(AGENTS)
    page_of = {name: page for page, text in PAGES.items() for name in agents(text)}
    assert {one.id: one.page for one in entries()} == page_of
    written = catalogue.tables() | catalogue.faces() | pages.pages()
    stale = [file.name for file, text in written.items() if text != file.read_text()]
    assert stale == [], "python tools/catalogue.py"
    assert doctest.testmod(pages).failed == 0
    for config in AGENTS.values():
        assert "**Guarantee.** " in pages.markdown(inspect.getdoc(config))
    assert catalogue.page() == catalogue.PAGE.read_text()
    for package in ("agents", "envs"):  # what type checkers read names the same classes
        listed = re.findall(r"(\w+) as \1", (ROOT / package / "__init__.pyi").read_text())
        assert sorted(listed) == import_module(f"dpbandit.{package}").__all__
    assert {*links((FOLDER / "index.md").read_text())} >= {f"{page}.md" for page in PAGES}


@each("page", PAGES)
def test_page(page):
    """All sections in order; links to the source of every agent; a command; what can be parsed; and
    of an agent that plays what is printed what that is worth."""
    text = PAGES[page]
    assert re.fullmatch(SECTIONS, " ".join(re.findall(r"(?m)^## (.*)$", text)))
    assert agents(section(text, "Algorithm"), "agent") == agents(section(text, "Settings"))
    assert section(text, "Try it").startswith("\n```sh\ndpbandit ")
    mine = set(agents(text))
    sources = {Path(inspect.getsourcefile(AGENTS[name])) for name in mine}
    assert sources <= {(FOLDER / link).resolve() for link in links(text)}
    assert all(agent_id(words[0].partition(":")[0]) in mine for _, words in certificates(text))
    text = OWN[page]
    assert text.count("dpbandit certify") + text.count("dpbandit\n") == len(certificates(text))
    printed = {name for name in mine if "calibration" in setting_names(name)}
    if printed - {"ball-experts"}:  # which is never printed
        assert any("calibration=paper" in words[0] for _, words in certificates(text))


@each("page", CERTIFIED)
def test_certificates_are_what_is_stated(page):
    """Golden: the accountant's, to three digits; broken on purpose: another epsilon."""
    for stated, words in certificates(CERTIFIED[page]):
        assert agrees(stated, recomputed(words)), shlex.join(words)
    assert agrees("0.0501", 0.05006)
    assert not agrees("0.0502", 0.05006)
