"""Problems whose users expire: what is public of them, who obeys, and two reference instances."""

from math import inf

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError, certify, compare
from dpbandit.agents import FTAL, PFTAL, WDPCOCOL, WDPCOCOP
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Simplex
from dpbandit.envs.convex.corners import Corners
from dpbandit.envs.convex.online_losses import OnlineConvex
from dpbandit.envs.convex.pricing import ConvexPricing
from dpbandit.losses import Quadratic
from dpbandit.running.environments import problem_maker
from dpbandit.specs.convex import ConvexSpec

EXPIRING = [WDPCOCOP(window=None), WDPCOCOL(window=None, noise="gaussian")]
PRICING = {"feedback": "datum", "retention": 12}


def spec_of(retention, horizon=50):
    return ConvexPricing(feedback="datum", retention=retention, horizon=horizon).spec


@pytest.mark.parametrize("config", EXPIRING, ids=str)
def test_agents_without_a_window_take_the_retention_period(config):
    """Bit for bit the agent whose window is that, and the same certificate."""
    results = compare(
        "ConvexPricing",
        {"taken": config, "given": type(config)(window=12, noise=config.noise)},
        horizon=60,
        replicas=3,
        env_kwargs=PRICING,
        progress=False,
    )
    taken, given = results.runs[:2]
    np.testing.assert_array_equal(taken.regret, given.regret)
    assert taken.certificate.ledger == given.certificate.ledger
    assert taken.certificate.ledger.brief == "window-DP, last 12"
    assert "for the last 12 rounds only" in taken.certificate.notion


@pytest.mark.parametrize("config", EXPIRING, ids=str)
def test_a_window_is_needed_and_may_not_be_shorter(config):
    with pytest.raises(InputError, match=r"window=None and retention=None\.$"):
        certify(config, spec_of(None), accountants=False)
    shorter = type(config)(window=11, noise=config.noise)
    with pytest.raises(InputError, match="window=11 >= 12, the rounds for which"):
        certify(shorter, spec_of(12), accountants=False)
    certify(shorter, spec_of(12, horizon=12), accountants=False)  # nobody expires
    longer = type(config)(window=20, noise=config.noise)
    assert certify(longer, spec_of(12), accountants=False).ledger.window == 20
    with pytest.raises(InputError, match="retention=0"):
        spec_of(0)


def test_others_protect_for_ever_and_play_the_same_customers():
    """A retention period is a public fact and nothing else: agents that ignore it, and customers,
    do not change."""
    found = [
        compare(
            "ConvexPricing",
            {"PFTAL": PFTAL(), "FTAL": FTAL()},
            horizon=40,
            replicas=2,
            env_kwargs={"feedback": "datum", "retention": retention},
            progress=False,
        )
        for retention in (None, 12)
    ]
    for one, two in zip(*(results.runs for results in found), strict=True):
        np.testing.assert_array_equal(one.regret, two.regret)
    assert found[1].runs[0].certificate.ledger.window is None


def test_it_is_made_by_gymnasium():
    env = gym.make("dpbandit/ConvexPricing-v0", **PRICING)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    for _ in range(3):
        observation, profit, *_ = env.step(env.action_space.sample())
    assert observation in env.observation_space
    assert profit > 0
    assert problem_maker("dpbandit/ConvexPricing-v0")(**PRICING, horizon=9).spec.retention == 12


def test_gamma_is_another_word_for_k_norm():
    for kind in (WDPCOCOP, WDPCOCOL, PFTAL):
        assert kind(noise="gamma") == kind(noise="k-norm")
        assert kind(noise="gamma").noise == "k-norm"
        with pytest.raises(InputError, match="noise='beta'"):
            kind(noise="beta")


# Reference instances


def played(problem, rounds, replicas=4):
    problem.reset(Streams(range(replicas)))
    centre = np.tile(problem.spec.loss.domain.centre, (replicas, 1))
    return np.array([problem.step(centre).datum for _ in range(rounds)])


def test_cocop_ball():
    """Golden: c = 0.4 e_1 + 0.3 v, v on the sphere; L = 1 + 0.7 and nothing is clipped."""
    problem = OnlineConvex(instance="cocop-ball", horizon=300)
    assert problem.spec.loss == Quadratic(Ball(5), reach=0.7)
    assert problem.spec.loss.lipschitz == 1.7
    data = played(problem, 300)
    away = np.linalg.norm(data - 0.4 * np.eye(5)[0], axis=-1)
    np.testing.assert_allclose(away, 0.3, rtol=0, atol=1e-12)
    loose = problem.spec.loss.admissible(3 * data[0])
    np.testing.assert_allclose(np.linalg.norm(loose, axis=1), 0.7)


def test_cocol_simplex():
    """Statistical: 12,000 draws of corners with chances 0.5, 0.3 and 0.2; 5 errors of each."""
    problem = OnlineConvex(instance="cocol-simplex", horizon=3000)
    assert problem.spec.loss == Quadratic(Simplex(10))
    data = played(problem, 3000)
    assert set(np.unique(data)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.sum(axis=-1), 1.0)
    chances = np.array([0.5, 0.3, 0.2, *[0.0] * 7])
    error = np.sqrt(chances * (1 - chances) / 12_000)
    assert (np.abs(data.mean(axis=(0, 1)) - chances) <= 5 * error).all()
    assert len({tuple(column) for column in data[:, :, 0].T}) == 4  # replicas are their own


def test_corners_refuse_what_they_are_not_for():
    for chances in ((), (0.5, 0.4), (1.5, -0.5)):
        with pytest.raises(InputError, match="add up to 1"):
            Corners(chances)
    for loss in (Quadratic(Box(3)), Quadratic(Simplex(2))):
        with pytest.raises(InputError, match="3 corners or more"):
            OnlineConvex(loss=loss, adversary=Corners((0.5, 0.3, 0.2)))


@pytest.mark.parametrize("reach", [0.2, 0.7, 5.0])
def test_a_reach_bounds_gradients_and_no_more_than_the_domain(reach):
    """Property: admissible targets are within reach and the domain, gradients within L; L is least
    on the ball, and never above that of a loss that knows no reach."""
    extreme = np.random.default_rng(0).standard_normal((200, 4)) * 10
    for domain in (Ball(4), Simplex(4), Box(4)):
        loss, free = Quadratic(domain, reach=reach), Quadratic(domain)
        c = loss.admissible(extreme)
        x = domain.project(-extreme)
        assert domain.contains(c, 1e-9).all()
        assert np.linalg.norm(c - domain.centre, axis=1).max() <= reach + 1e-9
        assert np.linalg.norm(loss.gradient(x, c), axis=1).max() <= loss.lipschitz + 1e-9
        assert loss.lipschitz == min(free.lipschitz, domain.outer_radius + reach)
    with pytest.raises(InputError, match="reach=0"):
        Quadratic(Ball(2), reach=0.0)
    spec = ConvexSpec(loss=Quadratic(Ball(5), reach=0.7), feedback="datum", horizon=9)
    assert certify(FTAL(), spec, accountants=False).epsilon == inf
