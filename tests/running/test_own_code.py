"""Agents and problems of users' own code: by name everywhere; errors are one sentence."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from dpbandit import Agent, Arms, Chance, PrivateAgent, certify, compare
from dpbandit.agents import FADE, UCB1, Guard
from dpbandit.base import Streams, described
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.privacy import no_privacy
from dpbandit.running.resolve import resolve_agents, resolve_problem
from dpbandit.specs import ContextualSpec
from dpbandit.studies import Sweep, plan
from tests.each import each, refused


@dataclass(frozen=True, kw_only=True)
class Mine:
    """Always the same arm."""

    arm: int = 0

    def make(self, spec, streams):
        return Running(self.arm, len(streams))


class Running:
    def __init__(self, arm, replicas):
        self.ledger, self._arm, self._R = no_privacy("an exercise"), arm, replicas

    def act(self, context):
        return np.full(self._R, self._arm)

    def update(self, context, action, reward):
        pass


class Beginner(PrivateAgent, Arms):
    """Lacks whatever it can lack."""

    share: Chance = 0.1


class NoLedger(Beginner):
    def start(self):
        pass


@dataclass(frozen=True, kw_only=True)
class WithoutDefault(Mine):
    path: str
    hint: str = "no part of a message"


@dataclass(frozen=True, kw_only=True)
class ForTypeCheckers(Mine):
    """Config with an annotation that does not exist at run time."""

    law: "Law | None" = None  # noqa: F821


class NoDataclass:
    def make(self, spec, streams):
        return Running(0, len(streams))


class NoConfig:
    """Class without a method `make`."""


@dataclass
class Shop(ContextualProblem):
    """Two arms, half of whose users are glad."""

    horizon: int = 10

    def __post_init__(self):
        self.spec = ContextualSpec(n_actions=2, dim=2, horizon=self.horizon)

    def _start(self, streams: Streams):
        self._R, self._uniforms = len(streams), streams.uniforms("luck", 2)

    def _users(self, count):
        halves = np.full((count, self._R, 2), 0.5)
        return Users(halves, halves, 1.0 * (self._uniforms.take(count) < 0.5))


@dataclass(kw_only=True)
class ShopOfPath(Shop):
    path: str


def agent(**parts):
    """A config whose running agent has other methods; `make` is the config's own."""
    kind = type("Odd", (Running,), {key: part for key, part in parts.items() if key != "make"})
    make = parts.get("make", lambda self, spec, streams: kind(0, len(streams)))
    return dataclass(frozen=True)(type("Own", (), {"make": make}))()


def shop(**parts):
    """A class of problems with other methods."""
    return type("Kiosk", (Shop,), parts)


SPEC = ContextualSpec(n_actions=2, dim=2, horizon=10)
OWN = "tests.running.test_own_code"
HALVES = np.full((5, 2, 2), 0.5)


def test_an_agent_of_one_s_own_by_its_class(run):
    """With settings, behind words, in comparisons, certificates, commands and sweeps; annotations
    may be known to type checkers alone."""
    assert resolve_agents(f"{OWN}:Mine,{OWN}:Mine:arm=1") == {
        f"{OWN}:Mine": Mine(),
        f"{OWN}:Mine:arm=1": Mine(arm=1),
    }
    assert resolve_problem(f"{OWN}:Shop").make(horizon=7).spec == Shop(horizon=7).spec
    assert certify(f"{OWN}:Mine", f"{OWN}:Shop", accountants=False).epsilon == np.inf
    (config,) = resolve_agents(f"{OWN}:ForTypeCheckers:arm=1").values()
    assert compare(Shop, config, horizon=4, replicas=1, progress=False).runs[0].config["arm"] == 1
    assert [one.name for one in described(type(config))] == ["arm", "law"]

    words = ["compare", f"{OWN}:Shop", "--agents", f"{OWN}:Mine:arm=1", "--horizon", "5"]
    code, said, _ = run(*words, "--replicas", "1")
    assert code == 0
    assert "Mine:arm=1" in said.replace("\n", "")

    guarded = {"id": "guarded:fade", "settings": {"rate": 0.1}, "grid": {"fade": [0.2, 0.4]}}
    values = {"environments": [{"id": f"{OWN}:Shop"}], "horizons": [9], "epsilons": [2.0]}
    values["agents"] = [{"id": f"{OWN}:Mine", "grid": {"arm": [0, 1]}}, guarded]
    configurations = plan(Sweep.of(values)).configurations
    found = {one.name: one.config for one in configurations}
    assert found[f"{OWN}:Mine arm=1"] == Mine(arm=1)
    assert found["guarded:fade rate=0.1 fade=0.4"] == Guard(FADE(epsilon=2.0, fade=0.4), rate=0.1)
    assert all(isinstance(one.problem(), Shop) for one in configurations)


def on(env, agents="linucb"):
    return lambda: compare(env, agents, horizon=5, replicas=2, progress=False)


def plays(**parts):
    return on("GLMBandit", agent(**parts))


def draws(users):
    return on(shop(_users=lambda self, count: users))


MISTAKES = {
    "no such class": (on(Shop, f"{OWN}:Mind"), "test_own_code='Mind' .did you mean Mine"),
    "no such module": (on(Shop, "nowhere:Mine"), "nowhere'; run this in the folder of nowhere.py"),
    "a module that fails": (on(Shop, "this_is.broken:Mine"), "Cannot import 'this_is.broken'"),
    "a file": (on(Shop, "own.py:Mine"), "a module, not a file: own:NAME"),
    "a path": (on(Shop, "./own.py:Mine"), "a module, not a file: own:NAME"),
    "an unknown setting": (on(Shop, f"{OWN}:Mine:arms=1"), "'arms' .did you mean arm"),
    "a setting without a value": (on(Shop, f"{OWN}:WithoutDefault"), ":path=VALUE: .* default.$"),
    "a class that is no config": (on(Shop, f"{OWN}:NoConfig"), "NoConfig of .* of dpbandit.Agent"),
    "no such environment": (on(f"{OWN}:Shap"), "='Shap' .did you mean Shop.. to be one of"),
    "an agent for an environment": (on(f"{OWN}:Mine"), "environment of .*='Mine'"),
    "a file of environments": (on("own.py:Shop"), "a module, not a file"),
    "a config that is no dataclass": (
        on(Shop, NoDataclass()),
        "NoDataclass.*of dpbandit.Agent",
    ),
    "the class of a config": (on(Shop, Mine), r"to be a config, such as Mine\(\)"),
    "a config without make": (plays(make=None), "agent Own.. to be a config"),
    "a running agent": (on(Shop, Running(0, 2)), "config, .*, not the agent that its make ret"),
    "one of ours": (on(Shop, UCB1().make(SPEC, Streams([0]))), "not the agent that its make ret"),
    "make without streams": (plays(make=lambda self, spec: 0), r"of Own .*, it takes \(spec\)"),
    "make returns nothing": (plays(make=lambda self, spec, streams: None), "make of Own to return"),
    "make returns something": (
        plays(make=lambda *given: 3),
        r"have a method act\(context\), got a int",
    ),
    "no ledger": (
        plays(make=lambda *_: SimpleNamespace(act=lambda x: 0, update=lambda x, a, r: None)),
        "agent of Own to have a Ledger, got ledger=None: let start set",
    ),
    "no start": (on(Shop, Beginner()), r"Expected Beginner to define start\(self\), which sets"),
    "no ledger after start": (on(Shop, NoLedger()), "let start set self.ledger = ledger_of"),
    "a setting out of its range": (lambda: Beginner(share=2.0), r"share=2.0 to be .*\[0, 1\]"),
    "a target of the base": (lambda: Beginner(delta=0.0), "delta=0.0"),
    "an __init__": (
        lambda: type("Set", (Agent,), {"__init__": lambda self: None}),
        r"Set to have no __init__: annotate settings",
    ),
    "a base class": (on(Shop, "dpbandit.agent:Arms"), "Expected Arms to define start"),
    "a class among base classes": (
        on(Shop, f"{OWN}:beginner"),
        "'beginner' .did you mean Beginner",
    ),
    "no act": (plays(act=None), r"to have a method act\(context\), got a Odd"),
    "act of nothing": (plays(act=lambda self: 0), r"act of Odd to take \(context\), it takes \(\)"),
    "no update": (plays(update=None), r"to have a method update\(context, action, feedback\)"),
    "update of two": (plays(update=lambda self, x, r: 0), r"update of Odd .*it takes \(x, r\)"),
    "act returns nothing": (plays(act=lambda self, x: None), "got None, from act of Odd"),
    "one action for all": (plays(act=lambda self, x: 0), r"\(2,\), got \(\), from act of Odd"),
    "an arm too many": (plays(act=lambda self, x: x[:, 0] * 0 + 9), r"\), got 9, from act of Odd"),
    "scores for actions": (plays(act=lambda self, x: x), r"\(2,\), got \(2, 5\), from act"),
    "a problem without its argument": (on(ShopOfPath), "among env_kwargs .--set path=VALUE."),
    "no horizon": (on(shop(__init__=lambda self: None)), r"take \(horizon=...\), it takes \(\)"),
    "no spec": (on(shop(__post_init__=lambda self: None)), "Kiosk to make .* Kiosk with spec None"),
    "a function that returns nothing": (on(lambda horizon: None), "make a problem .* got None"),
    "no class of problems": (on(dict), "dict to make a problem whose spec is a Spec"),
    "no hindsight": (on(shop(hindsight=None)), r"Kiosk to have a method hindsight\(\)"),
    "step of nothing": (on(shop(step=lambda self: 0)), r"step of Kiosk to take \(action\)"),
    "step returns nothing": (on(shop(step=lambda self, a: None)), "step to return a Step, got"),
    "_users of nothing": (on(shop(_users=lambda self: 0)), r"_users of Kiosk to take \(count\)"),
    "_users returns nothing": (draws(None), r"_users of Kiosk to return Users\(.* got None"),
    "_users returns a tuple": (draws((HALVES, HALVES)), "_users of Kiosk to return .* got a tuple"),
    "no replicas": (
        draws(Users(HALVES[:, 0], HALVES, HALVES)),
        r"context .*\(n, 2, 2\), got \(5, 2\)",
    ),
    "replicas first": (draws(Users(*[HALVES.swapaxes(0, 1)] * 3)), r"context .*got \(2, 5, 2\)"),
    "no arms": (draws(Users(HALVES, HALVES[..., 0], HALVES)), r"mean .*\(5, 2, 2\), got \(5, 2\)"),
    "lists": (draws(Users(HALVES, HALVES, HALVES.tolist())), "reward .*an array, got a list"),
    "no users": (draws(Users(*[HALVES[:0]] * 3)), r"shape \(n, 2, 2\), n >= 1, got \(0, 2, 2\)"),
    "no _start": (on(shop(_start=lambda self: 0)), r"_start of Kiosk to take \(streams\), it tak"),
}


@each("mistake", MISTAKES)
def test_what_is_wrong_with_own_code_is_one_sentence(mistake):
    """It names the method, its shape and what was expected."""
    call, sentence = MISTAKES[mistake]
    assert len(refused(sentence, call)) < 400
