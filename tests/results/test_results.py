"""Results: tidy frames, numbers by hand, files that are never half, and what a notebook shows."""

import json
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from math import inf, isnan, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib import pyplot as plt
from pyarrow import parquet

from dpbandit import InputError, Results, compare
from dpbandit.agents import DPUCB, FADE, Guard, LinUCB
from dpbandit.base import first_line, plain, write_atomically, write_json
from dpbandit.privacy import GaussianSpend, Ledger, Notion
from dpbandit.results.runs import log_marks, standard_error
from dpbandit.results.store import write_runs
from tests.each import each, refused
from tests.experiments.runs import made_up

AGENTS = {"LinUCB": LinUCB(), "DP-UCB": DPUCB(epsilon=2.0, delta=1e-3)}
COLUMNS = ["problem", "environment", "horizon", "seed", "agent", "epsilon", "delta"]
COLUMNS += ["replica", "round", "regret", "reward", "switches", "config"]
FILES = ["frame.parquet", "regret.png", "results.json", "summary.csv"]


@pytest.fixture(scope="module")
def results():
    """4 agents (two are added), 3 replicas, 40 rounds."""
    arguments = {"horizon": 40, "replicas": 3, "progress": False}
    return compare("dpbandit/GLMBandit-v0", AGENTS, env_kwargs={"noise": 0.2}, **arguments)


@pytest.fixture(scope="module")
def lonely():
    return compare("OJPricing", {}, horizon=20, replicas=1, progress=False)


def test_frame_has_a_row_for_each_agent_replica_and_mark(results):
    frame = results.frame()
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 4 * 3 * len(results.marks)
    assert list(frame["agent"].unique()) == ["LinUCB", "DP-UCB", "Uniform", "BestFixed"]
    for number, run in enumerate(results.runs):
        part = frame[frame["agent"] == run.name]
        tables = {"regret": run.regret, "reward": run.reward, "switches": run.switches}
        for column, table in tables.items():
            pivot = part.pivot(index="round", columns="replica", values=column)
            assert (pivot.to_numpy() == table).all(), number
            assert pivot.index.tolist() == results.marks.tolist()
    empty = Results(()).frame()
    assert len(empty) == 0
    assert list(empty) == COLUMNS
    assert len(pd.concat([empty, frame])) == len(frame)


@given(st.integers(1, 10**7))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_marks(horizon):
    """Sorted, distinct, from round 1 to the horizon, at most 500, gaps at most 0.4 % + 1."""
    marks = log_marks(horizon)
    assert (np.diff(marks) > 0).all()
    assert (marks[0], marks[-1]) == (1, horizon)
    assert min(horizon, 100) <= len(marks) <= 500
    assert np.diff(marks).max(initial=1) <= 1 + horizon / 249


def test_summary_by_hand(results):
    """Mean, standard error and quantiles of the last row, in plain Python."""
    summary = results.summary().set_index("agent")
    for run in results.runs:
        low, mid, high = sorted(run.regret[-1].tolist())
        row, mean = summary.loc[run.name], (low + mid + high) / 3
        assert row["mean"] == pytest.approx(mean, rel=1e-12)
        deviation = sqrt(sum((x - mean) ** 2 for x in (low, mid, high)) / 2)
        assert row["se"] == pytest.approx(deviation / sqrt(3), rel=1e-12)
        assert row["q50"] == mid
        assert row["q05"] == pytest.approx(low + 0.1 * (mid - low), rel=1e-12)
        assert row["q95"] == pytest.approx(mid + 0.9 * (high - mid), rel=1e-12)
        assert row["seconds"] > 0
    assert summary.loc["DP-UCB", "certified_epsilon"] == pytest.approx(2.0, abs=1e-3)
    claims = summary[["claimed_epsilon", "claimed_delta"]]
    assert claims.loc["DP-UCB"].tolist() == [2.0, 1e-3]
    assert summary["certified_epsilon"].tolist()[::2] == [inf, 0.0]  # LinUCB, Uniform


def test_numbers_that_json_lacks(results, lonely):
    """Infinity is a word; the standard error of one value is unknown."""
    records = results.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert records[0]["certified_epsilon"] == "inf"
    assert records[1]["config"]["agent"] == "DPUCB"
    assert records[1]["config"]["epsilon"] == 2.0
    keys = [*results.summary().columns, "config"]
    assert all(list(record) == keys for record in records)
    given = {"a": (inf, -inf, nan, np.float64(2), np.int64(3), np.bool_(True)), 1: [None, "x"]}
    assert plain(given) == {"a": ["inf", "-inf", None, 2.0, 3, True], "1": [None, "x"]}
    assert isnan(standard_error(np.array([3.0])))
    assert standard_error(np.array([1.0, 3.0])) == 1.0
    assert lonely.summary()["se"].isna().all()
    assert [record["se"] for record in lonely.records()] == [None, None]


def test_saved_files_say_the_same(results, tmp_path):
    folder = results.save(tmp_path / "a" / "b")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "frame.parquet"), results.frame(), check_dtype=False
    )
    summary = pd.read_csv(folder / "summary.csv").set_index("agent")
    assert summary["mean"].tolist() == pytest.approx(results.summary()["mean"].tolist())
    document = json.loads((folder / "results.json").read_text())
    assert document["agents"] == results.records()
    assert document["env_kwargs"] == {"noise": 0.2, "horizon": 40}
    assert set(document["certificates"]) == {run.name for run in results.runs}
    results.save(folder)  # over itself
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_runs_that_learned_little_by_half_time_are_warned_of(tmp_path):
    """Golden, by hand: a run that lost what uniform play did, one that lost 1.6 times what the best
    fixed action did, one that did well; baselines are never warned of, nor are short trials."""
    runs = compare("GLMBandit", "linucb", horizon=1000, replicas=2, progress=False).runs
    mine, uniform, fixed = runs
    half = np.searchsorted(mine.marks, 500)

    def losing(run, most, **changes):
        regret = np.zeros_like(run.regret)
        regret[half:] = most
        return replace(run, regret=regret, **changes)

    def warned(most, **changes):
        baselines = losing(uniform, 100.0, **changes), losing(fixed, 30.0, **changes)
        return Results((losing(mine, most, **changes), *baselines)).warnings

    assert [len(warned(most)) for most in (91.0, 48.0, 44.0)] == [1, 1, 0]
    assert "it lost 91, and uniform play 100: it learned nothing yet" in warned(91.0)[0]
    assert "it lost 48, and the best fixed action 30" in warned(48.0)[0]
    assert warned(91.0, setup=replace(mine.setup, horizon=999)) == ()
    Results((losing(mine, 91.0), losing(uniform, 100.0))).save(tmp_path)
    assert len(json.loads((tmp_path / "results.json").read_text())["warnings"]) == 1


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_plots_of_every_kind(results, lonely, tmp_path, ending):
    """Also of a single replica, which has no band."""
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
    for name, shown in (("many", results), ("one", lonely)):
        path = shown.plot(tmp_path / f"{name}{ending}")
        assert path.read_bytes().startswith(magic)
    refused(r"\.xyz", results.plot, tmp_path / "regret.xyz")
    for write in (results.save, results.plot):
        with pytest.raises(InputError, match=f"Cannot write .*{ending}"):
            write(path / "regret.png")  # a file where a folder should be
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("error", "shown"), [(OSError(28, "No space left"), InputError), (KeyError(), KeyError)]
)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    results, tmp_path, monkeypatch, error, shown
):
    """Of anything, runs too."""

    def fail(*given):
        given[-1].write_bytes(b"PAR1")
        raise error

    files = write_json(tmp_path / "x.json", {"a": 1}), results.save(tmp_path) / "frame.parquet"
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(parquet, "write_table", fail)
    for write in (
        partial(write_runs, files[1], results.runs),
        partial(write_atomically, files[0], fail),
    ):
        with pytest.raises(shown):
            write()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


SHOWN = Results(
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
    rows = cells(SHOWN)
    assert rows[0][:3] == ["agent", "regret", "se"]
    assert rows[2][:6] == ["dp", "22.5", "7.5", "1", "2.5", "1e-5"]
    assert "EXCEEDS THE CLAIM" in rows[2][6]
    assert rows[3][0] == "<b>"
    text = repr(SHOWN)
    assert "made up: regret (dollars) after 500 rounds, mean of 2 replicas" in text
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) < 140
    many = Results(tuple(replace(SHOWN.runs[1], name=f"dp {n}") for n in range(4_000)))
    assert len(repr(many)) < 5_000
    assert "and 3,970 runs more" in repr(many)
    elsewhere = replace(SHOWN.runs[1], setup=replace(SHOWN.runs[1].setup, problem="other"))
    assert "dp on other" in repr(Results((*SHOWN.runs, elsewhere)))

    assert len(SHOWN) == 3
    assert SHOWN["dp"].runs == (SHOWN.runs[1],)
    assert list(SHOWN.certificates) == ["Uniform", "dp", "<b>"]
    assert SHOWN.to_pandas().equals(SHOWN.frame())
    with pytest.raises(InputError, match="one run of each agent, got 6 of 3"):
        Results(SHOWN.runs * 2).certificates  # noqa: B018  that it raises


def test_certificates_and_ledgers_are_short():
    """Golden: 0.3 and 0.4 are 0.5 together; of thousands the first few are named."""
    proof = SHOWN.runs[1].certificate
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


@each("what", ["plot", "frontier"])
def test_figures_are_axes_or_files(what, tmp_path):
    """New axes, given axes, or a file. A line over epsilon says what restricts the promise; as
    infinity has no restriction, one name may have runs with one and without."""
    draw = getattr(SHOWN, what)
    axes = draw()
    assert axes.get_legend() is not None
    _, (left, _) = plt.subplots(1, 2)
    assert draw(ax=left) is left
    assert left.get_ylabel() == axes.get_ylabel() != ""
    assert draw(tmp_path / f"{what}.png").stat().st_size > 1500
    run, proof = SHOWN.runs[1], SHOWN.runs[1].certificate
    limited = replace(
        run, certificate=replace(proof, ledger=Ledger(notion=Notion(contexts="public")))
    )
    axes = Results((run, limited)).frontier()
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["dp (contexts public)"]
    plt.close("all")
