"""Recommended agents play, cost the requested epsilon, and are no worse than random play."""

from contextlib import suppress
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from scipy.special import expit

import dpbandit
from dpbandit.base.inputs import InputError
from dpbandit.envs import Arms, ReferencePricing
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.running.recommend import recommend
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.specs.selling import PriceListSpec
from tests.each import by_rota, each, refused

REGISTERED = [env for env in dpbandit.ENVIRONMENTS if "FromLog" not in env and "Ratings" not in env]
"""The others need a file of one's own."""
WITHOUT_AGENT = ("Continuous", "Stock")
"""None of our private agents plays these, or no certificate covers them."""


@each("env", REGISTERED)
def test_what_is_recommended_plays_and_is_certified(env):
    """It would catch a problem without an agent, one that a certificate does not cover, and a
    recommendation without privacy that promises some."""
    public = recommend(env, inf, horizon=2_000)
    assert (public == "uniform") == ("Continuous" in env)
    epsilon = dpbandit.certify(public, env, horizon=2_000, accountants=False).epsilon
    assert epsilon in ((0,) if public == "uniform" else (0, inf))  # 0 uses nobody else's data
    agent = recommend(env, 0.5, horizon=2_000)
    if agent == "uniform":
        assert any(name in env for name in WITHOUT_AGENT)
    else:
        certificate = dpbandit.certify(agent, env, horizon=2_000, accountants=False)
        assert certificate.epsilon <= 0.5 * (1 + 1e-9)


def test_recommendations_follow_public_facts():
    """Arms without contexts are no arms of FADE, bold steps are for linear losses, nothing is for a
    world that tells users about others, and FADE chooses its model itself: caught is a second
    choice, of one model for a kind of problem. A problem is the same one with its defaults said, or
    as an object."""
    assert recommend("GLMBandit", inf, env_kwargs={"dim": np.int64(5)}) == "linucb"
    assert recommend(Arms(means="ten", horizon=16_384), 0.1) == "dp-imed:epsilon=0.1"
    told = {"n_actions": 10, "dim": 40, "horizon": 10_000}
    assert recommend(ContextualSpec(**told), 0.1) == "fade:epsilon=0.1"
    assert recommend(ContextualSpec(**told), 10) == "fade:epsilon=10"
    assert recommend(ContextualSpec(**told)) == "fade:epsilon=1"
    assert recommend(ContextualSpec(**told, link="other"), 2) == "fade:epsilon=2"
    assert recommend(ContextualSpec(**{**told, "dim": 1})) == "race-imed:epsilon=1"
    assert recommend("ConvexBandit") == "slope-bandit:epsilon=1"
    assert recommend("ConvexBandit", env_kwargs={"loss": "quadratic"}) == "slope-bandit:epsilon=1"
    assert recommend("StockPricing") == recommend(ReferencePricing(reference="paid")) == "uniform"
    ordered = {"oversold": "order"}
    assert recommend("StockPricing", env_kwargs=ordered) == "fade:epsilon=1"
    refused("epsilon=0", recommend, "Arms", 0)


@pytest.mark.parametrize("env", by_rota(REGISTERED, 5))
def test_nothing_recommended_is_worse_than_play_at_random(env):
    """At epsilon .1 the paired difference is at most two of its standard errors above 0. It would
    catch an agent that noise makes confident of the wrong."""
    agent = recommend(env, 0.1, horizon=2_500)
    if agent == "uniform":
        assert any(name in env for name in WITHOUT_AGENT)
        return
    results = dpbandit.compare(env, [agent], horizon=2_500, replicas=4, seed=4000)
    last = {run.name: run.regret[-1] for run in results.runs}
    uniform = last.pop("Uniform")
    more = next(iter(last.values())) - uniform
    assert more.mean() <= 2 * more.std(ddof=1) / 2 + 1e-9 * abs(uniform.mean())


@dataclass(kw_only=True, eq=False)
class Generated(ContextualProblem):
    """Draws arms or prices by a number; FADE's model is right for some of them."""

    number: int
    horizon: int = 2_000

    def __post_init__(self) -> None:
        draw = np.random.default_rng(4100 + self.number)
        self._K, self._d = int(draw.integers(2, 9)), int(draw.integers(2, 7))
        self._priced = self.number % 2 == 0
        self._kinds = draw.uniform(1.0, 2.8, 2)
        self._base, self._steep = draw.uniform(0.05, 0.6), draw.uniform(2, 12)
        self._theta = draw.standard_normal((self._K, self._d)) / np.sqrt(self._d)
        sizes = {"n_actions": self._K, "dim": self._d, "horizon": self.horizon, "link": "other"}
        self._prices = np.linspace(1.0, 3.0, self._K)
        self.spec = (
            PriceListSpec(**sizes, prices=tuple(self._prices), unit_cost=0.5, reward_high=2.5)
            if self._priced
            else ContextualSpec(**sizes)
        )

    def _start(self, streams) -> None:
        self._contexts = streams.uniforms("contexts", self._d - 1)
        self._uniforms = streams.uniforms("luck")

    def _users(self, count: int) -> Users:
        x = 2 * self._contexts.take(count) - 1
        context = np.concatenate([np.ones((*x.shape[:-1], 1)), x], axis=-1) / np.sqrt(self._d)
        uniforms = self._uniforms.take(count)[..., None]
        if self._priced:
            valuation = self._kinds[:, None, None, None] + 0.2 * x[..., :1]
            chance = expit(self._steep * (valuation - self._prices)).mean(axis=0)
            margin = self._prices - 0.5
            return Users(context, margin * chance, margin * (uniforms < chance))
        mean = np.clip(self._base + 0.3 * context @ self._theta.T, 0, 1)
        return Users(context, mean, 1.0 * (uniforms < mean))


@pytest.mark.parametrize("case", by_rota([*REGISTERED, *range(0, 30, 3)], 5))
def test_who_learns_little_says_so(case):
    """FADE, where it plays, and what is recommended: who is above .9 of play at random, or above
    1.5 of the best fixed action and a fifth of play at random, is warned of by its name."""
    env = Generated(number=case) if isinstance(case, int) else case
    spec_of = {} if isinstance(case, int) else {"horizon": 2_000}
    agents = {"recommended": recommend(env, 1.0, **spec_of)}
    if agents["recommended"] == "uniform":
        assert any(name in case for name in WITHOUT_AGENT)
        return
    with suppress(InputError):
        dpbandit.certify("fade", env, accountants=False, **spec_of)
        if agents["recommended"] != "fade:epsilon=1":
            agents["FADE"] = "fade"
    results = dpbandit.compare(env, agents, replicas=2, seed=4000, **spec_of)
    last = {run.name: run.regret[-1].mean() for run in results.runs}
    for name in agents:
        told = any(name in sentence for sentence in results.warnings)
        assert told or last[name] <= 0.9 * last["Uniform"]
        enough = max(1.5 * last["BestFixed"], 0.2 * last["Uniform"])
        assert told or last[name] <= enough
