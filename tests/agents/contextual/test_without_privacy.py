"""Agents without privacy for finitely many arms: what they owe, their first steps, the lasso."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import kstest

from dpbandit import InputError, certify
from dpbandit.agents import GLMUCB, Greedy, LassoBandit, LinUCB, LogisticTS
from dpbandit.agents.contextual.sparse import Lasso, forced_arm, lasso, refit
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.agents.contextual.runs import check_refused, curves
from tests.each import each

SPEC = ContextualSpec(n_actions=2, dim=1, horizon=9)
CONFIGS = [GLMUCB(), Greedy(), LassoBandit(), LogisticTS()]
WORLDS = {"linear": {}, "clicks": {"link": "logistic", "signal": 6.0}}


@each("config", CONFIGS)
@each("shared", [False, True])
@each(("dim", "n_actions", "horizon"), [(1, 2, 1), (1, 2, 40), (3, 4, 5)])
def test_small_worlds(config, shared, dim, n_actions, horizon):
    """One feature, two arms, fewer rounds than arms and features: finite scores, legal arms. What
    is no number is left out, but by ridge regressions."""
    spec = ContextualSpec(n_actions=n_actions, dim=dim, horizon=horizon, shared=shared)
    agent, rng = config.make(spec, Streams(range(3))), np.random.default_rng(0)
    for _ in range(horizon):
        x = rng.uniform(-0.5, 0.5, (3, *spec.context_shape))
        x[0] = 0.0
        assert np.isfinite(agent.scores(x)).all()
        action = agent.act(x)
        assert action.shape == (3,)
        assert ((action >= 0) & (action < n_actions)).all()
        agent.update(x, action, np.array([0.0, 1.0, 0.3]))
    for odd in (np.nan, np.inf, 1e300) * (config != Greedy()):
        with np.errstate(all="ignore"):
            x = np.full((3, *spec.context_shape), odd)
            agent.update(x, agent.act(x), np.array([np.nan, np.inf, -1e9]))
    assert np.isfinite(agent.scores(np.full((3, *spec.context_shape), 0.5))).all()


def test_bad_settings_and_prices_without_a_list_are_refused():
    check_refused(GLMUCB, alpha=-1, link="logit", regularization=0)
    check_refused(Greedy, turns=-1)
    check_refused(LassoBandit, forced=0, margin=0, penalty=-0.1, refresh_every=0)
    check_refused(LogisticTS, scale=np.nan)
    for config in CONFIGS:
        assert certify(config, SPEC, accountants=False).epsilon == inf
        with pytest.raises(InputError, match="finitely many arms"):
            config.make(PriceSpec(dim=1, horizon=9, low=1.0, high=2.0), Streams([0]))


@each(
    ("one", "two", "world"),
    [
        (GLMUCB(alpha=0.7, regularization=0.4), LinUCB(alpha=0.7, regularization=0.4), "linear"),
        (LogisticTS(scale=0), GLMUCB(alpha=0), "clicks"),
        (Greedy(turns=0), LinUCB(alpha=0), "linear"),
    ],
)
def test_limits_are_each_other_bit_for_bit(one, two, world):
    """GLM-UCB with the identity as its link; a scale of 0, which draws nothing; no turns, of which
    arms that share a parameter take none at all."""
    for shared in (False, True):
        runs = {"horizon": 300, "replicas": 5, **WORLDS[world], "shared": shared}
        np.testing.assert_array_equal(curves(one, **runs), curves(two, **runs))
    if one == Greedy(turns=0):
        np.testing.assert_array_equal(curves(Greedy(turns=5), **runs), curves(two, **runs))


def test_first_bound_by_hand():
    """Golden: nothing seen, prior variance 1 / 0.25 = 4, x = 0.5: width sqrt(0.25 * 4) = 1; alpha 2
    gives predictor 2, so the score is low + span / (1 + e^-2) = -1 + 3 * 0.880797 = 1.642391."""
    spec = replace(SPEC, link="logistic", reward_low=-1.0, reward_high=2.0)
    agent = GLMUCB(alpha=2.0, regularization=0.25).make(spec, Streams([0]))
    assert agent.scores(np.array([[0.5]])) == pytest.approx(1.642391, abs=1e-6)


def test_turns():
    """Golden: 3 arms, 2 turns: 0 1 2 0 1 2, whatever the rewards; then the only arm that paid."""
    agent = Greedy(turns=2).make(ContextualSpec(n_actions=3, dim=1, horizon=9), Streams([0, 1]))
    played, x = [], np.ones((2, 1))
    for _ in range(9):
        action = agent.act(x)
        played.append(action[0])
        agent.update(x, action, 1.0 * (action == 1))
    assert played == [0, 1, 2, 0, 1, 2, 1, 1, 1]
    np.testing.assert_allclose(agent.scores(x), [[0, 5 / 6, 0]] * 2)  # 5 rewards over 1 + 5


@each("shared", [False, True])
def test_first_draw_is_from_the_scaled_prior(shared):
    """Statistical: logits of 20,000 first scores are N(0, scale^2 |x|^2 / regularization) by
    Kolmogorov and Smirnov, false alarm 1e-6; 7 % more scale is caught (asserted)."""
    spec = replace(SPEC, dim=2, shared=shared)
    agent = LogisticTS(scale=0.5, regularization=0.1).make(spec, Streams(range(20_000)))
    x = np.full((20_000, *spec.context_shape), 0.4)
    draws = logit(agent.scores(x)[:, 1]) / (0.5 * (0.32 / 0.1) ** 0.5)
    assert kstest(draws, "norm").pvalue > 1e-6
    assert kstest(draws * 1.07, "norm").pvalue < 1e-3


@each(("K", "q"), [(2, 1), (3, 2), (5, 4)])
def test_forced_samples_are_the_sets_of_the_paper(K, q):
    """Oracle: T_i = {(2^n - 1) K q + j : n >= 0, q (i - 1) < j <= q i}, written out."""
    arms = {
        (2**n - 1) * K * q + j: i - 1
        for n in range(12)
        for i in range(1, K + 1)
        for j in range(q * (i - 1) + 1, q * i + 1)
    }
    for t in range(1, 2001):
        assert forced_arm(t - 1, K, q) == arms.get(t)


def two_arms(delay=0, **settings):
    """Arm 0 pays 0.5 in forced rounds and then 1, arm 1 pays 0.8: forced samples prefer arm 1."""
    config = LassoBandit(forced_penalty=1e-3, penalty=1e-3, **settings)
    agent = config.make(replace(SPEC, horizon=400, delay=delay), Streams([0]))
    x, waiting, free = np.ones((1, 1)), [], []
    for t in range(400):
        forced = forced_arm(max(0, t - delay), 2, 1) is not None
        waiting.append((agent.act(x), forced))
        if not forced:
            free.append(waiting[-1][0][0])
        if len(waiting) > delay:
            action, was_forced = waiting.pop(0)
            pays = (0.5 if was_forced else 1.0) if action[0] == 0 else 0.8
            agent.update(x, action, np.array([pays]))
    return agent.from_forced.means(x)[0], np.array(free)


def test_forced_samples_alone_enter_the_first_estimate_and_preselect():
    """Golden: forced samples of the arms pay 0.5 and 0.8, whatever comes in between; so arm 0 is
    kept from margin 0.6 on (range 1)."""
    for delay in (0, 3):
        np.testing.assert_allclose(two_arms(delay)[0], [0.5, 0.8], atol=5e-3)
    for margin, kept in ((0.5, False), (0.7, True)):
        first, free = two_arms(margin=margin)
        assert (first[0] >= first.max() - margin / 2) == kept
        assert kept or (free[1:] == 1).all()


def problems(n, d, B=6, seed=0):
    """B correlated designs with sparse truths: gram, moment and thresholds of mixed severity."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((B, n, d)) + rng.standard_normal((B, n, 1))
    y = X[..., 0] - 2 * X[..., d // 2] + 0.3 * rng.standard_normal((B, n))
    threshold = n * np.geomspace(0.01, 1.0, B)[:, None] * rng.uniform(0.5, 1, (B, d))
    return X.swapaxes(1, 2) @ X, np.matvec(X.swapaxes(1, 2), y), threshold


def violation(gram, moment, threshold, theta):
    """How far the subgradient of |y - X theta|^2 / 2 + threshold . |theta| is from 0."""
    gap = moment - np.matvec(gram, theta)
    used = theta != 0
    on = np.abs(gap - threshold * np.sign(theta)) * used
    off = np.maximum(np.abs(gap) - threshold, 0) * ~used
    return (on + off).max(axis=1) / np.abs(moment).max(axis=1)


@each(("n", "d"), [(200, 12), (15, 30), (1, 4)])
def test_optimality_conditions(n, d):
    """Oracle: KKT, to the default tolerance and, asked for more, to rounding; 1 % off is seen. Six
    problems at once equal six alone, difference 0.0; another start, to the tolerance."""
    sums = problems(n, d)
    start = np.zeros_like(sums[1])
    theta = lasso(*sums, start)
    assert violation(*sums, theta).max() < (5e-3 if n > d else 5e-2)
    exact = lasso(*sums, start, tolerance=1e-14, sweeps=20_000)
    assert violation(*sums, exact).max() < 1e-9
    if n > 1:
        assert violation(*sums, 1.01 * exact).max() > 1e-4
    for b in range(6):
        alone = lasso(*(part[b : b + 1] for part in sums), start[:1])
        np.testing.assert_array_equal(alone[0], theta[b])
    if n > d:
        np.testing.assert_allclose(lasso(*sums, theta + 1), theta, rtol=0, atol=2e-3)


def test_nothing_seen_is_nothing_learned():
    """A feature that is always 0 keeps coefficient 0; so does an arm that was never played."""
    regression = Lasso(ContextualSpec(n_actions=2, dim=2, horizon=9), 3)
    refit((regression, 0.1))
    regression.add(np.tile([1.0, 0.0], (3, 1)), np.zeros(3, dtype=int), np.ones(3))
    refit((regression, 0.1))
    assert (regression.theta[:, 0, 0] > 0.9).all()
    assert not regression.theta[:, 0, 1].any()
    assert not regression.theta[:, 1].any()


@each("shared", [False, True])
def test_rows_join_the_sums_of_their_arm(shared):
    """Oracle: |y - X w|^2 / n + penalty sum_j size_j |w_j| by its optimality conditions on the raw
    rows, through several fits; and scaled features, scaled coefficients (to the tolerance)."""
    rng, T, R, d, K = np.random.default_rng(1), 90, 3, 4, 2
    spec = ContextualSpec(n_actions=K, dim=d, horizon=T, shared=shared)
    units = np.array([1.0, 10.0, 0.1, 3.0])
    one, other = Lasso(spec, R), Lasso(spec, R)
    contexts = rng.standard_normal((T, R, *spec.context_shape))
    actions, rewards = rng.integers(K, size=(T, R)), rng.standard_normal((T, R))
    chosen = np.take_along_axis(contexts, actions[..., None, None], 2)[:, :, 0] if shared else None
    for t in range(T):
        one.add(contexts[t], actions[t], rewards[t])
        other.add(contexts[t] * units, actions[t], rewards[t])
        if t % 30 == 29:
            refit((one, 0.05), (other, 0.05))
    np.testing.assert_allclose(one.theta, other.theta * units, rtol=0, atol=1e-5)
    for r in range(R):
        for g in range(1 if shared else K):
            mine = np.ones(T, dtype=bool) if shared else actions[:, r] == g
            X = (chosen if shared else contexts)[mine, r]
            y, n = rewards[mine, r], mine.sum()
            threshold = 0.05 / 2 * n * np.sqrt((X**2).mean(axis=0))
            sums = (X.T @ X)[None], (X.T @ y)[None], threshold[None]
            assert violation(*sums, one.theta[None, r, g]).max() < 1e-3
