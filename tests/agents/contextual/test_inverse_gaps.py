"""Chances of policies on regression oracles, against other ways to write them."""

from math import exp, sqrt

import numpy as np
import pytest

from dpbandit import compare
from dpbandit.agents import BPO, FALCON, VPO, AdaCB, FastCB, RegCB
from dpbandit.agents.contextual.epochs import Regression
from dpbandit.agents.contextual.inverse_gaps import drawn
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec

SPEC = ContextualSpec(n_actions=3, dim=1, horizon=1000)
ONE = np.ones((1, 1))


def _after(config, *batches, spec=SPEC):
    """The agent after batches of some users, with rewards as predicted for every arm."""
    agent = config.make(spec, Streams([0]))
    for users, rewards in batches:
        theta = np.array(rewards)[None, :, None] - 0.5
        U = np.ones((1, len(rewards), 1, 1))
        agent.released.append(Regression(theta, U, U[..., 0], 0.0))
        agent.sizes.append(users)
        agent.releases += 1
    return agent


def test_chances_by_hand():
    """By hand: gaps 0, 1/4 and 1/2, gamma = 2 sqrt(16) = 8; FastCB with a loss of 1/4 at best, and
    with none; a prediction above 1 counts as 1."""
    batch = (16, [0.75, 0.5, 0.25])
    falcon = _after(FALCON(gamma_scale=2.0), batch).chances(ONE)
    assert falcon == pytest.approx(np.array([[1 - 1 / 5 - 1 / 7, 1 / 5, 1 / 7]]))
    fast = _after(FastCB(gamma_scale=2.0), batch).chances(ONE)
    a, b = 0.25 / (0.75 + 8 / 4), 0.25 / (0.75 + 8 / 2)
    assert fast == pytest.approx(np.array([[1 - a - b, a, b]]))
    sure = _after(FastCB(), (16, [0.5, 7.0, 1.0])).chances(ONE)
    assert sure == pytest.approx(np.array([[0, 2 / 3, 1 / 3]]))


def test_intervals_of_survivors():
    """By hand: widths 0.1 / sqrt(A) = 0.05; 0.65 + 0.05 reaches 0.75 - 0.05, 0.6 + 0.05 not. AdaCB
    plays the second with 1 / (2 + gamma / 10), gamma = 2 sqrt(16) = 8."""
    chances = []
    for config in (RegCB(width=0.1), AdaCB(width=0.1, gamma_scale=2.0)):
        agent = _after(config, (16, [0.75, 0.65 + 1e-9, 0.6]))
        four = np.full((1, 3, 1), 4.0)
        agent.geometry = Regression(agent.released[0].theta, agent.released[0].U, four, 0.0)
        chances.append(agent.chances(ONE))
    assert chances[0].tolist() == [[1.0, 1.0, 0.0]]
    assert chances[1] == pytest.approx(np.array([[1 - 1 / 2.8, 1 / 2.8, 0.0]]))


def test_virtual_steps_average_to_mirror_descent():
    """Oracle: q_0..q_(B-1) step by step; the agent draws one of them for each user. Its steps are
    put in by hand, so that their mean is that of all."""
    B, rewards = 50, np.array([0.2, 0.9, 0.4])
    agent = _after(VPO(rate=2.0), (B, rewards))
    mine = []
    for k in range(B):
        agent.step = lambda k=k: np.array([(k + 0.5) / B])
        mine.append(agent.chances(ONE)[0])
    eta, q, total = 2 * min(1 / 3, 1 / sqrt(3 * B)), np.full(3, 1 / 3), np.zeros(3)
    for _ in range(B):
        total += q / B
        q = q * np.exp(-eta * (1 - rewards))
        q /= q.sum()
    assert np.mean(mine, axis=0) == pytest.approx(total)


def test_replay_of_releases_between_two_arms():
    """Oracle: the log odds of the first of two arms, as its authors' program has them."""
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1000)
    batches = [(30, [0.5, 0.6]), (60, [0.9, 0.3]), (120, [0.45, 0.5])]
    found = _after(BPO(rate=0.02, bonus=0.3), *batches, spec=spec).chances(ONE)[0, 0]
    odds, users, played = 0.0, 0, [0.0, 0.0]
    for N, rewards in batches:
        users += N
        p = 1 / (1 + exp(-odds))
        bonus = [min(1.0, 0.3 * sqrt(users / 2) / (1 + D)) for D in played]
        f = [max(0.0, 1 - y - b) for y, b in zip(rewards, bonus, strict=True)]
        odds -= 0.02 * N * (f[0] - f[1])
        played = [played[0] + N * p, played[1] + N * (1 - p)]
    assert found == pytest.approx(1 / (1 + exp(-odds)))
    assert 0.1 < found < 0.9


def test_draws_follow_chances():
    """By hand: luck between sums of chances, whose total need not be 1."""
    chances = np.array([[0.0, 1.0, 1.0]] * 3)
    assert drawn(chances, np.array([0.0, 0.49, 0.5])).tolist() == [1, 1, 2]


def test_all_learn():
    """Property, 2 replicas on the same users: half of what uniform play loses, which an agent that
    does not learn from its releases, or reads them upside down, does not reach."""
    agents = (
        "squarecb,vpo:epsilon=8,bpo:epsilon=8,falcon:epsilon=8,fastcb:epsilon=8,regcb:epsilon=8,"
        "adacb:epsilon=8"
    )
    results = compare("GLMBandit", agents, horizon=1000, replicas=2, progress=False)
    mean = results.summary().set_index("agent")["mean"]
    assert (mean[agents.split(",")] < mean["Uniform"] / 2).all()
