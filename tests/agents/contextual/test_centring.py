"""Private centring: worth nothing where the middle is right, and much where it is not."""

import pickle
from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import FADE, Uniform
from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit, OJPricing
from dpbandit.experiments import CASES
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec

P1 = CASES["contextual/p1"].env_kwargs
SPEC = ContextualSpec(n_actions=2, dim=3, horizon=2_000, reward_low=0.0, reward_high=10.0)


class GenerousRange(GLMBandit):
    """Rewards within +-0.4 of 0 whose public range is said to be [-6, 1.2]."""

    def __post_init__(self):
        super().__post_init__()
        self.spec = replace(self.spec, reward_low=-6.0)


def final(problem, config):
    return play(problem(**P1, horizon=10_000), config, range(6), marks=[10_000]).regret[-1]


def test_rewards_off_the_middle_are_learned_by_default():
    """Paired over 6 replicas. With a middle below all rewards every sign is +: "public" is
    within 5 standard errors of uniform play; by default at most 40 % of that is lost, by 6 standard
    errors (false alarm 1e-3); where the middle is told right the agent is the same, byte for byte,
    and a centre that is asked for all the same costs under 20 %."""
    blind = final(GenerousRange, FADE(delta=1e-4, centring="public"))
    uniform = final(GenerousRange, Uniform())
    learned = final(GenerousRange, FADE(delta=1e-4))
    gap = blind - uniform
    assert abs(gap.mean()) < 5 * gap.std(ddof=1) / sqrt(6)
    gain = 0.4 * uniform - learned
    assert gain.mean() > 6 * gain.std(ddof=1) / sqrt(6)
    plain, public = (FADE(delta=1e-4, **more) for more in ({}, {"centring": "public"}))
    spec = GLMBandit(**P1, horizon=10_000).spec
    one, two = (pickle.dumps(config.make(spec, Streams([0]))) for config in (plain, public))
    assert one == two
    plain = final(GLMBandit, plain)
    careful = final(GLMBandit, FADE(delta=1e-4, centring="private"))
    assert careful.mean() < 1.2 * plain.mean()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_certificate_is_the_claim(epsilon):
    """mu^2 is split 96 : 4, and both parts stand in the ledger."""
    config = FADE(epsilon=epsilon, delta=1e-5, centring="private", model="moments")
    proof = certify(config, SPEC, accountants=False)
    assert proof.holds
    assert proof.epsilon == pytest.approx(epsilon, rel=1e-4)
    parts = [spend.mu**2 for spend in config.make(SPEC, Streams([0])).ledger.spends]
    assert parts[1] / sum(parts) == pytest.approx(0.04, rel=1e-3)
    assert sum(parts) <= mu_of(epsilon, 1e-5) ** 2


def test_the_centre_is_the_mean_once_that_is_sure():
    """Golden: rewards 1 to 3 of [0, 10] at epsilon = inf: after 50 rounds the centre is their mean,
    2, and it stays in the middle, 5, before."""
    agent = FADE(epsilon=inf, centring="private", model="moments").make(SPEC, Streams([0, 1]))
    assert isinstance(agent, PrivatelyCentred)
    for t in range(50):
        np.testing.assert_array_equal(agent._centre, 5.0)
        agent.update(np.ones((2, 3)), np.zeros(2, dtype=int), np.full(2, 1.0 + t % 3))
    np.testing.assert_allclose(agent._centre, 2.0, atol=0.02)


def test_prices_have_a_demand_model_instead():
    with pytest.raises(InputError, match="here it is prices"):
        FADE(centring="private").make(OJPricing().spec, Streams([0]))
