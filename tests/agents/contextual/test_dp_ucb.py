"""DP-UCB: the non-private limit, the paper's constants, and what privacy costs."""

from dataclasses import replace
from functools import partial
from math import ceil, inf, log, log2, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import DPUCB, DPMoments, LinUCB, Priced, ShariffSheffetUCB
from dpbandit.base import Streams
from dpbandit.privacy import epsilon_of
from dpbandit.specs import ContextualSpec, PriceListSpec
from tests.agents.contextual.runs import check_refused
from tests.each import each, refused

PRINTED = ShariffSheffetUCB(calibration="paper")


def test_without_privacy_it_is_the_rank_one_linucb_with_that_shift():
    """Oracle: refitting from sums and Sherman-Morrison are two ways to the same numbers, told the
    same rounds. Left to play they may part: arms that nobody played tie but for the last bit."""
    spec, rng = ContextualSpec(n_actions=5, dim=5, horizon=300), np.random.default_rng(0)
    configs = DPUCB(epsilon=inf, refresh_every=1), LinUCB()
    agents = [
        replace(config, alpha=0.7, regularization=3.0).make(spec, Streams(range(4)))
        for config in configs
    ]
    for t in range(spec.horizon):
        context = rng.uniform(-0.4, 0.4, size=(4, 5))
        if t:  # something was released
            private, online = (agent.scores(context) for agent in agents)
            np.testing.assert_allclose(private, online, rtol=0, atol=1e-9)
        action, reward = rng.integers(5, size=4), rng.random(4)
        for agent in agents:
            agent.update(context, action, reward)


def first_stddev(config, spec):
    """Noise of the first release, in units: that of one node."""
    sums = config.make(spec, Streams([0])).sums
    while sums(np.zeros((1, *spec.context_shape)), np.zeros(1, dtype=int), np.zeros(1)) is None:
        pass
    return sums.stddev


def test_moment_scores_by_hand():
    """Golden: x = (1, 0) with reward 1 on arm 0, x = (0, 1/2) with reward 1/2 on arm 1: u_0 = (1,
    0), u_1 = (0, 1/4). Until the third round, after a release, arms take turns anyway."""
    spec = ContextualSpec(n_actions=2, dim=2, horizon=5)
    agent = DPMoments(epsilon=inf, refresh_every=2).make(spec, Streams([0]))
    probe = np.array([[3.0, 4.0]])
    for arm, x, r in ((0, [1.0, 0.0], 1.0), (1, [0.0, 0.5], 0.5)):
        assert agent.act(probe) == [arm]
        assert (agent.scores(probe) == 0).all()
        agent.update(np.array([x]), np.array([arm]), np.array([r]))
    np.testing.assert_array_equal(agent.scores(probe), [[3.0, 1.0]])
    assert agent.act(probe) == [0]
    assert agent.act(np.array([[0.0, 1.0]])) == [1]


def test_paper_constants_by_hand():
    """Golden: s^2 = 16 m L^4 ln(4/delta)^2 / eps^2 with L^2 = 1 + 1, m = 1 + ceil(log2 n).

    A node's Gram noise has off-diagonal stddev s; in unit scale its diagonal sqrt(2) s moves by
    mu^2 = |change|^2 / (2 s^2), and a user is in bit_length(n - 1) nodes. With w^2 = 2 the
    sensitivity is sqrt((2 + 2)^2 / 2) = sqrt(8), that of the whole matrix over rows (x, r). A claim
    of 1 is over-noised; of Wishart's degrees the least whole number leaves at most 2 %.
    """
    n, delta = 10_000, 1e-4
    spec = ContextualSpec(n_actions=2, dim=3, horizon=n)
    s = 4 * sqrt(1 + ceil(log2(n))) * 2 * log(4 / delta)
    mu = sqrt((n - 1).bit_length()) * sqrt(8) / (sqrt(2) * s)
    proof = certify(replace(PRINTED, delta=delta), spec, accountants=False)
    assert proof.mu == pytest.approx(mu, rel=1e-12)
    assert proof.epsilon == pytest.approx(epsilon_of(mu, delta), rel=1e-9)
    assert proof.holds
    assert proof.epsilon < 0.1
    wishart = ShariffSheffetUCB(noise="wishart")
    proof = certify(wishart, replace(spec, horizon=1000), accountants=False)
    assert 0.98 < proof.epsilon <= 1.0


def test_certified_noise_of_the_reference_table():
    """Golden: the specification's 'With C=3.2, c_u=.8 on P1: Gram 179.2, moment 21.76' (tree, n =
    10^4 releases, delta = 1e-4): off-diagonal stddev C^2 s / sqrt(2), where w^2 = B / A = 0.8276
    splits the budget as there. All of it for the moment, mu* = 0.31390, 14 nodes a user, c_u =
    0.32, is noise sqrt(14) 2 c_u / mu* on every coordinate of u."""
    spec = ContextualSpec(n_actions=2, dim=50, horizon=10_001, context_order=inf, reward_high=1.2)
    tree = {"prefix_sums": "tree", "refresh_every": 1, "epsilon": 1.0, "delta": 1e-4}
    weight = sqrt(0.8276)
    config = DPUCB(context_clip=3.2, moment_clip=0.8, moment_weight=weight, **tree)
    node = first_stddev(config, spec)
    assert 3.2**2 * node / sqrt(2) == pytest.approx(179.2, rel=2e-3)
    assert 0.8 * node / weight == pytest.approx(21.76, rel=2e-3)
    moments = first_stddev(DPMoments(moment_clip=0.32, **tree), spec)
    assert moments == pytest.approx(sqrt(14) * 0.64 / 0.31390, rel=1e-4)


@each(("fields", "shift"), [({}, 2), ({"shift": 0.3}, 0.3), ({"alpha": "theory"}, 2)])
@each("demand", [False, True])
def test_shift_by_hand(fields, shift, demand):
    """Golden: V = G + shift Gamma I with Gamma = s (2 sqrt(D) + 2 sqrt(v ln(2T/failure))) and s off
    the diagonal, C^2 / sqrt(2) times the noise in units; C = 1 here, D = 4 features of a price. In
    the trace noise has a variance of 1 / (1 + 2.3190778 D), so v = 1 - (1 - that) / D. With noise
    of 0 in place of the drawn one, the inverse of V is that of the shift alone, of which the ledger
    knows nothing."""
    spec = PriceListSpec(n_actions=2, dim=4, horizon=40, prices=(1.0, 2.0), shared=True)
    config = DPUCB(epsilon=0.1, refresh_every=1, **fields)
    agent = config.make(spec, Streams([0]))
    if demand:
        spec, shift = replace(spec, dim=3, shared=False), shift if fields else 0.05
        agent = Priced(config).make(spec, Streams([0])).inner
    x, none = np.zeros((1, 2, 4)), np.zeros(1)
    agent.refit(0.0 * agent.sums(x, none.astype(int), none))
    v = 1 - (1 - 1 / (1 + 4 * 2.3190778623577)) / 4
    gamma = agent.sums.stddev / sqrt(2) * (2 * sqrt(4) + 2 * sqrt(v * log(2 * 40 / 0.05)))
    np.testing.assert_allclose(agent.ridge.inverse[0, 0] * shift * gamma, np.eye(4), atol=1e-12)
    configs = [config, replace(config, shift=None)]
    one, two = (certify(Priced(c) if demand else c, spec, accountants=False) for c in configs)
    assert one == two


def test_bad_settings_are_refused():
    check_refused(DPUCB, epsilon=0.0, prefix_sums="fenwick", refresh_every=0, shift=0.0, alpha=-1)
    check_refused(DPMoments, delta=1.0, moment_clip=0.0)
    check_refused(ShariffSheffetUCB, delta=0.0, noise="wishert", failure=1.0)
    check_refused(partial(DPUCB, alpha="theory"), shift=1.0)


def test_where_nothing_influences_an_action_nothing_is_spent():
    """In one round; two spend, and a third was not paid for."""
    one, two = (ContextualSpec(n_actions=2, dim=2, horizon=T) for T in (1, 2))
    assert certify(DPUCB(), one, accountants=False).epsilon == 0.0
    assert certify(DPUCB(), two, accountants=False).epsilon > 0.9
    agent, x = DPUCB().make(two, Streams([0])), np.zeros((1, 2))
    for _ in range(2):
        agent.update(x, agent.act(x), np.zeros(1))
    refused("longer horizon", agent.update, x, agent.act(x), np.zeros(1))
