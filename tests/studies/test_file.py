"""Sweep files: what is written is what is run, and a mistake is one sentence."""

import json
import sys
from math import inf
from pathlib import Path

import pytest

from dpbandit import InputError
from dpbandit.running.compare import certify
from dpbandit.studies import Configuration, Sweep, plan
from tests.each import each
from tests.studies.studies import TINY, many

EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "sweeps").glob("*.toml"))


def changed(**values):
    return {**TINY, **values}


@each(
    ("values", "sentence"),
    [
        ({"replica": 3}, "Unknown key replica .*did you mean replicas"),
        ({"agents": [{"id": "linucb", "setings": {}}]}, r"agents.0.setings .*mean settings"),
        ({"environments": [{"id": "GLMBandit", "args": {}}]}, "environments.0.args"),
        ({"audit": {"run": 500}}, "audit.run .*mean runs"),
        ({"epsilons": [0.0]}, "epsilons.0=0.0"),
        ({"epsilons": []}, "epsilons"),
        ({"deltas": [1.0]}, "deltas.0=1.0"),
        ({"horizons": [0]}, "horizons.0=0"),
        ({"horizons": [10**22]}, "horizons.0=10000.* <= 1000000000"),
        ({"audit": {"horizon": 10**10}}, "audit.horizon=10000000000"),
        ({"replicas": 0}, "replicas=0"),
        ({"replicas": 2.5}, "replicas=2.5"),
        ({"seed": -1}, "seed=-1"),
        ({"agents": [{}]}, "agents.0.id in .*missing"),
        ({"agents": [{"id": "linucp"}]}, "did you mean linucb"),
        ({"agents": [{"id": "linucb", "settings": {"alpa": 1}}]}, "did you mean alpha"),
        ({"agents": [{"id": "linucb", "settings": {"alpha": -1}}]}, "alpha=-1"),
        ({"agents": [{"id": "hedge"}]}, "plays"),
        ({"seed": True}, "seed=True"),
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
)
def test_a_mistake_is_one_sentence_before_the_first_round(values, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        plan(Sweep.of(changed(**values)))
    assert "\n" not in str(error.value)


def test_files_are_read_and_their_mistakes_told(tmp_path):
    good = tmp_path / "a.toml"
    good.write_text('[[environments]]\nid = "GLMBandit"\n[[agents]]\nid = "linucb"\n')
    assert Sweep.read(good).replicas == 20
    (tmp_path / "b.toml").write_text("replicas = \n")
    for name, sentence in (("b.toml", "to be TOML"), ("c.toml", "Cannot read")):
        with pytest.raises(InputError, match=sentence):
            Sweep.read(tmp_path / name)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    """As some editors on Windows write it."""
    file = tmp_path / "a.toml"
    text = 'replicas = 3\n[[environments]]\nid = "GLMBandit"\n[[agents]]\nid = "linucb"\n'
    file.write_text(text, encoding="utf-8-sig")
    assert Sweep.read(file).replicas == 3


def test_a_plan_by_hand():
    """Every combination once; agents without a target once, not once for each epsilon."""
    found = plan(Sweep.of(TINY)).configurations
    assert len(found) == 30
    assert len({one.key for one in found}) == 30
    one = [c for c in found if c.setup.problem == "juice" and c.setup.horizon == 40]
    names = [(c.name, getattr(c.config, "epsilon", None)) for c in one]
    private = "shariff-sheffet-ucb alpha=2.0 calibration=paper"
    assert names == [
        ("Lin", None),
        (private, 0.5),
        (private, 2.0),
        ("Uniform", None),
        ("BestFixed", None),
    ]
    assert {c.setup.problem for c in found} == {
        "juice",
        "GLMBandit noise=0.2 dim=2",
        "GLMBandit noise=0.2 dim=3",
    }
    assert len(plan(many(50)).configurations) == 50


@pytest.mark.parametrize(
    ("values", "targets"),
    [
        ({"epsilons": [1, inf], "deltas": [0.1, 0.2]}, [(1, 0.1), (1, 0.2), (inf, 0.1)]),
        ({"grid": {"epsilon": [1, inf]}, "deltas": [0.1, 0.2]}, [(1, 0.1), (1, 0.2), (inf, 0.1)]),
        ({"grid": {"delta": [0.3, 0.4]}, "epsilons": [inf]}, [(inf, 0.3)]),
    ],
    ids=["of the sweep", "epsilons of an agent", "deltas of an agent"],
)
def test_without_noise_there_is_no_delta(values, targets):
    """A run without noise comes once, with the first delta, not the same run for each of them."""
    agent = {"id": "fade", "grid": values.pop("grid", {})}
    environments = [{"id": "OJPricing"}]
    sweep = Sweep.of(changed(agents=[agent], environments=environments, horizons=[9], **values))
    found = [one.config for one in plan(sweep).configurations if one.name == "fade"]
    assert [(config.epsilon, config.delta) for config in found] == targets


def test_agents_that_fit_nowhere_are_refused_and_others_left_out_on_request():
    """What is left out is said once, whatever the number of targets, with the reason."""
    agents = [{"id": "priced:linucb"}, {"id": "priced:dp-ucb", "label": "demand"}, {"id": "linucb"}]
    sweep = Sweep.of(changed(agents=agents, horizons=[9], leave_out_unfit=True))
    with pytest.warns(UserWarning, match="Left out where they do not fit") as said:
        found = plan(sweep).configurations
    (told,) = said
    assert str(told.message).count("demand on GLMBandit noise=0.2 dim=2 (") == 1
    on = {name: {c.setup.problem for c in found if c.name == name} for name in ("demand", "linucb")}
    assert on["demand"] == {"juice"} < on["linucb"]
    for wrong, asked in ((agents, False), ([{"id": "hedge"}], True)):
        with pytest.raises(InputError, match=r"priced:linucb on GLMBandit|hedge on juice"):
            plan(Sweep.of(changed(agents=wrong, leave_out_unfit=asked)))


def test_planning_certifies_nothing_and_playing_once(monkeypatch):
    """Some noise takes longer to certify than to play: not in plans, not for each block anew."""
    asked = []

    def counted(config, spec, **how):
        asked.append(config)
        return certify(config, spec, **how)

    monkeypatch.setattr(sys.modules[Configuration.__module__], "certify", counted)
    one = plan(Sweep.of(changed(seed=12345))).configurations[1]
    assert not asked
    proofs = [one.play(r, r + 1).certificate for r in range(3)]
    assert asked == [one.config]
    assert proofs == 3 * [certify(one.config, one.problem().spec, accountants=False)]


def test_a_long_plan_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("dpbandit.base.progress.PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    plan(Sweep.of(TINY), progress=True)
    assert "planning" in capsys.readouterr().err


def test_names_tell_what_differs():
    """Settings make names; a label and a grid together do, too; baselines are called the same."""
    twice = [{"id": "linucb"}, {"id": "linucb", "settings": {"alpha": 1.0}}, {"id": "uniform"}]
    worlds = [{"id": "GLMBandit", "label": "g", "grid": {"dim": [2, 3]}}]
    found = plan(Sweep.of(changed(agents=twice, environments=worlds, horizons=[9]))).configurations
    names = ["linucb", "linucb alpha=1.0", "Uniform", "BestFixed"]
    assert [(c.setup.problem, c.name) for c in found] == [
        (problem, name) for problem in ("g dim=2", "g dim=3") for name in names
    ]


def test_spellings_of_an_environment_are_one():
    keys = [
        {one.key for one in plan(Sweep.of(changed(environments=[{"id": name}]))).configurations}
        for name in ("OJPricing", "dpbandit/OJPricing-v0")
    ]
    assert keys[0] == keys[1]


def test_the_schema_knows_every_key():
    """What an editor completes is what the program takes; a model's example passes its schema."""
    schema = Sweep.model_json_schema()
    assert set(TINY) | {"audit", "leave_out_unfit"} == set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_can_be_planned(file):
    assert len(plan(Sweep.read(file)).configurations) > 10
