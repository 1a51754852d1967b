"""Problems are told apart by what they are, and called by what differs."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpbandit import Results, compare
from dpbandit.envs import GLMBandit
from dpbandit.results.comparisons import differences
from dpbandit.results.problems import as_words
from dpbandit.results.store import write_runs
from tests.each import each, refused
from tests.envs.contextual.logs import SHOP, shop

QUICK = {"horizon": 8, "replicas": 2, "progress": False}


def on(env, **env_kwargs):
    return compare(env, "linucb", env_kwargs=env_kwargs, **QUICK)


def names(results):
    """Return the names of problems in tables, the same in `summary` and `frame`."""
    (found,) = {tuple(table["problem"].unique()) for table in (results.summary(), results.frame())}
    return list(found)


@pytest.fixture(scope="module")
def two():
    """Two problems that differ in a scalar of NumPy."""
    one, other = (on("GLMBandit", n_actions=2, dim=dim) for dim in np.array([2, 8]))
    return one + other


def test_numpy_scalars_are_arguments_as_all_others(two, tmp_path):
    """It would catch two problems printed, drawn, paired and interpolated as one: once a scalar of
    NumPy was taken for a table, and left out of labels. Files of then, which say so, are read."""
    assert names(two) == ["GLMBandit dim=2", "GLMBandit dim=8"]
    assert {type(run.setup.env_kwargs["dim"]) for run in two} == {int}
    assert "linucb on GLMBandit dim=8" in repr(two)
    assert "linucb on GLMBandit dim=8" in two._repr_html_()
    listed = "got 2, GLMBandit dim=2 for 8 rounds; GLMBandit dim=8 for 8 rounds"
    for ask in (lambda: two.marks, two.plot, two.frontier, partial(two.save, tmp_path)):
        refused(listed, ask)
    private = Results(tuple(replace(run, certificate=_private()) for run in two["linucb"]))
    refused(listed, private.epsilon_for, 3.0)
    assert differences(two.runs, "Uniform")["difference"].notna().all()
    assert differences(two.runs[:1] + two.runs[4:], "Uniform")["pairs"].tolist() == [0, 2]
    for label in ("GLMBandit dim=8", "GLMBandit n_actions=2 dim=8"):
        (alone,) = names(two.where(problem=label))
        assert alone == "GLMBandit n_actions=2 dim=8"
        assert two.where(problem=label)["linucb"].plot().get_title(loc="left").startswith(alone)
    old = [replace(r, setup=replace(r.setup, problem="GLMBandit n_actions=2")) for r in two]
    loaded = Results.load(write_runs(tmp_path / "old.parquet", old))
    assert sorted(names(loaded)) == ["GLMBandit dim=2", "GLMBandit dim=8"]
    assert names(loaded + two) == names(loaded)
    refused(
        "to be one of several: GLMBandit dim=2, GLM", loaded.where, problem=old[0].setup.problem
    )


def _private():
    return compare("GLMBandit", "fade", **QUICK)["fade"].runs[0].certificate


def test_tables_are_their_content():
    """Two shops are two problems, whatever their tables are called; a table read again is one, and
    an array, however it lies in memory."""
    tables = [shop(n=400, seed=seed) for seed in (7, 8)]
    shops = [on("PricingFromLog", frame=table, **SHOP) for table in (*tables, tables[0].copy())]
    assert len(names(shops[0] + shops[2])) == 1
    first, second = names(shops[0] + shops[1])
    assert first.startswith("PricingFromLog frame=table:")
    assert len({first, second}) == 2
    few, many = [np.array([0.1, 0.5]), np.array([0.2, 0.5])], np.eye(9)[:2]
    assert names(on("Arms", means=few[0]) + on("Arms", means=few[1])) == [
        "Arms means=[0.1, 0.5]",
        "Arms means=[0.2, 0.5]",
    ]
    assert len(names(on("Arms", means=many[0]) + on("Arms", means=many[1]))) == 2
    table = np.arange(20.0).reshape(4, 5)
    assert as_words(table) == as_words(np.asfortranarray(table)) != as_words(table + 1)
    assert as_words({"a": [np.float32(0.5), table]})["a"] == [0.5, as_words(table)]
    frame = pd.DataFrame({"who": ["x", "y"], "price": [1.0, 2.0]})
    assert as_words(frame) == as_words(frame.copy()) != as_words(frame.iloc[::-1])


def shops_of(dim):
    """A function of no name of its own."""
    return lambda **how: GLMBandit(dim=dim, **how)


@each("make", [shops_of, lambda dim: partial(GLMBandit, dim=dim), lambda dim: GLMBandit(dim=dim)])
def test_functions_are_what_they_make(make):
    """Two functions of one name, or arguments set beforehand."""
    first, second = names(on(make(2)) + on(make(3)))
    assert (first[-6:], second[-6:]) == (" dim=2", " dim=3")


def test_labels_are_as_short_as_what_differs(two):
    """Names by hand. A label that somebody chose is a problem of its own; of one label and several
    setups each says what differs; a problem alone under its environment is called as it was."""

    def called(**changes):
        return Results(tuple(replace(r, setup=replace(r.setup, **changes)) for r in two))

    assert names(called(problem="shop")) == ["shop dim=2", "shop dim=8"]
    assert names(called(problem="shop", env_kwargs={})) == ["shop"]
    assert len(names(called(problem="shop") + called(problem="kiosk"))) == 4
    assert names(called(environment="GLMBandit") + called(environment="dpbandit/GLMBandit-v0")) == [
        "GLMBandit dim=2",
        "GLMBandit dim=8",
    ]
    assert names(on("Arms", means=[0.2, 0.5]) + two)[0] == "Arms means=[0.2, 0.5]"
    kwargs = [{"paths": [f"{n}/" + "x" * 50]} for n in "ab"]
    long = Results(tuple(called(problem="shop", env_kwargs=one).runs[0] for one in kwargs))
    assert all(len(name) < 40 for name in names(long))
    assert len(names(long)) == 2


@pytest.fixture(scope="module")
def stored(two, tmp_path_factory):
    """Two problems for two horizons, and a third one that is labelled, of private agents."""
    agents = ["fade:epsilon=1", "fade:epsilon=4"]
    runs = []
    for horizon, dim in ((20, 2), (30, 2), (20, 8)):
        how = {**QUICK, "horizon": horizon, "env_kwargs": {"n_actions": 2, "dim": dim}}
        runs += compare("GLMBandit", agents, **how).runs
    juice = compare("OJPricing", agents, **{**QUICK, "horizon": 20}).runs
    runs += [replace(run, setup=replace(run.setup, problem="juice")) for run in juice]
    folder = tmp_path_factory.mktemp("stored")
    write_runs(folder / "runs.parquet", runs)
    return str(folder)


@each(
    ("asked", "said"),
    [
        ("GLMBandit", "got 3, GLMBandit dim=2 for 20 rounds; GLMBandit dim=2 for 30 rounds; GLMB"),
        ("GLMBandit --set dim=2", "got 2, GLMBandit n_actions=2 dim=2 for 20 rounds; GLMBandit"),
        ("GLMBandit --horizon 20", "got 2, GLMBandit dim=2 for 20 rounds; GLMBandit dim=8 for 20"),
        ("GLMBandit --set dim=2 --horizon 30", "GLMBandit n_actions=2 dim=2, 30 rounds, 2 repli"),
        ("GLMBandit --set dim=8", "GLMBandit n_actions=2 dim=8, 20 rounds, 2 replicas:\nfade los"),
        ("GLMBandit --set dim=8 --replicas 1", "dim=8, 20 rounds, 1 replicas:\nfade loses"),
        ("GLMBandit --set dim=8 --replicas 9", "--replicas=9 from 1 to the 2 in --from"),
        ("GLMBandit --set dim=3", "runs on GLMBandit with --set dim=3 in --from, found those"),
        ("GLMBandit --horizon 40", "'horizon': 40}, found none of 12: there are those on"),
        ("GLMBandit --set dim=8 --seed 1", "'seed': 1}, found none of 4"),
        ("OJPricing", "juice, 20 rounds, 2 replicas:\nfade loses"),
        ("juice", "juice, 20 rounds, 2 replicas:\nfade loses"),
        ("Arms", "Expected runs on Arms in --from"),
        ("juicy", "environment='juicy'"),
    ],
)
def test_a_frontier_is_of_what_was_asked(run, stored, asked, said):
    """It would catch options that `--from` ignored, and an answer that does not say of what."""
    code, out, errors = run("frontier", *asked.split(), "--from", stored, "--lost", "50%")
    assert said in out + errors
    assert code == (0 if "loses" in out else 2)
