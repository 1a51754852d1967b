"""Runs as files: they come back as they were, and anything else that is there is told."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbandit import Results, compare
from dpbandit.agents import DPUCB, ShariffSheffetUCB, ShrinkingDartboard, SparseVectorExperts
from dpbandit.base import digest_of
from dpbandit.results.runs import BY_REPLICA
from dpbandit.results.store import CorruptFileError, ForeignFileError, _hash, read_runs, write_runs
from tests.each import each, refused


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
        for what in ("setup", "name", "seconds", "certificate", "key", "provenance"):
            assert getattr(run, what) == getattr(other, what)
        for what in ("marks", "replicas", "regret", "reward", "switches"):
            np.testing.assert_array_equal(getattr(run, what), getattr(other, what), strict=True)


def by_name(results):
    return Results(tuple(sorted(results.runs, key=lambda run: run.name)))


def cut(run, numbers):
    """Some replicas of a run."""
    part = {what: getattr(run, what)[..., numbers] for what in BY_REPLICA}
    return replace(run, seconds=run.seconds / 2, **part)


@pytest.mark.parametrize("which", ["results", "experts"])
def test_saved_results_come_back(which, request, tmp_path):
    """Certificates and their ledgers included: infinities, tuples and all."""
    results = request.getfixturevalue(which)
    results.save(tmp_path)
    for place in (tmp_path, tmp_path / "frame.parquet", f"{tmp_path}/*.parquet"):
        loaded = Results.load(place)
        same(by_name(loaded), by_name(results))
    names = [record["agent"] for record in by_name(loaded).records()]
    assert names == sorted(run.name for run in results.runs)


def test_pieces_of_a_run_are_put_together(results, tmp_path):
    """In any order of the files and replicas; the same once more is one run, and a replica that
    comes twice with other numbers, or from another program, is refused."""
    run = results.runs[0]
    write_runs(tmp_path / "b.parquet", [cut(run, [1, 3])])
    write_runs(tmp_path / "a.parquet", [cut(run, [0, 2])])
    write_runs(tmp_path / "below" / "other.parquet", [replace(run, name="not asked for")])
    same(Results.load(tmp_path), Results((run,)))
    write_runs(tmp_path / "again.parquet", [cut(run, [1, 2])])
    twice = Results.load(tmp_path).runs[0]
    assert twice.replicas.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(twice.regret, run.regret)
    write_runs(tmp_path / "other.parquet", [replace(run, regret=run.regret + 1)])
    refused(r"the same regret of DP-UCB .* stored twice", Results.load, tmp_path)
    other = {**run.provenance, "source": "x"}
    other = replace(run, provenance=other, replicas=run.replicas + 4)
    write_runs(tmp_path / "other.parquet", [other])
    refused("of one program", Results.load, tmp_path)


@each(
    "change", [
        lambda d: d.update(runs=d["runs"].replace('"epsilon": 1.0', '"epsilon": 0.1')),
        lambda d: d.pop("hash"), lambda d: d.update(runs="[]"), lambda d: d.update(runs="{"),
    ],
)  # fmt: skip
def test_facts_cannot_be_changed(results, tmp_path, change):
    """A smaller epsilon, no hash, no runs, half of them."""
    path = write_runs(tmp_path / "x.parquet", results.runs)
    table = parquet.read_table(path)
    document = json.loads(table.schema.metadata[b"dpbandit"])
    before = dict(document)
    change(document)
    assert document != before
    parquet.write_table(table.replace_schema_metadata({b"dpbandit": json.dumps(document)}), path)
    with pytest.raises(CorruptFileError):
        read_runs(path)


def test_certificates_are_computed_from_ledgers(results, tmp_path):
    """A certificate that promises more than its ledger is not believed, in a file of either format;
    a file that has no ledgers is refused."""
    run, others = results.runs[0], results.runs[1:]
    forged = replace(run.certificate, epsilon=0.001, mu=0.001, rho=1e-6)
    path = write_runs(tmp_path / "x.parquet", [replace(run, certificate=forged), *others])
    same(Results(tuple(read_runs(path))), results)
    assert by_name(Results.load(path)).spent().equals(by_name(results).spent())
    table = parquet.read_table(path)
    facts = json.loads(json.loads(table.schema.metadata[b"dpbandit"])["runs"])
    for each_run, proof in zip(facts, [forged, *(o.certificate for o in others)], strict=True):
        del each_run["ledger"], each_run["claim"]
        each_run["certificate"] = proof.as_dict()

    def written(facts):
        text = json.dumps(facts)
        document = {"format": 1, "runs": text, "hash": _hash(table, text)}
        told = table.replace_schema_metadata({b"dpbandit": json.dumps(document)})
        parquet.write_table(told, path)
        return path

    same(Results(tuple(read_runs(written(facts)))), results)
    del facts[1]["certificate"]["ledger"]
    with pytest.raises(CorruptFileError, match="no ledger, only a certificate"):
        read_runs(written(facts))


def test_columns_cannot_say_something_else(results, tmp_path):
    """DuckDB and pandas read columns: an agent renamed there is told. Other metadata is corrupt, or
    somebody else's."""
    path = write_runs(tmp_path / "x.parquet", results.runs)
    table = parquet.read_table(path)
    names = pa.array(["WRONG"] * len(table)).dictionary_encode()
    place = table.schema.get_field_index("agent")
    parquet.write_table(table.set_column(place, "agent", names), path)
    with pytest.raises(CorruptFileError, match="columns say otherwise"):
        read_runs(path)
    for metadata in (b"[]", b"{", b"\xff", b'{"format": 3}'):
        parquet.write_table(table.replace_schema_metadata({b"dpbandit": metadata}), path)
        with pytest.raises((CorruptFileError, ForeignFileError)):
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


def test_source_digests_see_every_file(tmp_path):
    """A digest changes with the content and the name of every file, data included; not with caches,
    leftovers of editors, or shipped results, which change without the program. All data of the
    package are in it."""
    (tmp_path / "a.py").write_text("x = 1")
    seen = {digest_of([tmp_path])}
    for name, text in (("a.py", "x = 2"), ("data.json", "{}"), ("data.json", "[]")):
        (tmp_path / name).write_text(text)
        seen.add(digest_of([tmp_path]))
    (tmp_path / "data.json").rename(tmp_path / "other.json")
    seen.add(digest_of([tmp_path]))
    assert len(seen) == 5
    (tmp_path / "suite").mkdir()
    (tmp_path / ".ipynb_checkpoints").mkdir()
    leftovers = [
        "a.pyc",
        "a.pyc.123",
        ".DS_Store",
        ".a.py.swp",
        "a.py~",
        "#a.py#",
        ".#a.py",
        "4913",
    ]
    for name in [*leftovers, ".ipynb_checkpoints/a-checkpoint.py"]:
        (tmp_path / name).write_text("of Python, an editor or a file manager")
    (tmp_path / "suite" / "frozen-small.parquet").write_text("results")
    assert digest_of([tmp_path]) in seen
    (tmp_path / "suite" / "scoring.py").write_text("x = 1")
    assert digest_of([tmp_path]) not in seen
    root = Path(__file__).parents[2]
    folders = [root / name for name in ("dpbandit", "agents", "envs")]
    endings = {file.suffix for folder in folders for file in folder.rglob("*") if file.is_file()}
    pages = {".html", ".css", ".md", ".txt", ".typed", ".pyc", ".pyi"}
    assert endings - pages <= {".py", ".csv", ".gz", ".json", ".parquet", ".toml"}


def test_facts_are_inside(results, tmp_path):
    """Everything a reader needs, as JSON in the metadata, without dpbandit. Oracle of what DuckDB
    reads, in a folder that it would take for a column: the summary."""
    path = write_runs(tmp_path / "epsilon=7" / "x.parquet", results.runs)
    document = json.loads(parquet.read_schema(path).metadata[b"dpbandit"])
    facts = json.loads(document["runs"])[0]
    assert facts["config"]["agent"] == "DPUCB"
    assert facts["claim"] == [1.0, 1e-5]
    assert "epsilon" not in facts["ledger"]
    assert facts["setup"]["env_kwargs"] == {"horizon": 30}
    assert {"dpbandit", "source", "python", "platform", "numpy"} <= set(facts["provenance"])
    assert facts["seconds"] > 0
    rows = duckdb.sql(
        "select agent, epsilon, avg(regret) from "
        f"read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = false) "
        "where round = horizon group by all"
    ).fetchall()
    claims = {run.name: run.certificate.claimed_epsilon for run in results.runs}
    means = {(run.name, claims[run.name]): run.regret[-1].mean() for run in results.runs}
    assert {(agent, epsilon): mean for agent, epsilon, mean in rows} == pytest.approx(means)
    assert ("BestFixed", inf) in means


def test_where_chooses(results, experts, tmp_path):
    """Runs are selected by agent and target; several problems have no common marks, and no match
    is an error."""
    assert [run.name for run in results.where(epsilon=1.0).runs] == ["DP-UCB", "Wishart"]
    assert [run.name for run in results.where(epsilon=1.0, delta=1e-3).runs] == ["Wishart"]
    refused("found none of 4", results.where, agent="nobody")
    both = Results(results.runs + experts.runs)
    assert len(both.frame()) == len(results.frame()) + len(experts.frame())
    for ask in (lambda: both.marks, lambda: both.plot("x.png"), lambda: both.environment):
        refused("one problem, got 2", ask)
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "mine.parquet")
    refused(r"found none.*mine", Results.load, tmp_path)
