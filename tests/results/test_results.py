"""Results: tidy frames, numbers that can be recomputed by hand, files that are never half."""

import json
from dataclasses import replace
from functools import partial
from math import inf, isnan, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from dpbandit import InputError, compare
from dpbandit.agents import DPUCB, LinUCB
from dpbandit.base.files import plain, write_atomically, write_json
from dpbandit.results.results import Results
from dpbandit.results.runs import log_marks, standard_error
from dpbandit.results.store import write_runs

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
    with pytest.raises(InputError, match=r"\.xyz"):
        results.plot(tmp_path / "regret.xyz")
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
