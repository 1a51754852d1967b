"""Agents and problems in whatever form people have them at hand, and replicas in processes."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

import dpbandit
from dpbandit import InputError
from dpbandit.agents import DPUCB, FADE, LinUCB
from dpbandit.auditing.audit import audit
from dpbandit.envs import GLMBandit
from dpbandit.running.given import agents_given, problem_given, spec_given
from tests.each import each

MADE = {"n_actions": 3, "horizon": 40}


@pytest.mark.parametrize(
    "env",
    [
        "GLMBandit",
        GLMBandit,
        GLMBandit(**MADE),
        lambda **arguments: GLMBandit(**arguments),
        pytest.param("gym.make", id="gym.make"),
        pytest.param("gym.make_vec", id="gym.make_vec"),
    ],
)
def test_every_form_of_a_problem_is_the_same_problem(env):
    """Same users, same regrets, whatever names them; what is an object has arguments of its own."""
    if env == "gym.make":
        env = gym.make("dpbandit/GLMBandit-v0", **MADE)
    elif env == "gym.make_vec":
        env = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2, **MADE)
    known = isinstance(env, str) or callable(env)
    how = {"horizon": 40, "env_kwargs": {"n_actions": 3}} if known else {}
    found = dpbandit.compare(env, LinUCB(), replicas=2, progress=False, **how)
    right = dpbandit.compare(
        "dpbandit/GLMBandit-v0",
        {"LinUCB": LinUCB()},
        horizon=40,
        replicas=2,
        env_kwargs={"n_actions": 3},
        progress=False,
    )
    np.testing.assert_array_equal(found["LinUCB"].runs[0].regret, right["LinUCB"].runs[0].regret)
    assert spec_given(env, **how) == right_spec()


def made():
    return gym.make("dpbandit/GLMBandit-v0", **MADE)


def right_spec():
    return GLMBandit(**MADE).spec


def test_agents_by_ids_configs_lists_and_names():
    two = FADE(epsilon=2.0)
    assert agents_given("linucb,fade:epsilon=2") == {"linucb": LinUCB(), "fade:epsilon=2": two}
    assert agents_given(two) == {"FADE": two}
    assert agents_given([FADE(), two, LinUCB()]) == {
        "FADE": FADE(),
        "FADE(epsilon=2.0)": two,
        "LinUCB": LinUCB(),
    }
    assert agents_given({"mine": "fade:epsilon=2"}) == {"mine": two}


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
        (lambda: agents_given([3]), "Expected agent 3 to be a config"),
        (lambda: agents_given(7), "Expected agent 7 to be a config"),
        (lambda: agents_given(FADE), "Expected agent <class .*> to be a config"),
        (lambda: agents_given("fade,fade"), "Expected every agent once: fade is there twice"),
        (lambda: agents_given([FADE(), FADE()]), "Expected every agent once: FADE is there twice"),
        (lambda: agents_given({1: FADE()}), "Expected agents to have words for names, got 1"),
        (lambda: agents_given("fad"), "did you mean fade"),
        (lambda: problem_given(3), "Expected env=3 to be an id"),
        (lambda: problem_given(Unnamed()), "to be an id"),
        (lambda: problem_given(NoDataclass()), "to be an id, a class, or a problem"),
        (lambda: problem_given("GLMBandit", env_kwargs={"horizon": 3}), "not among env_kwargs"),
        (lambda: dpbandit.forget("fade", "GLMBandit", user=1, env_kwargs=3), "=3 to be a dict"),
        (lambda: problem_given(gym.wrappers.TimeLimit(made(), 5)), "got one in TimeLimit"),
        (lambda: spec_given(right_spec(), horizon=3), "with an environment, got a spec"),
        (lambda: dpbandit.compare("GLMBandit", "fade", jobs=0), "Expected jobs=0"),
    ],
)
def test_what_is_neither_gets_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_certify_and_audit_take_what_compare_takes():
    proof = dpbandit.certify("dp-ucb:epsilon=2", "OJPricing", horizon=50, accountants=False)
    spec = spec_given("OJPricing", horizon=50)
    assert proof == dpbandit.certify(DPUCB(epsilon=2.0), spec, accountants=False)
    report = audit("dp-ucb", "GLMBandit", horizon=3, runs=400, progress=False)
    assert "horizon=3" in report.problem
    assert repr(report) == str(report)


def test_no_number_depends_on_how_many_processes_there_are():
    """Five replicas by two processes, blocks of 3 and 2, the oracle's answers among them."""
    one, two = (
        dpbandit.compare("GLMBandit", "fade", horizon=30, replicas=5, jobs=jobs, progress=False)
        for jobs in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert (a.name, a.certificate) == (b.name, b.certificate)
        for what in ("regret", "reward", "switches", "replicas", "clipped"):
            np.testing.assert_array_equal(getattr(a, what), getattr(b, what))
