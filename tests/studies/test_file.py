"""Sweep files: what is written is what is run; mistakes and other machines are one sentence."""

import json
import sys
import warnings
from dataclasses import fields, replace
from math import inf
from pathlib import Path

import pytest

from dpbandit import InputError, Results, certify, compare
from dpbandit.agents import AGENTS, DPUCB, LinUCB
from dpbandit.base import cpu_of, provenance
from dpbandit.results.runs import describe
from dpbandit.results.store import read_runs, write_runs
from dpbandit.studies import Configuration, Sweep, plan, run_sweep
from tests.each import each, refused
from tests.studies.studies import TINY, many

EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "sweeps").glob("*.toml"))


@each(
    ("values", "sentence"), [
        ({"replica": 3}, "Unknown key replica .*did you mean replicas"),
        ({"agents": [{"id": "linucb", "setings": {}}]}, r"agents.0.setings .*mean settings"),
        ({"environments": [{"id": "GLMBandit", "args": {}}]}, "environments.0.args"),
        ({"audit": {"run": 500}}, "audit.run .*mean runs"), ({"epsilons": []}, "epsilons"),
        ({"deltas": [1.0]}, "deltas.0=1.0"), ({"horizons": [0]}, "horizons.0=0"),
        ({"horizons": [10**22]}, "horizons.0=10000.* <= 1000000000"),
        ({"audit": {"horizon": 10**10}}, "audit.horizon=10000000000"),
        ({"replicas": 2.5}, "replicas=2.5"), ({"seed": -1}, "seed=-1"),
        ({"agents": [{}]}, "agents.0.id in .*missing"),
        ({"agents": [{"id": "linucp"}]}, "did you mean linucb"),
        ({"agents": [{"id": "linucb", "settings": {"alpa": 1}}]}, "did you mean alpha"),
        ({"agents": [{"id": "linucb", "settings": {"alpha": -1}}]}, "alpha=-1"),
        ({"agents": [{"id": "hedge"}]}, "plays"), ({"seed": True}, "seed=True"),
        ({"replicas": "3"}, "replicas='3'"),
        ({"agents": [{"id": "linucb", "settings": {"alpha": [1, 2]}}]}, r"settings.alpha=\[1, 2\]"),
        ({"deltas": [0.0]}, "shariff-sheffet-ucb .*delta=0.0"),
        ({"agents": [{"id": "linucb", "label": "a"}, {"id": "lints", "label": "a"}]}, "labels"),
        ({"agents": [{"id": "linucb", "label": "a"}, {"id": "fade", "label": "a"}]}, "called 'a'"),
        ({"agents": [{"id": "fade", "label": "Uniform"}]}, "called 'Uniform'.*FADE.* labels"),
        ({"agents": [{"id": "fade", "label": "Centre"}]}, "called 'Centre'"),
        ({"agents": [{"id": "fade", "label": "linucb"}, {"id": "linucb"}]}, "called 'linucb'"),
        ({"environments": [{"id": "GLMBandits"}]}, "did you mean"),
        ({"environments": [{"id": "GLMBandit", "arguments": {"dims": 2}}]}, "did you mean dim"),
        ({"environments": [{"id": "GLMBandit", "arguments": {"horizon": 2}}]}, "horizons"),
        (
            {"environments": [{"id": "GLMBandit", "arguments": {"dim": 2}, "grid": {"dim": [3]}}]},
            "not both",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_before_the_first_round(values, sentence):
    refused(sentence, lambda: plan(Sweep.of({**TINY, **values})))


def test_files_are_read_and_their_mistakes_told(tmp_path):
    """Also with a byte order mark, as some editors on Windows write it."""
    good = tmp_path / "a.toml"
    for mark in ("utf-8", "utf-8-sig"):
        text = 'replicas = 3\n[[environments]]\nid = "GLMBandit"\n[[agents]]\nid = "linucb"\n'
        good.write_text(text, encoding=mark)
        assert Sweep.read(good).replicas == 3
    (tmp_path / "b.toml").write_text("replicas = \n")
    for name, sentence in (("b.toml", "to be TOML"), ("c.toml", "Cannot read")):
        refused(sentence, Sweep.read, tmp_path / name)


def planned(**values):
    return plan(Sweep.of({**TINY, **values})).configurations


def test_a_plan_by_hand(monkeypatch, capsys):
    """A plan has every combination once, and agents without epsilon once for all epsilons. A bar
    shows the progress of slow planning."""
    monkeypatch.setattr("dpbandit.base.progress.PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    found = plan(Sweep.of(TINY), progress=True).configurations
    assert "planning" in capsys.readouterr().err
    assert len(found) == len({one.key for one in found}) == 30
    one = [c for c in found if c.setup.problem == "juice" and c.setup.horizon == 40]
    private = "shariff-sheffet-ucb alpha=2.0 calibration=paper"
    names = [("Lin", None), (private, 0.5), (private, 2.0), ("Uniform", None), ("BestFixed", None)]
    assert [(c.name, getattr(c.config, "epsilon", None)) for c in one] == names
    glm = {f"GLMBandit noise=0.2 dim={dim}" for dim in (2, 3)}
    assert {c.setup.problem for c in found} == {"juice"} | glm
    assert len(plan(many(50)).configurations) == 50


@each(
    ("values", "targets"),
    [
        ({"epsilons": [1, inf], "deltas": [0.1, 0.2]}, [(1, 0.1), (1, 0.2), (inf, 0.1)]),
        ({"grid": {"epsilon": [1, inf]}, "deltas": [0.1, 0.2]}, [(1, 0.1), (1, 0.2), (inf, 0.1)]),
        ({"grid": {"delta": [0.3, 0.4]}, "epsilons": [inf]}, [(inf, 0.3)]),
    ],
)
def test_without_noise_there_is_no_delta(values, targets):
    """A run without noise comes once, with the first delta, not the same run for each of them."""
    agent = {"id": "fade", "grid": values.pop("grid", {})}
    found = planned(agents=[agent], environments=[{"id": "OJPricing"}], horizons=[9], **values)
    configs = [one.config for one in found if one.name == "fade"]
    assert [(config.epsilon, config.delta) for config in configs] == targets


def test_agents_that_fit_nowhere_are_refused_and_others_left_out_on_request():
    """What is left out is said once, whatever the number of targets, with the reason."""
    agents = [{"id": "priced:linucb"}, {"id": "priced:dp-ucb", "label": "demand"}, {"id": "linucb"}]
    with pytest.warns(UserWarning, match="Left out where they do not fit") as said:
        found = planned(agents=agents, horizons=[9], leave_out_unfit=True)
    (told,) = said
    assert str(told.message).count("demand on GLMBandit noise=0.2 dim=2 (") == 1
    on = {name: {c.setup.problem for c in found if c.name == name} for name in ("demand", "linucb")}
    assert on["demand"] == {"juice"} < on["linucb"]
    for wrong, asked in ((agents, False), ([{"id": "hedge"}], True)):
        with pytest.raises(InputError, match=r"priced:linucb on GLMBandit|hedge on juice"):
            planned(agents=wrong, leave_out_unfit=asked)


def test_planning_certifies_nothing_and_playing_once(monkeypatch):
    """Some noise takes longer to certify than to play: not in plans, not for each block anew."""
    asked = []

    def counted(config, spec, **how):
        asked.append(config)
        return certify(config, spec, **how)

    monkeypatch.setattr(sys.modules[Configuration.__module__], "certify", counted)
    one = planned(seed=12345)[1]
    assert not asked
    proofs = [one.play(r, r + 1).certificate for r in range(3)]
    assert asked == [one.config]
    assert proofs == 3 * [certify(one.config, one.problem().spec, accountants=False)]


def test_names_tell_what_differs():
    """Settings make names; a label and a grid together do, too; baselines are called the same, and
    so is an environment however it is spelt."""
    twice = [{"id": "linucb"}, {"id": "linucb", "settings": {"alpha": 1.0}}, {"id": "uniform"}]
    worlds = [{"id": "GLMBandit", "label": "g", "grid": {"dim": [2, 3]}}]
    found = planned(agents=twice, environments=worlds, horizons=[9])
    names = ["linucb", "linucb alpha=1.0", "Uniform", "BestFixed"]
    assert [(c.setup.problem, c.name) for c in found] == [
        (problem, name) for problem in ("g dim=2", "g dim=3") for name in names
    ]
    short, whole = (
        {one.key for one in planned(environments=[{"id": name}])}
        for name in ("OJPricing", "dpbandit/OJPricing-v0")
    )
    assert short == whole


def test_the_schema_knows_every_key():
    """What an editor completes is what the program takes; a model's example passes its schema."""
    schema = Sweep.model_json_schema()
    assert set(TINY) | {"audit", "leave_out_unfit"} == set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_can_be_planned(file):
    assert len(plan(Sweep.read(file)).configurations) > 10


HOW = {"progress": False, "backend": "threading", "resume": True}


def study(alpha, noise, epsilon, radius):
    return Sweep.of(
        {
            "horizons": [9],
            "replicas": 1,
            "epsilons": [epsilon],
            "environments": [
                {"id": "GLMBandit", "arguments": {"noise": noise, "dim": 2}},
                {"id": "GLMBandit", "label": "g", "grid": {"signal": [radius]}},
            ],
            "agents": [
                {"id": "linucb", "settings": {"alpha": alpha}},
                {"id": "dp-ucb", "grid": {"alpha": [alpha]}, "settings": {"refresh_every": 2}},
            ],
        }
    )


def test_1_and_1_0_are_the_same_setting(tmp_path):
    """In keys, hence in what is resumed and loaded, and in names; whole numbers where those are
    declared stay what they are, and so do words, flags and defaults."""
    one = plan(study(1, 2, 1, 3)).configurations
    other = plan(study(1.0, 2.0, 1.0, 3.0)).configurations
    assert [(c.key, c.name, c.setup.problem) for c in one] == [
        (c.key, c.name, c.setup.problem) for c in other
    ]
    assert one == other
    assert {type(c.setup.env_kwargs.get("dim", 1)) for c in one} == {int}
    twice = {"id": "linucb", "grid": {"alpha": [1, 1.0, 2]}}
    sweep = study(1, 1, 1, 1).model_copy(update={"agents": []})
    found = plan(Sweep.of({**sweep.model_dump(), "agents": [twice]})).configurations
    assert [c.name for c in found].count("linucb alpha=1.0") == 2
    assert describe(LinUCB(alpha=1)) == describe(LinUCB(alpha=1.0))
    assert repr(describe(DPUCB(epsilon=1, refresh_every=2))["refresh_every"]) == "2"
    assert describe(LinUCB(alpha="theory"))["alpha"] == "theory"
    for kind in AGENTS.values():
        settings = {field.name: getattr(kind(), field.name) for field in fields(kind)}
        assert describe(kind()) == {"agent": kind.__name__, **settings}
    for folder, number in (("a", 1), ("b", 1.0)):
        how = {"horizon": 9, "replicas": 2, "progress": False, "env_kwargs": {"noise": number}}
        compare("GLMBandit", {"x": LinUCB(alpha=number)}, **how).save(tmp_path / folder)
    a, b = (Results.load(tmp_path / name) for name in "ab")
    assert [run.key for run in a.runs] == [run.key for run in b.runs]
    assert len(Results.load(f"{tmp_path}/*/*.parquet").runs) == len(a.runs)


@pytest.mark.parametrize("older", [False, True])
def test_going_on_with_another_type_of_cpu_is_told(tmp_path, older):
    """NumPy and BLAS choose code by what a processor can do: more than by its architecture, which
    is what older files have."""
    run_sweep(many(3, replicas=1), tmp_path, **HOW)
    with warnings.catch_warnings(action="error"):
        run_sweep(many(3, replicas=2), tmp_path, **HOW)
    file = next((tmp_path / "blocks").iterdir())
    (run,) = read_runs(file)
    made_with = {**run.provenance, "cpu": "z80"}
    if older:
        made_with = {**run.provenance, "platform": "Old"}
        del made_with["cpu"]
    write_runs(file, [replace(run, provenance=made_with)])
    told = f"made on .*{'Old' if older else 'z80'}.*may differ in their last bits"
    with pytest.warns(UserWarning, match=told):
        run_sweep(many(3, replicas=3), tmp_path, **HOW)
    assert cpu_of(provenance()) != provenance()["platform"]
    assert cpu_of(provenance()).startswith(provenance()["platform"].split()[-1])


def test_many_foreign_files_are_a_number_and_the_first_few(sweep, tmp_path):
    blocks = tmp_path / "out" / "blocks"
    blocks.mkdir(parents=True)
    for number in range(84):
        (blocks / f"{number:02d}.parquet").touch()
    code, out, _ = sweep("--resume")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "left alone" in line]
    assert line.endswith("02.parquet and 81 more")
    assert line.count("parquet") == 3
