"""BatchMoment: the specification's numbers, its batches, and one release a user."""

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import BatchMoment
from dpbandit.agents.contextual.moments import doubling_batches
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.experiments import CASES
from dpbandit.privacy.curves import mu_of
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec, PriceSpec

P1 = CASES["contextual/p1"].env_kwargs
SPEC = ContextualSpec(n_actions=2, dim=3, horizon=100, reward_low=-1.0)


def regret(config, *, replicas=50, seed=21, horizon=10_000, environment="GLMBandit", **env_kwargs):
    problem = problem_maker(environment)(horizon=horizon, **{**P1, **env_kwargs})
    seeds = [(seed, r) for r in range(replicas)]
    return play(problem, config, seeds, marks=log_marks(horizon)).regret


@dataclass(frozen=True)
class ExactSums:
    """Oracle: the same player on sums that no noise process ever touches."""

    config: BatchMoment

    def make(self, spec, streams):
        agent = self.config.make(spec, streams)
        agent._sums._normals = lambda: 0.0
        agent._sums.stddev = 0.0
        return agent


@pytest.mark.parametrize("n_actions", [2, 5])
def test_without_privacy_sums_are_exact_bit_for_bit(n_actions):
    """epsilon = inf draws its noise and scales it by 0: difference 0.0 to sums without any."""
    config = BatchMoment(epsilon=inf, first_batch=50)
    short = {"replicas": 5, "horizon": 900, "n_actions": n_actions}
    np.testing.assert_array_equal(regret(config, **short), regret(ExactSums(config), **short))


def release_rounds(config, spec):
    """The rounds after which its memory changes."""
    agent, rng = config.make(spec, Streams([0])), np.random.default_rng(0)
    found, before = [], agent._theta
    for t in range(1, spec.horizon + 1):
        x = rng.standard_normal((1, spec.dim))
        agent.update(x, agent.act(x), rng.choice([-1.0, 1.0], 1))
        if agent._theta is not before:
            found.append(t)
            before = agent._theta
    return found


def test_batches_double():
    """Golden: T0 = 500 ends 500, 1000, 2000, ..., the truncated last batch released by nobody."""
    assert doubling_batches(10_000, 500) == (500, 1000, 2000, 4000, 8000)
    assert doubling_batches(8000, 500) == (500, 1000, 2000, 4000)
    assert doubling_batches(8001, 500)[-1] == 8000
    assert doubling_batches(500, 500) == ()
    two = ContextualSpec(n_actions=2, dim=2, horizon=5001, reward_low=-1.0)
    assert release_rounds(BatchMoment(), two) == [500, 1000, 2000, 4000]
    three = ContextualSpec(n_actions=3, dim=2, horizon=10_001, reward_low=-1.0)
    assert release_rounds(BatchMoment(), three) == [1000, 2000, 4000, 8000]
    assert release_rounds(BatchMoment(), SPEC) == [20, 40, 80]  # at most a fifth of T
    assert release_rounds(BatchMoment(first_batch=300), SPEC) == []


@pytest.mark.parametrize("changed", [0, 9, 10, 45, 79, 80, 99])
def test_a_user_is_in_one_release(changed):
    """Without noise and with the same actions, changing one user changes the release of her batch
    only, by at most 2; a user of the last batch changes none."""

    def releases(flip):
        sums = BatchMoment(epsilon=inf, first_batch=10).make(SPEC, Streams([0]))._sums
        rng, found = np.random.default_rng(1), []
        for t in range(100):
            x, r = rng.standard_normal((1, 3)), rng.choice([-1.0, 1.0], 1)
            release = sums(x, np.array([0]), -r if t == changed and flip else r)
            if release is not None:
                found.append(release)
        return np.array(found)

    moved = np.linalg.norm((releases(True) - releases(False)).reshape(4, -1), axis=1)
    expected = np.zeros(4)
    if changed < 80:
        expected[np.searchsorted([10, 20, 40, 80], changed, side="right")] = 2.0
    np.testing.assert_allclose(moved, expected, atol=1e-12)


@pytest.mark.parametrize("n_actions", [2, 4])
def test_first_batch_and_ties_are_uniform(n_actions):
    """Statistical: 4,000 replicas before the first release, and of a context 0 after it; every arm
    within 5 standard errors of its share, false alarm 2e-5; and an x that ties nothing is played
    deterministically."""
    spec = ContextualSpec(n_actions=n_actions, dim=3, horizon=100, reward_low=-1.0)
    agent = BatchMoment(first_batch=1, shrinkage="none").make(spec, Streams(range(4000)))
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4000, 3))
    error = sqrt((n_actions - 1) / n_actions**2 / 4000)
    for context in (x, np.zeros_like(x)):
        share = np.bincount(agent.act(context), minlength=n_actions) / 4000
        assert np.abs(share - 1 / n_actions).max() < 5 * error
        agent.update(x, agent.act(x), rng.choice([-1.0, 1.0], 4000))
    np.testing.assert_array_equal(agent.act(x), agent.scores(x).argmax(axis=1))


@pytest.mark.parametrize("blocks", ["difference", "blocks"])
def test_weights_and_threshold_by_hand(blocks):
    """Golden, by hand from the specification: two releases of n = 10, 10 rounds, sigma = 2 / mu*,
    v = 1 / d, n -> n / 2 a block; z = sum w S / sqrt(sum w^2 s^2) with w = n / s^2, s^2 = sigma^2 +
    n v; thresholded at 1; with a block an arm, in the old units again."""
    config = BatchMoment(blocks=blocks, epsilon=10.0, first_batch=10)
    agent = config.make(SPEC, Streams([3]))
    exact = replace(config, epsilon=inf).make(SPEC, Streams([3]))._sums
    noise = Streams([3]).normals("fading noise", *exact._statistic.shape)
    rng, sigma = np.random.default_rng(4), 2 / mu_of(10.0, 1e-5)
    per_block = 10 / (1 if blocks == "difference" else 2)
    total, variance = 0.0, 0.0
    for _ in range(20):
        x, arm = rng.standard_normal((1, 3)), rng.integers(0, 2, 1)
        user = (
            x,
            arm,
            np.sign(x[:, 0]) * (1 - 2 * arm),
        )  # arms with parameters (1, 0, 0), -(1, 0, 0)
        agent.update(*user)
        batch = exact(*user)
        if batch is not None:
            s2 = sigma**2 + per_block / 3
            weight = 10 / s2
            total = total + weight * (batch[0] + sigma * noise()[0])
            variance += weight**2 * s2
    z = total / sqrt(variance)
    z = np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    expected = np.stack([z[0], -z[0]]) if blocks == "difference" else z * sqrt(variance)
    assert (z != 0).any()
    np.testing.assert_allclose(agent.scores(np.eye(3)[:1])[0], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(agent._theta[0], expected, rtol=1e-12)


def test_edges_of_the_budget():
    """Nothing released, nothing spent; without privacy the ledger says so."""
    assert (
        certify(
            BatchMoment(), ContextualSpec(n_actions=2, dim=3, horizon=1), accountants=False
        ).epsilon
        == 0.0
    )
    assert certify(BatchMoment(first_batch=100), SPEC, accountants=False).epsilon == 0.0
    assert certify(BatchMoment(epsilon=inf), SPEC, accountants=False).epsilon == inf


def test_centre_decides_about_the_sign():
    """Rewards of 2 and 3 about 2.5 say what -1 and 1 say about 0; by default that is the middle."""
    middle = ContextualSpec(n_actions=2, dim=3, horizon=100, reward_low=2.0, reward_high=3.0)
    rng = np.random.default_rng(5)
    agents = [
        BatchMoment(first_batch=10).make(SPEC, Streams([0])),
        BatchMoment(first_batch=10).make(middle, Streams([0])),
        BatchMoment(first_batch=10, centre=7.0).make(middle, Streams([0])),
    ]
    for _ in range(30):
        x, arm, r = rng.standard_normal((1, 3)), rng.integers(0, 2, 1), rng.choice([-1.0, 1.0], 1)
        for agent, reward in zip(agents, (r, 2.5 + r / 2, 7.0 + r), strict=True):
            agent.update(x, arm, reward)
    assert (agents[0]._theta != 0).any()
    for agent in agents[1:]:
        np.testing.assert_array_equal(agent._theta, agents[0]._theta)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 to be a number > 0"),
        ({"delta": 0.0}, "no pure epsilon-DP"),
        ({"first_batch": 0}, "first_batch=0 to be a whole number >= 1"),
        ({"blocks": "blocs"}, "did you mean blocks"),
        ({"shrinkage": "soft"}, "shrinkage='soft'"),
        ({"centre": inf}, "centre=inf"),
    ],
)
def test_bad_input_gets_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        BatchMoment(**fields)


def test_problems_it_does_not_play_are_refused():
    shared = ContextualSpec(n_actions=2, dim=3, horizon=100, shared=True)
    with pytest.raises(InputError, match="their own parameters, got one shared by all"):
        BatchMoment().make(shared, Streams([0]))
    with pytest.raises(InputError, match="plays finitely many arms"):
        BatchMoment().make(PriceSpec(dim=2, horizon=9, low=1.0, high=2.0), Streams([0]))
    three = ContextualSpec(n_actions=3, dim=3, horizon=100)
    with pytest.raises(InputError, match="n_actions=3 to be 2"):
        BatchMoment(blocks="difference").make(three, Streams([0]))
