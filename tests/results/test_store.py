"""Runs as files: they come back as they were, and anything else that is there is told."""

import json
from dataclasses import replace
from math import inf

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbandit import InputError, Results, compare
from dpbandit.agents import DPUCB, ShariffSheffetUCB, ShrinkingDartboard, SparseVectorExperts
from dpbandit.base.files import digest_of
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.results.runs import _BY_REPLICA, merged
from dpbandit.results.store import CorruptFileError, ForeignFileError, read_runs, write_runs


@pytest.fixture(scope="module")
def results():
    agents = {"DP-UCB": DPUCB(), "Wishart": ShariffSheffetUCB(noise="wishart", delta=1e-3)}
    return compare("OJPricing", agents, horizon=30, replicas=4, progress=False)


@pytest.fixture(scope="module")
def experts():
    agents = {"SVT": SparseVectorExperts(), "dartboard": ShrinkingDartboard()}
    kwargs = {"horizon": 30, "replicas": 2, "progress": False}
    return compare("Experts", agents, env_kwargs={"n_actions": 3}, **kwargs)


def same(one, two):
    for run, other in zip(one.runs, two.runs, strict=True):
        assert (run.setup, run.name, run.seconds) == (other.setup, other.name, other.seconds)
        assert run.certificate == other.certificate
        assert run.key == other.key
        assert run.provenance == other.provenance
        for what in ("marks", "replicas", "regret", "reward", "switches"):
            np.testing.assert_array_equal(getattr(run, what), getattr(other, what), strict=True)


def by_name(results):
    return Results(tuple(sorted(results.runs, key=lambda run: run.name)))


@pytest.mark.parametrize("which", ["results", "experts"])
def test_saved_results_come_back(which, request, tmp_path):
    """Certificates and their ledgers included: infinities, tuples and all."""
    results = request.getfixturevalue(which)
    results.save(tmp_path)
    for place in (tmp_path, tmp_path / "frame.parquet", f"{tmp_path}/*.parquet"):
        loaded = Results.load(place)
        same(by_name(loaded), by_name(results))
    assert [record["agent"] for record in by_name(loaded).records()] == sorted(
        run.name for run in results.runs
    )


def test_pieces_of_a_run_are_put_together(results, tmp_path):
    """In any order of the files; a replica that comes twice is refused."""
    run = results.runs[0]

    def part(numbers):
        cut = {w: getattr(run, w)[..., numbers] for w in _BY_REPLICA}
        return replace(run, seconds=run.seconds / 2, **cut)

    write_runs(tmp_path / "b.parquet", [part([0, 1])])
    write_runs(tmp_path / "a.parquet", [part([2, 3])])
    write_runs(tmp_path / "below" / "other.parquet", [replace(run, name="not asked for")])
    same(Results.load(tmp_path), Results((run,)))
    write_runs(tmp_path / "again.parquet", [part([1, 2])])
    twice = Results.load(tmp_path).runs[0]
    assert twice.replicas.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(twice.regret, run.regret)
    write_runs(tmp_path / "other.parquet", [replace(run, regret=run.regret + 1)])
    with pytest.raises(InputError, match=r"the same regret of DP-UCB .* stored twice"):
        Results.load(tmp_path)


def test_interleaved_pieces_are_sorted(results):
    run = results.runs[0]

    def part(numbers):
        cut = {w: getattr(run, w)[..., numbers] for w in _BY_REPLICA}
        return replace(run, **cut)

    whole = merged([part([1, 3]), part([0, 2])])
    assert whole.replicas.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(whole.regret, run.regret)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(runs=d["runs"].replace('"epsilon": 1.0', '"epsilon": 0.1')),
        lambda d: d.pop("hash"),
        lambda d: d.update(runs="[]"),
        lambda d: d.update(runs="{"),
    ],
    ids=["a smaller epsilon", "no hash", "no runs", "half"],
)
def test_facts_cannot_be_changed(results, tmp_path, change):
    path = write_runs(tmp_path / "x.parquet", results.runs)
    table = parquet.read_table(path)
    document = json.loads(table.schema.metadata[b"dpbandit"])
    before = dict(document)
    change(document)
    assert document != before
    parquet.write_table(table.replace_schema_metadata({b"dpbandit": json.dumps(document)}), path)
    with pytest.raises(CorruptFileError):
        read_runs(path)


@pytest.mark.parametrize("metadata", [b"[]", b"{", b"\xff", b'{"format": 2}'])
def test_other_metadata_is_foreign_or_corrupt(results, tmp_path, metadata):
    path = write_runs(tmp_path / "x.parquet", results.runs)
    table = parquet.read_table(path).replace_schema_metadata({b"dpbandit": metadata})
    parquet.write_table(table, path)
    with pytest.raises((CorruptFileError, ForeignFileError)):
        read_runs(path)


def test_columns_cannot_say_something_else(results, tmp_path):
    """DuckDB and pandas read columns: an agent renamed there is told."""
    path = write_runs(tmp_path / "x.parquet", results.runs)
    table = parquet.read_table(path)
    names = pa.array(["WRONG"] * len(table)).dictionary_encode()
    place = table.schema.get_field_index("agent")
    parquet.write_table(table.set_column(place, "agent", names), path)
    with pytest.raises(CorruptFileError, match="columns say otherwise"):
        read_runs(path)


def test_odd_names_and_paths(results, tmp_path):
    """Brackets in a folder, a pattern that finds a file twice, "inf" and formulas as names."""
    folder = tmp_path / "brack[1]"
    run = replace(results.runs[0], name="inf", setup=replace(results.runs[0].setup, problem="$a_$"))
    write_runs(folder / "x.parquet", [run])
    for place in (folder, f"{tmp_path}/**"):
        assert [found.name for found in Results.load(place).runs] == ["inf"]
    odd = Results((run, replace(run, name=r"$\frac$ " + "long " * 40)))
    assert odd.plot(tmp_path / "odd.png").stat().st_size > 1500


def test_a_writer_that_fails_halfway_leaves_the_old_file(results, tmp_path, monkeypatch):
    path = write_runs(tmp_path / "x.parquet", results.runs)
    before = path.read_bytes()

    def half(table, place):
        place.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", half)
    with pytest.raises(KeyboardInterrupt):
        write_runs(path, results.runs)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.parquet"]


def test_source_digests_see_every_file(tmp_path):
    """Contents and names, of data, too; not what Python compiled, nor results that are shipped,
    with which every older sweep would be another program's."""
    (tmp_path / "a.py").write_text("x = 1")
    seen = {digest_of([tmp_path])}
    for name, text in (("a.py", "x = 2"), ("data.json", "{}"), ("data.json", "[]")):
        (tmp_path / name).write_text(text)
        seen.add(digest_of([tmp_path]))
    (tmp_path / "data.json").rename(tmp_path / "other.json")
    seen.add(digest_of([tmp_path]))
    assert len(seen) == 5
    (tmp_path / "a.pyc").write_text("compiled")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "frozen-small.parquet").write_text("results")
    assert digest_of([tmp_path]) in seen
    (tmp_path / "suite" / "scoring.py").write_text("x = 1")
    assert digest_of([tmp_path]) not in seen


def test_programs_are_not_mixed(results, tmp_path):
    run = results.runs[0]
    other = replace(run, provenance={**run.provenance, "source": "x"}, replicas=run.replicas + 4)
    write_runs(tmp_path / "a.parquet", [run])
    write_runs(tmp_path / "b.parquet", [other])
    with pytest.raises(InputError, match="of one program"):
        Results.load(tmp_path)


def test_nothing_to_load_is_one_sentence(tmp_path):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(InputError, match=r"found none.*mine"):
        Results.load(tmp_path)
    with pytest.raises(InputError, match="found none"):
        Results.load(tmp_path / "nowhere")


def test_facts_are_inside(results, tmp_path):
    """Everything a reader needs, as JSON in the metadata, without dpbandit."""
    path = write_runs(tmp_path / "x.parquet", results.runs)
    document = json.loads(parquet.read_schema(path).metadata[b"dpbandit"])
    facts = json.loads(document["runs"])[0]
    assert facts["config"]["agent"] == "DPUCB"
    assert facts["certificate"]["claimed_epsilon"] == 1.0
    assert facts["setup"]["env_kwargs"] == {"horizon": 30}
    assert {"dpbandit", "source", "python", "platform", "numpy"} <= set(facts["provenance"])
    assert facts["seconds"] > 0


def test_duckdb_reads_it(results, tmp_path):
    """Oracle: the summary."""
    write_runs(tmp_path / "x.parquet", results.runs)
    rows = duckdb.sql(
        f"select agent, epsilon, avg(regret) from '{tmp_path}/*.parquet' "
        "where round = horizon group by all"
    ).fetchall()
    claims = {run.name: run.certificate.claimed_epsilon for run in results.runs}
    means = {(run.name, claims[run.name]): run.regret[-1].mean() for run in results.runs}
    assert {(agent, epsilon): mean for agent, epsilon, mean in rows} == pytest.approx(means)
    assert ("BestFixed", inf) in means


def test_where_chooses(results):
    assert [run.name for run in results.where(epsilon=1.0).runs] == ["DP-UCB", "Wishart"]
    assert [run.name for run in results.where(epsilon=1.0, delta=1e-3).runs] == ["Wishart"]
    with pytest.raises(InputError, match="did you mean agent"):
        results.where(agents="DP-UCB")
    with pytest.raises(InputError, match="found none of 4"):
        results.where(agent="nobody")


def test_several_problems_have_no_common_marks(results, experts):
    both = Results(results.runs + experts.runs)
    assert len(both.frame()) == len(results.frame()) + len(experts.frame())
    for ask in (lambda: both.marks, lambda: both.plot("x.png"), lambda: both.environment):
        with pytest.raises(InputError, match="one problem, got 2"):
            ask()


def test_certificates_survive_json(results):
    for run in results.runs:
        assert certificate_from_dict(run.certificate.as_dict()) == run.certificate


def test_switches_by_brute_force():
    """Oracle: actions recorded round by round."""
    from dpbandit.agents import EpsilonGreedy
    from dpbandit.results.runs import log_marks
    from dpbandit.running.environments import problem_maker
    from dpbandit.running.loop import play

    problem, actions = problem_maker("GLMBandit")(horizon=50), []
    step = problem.step

    def watched(action):
        actions.append(np.array(action))
        return step(action)

    problem.step = watched
    log = play(problem, EpsilonGreedy(), [0, 1, 2], marks=log_marks(50))
    changed = np.array([a != b for a, b in zip(actions[1:], actions[:-1], strict=True)])
    oracle = np.vstack([np.zeros(3), changed.cumsum(axis=0)])[log_marks(50) - 1]
    np.testing.assert_array_equal(log.switches, oracle)
