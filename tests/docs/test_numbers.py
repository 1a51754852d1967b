"""No page shows a measured number that is not in a store (see `tools/measured.py`).

Tables are those that the stores make, to the letter. What looks measured in the rest of a page,

    12.3 ± 0.4        an error
    5.8 times, 8 %    a unit: times, %, dollars, clicks, minutes and so on
    0.0251            a decimal that is not epsilon's, delta's, a theorem's or a setting's, be it
                      behind a sign of equality or in brackets, but those of a function
    loses 19          a number after a word of loss or gain
    really has epsilon 0.05, certified as 0.05

is a cell of such a table of the page, or of a page that the paragraph links to, or stands in a
paragraph that says `<!-- not measured: why -->`. Words ("twice", "a fifth") are not caught.
"""

import doctest
import re
from functools import cache

import pytest
from PIL import Image

from dpbandit.results.plots import words
from tests.docs.markdown import ROOT, links, pages as of_docs, prose, text_of
from tools import measured as tool
from tools.findings import FOLDER, PICTURES, small
from tools.measured import BLOCK, measure, pages, written
from tools.pages import BLOCK as REPEATED

NUMBER = r"(?<![\w.,^±-])-?(?:\d[\d,]*\d|\d)?(?:\.\d+)?(?<=\d)(?![\w^]|[.,]\d)"
UNITS = r"times|%|dollars?|cents?|clicks|mistakes|ms|(?:milli)?seconds|(?:CPU-)?minutes|hours"
COUNTED = (
    "replicas|runs|users|customers|rounds|people|visits|items|experts|arms|features|purchases|"
    "offers|rows|families|logs|prices|devices|dimensions|cores|notebooks"
)
SETTINGS = (
    r"epsilons?|deltas?|noise|rate|signal|beta|failure|probability|length|norm|clip|radius|fade|"
    r"scale|horizon|seeds?|version|Python|Figures?|Tables?|Theorems?|Section|Corollar(?:y|ies)|"
    r"Lemma|Assumption|Algorithms?|questions?|Thm\.|Cor\.|Prop\.|[TdkWNphKbLD]"
)
LOSS = (
    r"los(?:es?|ing|t|s)|costs?|regret|saves?|saved|earn(?:s|ed)?|brings?|gives? up|exponents?|"
    r"slopes?|better|worse|larger|smaller|ahead|behind|uniform play|at random"
)
OF_A_SETTING = re.compile(
    rf"(?:(?<!\w)(?:{SETTINGS})(?: =)?|[<>+*/]|[\w^]\()\s*(?:{NUMBER}(?:,| to|,? or|,? and)\s+)*$"
)
AFTER_A_LOSS = re.compile(rf"\b(?:{LOSS})\b[^.;:|]{{0,24}}$")
WORTH = re.compile(r"\b(?:really has|certified as|certified at|is worth)(?: epsilon)? $")
REASON = re.compile(r"<!-- not measured: \S.*? -->", re.DOTALL)


def chunks(text):
    """Paragraphs, items of lists and tables of a page, without code and what stores or docstrings
    make."""
    text = re.sub(r"( -->)\n\s*\n", r"\1\n", prose(BLOCK.sub("\n\n", REPEATED.sub("", text))))
    return re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )", text)


def measured(chunk):
    """Words of a chunk that look measured: numbers, `a ± b` where there is an error."""
    if REASON.search(chunk):
        return
    chunk = re.sub(r"<!--.*?-->", "", chunk, flags=re.DOTALL)
    chunk = re.sub(r"`code`|\$[^$]*\$|\]\([^)]*\)|arXiv [\d.]+", " ", chunk)
    chunk = " ".join(chunk.replace("*", "").split())
    pairs = [pair[0] for pair in re.finditer(rf"{NUMBER} ± {NUMBER}", chunk)]
    yield from pairs
    for pair in pairs:
        chunk = chunk.replace(pair, "")
    for one in re.finditer(NUMBER, chunk):
        before, after = chunk[: one.start()], chunk[one.end() :]
        if re.match(
            rf"(?: (?:to|and|or) {NUMBER})? (?:{UNITS})(?!\w| interv| band)", after
        ) or WORTH.search(before):
            yield one[0]
        elif OF_A_SETTING.search(before) or re.match(rf" (?:\w+ ){{0,2}}(?:{COUNTED})\b", after):
            continue
        elif "." in one[0] or (
            AFTER_A_LOSS.search(before) and not re.match("(?:19|20)..$", one[0])
        ):
            yield one[0]


@cache
def stored(text):
    """Return the cells of a page's tables from stores, with and without their standard errors."""
    cells = {
        cell.strip()
        for block in BLOCK.finditer(text)
        for cell in re.split(r"[|\n]", block["table"])
    }
    return cells | {cell.partition(" ± ")[0] for cell in cells}


def sources(page, chunk):
    """The texts in which the numbers of a chunk may stand."""
    yield page.read_text()
    for link in links(chunk):
        target = (page.parent / link.partition("#")[0]).resolve()
        if target.suffix == ".md" and target.exists():
            yield text_of(target)


def without_source(page, text):
    """The numbers of a page that look measured, and stand in no table of a store."""
    for chunk in chunks(text):
        if found := list(measured(chunk)):
            known = set().union(*map(stored, sources(page, chunk)))
            yield from (number for number in found if number not in known)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_numbers_have_a_source(page):
    """Catches a table that its store does not make, and on any page a number that is in none."""
    text = page.read_text()
    assert written(page, text) == text, "python tools/measured.py writes it anew"
    assert list(without_source(page, f"{text}\n\nFADE loses 71.93.\n")) == ["71.93"]


def test_the_tool_watches_every_page(tmp_path):
    """Catches a page of docs/, or one that docs/ shows, which it leaves out, and numbers that no
    command makes, by the hand that wrote them, which do not survive measuring the rest."""
    assert {ROOT / name for name in ["envs/data/README.md", *of_docs()]} <= {*pages()}
    assert doctest.testmod(tool).failed == 0
    store = tmp_path / "numbers.csv"
    store.write_text("# theirs: not run: an independent program\nrun,agent,mean\ntheirs,fade,5\n")
    before = store.read_text()
    measure(store)
    assert store.read_text() == before


def test_figures_of_findings_show_their_store():
    """Catches a figure that is older than its store: what it says of itself has the numbers."""
    for number, picture in PICTURES.items():
        with small():
            drawn = words(picture.draw())
        with Image.open(FOLDER / f"{number}.png") as image:
            assert image.text["Description"] == drawn, "python tools/findings.py draws it anew"
    assert len(PICTURES) == len([*FOLDER.iterdir()]) == 10


def test_a_planted_number_is_found(tmp_path):
    """Broken on purpose: wrong numbers in prose, and a wrong cell; nothing else is found. Only a
    paragraph that links to a page may show what stands there."""
    (tmp_path / "numbers.csv").write_text(
        "# one: dpbandit compare Nowhere\n"
        "run,agent,mean,se,claimed_epsilon\n"
        "one,fade,1434.4,70.2,1\none,fade,632.9,31.4,4\none,uniform,2892,7.04,inf\n"
    )
    head = "<!-- numbers: numbers.csv by agent\nepsilon 1 = mean where claimed_epsilon != 4\n-->\n"
    rows = "| `fade` | 1,434 ± 70 |", "| `uniform` | 2,892.0 ± 7.0 |"
    table = "\n".join(["| agent | epsilon 1 |", "| --- | --- |", *rows, ""])
    right = f"""FADE loses 1,434 ± 70 in 10,000 rounds at epsilon 0.5, as in Table 5.1 of 2022,
uniform play 2,892.0; {{image}} `0.25`, and $0.5$.

* Half of it: <!-- not measured: by definition --> 50 %.

{head}{table}<!-- end of numbers -->
"""
    page = tmp_path / "README.md"
    page.write_text(right)
    assert written(page, right) == right
    assert list(without_source(page, right)) == []
    assert written(page, right.replace("1,434 ± 70 |", "1,435 ± 70 |")) == right
    wrong = """FADE loses 1,434 ± 71, which is 2.0 times as
much, costs 19 of 514 dollars (37.1), takes 4 minutes, has slope = .73 and really has epsilon 0.05.

| agent | regret |
|---|---|
| `fade` | 1,433 ± 70 |
"""
    found = ["1,434 ± 71", "2.0", "19", "514", "37.1", "4", ".73", "0.05", "1,433 ± 70"]
    assert list(without_source(page, right + "\n" + wrong)) == found
    link = "FADE loses 1,434 ± 70 ([study](README.md)).\n\nIt loses 1,434 dollars.\n"
    assert list(without_source(tmp_path / "README.md", link)) == []
    (tmp_path / "page.md").write_text(link)
    assert list(without_source(tmp_path / "page.md", link)) == ["1,434"]
