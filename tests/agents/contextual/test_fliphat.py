"""FLIPHAT: the non-private limit, public episodes, the printed constants, and that it learns."""

from dataclasses import replace
from math import ceil, inf, log, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import FLIPHAT, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec
from tests.agents.contextual.runs import check_refused, curves, errors
from tests.each import each

EASY = {"n_actions": 2, "dim": 20, "context_order": inf, "parameters": "sparse-signs"}
EASY |= {"contexts": "signs", "sparsity": 3, "noise": 0.05}
SPEC = ContextualSpec(n_actions=2, dim=50, horizon=10_000, context_order=inf)


def regret(config, horizon=2000, **more):
    return curves(config, horizon=horizon, replicas=20, seed=4, **EASY, **more)[-1]


def test_learns_at_large_epsilon():
    """Statistical, paired with uniform play over 20 replicas: t > 6 is a false alarm below 1e-5 for
    an agent that does not learn; at epsilon 10 at most half of uniform's regret is left. Power: at
    epsilon 0.001 it stays below, and the printed algorithm, which learns without noise, at 1; at 10
    blockwise peeling and clips beat it by 6."""
    sure = FLIPHAT(epsilon=10.0, delta=1e-4, sparsity=3)
    printed = replace(sure, calibration="paper")
    for config, shared, learns in (
        (sure, False, True),
        (sure, True, True),
        (FLIPHAT(epsilon=1e-3, delta=1e-4), False, False),
        (FLIPHAT(epsilon=1e-3, delta=1e-4), True, False),
        (replace(printed, epsilon=inf), False, True),
        (replace(printed, epsilon=1.0), False, False),
    ):
        uniform, ours = (regret(agent, shared=shared) for agent in (Uniform(), config))
        assert (errors(uniform - ours) > 6) == learns
        assert config != sure or ours.mean() < uniform.mean() / 2
    assert errors(regret(printed, shared=False) - regret(sure, shared=False)) > 6


def direct_actions(x, means, *, first, sparsity, iterations, step, clip, radius):
    """Oracle: one replica, disjoint arms, no privacy code: greedy play on plain IHT estimates."""
    T, d = x.shape
    K = means.shape[1]
    beta, actions, start, length = None, [], 0, first
    for t in range(T):
        a = t % K if beta is None else int(np.argmax(beta @ x[t]))
        actions.append(a)
        if t + 1 == start + length and t + 1 < T:
            beta = np.zeros((K, d))
            played = np.array(actions[start:])
            rows, r = x[start : t + 1], means[np.arange(start, t + 1), played]
            for _ in range(iterations):
                v = beta.copy()
                for g in range(K):
                    mine = played == g
                    residual = np.clip(r[mine] - rows[mine] @ beta[g], -clip, clip)
                    v[g] += step / length * residual @ rows[mine]
                    v[g][np.argsort(np.abs(v[g]))[: d - sparsity]] = 0
                beta = v
                assert np.abs(v).sum(axis=1).max() <= radius  # the ball is not what is tested
            start, length = t + 1, 2 * length
    return actions


def test_without_privacy_it_is_hard_thresholding_with_forgetting():
    """epsilon = inf plays exactly the actions of the direct program, round by round."""
    T, K, d = 200, 3, 8
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (T, d))
    theta = np.zeros((K, d))
    theta[:, :2] = rng.standard_normal((K, 2)) / 3
    means = (x @ theta.T + 0.05 * rng.standard_normal((T, K))).clip(-1, 1)
    spec = ContextualSpec(n_actions=K, dim=d, horizon=T, context_order=inf, reward_low=-1.0)
    facts = {"sparsity": 2, "iterations": 4, "radius": 5.0}
    config = FLIPHAT(epsilon=inf, first_episode=10, residual_clip=0.3, **facts)
    agent, played = config.make(spec, Streams([0])), []
    for t in range(T):
        played.append(agent.act(x[None, t]))
        agent.update(x[None, t], played[-1], means[t, played[-1]])
    wanted = direct_actions(x, means, first=10, step=0.5 * K, clip=0.3, **facts)
    assert np.concatenate(played).tolist() == wanted
    assert certify(config, spec, accountants=False).epsilon == inf


def release_rounds(config, spec, seed):
    rng, agent, found = np.random.default_rng(seed), config.make(spec, Streams([seed])), []
    for t in range(spec.horizon - spec.delay):
        context = rng.standard_normal((1, *spec.context_shape))
        before = agent.beta
        agent.update(context, agent.act(context), rng.standard_normal(1))
        if agent.beta is not before:
            found.append(t + 1)
    return found


@each("calibration", ["certified", "paper"])
@each("delay", [0, 3])
def test_episodes_double_whatever_the_data_and_the_last_one_is_not_used(calibration, delay):
    """Golden: first = 5 gives ends 5, 15, 35, 75 below horizon - delay; at 75 - delay updates the
    fourth would be met by nobody. In runs of a few rounds, too, the claim holds."""
    config = FLIPHAT(first_episode=5, calibration=calibration)
    for horizon, ends in ((75 + delay, [5, 15, 35]), (76 + delay, [5, 15, 35, 75])):
        spec = ContextualSpec(n_actions=2, dim=3, horizon=horizon, delay=delay)
        assert {tuple(release_rounds(config, spec, seed)) for seed in (1, 2)} == {tuple(ends)}
    config = FLIPHAT(calibration=calibration)
    for horizon in (1, 2, 3, 5):
        assert np.isfinite(regret(config, horizon=horizon)).all()
        spec = ContextualSpec(n_actions=2, dim=2, horizon=horizon)
        proof = certify(config, spec, accountants=False)
        assert proof.holds
        assert (proof.epsilon == 0) == (horizon == 1)


def test_printed_constants_by_hand():
    """Golden, T = 10^4, K = 2 disjoint arms, s = 5 each: episodes 1, 2, ..., 4096 (the next one
    would end at 16,383), M = ceil(ln 4097) = 9, 10 picks of 100, scale over the movement
    2 sqrt(3 x 10 ln(9 / delta)) 9 / epsilon, movement 2 (B + X radius) = 4 a unit of step / n."""
    delta, M, s = 1e-4, 9, 10
    assert ceil(log(4097)) == M
    agent = FLIPHAT(epsilon=1.0, delta=delta, calibration="paper").make(SPEC, Streams([0]))
    multiplier = 2 * sqrt(3 * s * log(M / delta)) * M
    assert agent.ledger.pure == pytest.approx(M * s * 3 / multiplier)
    assert agent.estimates.sensitivity == pytest.approx(4.0)
    assert "13 episodes" in agent.ledger.spends[0].note


def test_bad_settings_are_refused():
    counts = {"sparsity": 0, "iterations": 0, "first_episode": 2.5}
    bounds = {
        "step_size": 0,
        "residual_clip": -1,
        "context_clip": 0,
        "radius": inf,
        "pick_share": 1,
    }
    check_refused(FLIPHAT, epsilon=0, delta=0.0, calibration="papre", **counts, **bounds)
