"""Online Frank-Wolfe: the recursion against its closed form, means of vertices, the schedule."""

from math import inf

import numpy as np
import pytest

from dpbandit.agents import OnlineFrankWolfe
from dpbandit.agents.contextual.frank_wolfe import FrankWolfe, Schedule, default_warm_up
from dpbandit.agents.contextual.frank_wolfe_bandit import FrankWolfeSettings
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices.noisy_vertex import best_vertices
from dpbandit.privacy.statistics.gradients import RecursiveGradients, recursive_points
from dpbandit.specs.links import LINKS
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each

ALL = np.ones(1, dtype=bool)


def walked(n, *, link="identity", step=1.0, seed=0, d=4, radius=0.8):
    """n steps of one arm: users, iterates theta_1..theta_n, vertices, points u_i, sums."""
    rng = np.random.default_rng(seed)
    statistic = RecursiveGradients(
        n_actions=1, dim=d, mean=LINKS[link].mean, residual_clip=1e9, reward_low=-1.0
    )
    walk = FrankWolfe(1, (1, d), radius=radius, step=step)
    users, thetas, vertices, points, sums = [], [], [], [], [np.zeros((1, 1, d))]
    for _ in range(n):
        x, r = rng.uniform(-1, 1, (1, d)), rng.uniform(-1, 1, 1)
        steps = walk.next_steps(ALL)
        datum = (walk.theta, walk.previous, steps, x, np.zeros(1, int), r)
        sums.append(sums[-1] + statistic.total(*(np.asarray(a)[None] for a in datum)))
        users.append((x[0], r[0]))
        thetas.append(walk.theta[0, 0])
        points.append(recursive_points(*datum[:3])[0, 0])
        chosen = best_vertices(sums[-1])
        v = np.zeros(d)
        v[chosen[0, 0] % d] = radius if chosen[0, 0] < d else -radius
        vertices.append(v)
        walk.move(chosen, ALL)
    return users, np.array(thetas), np.array(vertices), np.array(points), np.array(sums)[:, 0, 0]


@pytest.mark.parametrize("link", LINKS)
def test_the_normalised_sum_is_the_recursion_with_d_0_at_zero(link):
    """Oracle: d_i = grad_i(theta_i) + (1 - 1/(i+1)) (d_{i-1} - grad_i(theta_{i-1})), d_0 = 0, and
    with d_1 = grad_1(theta_1) instead it is the sum plus g_1 / (i + 1)."""
    users, thetas, *_, sums = walked(40, link=link)
    zeta, d, other = LINKS[link].mean, 0.0, 0.0
    for i, (x, r) in enumerate(users, start=1):
        before = thetas[max(i - 2, 0)]
        now, old = ((zeta(theta @ x) - r) * x for theta in (thetas[i - 1], before))
        d = now + (1 - 1 / (i + 1)) * (d - old)
        other = now if i == 1 else now + (1 - 1 / (i + 1)) * (other - old)
        np.testing.assert_allclose(sums[i] / (i + 1), d, rtol=0, atol=4e-15)
        first = (zeta(0.0) - users[0][1]) * users[0][0]
        np.testing.assert_allclose((sums[i] + first) / (i + 1), other, rtol=0, atol=4e-15)


def test_iterates_are_means_of_vertices():
    """Golden: theta_1 = 0 and theta_i = (v_1 + .. + v_{i-1}) / i."""
    _, thetas, vertices, *_ = walked(60)
    sums = np.concatenate([np.zeros((1, 4)), vertices.cumsum(axis=0)[:-1]])
    np.testing.assert_allclose(thetas, sums / np.arange(1, 61)[:, None], rtol=0, atol=4e-16)


@pytest.mark.parametrize("step", [1.0, 0.4])
def test_points_are_at_most_half_as_far_again_as_the_ball(step):
    """Golden: u_1 = 0, u_i = theta_i + c (v_{i-1} - theta_{i-1}), |u_i|_1 <= 1.5 R."""
    for seed in range(20):
        _, thetas, vertices, points, _ = walked(30, step=step, seed=seed)
        assert not points[0].any()
        expected = thetas[1:] + step * (vertices[:-1] - thetas[:-1])
        np.testing.assert_allclose(points[1:], expected, rtol=0, atol=1e-14)
        assert np.abs(points).sum(axis=1).max() <= 1.5 * 0.8 + 1e-12


def test_the_bound_of_the_points_is_attained():
    """Golden: with c = 1, u_2 = 1.5 v_1."""
    *_, points, _ = walked(2)
    assert np.abs(points[1]).sum() == pytest.approx(1.5 * 0.8)


@pytest.mark.parametrize("link", LINKS)
def test_the_synthetic_record_leaves_the_sum_unchanged(link):
    """Exact: the gradient of the record (0, zeta(0)) is 0 at every theta."""
    rng, zeta = np.random.default_rng(0), LINKS[link].mean
    statistic = RecursiveGradients(n_actions=2, dim=3, mean=zeta, residual_clip=9.0)
    theta, previous = rng.standard_normal((2, 5, 2, 3))
    arm, steps = np.zeros(5, int), np.array([7, 7])
    reward = np.full(5, zeta(np.zeros(())))
    assert not statistic.gradient(theta, previous, steps, np.zeros((5, 3)), arm, reward).any()


@pytest.mark.parametrize("delay", [0, 3])
def test_all_arms_have_taken_equally_many_steps_after_the_warm_up(delay):
    """Golden: t_0 each, then all at once; T - (K-1) t_0 in the end. Without noise the last round
    releases nothing any more. Delayed: the first `delay` users are not learned from."""
    K, T, t0 = 3, 30, 4
    spec = ContextualSpec(n_actions=K, dim=2, horizon=T, delay=delay)
    agent = OnlineFrankWolfe(warm_up=t0).make(spec, Streams([0]))
    rng, pulled, taken = np.random.default_rng(0), [], []
    for t in range(T):
        x = rng.uniform(-0.5, 0.5, (1, 2))
        action = agent.act(x)
        pulled.append((x, action))
        if t >= delay:
            agent.update(*pulled[t - delay], rng.random(1))
            taken.append(agent._walk.steps.tolist())
    arms = [int(action[0]) for _, action in pulled]
    assert arms[: K * t0 + delay] == [0] * (t0 + delay) + [1] * t0 + [2] * t0
    learned = taken[delay:]
    assert learned[t0 - 1] == [t0, 0, 0]
    assert learned[K * t0 - 1] == [t0] * K
    assert all(len(set(counts)) == 1 for counts in learned[K * t0 :])
    if delay == 0:
        assert taken[-1] == [T - 1 - (K - 1) * t0] * K
    assert Schedule(K, False, t0).steps(T) == T - (K - 1) * t0


def test_a_shared_parameter_learns_in_every_round():
    schedule = Schedule(3, True, 5)
    assert [schedule.pull(n) for n in range(6)] == [0, 1, 2, 0, 1, None]
    assert schedule.moving(0).tolist() == schedule.moving(9).tolist() == [True]
    assert schedule.steps(20) == 20


def test_default_warm_up():
    """Golden: int(ln(5 10^5) ln 10^4) = 120 at d = 50, T = 10^4, epsilon 1; at most a share."""
    spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    assert default_warm_up(spec, epsilon=1.0) == default_warm_up(spec, share=0.1) == 120
    assert default_warm_up(spec, epsilon=0.2, share=0.1) == 500
    assert default_warm_up(spec, epsilon=0.2) == 3021
    with pytest.raises(InputError, match="warm_up"):
        FrankWolfeSettings(warm_up=5000).schedule(spec, 1)


def test_candidates_are_told_apart_by_the_warm_up():
    """By hand: arm 0 was ahead by 0.3 when the warm-up ended; arm 1 is now. A gap of 0.5 excludes
    it, one of 0.7 does not."""
    spec = ContextualSpec(n_actions=2, dim=1, horizon=50)
    for gap, arm in ((0.5, 0), (0.7, 1), (inf, 1)):
        agent = OnlineFrankWolfe(warm_up=1, subset_gap=gap).make(spec, Streams([0]))
        agent._round = 2
        agent._frozen = np.array([[[0.3], [0.0]]])
        agent._walk.theta = np.array([[[0.3], [0.9]]])
        assert agent.act(np.ones((1, 1))).tolist() == [arm]


@each(
    "wrong",
    [
        {"radius": 0},
        {"step": 0},
        {"step": 1.1},
        {"warm_up": 0},
        {"subset_gap": -1.0},
        {"residual_clip": 0},
        {"gradient_clip": inf},
        {"link": "poisson"},
    ],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(InputError):
        OnlineFrankWolfe(**wrong)
