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


@pytest.mark.filterwarnings("ignore:The behavior of DataFrame concatenation")  # of pandas 2
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
    assert list(map(str, empty.dtypes)) == list(map(str, frame.dtypes))
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
    """Records write infinity as the word "inf", and the standard error of one value as None."""
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


def curve(name, half, end, *, quarter=None, horizon=20_000, **target):
    """A run of known mean regret at a quarter, at half and at the end; it falls unless told."""
    run = made_up(name, end, end, claimed=target.get("epsilon", inf), horizon=horizon)
    marks = np.array([horizon // 4, horizon // 2, horizon])
    values = np.array([0.75 * half if quarter is None else quarter, half, end])
    regret = values[:, None] + [-1.0, 1.0]
    curves = {"regret": regret, "reward": -regret, "switches": np.zeros((3, 2), np.int64)}
    return replace(run, marks=marks, config={"agent": name, **target}, **curves)


def test_warnings_say_what_was_measured_and_what_would_help(tmp_path):
    """Golden, by hand. It would catch a model blamed for noise or for few users, a failure that
    nobody hears of because the best fixed action loses nothing, and numbers with exponents."""
    uniform, fixed = curve("Uniform", 1220.0, 2440.0), curve("BestFixed", 300.0, 600.0)

    def warned(*runs, fixed=fixed):
        return Results((*runs, uniform, fixed)).warnings

    start = "After 10,000 of 20,000 rounds FADE had lost "
    nothing = "1,170 dollars, random play 1,220: it has learned almost nothing."
    little = "488 dollars, random play 1,220 and the best fixed action "
    users = " Its regret per round falls: more users would help."
    larger = users.replace("users", "users or a larger epsilon")
    model = " Its regret per round does not fall: its model or a setting may not fit."
    blame = " The same agent with epsilon=inf would tell if its noise or its model is to blame."
    flat, private = {"quarter": 585.0}, {"epsilon": 1.0}
    assert warned(curve("FADE", 1170.4, 1800)) == (start + nothing + users,)
    assert warned(curve("FADE", 1170.4, 2400, **flat)) == (start + nothing + model,)
    assert warned(curve("FADE", 1170.4, 1800, **private)) == (start + nothing + larger,)
    hidden, free = curve("FADE", 1170.4, 2400, **flat, **private), {"epsilon": inf}
    assert warned(hidden) == (start + nothing + blame,)
    better = warned(hidden, curve("FADE", 100.0, 150, **free))
    help = " Without noise it lost 100 dollars: more users or a larger epsilon would help."
    assert better == (start + nothing + help,)
    alike = warned(hidden, curve("FADE", 1170.4, 2400, **flat, **free))
    same = model.replace("Its", "Without noise it lost no less, and its", 1)
    assert alike == (start + nothing + same, start + nothing + model)
    none = curve("BestFixed", 0.0, 0.0)
    assert warned(curve("FADE", 488, 600)) == (start + little + "300." + users,)
    assert warned(curve("FADE", 488, 600), fixed=none) == (start + little + "nothing." + users,)
    late = warned(curve("FADE", 440.0, 950))[0]
    assert late.startswith("After 20,000 rounds FADE had lost 950 dollars, random play 2,440 and")
    assert not warned(curve("FADE", 440.0, 890))
    assert not warned(curve("Centre", 1220.0, 2440.0))
    short = [curve(n, 50.0, 100.0, horizon=999) for n in ("FADE", "Uniform", "BestFixed")]
    assert Results(tuple(short)).warnings == ()
    Results((hidden, uniform)).save(tmp_path)
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
    """Both files, of JSON and of runs, and their folder are as before."""

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
    assert repr(proof).startswith("Certificate(epsilon 2.5 at delta 1e-5, claimed 1, EXCEEDS")
    assert ["claimed", "epsilon 1 at delta 1e-5"] in cells(proof)
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
    assert rows[1] == [
        "epsilon",
        "2.0 *",
        "target epsilon, > 0; inf plays without privacy",
    ]
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
