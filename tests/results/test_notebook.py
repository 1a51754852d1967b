"""What a cell of a notebook shows: short tables with the certificate beside the regret, axes."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib import pyplot as plt

from dpbandit import InputError, Results
from dpbandit.agents import FADE, Guard
from dpbandit.base import first_line
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.spends import GaussianSpend
from tests.experiments.runs import made_up

RESULTS = Results(
    (
        made_up("Uniform", 60, 80, claimed=0.0),
        made_up("dp", 15, 30, claimed=1.0, certified=2.5),
        made_up("<b>", 20, 20),
    )
)


class Cells(HTMLParser):
    """The cells of a table, row by row."""

    def __init__(self, html):
        super().__init__()
        self.rows = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self.rows:
            self.rows[-1].append(data)


def cells(shown):
    return Cells(shown._repr_html_()).rows


def test_results_are_a_table_with_certificates_beside_regrets():
    """Golden, by hand: 15 and 30 are 22.5 +- 7.5; an epsilon above the claim is said; a name is no
    markup; as short as the runs are few, and a sweep of thousands is cut."""
    rows = cells(RESULTS)
    assert rows[0][:3] == ["agent", "regret", "se"]
    assert rows[2][:6] == ["dp", "22.5", "7.5", "1", "2.5", "1e-5"]
    assert "EXCEEDS THE CLAIM" in rows[2][6]
    assert rows[3][0] == "<b>"
    text = repr(RESULTS)
    assert "made up: regret (dollars) after 500 rounds, mean of 2 replicas" in text
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) < 140
    many = Results(tuple(replace(RESULTS.runs[1], name=f"dp {n}") for n in range(4_000)))
    assert len(repr(many)) < 5_000
    assert "and 3,970 runs more" in repr(many)
    elsewhere = replace(RESULTS.runs[1], setup=replace(RESULTS.runs[1].setup, problem="other"))
    assert "dp on other" in repr(Results((*RESULTS.runs, elsewhere)))

    assert len(RESULTS) == 3
    assert RESULTS["dp"].runs == (RESULTS.runs[1],)
    assert list(RESULTS.certificates) == ["Uniform", "dp", "<b>"]
    assert RESULTS.to_pandas().equals(RESULTS.frame())
    with pytest.raises(InputError, match="one run of each agent, got 6 of 3"):
        Results(RESULTS.runs * 2).certificates  # noqa: B018  that it raises


def test_certificates_and_ledgers_are_short():
    """Golden: 0.3 and 0.4 are 0.5 together; of thousands the first few are named."""
    proof = RESULTS.runs[1].certificate
    assert repr(proof).startswith("Certificate(epsilon 2.5 at delta 1e-05, claimed 1, EXCEEDS")
    assert ["claimed", "epsilon 1 at delta 1e-05"] in cells(proof)
    ledger = Ledger((GaussianSpend(0.3, "a <b>"), GaussianSpend(0.4, "c")))
    rows = cells(ledger)
    assert rows[1] == ["a <b>", "-", "0.045", "0.3"]
    assert rows[-1] == ["all", "-", "0.125", "0.5"]
    assert repr(ledger).startswith("Ledger('a <b>', 'c': joint DP under continual observation")
    assert repr(Ledger()).startswith("Ledger(nothing: ")
    many = Ledger(tuple(GaussianSpend(0.1, f"sum {n}") for n in range(5_000)))
    assert len(repr(many)) < 300
    assert len(cells(many)) == 23
    assert cells(many)[-2] == ["and 4980 more"]


def test_configs_are_tables_of_their_settings():
    rows = cells(FADE(epsilon=2.0, fade=0.7))
    assert rows[0] == ["setting", "value, * not the default", "what it is"]
    assert rows[1] == ["epsilon", "2.0 *", "target, > 0; inf plays without privacy"]
    assert ["anytime", "false"] in [row[:2] for row in rows]
    assert sum("*" in row[1] for row in rows[1:]) == 1
    assert eval(repr(FADE(epsilon=2.0))) == FADE(epsilon=2.0)
    assert f"Guard: {first_line(Guard)}" in Guard(FADE())._repr_html_()


@pytest.mark.parametrize("what", ["plot", "frontier"])
def test_figures_are_axes_or_files(what, tmp_path):
    """New axes, given axes, or a file; not both."""
    draw = getattr(RESULTS, what)
    axes = draw()
    assert axes.get_legend() is not None
    _, (left, _) = plt.subplots(1, 2)
    assert draw(ax=left) is left
    assert left.get_ylabel() == axes.get_ylabel() != ""
    assert draw(tmp_path / "f.png").stat().st_size > 1500
    plt.close("all")


def test_a_line_over_epsilon_says_what_restricts_the_promise():
    """As infinity has no restriction, one name may have runs with one and without."""
    run, proof = RESULTS.runs[1], RESULTS.runs[1].certificate
    limited = replace(run, certificate=replace(proof, ledger=Ledger(public_contexts=True)))
    axes = Results((run, limited)).frontier()
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["dp (contexts public)"]
    plt.close("all")
