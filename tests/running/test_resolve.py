"""Agents and problems in whatever form people have them at hand: what they mean, or one sentence.

And what is told on the way, and replicas in processes.
"""

import warnings
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

import dpbandit
from dpbandit import audit, compare, play
from dpbandit.agents import (
    AGENTS,
    DPHDB,
    DPUCB,
    FADE,
    DPHDBChoices,
    Guard,
    LinUCB,
    Mapped,
    Priced,
    ShariffSheffetUCB,
)
from dpbandit.base import processes
from dpbandit.envs import GLMBandit
from dpbandit.running import loop
from dpbandit.running.resolve import resolve_agents, resolve_problem, resolve_spec
from dpbandit.running.settings import parse_agent
from dpbandit.studies import Sweep, plan
from tests.each import each, in_turn, refused
from tests.suite.strangers import Ends

GLM, MADE = "dpbandit/GLMBandit-v0", {"n_actions": 3, "horizon": 40}
SPEC = GLMBandit(**MADE).spec
HOW = {"horizon": 40, "env_kwargs": {"n_actions": 3}}


def test_every_form_of_a_problem_is_the_same_problem():
    """Same users, same regrets, whatever names them, in comparisons and play, at any marks; what is
    an object has arguments of its own."""
    named = (
        "GLMBandit",
        "GLMBandit-v0",
        f"dpbandit:{GLM}",
        GLMBandit,
        lambda **how: GLMBandit(**how),
    )
    made = GLMBandit(**MADE), gym.make(GLM, **MADE), gym.make_vec(GLM, num_envs=2, **MADE)
    right = compare(GLM, {"mine": LinUCB()}, replicas=2, progress=False, **HOW).runs[0].regret
    for env, how in [*((env, HOW) for env in named), *((env, {}) for env in made)]:
        found = compare(env, LinUCB(), replicas=2, progress=False, **how)["LinUCB"].runs[0]
        np.testing.assert_array_equal(found.regret, right)
        for marks, rounds in ((None, slice(None)), ([10, 30], [9, 29])):
            log = play(env, "linucb", [(0, 0), (0, 1)], marks=marks, **how)
            np.testing.assert_array_equal(log.regret, right[rounds])
        assert resolve_spec(env, **how) == SPEC


def test_agents_by_ids_configs_lists_and_names():
    two = FADE(epsilon=2.0)
    assert resolve_agents("linucb,fade:epsilon=2") == {"linucb": LinUCB(), "fade:epsilon=2": two}
    assert resolve_agents(two) == {"FADE": two}
    several = {"FADE": FADE(), "FADE(epsilon=2.0)": two, "LinUCB": LinUCB()}
    assert resolve_agents([FADE(), two, LinUCB()]) == several
    assert resolve_agents({"mine": "fade:epsilon=2"}) == {"mine": two}
    proof = dpbandit.certify("dp-ucb:epsilon=2", "OJPricing", horizon=50, accountants=False)
    spec = resolve_spec("OJPricing", horizon=50)
    assert proof == dpbandit.certify(DPUCB(epsilon=2.0), spec, accountants=False)
    report = audit("dp-ucb", "GLMBandit", horizon=3, runs=400, progress=False)
    assert "horizon=3" in report.problem
    assert repr(report) == str(report)


def test_a_name_is_its_agent_and_as_printed_the_papers_algorithm():
    """In words, behind other words and in a sweep, silently. It would catch the word going to our
    own algorithm, whose noise is another, and a warning."""
    with warnings.catch_warnings(action="error"):
        for agent, kind in AGENTS.items():
            assert parse_agent(agent) == kind()
        priced = Priced(AGENTS["linucb"](alpha=2.0), explore=7)
        assert parse_agent("priced:LinUCB:alpha=2:explore=7", epsilon=1.0) == priced
        assert parse_agent("priced:dp-ucb", epsilon=3.0).epsilon == 3.0
        printed = ShariffSheffetUCB(calibration="paper", noise="wishart", epsilon=0.5)
        assert parse_agent("DP_UCB:calibration=paper:noise=wishart", epsilon=0.5) == printed
        paper = ShariffSheffetUCB(calibration="paper")
        assert parse_agent("guarded:priced:dp-ucb:calibration=paper") == Guard(Priced(paper))
        innermost = Mapped(paper, basis="products")
        text = "guarded:priced:mapped:dp-ucb:calibration=paper:basis=products"
        assert parse_agent(text) == Guard(Priced(innermost))
        choices = DPHDBChoices(calibration="paper", bound="exact")
        assert parse_agent("dp-hdb:calibration=paper:bound=exact") == choices
        agents = [{"id": "dp-ucb", "grid": {"calibration": ["paper", "certified"]}}]
        sweep = {"environments": [{"id": "OJPricing"}], "agents": agents, "epsilons": [1.0]}
        played = {one.name: one.config for one in plan(Sweep.of(sweep)).configurations}
        assert played["dp-ucb calibration=paper"] == paper
        assert played["dp-ucb calibration=certified"] == DPUCB()


@dataclass
class Unnamed:
    horizon: int = 5


class NoDataclass:
    spec = None

    def step(self, action):
        raise NotImplementedError


@each(
    ("call", "sentence"),
    [
        (
            lambda: resolve_agents([FADE(), FADE()]),
            "Expected every agent once: FADE is there twice",
        ),
        (lambda: resolve_problem(Unnamed()), "to be an id"),
        (lambda: resolve_problem(NoDataclass()), "to be an id, a class, or a problem"),
        (lambda: compare("GLMBandit", "fade", env_kwargs=3), "=3 to be a dict"),
        (lambda: resolve_spec(SPEC, horizon=3), "with an environment, got a spec"),
        (lambda: play("GLMBandit", "fade", []), "at least one seed"),
        (lambda: play("GLMBandit", "fade", marks=9), "marks=9 to be rounds, such as"),
        (lambda: play("GLMBandit", "fade", marks=[0.5]), "to be rounds"),
        (lambda: play("GLMBandit", "fade", marks=[9, 3]), "marks=.9, 3. to increase from 1"),
        (lambda: play("GLMBandit", "best-fixed", **HOW), "needs an answer to play"),
        (lambda: play(GLMBandit(), "fade", horizon=5), "with an environment, got a problem"),
        (lambda: play("fade", "GLMBandit"), "'GLMBandit': certify and audit take the agent first"),
        (lambda: play(3, "fade"), "Expected env=3 to be an id"),
        (lambda: compare(GLM, "linucb", on_mark=3), "on_mark=3 to be a function"),
        (lambda: compare(GLM, "linucb", jobs=2, on_mark=print), "jobs=2 to be 1"),
        (lambda: DPUCB(calibration="paper"), r"its paper is ShariffSheffetUCB\(calibration='pape"),
        (lambda: DPHDB(calibration="paper"), r"its paper is DPHDBChoices\(calibration='paper'\)"),
    ],
)
def test_what_is_neither_gets_one_sentence(call, sentence):
    refused(sentence, call)


@each(
    ("text", "sentence"),
    [
        ("linucb:model=demand", "setting of linucb='model' to be one of"),
        ("dp-hdb:calibration=papr", r"calibration='papr' \(did you mean paper\?\)"),
        ("dp-ucb:noise=wishart", r"setting of dp-ucb='noise' .* calibration"),
        ("dp-ucb:calibration=paper:shift=2", "setting of shariff-sheffet-ucb='shift'"),
        ("priced:linucb:features=all", "one of additive, interactions"),
        ("priced:linucb:turns=1", "setting of priced:linucb='turns'.*, features, explore"),
        ("priced:", "an agent behind per-person:, guarded"),
        ("priced:dp-hdb:subset_gap=0.5", "subset_gap=0.5 to be inf for a model of demand"),
    ],
)
def test_wrong_words_get_one_sentence(text, sentence):
    refused(sentence, parse_agent, text)


def test_callbacks_are_told_at_every_mark_what_results_say():
    """All agents, by their names, all replicas; the callback cannot change results."""
    told = []

    def see(mark):
        told.append((mark.agent, mark.round, mark.regret.copy(), mark.first_replica))
        mark.regret[...] = -1.0

    results = compare("GLMBandit", {"mine": "linucb"}, horizon=30, replicas=3, on_mark=see)
    for run in results.runs:
        marks = [(t, regret) for name, t, regret, first in told if name == run.name]
        assert [t for t, _ in marks] == run.marks.tolist()
        np.testing.assert_array_equal([regret for _, regret in marks], run.regret)
    assert {first for *_, first in told} == {0}
    alone = []
    play("GLMBandit", "linucb", range(2), horizon=9, marks=np.array([3, 9]), on_mark=alone.append)
    assert [(mark.agent, mark.round) for mark in alone] == [("LinUCB", 3), ("LinUCB", 9)]


@in_turn(1, 2)
def test_no_number_depends_on_processes_and_batches(monkeypatch):
    """Two processes, batches of 3 and 2 replicas, the oracle's answers among them; an agent that
    ends its process is told, and all others are kept."""
    how = {"horizon": 30, "replicas": 5, "progress": False}
    one = compare("GLMBandit", "fade", **how)
    alone = play("GLMBandit", "fade", [(0, r) for r in range(5)], horizon=30)
    monkeypatch.setattr(loop, "_MAX_REPLICAS_TOGETHER", 3)
    monkeypatch.setattr(processes, "_START_SECONDS", -1.0)  # however short the run
    with pytest.warns(UserWarning, match="Ends ended its process .*3"):
        two = compare("GLMBandit", f"fade,{Ends.__module__}:Ends", jobs=2, **how)
    batches = play("GLMBandit", "fade", [(0, r) for r in range(5)], horizon=30)
    for a, b in zip(one, two, strict=True):
        assert (a.name, a.certificate) == (b.name, b.certificate)
        for what in ("regret", "reward", "switches", "replicas", "clipped"):
            np.testing.assert_array_equal(getattr(a, what), getattr(b, what))
    for what in ("regret", "reward", "switches", "best_fixed", "clipped"):
        np.testing.assert_array_equal(getattr(alone, what), getattr(batches, what))
