"""Noisy vertices: their law, exact enumeration of joint DP, clips, budgets of the steps."""

from itertools import product
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp, softmax
from scipy.stats import chi2

from dpbandit.agents.contextual.dp_hdb import FrankWolfe, Schedule
from dpbandit.base import Streams
from dpbandit.privacy import BudgetExceededError, Ledger, NoisyVertex
from dpbandit.privacy.gradients import RecursiveGradients
from dpbandit.privacy.vertices import SELECTION_LAWS, certified_budgets, paper_budgets
from dpbandit.specs import LINKS
from tests.broken.leaks import HalfTheNoise, SignOfTheExactSum
from tests.each import each, refused
from tests.privacy.choices.test_selection import noisy_max_law


def gradients(dim=1, **settings):
    fixed = {"n_actions": 2, "mean": LINKS["identity"].mean, "reward_low": -50, "reward_high": 50}
    return RecursiveGradients(dim=dim, **{**fixed, "residual_clip": 51.5, **settings})


def made(kind=NoisyVertex, *, replicas=1, noise="gumbel", budgets, adaptive=False, **settings):
    how = {"noise": noise, "budgets": np.array(budgets), "horizon": 99, "adaptive": adaptive}
    return kind(gradients(**settings), Streams(range(replicas)), "vertices", **how)


def first_step(mechanism, context, reward, arm=0):
    """Every replica's first user, on one arm of two that both step."""
    R, G = mechanism._exact.shape[:2]
    zeros = np.zeros_like(mechanism._exact)
    x = np.tile(np.asarray(context, dtype=float), (R, 1))
    return mechanism(zeros, zeros, np.ones(G, int), x, np.full(R, arm), np.full(R, float(reward)))


@pytest.mark.parametrize("noise", SELECTION_LAWS)
@pytest.mark.parametrize("kind", [NoisyVertex, HalfTheNoise, SignOfTheExactSum])
def test_choices_are_as_noisy_as_the_ledger_says(kind, noise):
    """Statistical: 60,000 vertices against the law at the budget of the ledger. False alarm 1e-6;
    half the noise and the exact sum's sign are caught (asserted)."""
    mechanism = made(kind, replicas=800, noise=noise, budgets=[3.0, 1.0], dim=2, residual_clip=2.0)
    (_, _), (epsilon, _) = mechanism.spend.groups
    G = np.array([0.5, -1.0]) * 2.0  # x (x . 0 - r), r = -2 within the clip
    scores = -np.concatenate([G, -G]) * epsilon / (2 * mechanism.sensitivity)
    law = softmax(scores) if noise == "gumbel" else noisy_max_law(scores, 1.0)
    counts = np.zeros(4)
    for _ in range(75):
        mechanism._exact[:], mechanism._taken = 0.0, np.zeros(2, dtype=int)
        counts += np.bincount(first_step(mechanism, [0.5, -1.0], -2.0)[:, 0], minlength=4)
    p = chi2.sf(np.sum((counts - 60_000 * law) ** 2 / (60_000 * law)), 3)
    assert (p > 1e-6) == (kind is NoisyVertex)


@each("noise", SELECTION_LAWS)
def test_without_noise_it_is_the_argmin_and_ties_go_to_the_lowest_vertex(noise):
    for x, arm, chosen in (([0.5, -1.0, 0.2], 0, 1), ([0.5, -0.5, 0.5], 0, 1), ([1, 0], 1, 2)):
        mechanism = made(noise=noise, budgets=[inf], dim=len(x))
        assert first_step(mechanism, x, -2.0, arm=arm)[0, arm] == chosen


def log_view(kind, noise, adaptive, budgets, contexts, rewards):
    """The exact log-probability of every view (all vertices of all steps) under one stream, a
    replica a view, whose vertices an enormous noise forces; what the mechanism holds gives the
    probability."""
    T = len(contexts)
    schedule = Schedule(2, False, 1)
    ticks = [(t, a) for t in range(T) for a in np.flatnonzero(schedule.moving(t))]
    views = np.array(list(product([0, 1], repeat=len(ticks))))
    R = len(views)
    mechanism = made(kind, replicas=R, noise=noise, budgets=budgets, adaptive=adaptive)
    walk, total = FrankWolfe(R, (2, 1), radius=1.0, step=1.0), np.zeros(R)
    for t in range(T):
        moving = schedule.moving(t)
        forced = np.zeros((R, 2), dtype=int)
        for column, (s, a) in enumerate(ticks):
            if s == t:
                forced[:, a] = views[:, column]
        x, pulled = np.full((R, 1), contexts[t]), schedule.pull(t)
        greedy = np.matvec(walk.theta, x).argmax(axis=1)
        action = greedy if pulled is None else np.full(R, pulled)
        datum = x, action, np.array(rewards[t])[action]
        mechanism._noise = lambda forced=forced: 1e9 * (forced[..., None] == [0, 1])
        chosen = mechanism(walk.theta, walk.previous, walk.next_steps(moving), *datum)
        assert (chosen[:, moving] == forced[:, moving]).all()
        scale = np.broadcast_to(mechanism._scales(), (R, 2))[:, moving]
        gap = 2 * mechanism._exact[:, moving, 0] / scale  # q(+R) - q(-R), in units of the noise
        lead = np.where(forced[:, moving] == 0, -gap, gap)
        total += log_choice(noise, lead).sum(axis=1)
        walk.move(chosen, moving)
    assert abs(logsumexp(total)) < 1e-9
    return total


def log_choice(noise, lead):
    """log P(a candidate wins) if its score leads by `lead`; two Laplace noises differ by a law with
    survival function (1/2 + z/4) e^-z, z >= 0."""
    if noise == "gumbel":
        return log_expit(lead)
    z = np.abs(lead)
    return np.where(lead < 0, np.log(0.5 + z / 4) - z, np.log1p(-(0.5 + z / 4) * np.exp(-z)))


def renyi_over_bound(first, second, rho):
    """max over orders of D_alpha / (alpha rho)."""
    orders = np.concatenate([1 + np.geomspace(1e-3, 1, 12), np.geomspace(2.5, 200, 20)])
    divergence = [logsumexp(a * first - (a - 1) * second) / (a - 1) for a in orders]
    return float(np.max(np.array(divergence) / (orders * rho)))


@pytest.mark.parametrize(("kind", "low", "high"), [(NoisyVertex, 0.9, 1), (HalfTheNoise, 3, inf)])
def test_joint_dp_is_tight_in_exact_enumeration_and_half_the_noise_breaks_it(kind, low, high):
    """Oracle: where user 1's +-50 stays in an arm's sum the Renyi divergence of the views is within
    10 % of the bound; with half of the noise it is 3 times the bound."""
    T = 5
    budgets = 0.6 / np.sqrt(np.arange(1, T))
    one, two = ([(r, r)] + [(0.0, 0.0)] * (T - 1) for r in (50.0, -50.0))
    how = (kind, "gumbel", True, budgets, [1.0] + [0.0] * (T - 1))
    found = renyi_over_bound(log_view(*how, one), log_view(*how, two), np.sum(budgets**2) / 8)
    assert low < found <= high


@pytest.mark.parametrize(("noise", "T"), [("gumbel", 5), ("laplace", 4)])
@pytest.mark.parametrize("adaptive", [False, True])
def test_joint_dp_by_exact_enumeration(noise, T, adaptive):
    """Oracle: one user replaced, also by one who gets another arm; all orders, and the plain
    sum."""
    rng = np.random.default_rng(T)
    budgets = tuple(2 / np.sqrt(np.arange(1, T)))
    spend = SELECTION_LAWS[noise][1].of("", budgets)
    for trial in range(6):
        size = 50 if trial % 2 else 1.0
        contexts = rng.choice([-1.0, -0.4, 0.7, 1.0], T)
        rewards = size * rng.choice([-1.0, 1.0], (T, 2))
        s = trial % T
        first = log_view(NoisyVertex, noise, adaptive, budgets, contexts, rewards)
        contexts, rewards = contexts.copy(), rewards.copy()
        contexts[s], rewards[s] = -contexts[s], size * rng.choice([-1.0, 1.0], 2)
        second = log_view(NoisyVertex, noise, adaptive, budgets, contexts, rewards)
        assert np.abs(first - second).max() <= spend.pure
        assert renyi_over_bound(first, second, spend.rho) <= 1
        assert renyi_over_bound(second, first, spend.rho) <= 1


def test_clips_really_apply():
    """Golden: no row exceeds M k, whatever is sent; an arm that takes no step learns nothing."""
    zeros, arm = np.zeros((1, 2, 3)), np.zeros(1, int)
    wild = [1e9, -1e9, np.nan, np.inf, 1.0]
    for clip, bound in ((None, 2.0), (0.7, 0.7)):
        statistic = gradients(dim=3, residual_clip=2.0, gradient_clip=clip)
        for x, r in product(product(wild, repeat=3), [*wild, -np.inf]):
            datum = np.array([x]), arm, np.array([r])
            row = statistic.gradient(zeros, zeros, np.ones(2, int), *datum)
            assert np.linalg.norm(row, ord=statistic.order, axis=-1).max() <= bound + 1e-12
        assert statistic.sensitivity == 2 * bound
        assert np.abs(row).max() > 0  # by the last of them, x = (1, 1, 1) with r at its lower end
        assert not statistic.gradient(zeros, zeros, np.array([0, 1]), *datum).any()


def test_adaptive_noise_is_for_the_loudest_step_so_far():
    """Oracle: noise of an arm's step i is scaled to the largest of min(k, |u_j|_1 + B), j <= i."""
    sizes, budgets, B, k = [0.3, 2.0, 0.1, 5.0, 0.0], [1.0, 0.5, 2.0, 0.25, 3.0], 2.0, 4.5
    mechanism = made(
        budgets=budgets, dim=2, adaptive=True, reward_low=-B, reward_high=B, residual_clip=k
    )
    user = (np.ones((1, 2)), np.zeros(1, int), np.ones(1))
    largest = np.zeros(2)
    for i, (size, epsilon) in enumerate(zip(sizes, budgets, strict=True), 1):
        theta = size * np.array([[[0.5, -0.5], [0.25, 0.0]]])  # of |.|_1 = size, size / 4
        mechanism(theta, theta, np.full(2, i), *user)  # u_i = theta
        largest = np.maximum(largest, np.minimum(k, size * np.array([1, 0.25]) + B))
        np.testing.assert_allclose(mechanism._scales(), [4 * largest / epsilon])


def test_budgets_are_counted_for_each_arm():
    """An arm that has taken its n steps, or takes them out of order, is refused."""
    mechanism = made(budgets=[1.0])
    assert first_step(mechanism, [1.0], 0.0).shape == (1, 2)
    refused("steps", first_step, mechanism, [1.0], 0.0)
    zeros = np.zeros((1, 2, 1))
    with pytest.raises(BudgetExceededError, match="step 2"):
        mechanism(zeros, zeros, np.array([0, 2]), np.ones((1, 1)), np.zeros(1, int), np.zeros(1))


@each("noise", SELECTION_LAWS)
@each("profile", ["inverse-sqrt", "uniform"])
@each(("n", "epsilon", "delta"), [(1, 1, 1e-5), (22, 0.1, 1e-6), (300, 8, 1e-3), (50, 30, 1e-4)])
def test_certificates_of_the_budgets_just_keep_the_target(noise, profile, n, epsilon, delta):
    """Property: between 0.99 and 1 of it, by the ledger."""
    budgets = certified_budgets(n, noise=noise, profile=profile, epsilon=epsilon, delta=delta)
    ledger = Ledger((SELECTION_LAWS[noise][1].of("", budgets),))
    assert ledger.delta(epsilon) <= delta < ledger.delta(0.99 * epsilon)


def test_paper_budgets_by_hand():
    """Golden: b_1 and epsilon_1 = D S / (2 b_1) as printed, and the certified plain sum .4415."""
    n, epsilon, delta = 9880, 0.7, 1e-4
    b_1 = 4 * 2 * 4.2 * sqrt(log(n) * log(1 / delta)) / epsilon
    budgets = paper_budgets(n, epsilon=epsilon, delta=delta)
    assert budgets[0] == pytest.approx(2 * 8.4 / (2 * b_1), rel=1e-12)
    assert paper_budgets(3, epsilon=1, delta=0.1).sum() == pytest.approx(0.4415, abs=5e-5)
    refused("ln 1 = 0", paper_budgets, 1, epsilon=1, delta=0.1)
    assert (paper_budgets(1, epsilon=inf, delta=0.1) == inf).all()
