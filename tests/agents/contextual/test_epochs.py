"""Users who are in one release: episodes, inverse gaps, and private GLMs."""

from dataclasses import replace
from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit import audit, certify, compare
from dpbandit.agents import (
    BPO,
    FALCON,
    VPO,
    AdaCB,
    AdaCOFUL,
    AdaPrivateTS,
    BatchedElimination,
    FastCB,
    RegCB,
)
from dpbandit.agents.contextual.epochs import EpisodeMoments, Regression, _optimal_design
from dpbandit.agents.contextual.inverse_gaps import drawn
from dpbandit.agents.contextual.private_glm import NewtonRefits
from dpbandit.base import Streams
from dpbandit.envs import GLMBandit
from dpbandit.experiments import reproduce
from dpbandit.privacy import mu_of
from dpbandit.specs import LINKS, ContextualSpec
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import extreme_users, run
from tests.each import in_turn, refused
from tests.harness import SHARED


def fits_chi_square(numbers, stddev):
    """Two-sided, false alarm 2e-6 per change of seed; a fifth less noise is caught."""
    size, count = (numbers**2).sum(), numbers.size
    right, wrong = (chi2.cdf(size / v**2, count) for v in (stddev, 0.8 * stddev))
    return min(right, 1 - right) > 1e-6 > min(wrong, 1 - wrong)


LOGISTIC = LINKS["logistic"]
PROBIT = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True, link="probit")
PAPER = AdaCOFUL(calibration="paper")


def test_regressions_are_what_they_say():
    """Oracle: numpy's inverse and powers, of two blocks."""
    rng = np.random.default_rng(0)
    rows, moment = rng.standard_normal((2, 2, 9, 3)), rng.standard_normal((2, 2, 3))
    gram = rows.swapaxes(2, 3) @ rows
    A = gram + 0.5 * np.eye(3)
    found = Regression.of(gram, moment, ridge=0.5, least=1e-9, noise=0.0)
    x = rng.standard_normal((2, 3))
    theta = np.linalg.solve(A, moment[..., None])[..., 0]
    assert found.means(x) == pytest.approx(np.matvec(theta, x))
    Ax = np.linalg.solve(A, np.tile(x[:, None, :, None], (1, 2, 1, 1)))[..., 0]
    assert found.widths(x) == pytest.approx(np.sqrt(np.vecdot(Ax, x[:, None])))
    assert found.inverse_lengths(x) == pytest.approx(np.linalg.norm(Ax, axis=2))


def test_episodes_are_as_noisy_as_they_pay_for():
    """Statistical: two episodes at mu = 1/2, sensitivity 2 x 3 x 2, ended at different times; the
    total of both has noise sqrt(2) 12 / mu."""
    R = 4000
    noise = np.array(Streams(range(R)).normals("noise", 2, 2).take(1)[0])
    sums = EpisodeMoments(noise, mu=0.5, uses=9, context_bound=3.0, reward_bound=2.0)
    even = np.arange(R) % 2 == 0
    x, r = np.full((R, 2), 30.0), np.full(R, 9.0)
    assert sums(x, r, np.zeros(R, bool)) is None
    for ends in (even, ~even, even):
        total = sums(x, r, ends)
    total = sums(x, r, ~even)
    clipped = 2 * 3 / sqrt(2)
    left = total - clipped * np.where(even, 4, 5)[:, None]
    assert fits_chi_square(left, stddev=2**0.5 * 24)


def test_contexts_are_public_where_the_ledger_says_so():
    """The printed agent keeps exact Gram matrices: replacing a user's answers changes nothing once
    releases are fixed, replacing her context does, and audits refuse to try."""
    assert certify(PAPER, SHARED, accountants=False).notion.contexts == "public"
    assert certify(AdaCOFUL(), SHARED, accountants=False).notion.contexts == "private"
    world, other = (extreme_users(SHARED, 4, seed).within_bounds() for seed in (1, 2))
    first, t = run(PAPER, SHARED, world), np.full(4, 7)
    changed = world.swapped(t, other, answers_only=True)
    assert not billboard_differences(first, run(PAPER, SHARED, changed, replay=first), t)
    with pytest.raises(AssertionError, match="when EpisodeMoments releases to be public"):
        run(PAPER, SHARED, world.swapped(t, other), replay=first)
    refused("covers contexts", audit, PAPER, SHARED, runs=400, progress=False)


def test_every_release_spends_the_whole_budget():
    """Golden: noise 2 / mu off the diagonal and in the moment, at C = 1 and rewards within 1."""
    spec, mu = replace(PROBIT, reward_low=-1.0), mu_of(1.0, 1e-5)
    for config in (AdaCOFUL(), AdaPrivateTS(), BatchedElimination()):
        agent = config.make(spec, Streams([0]))
        assert (agent.gram_noise, agent.moment_noise) == pytest.approx((2 / mu, 2 / mu))
        assert agent.ledger.mu == pytest.approx(mu)


@pytest.mark.parametrize("kind", [AdaCOFUL, AdaPrivateTS])
def test_printed_regressions_count_exact_contexts(kind):
    """Oracle, without noise: V = C^2 I + sum of x x', rows cut to C = 2, and V^-1 times the sum of
    r x, as they were when the last episode ended: where det V had doubled, or a public batch."""
    spec = ContextualSpec(n_actions=3, dim=2, horizon=80, shared=True, context_bound=9.0)
    config = kind(epsilon=inf, calibration="paper", context_clip=2.0)
    agent, rng, V, u = config.make(spec, Streams([0])), np.random.default_rng(0), 4 * np.eye(2), 0.0
    last, theta, ended = V, np.zeros(2), 0
    for t in range(1, 81):
        x, r = 1.5 * rng.standard_normal((1, 3, 2)), rng.random(1)
        assert agent.regression.means(x)[0] == pytest.approx(x[0] @ theta)
        lengths = np.vecdot(x[0] @ np.linalg.inv(last), x[0]) ** 0.5
        assert agent.regression.widths(x)[0] == pytest.approx(lengths)
        action = agent.act(x)
        row = x[0, action[0]]
        row = row * min(1, 2 / np.linalg.norm(row))
        V, u = V + np.outer(row, row), u + (r[0] - 0.5) * row
        agent.update(x, action, r)
        doubled = np.linalg.det(V) >= 2 * np.linalg.det(last)
        if t in agent.public if kind is AdaPrivateTS else doubled:
            last, theta, ended = V, np.linalg.solve(V, u), ended + 1
    assert ended > 2


def test_designs_come_near_the_optimum():
    """By hand: of the rows e1, e2 and e2 half as long G-optimal play gives e1 and e2 half each; who
    may not be played is not."""
    x = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.5], [1.0, 1.0]]])
    share = np.array([[1 / 3, 1 / 3, 1 / 3, 0.0]])
    found = _optimal_design(x, share, 1e-9)
    assert found[0, 3] == 0
    assert found[0] == pytest.approx([0.5, 0.5, 0.0, 0.0], abs=0.02)


def test_proved_widths_hold():
    """Property: on linear rewards the best arm survives every epoch for every user, in 20 runs; a
    hundredth of the width loses it somewhere."""
    lost = {}
    for width in (1.0, 0.01):
        problem = GLMBandit(n_actions=5, dim=2, shared=True, horizon=500, noise=0.3)
        agent = BatchedElimination(epsilon=50.0, width=width).make(problem.spec, Streams(range(20)))
        problem.reset(Streams(range(20)))
        lost[width] = 0
        for _ in range(500):
            context = problem.context()
            action = agent.act(context)
            best = problem._linear(context).argmax(axis=1)
            lost[width] += (~agent.survivors(context)[np.arange(20), best]).sum()
            agent.update(context, action, problem.step(action).reward)
    assert lost[1.0] == 0 < lost[0.01]


def reproduced(agent, replicas, seed=11, **settings):
    how = {"settings": settings, "horizon": 5000, "seed": seed, "progress": False}
    return reproduce("contextual/pr2", agent, replicas=replicas, **how)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_regret_of_private_glm(epsilon):
    """Both are means of 20 replicas of an independent program; |z| <= 4 has a false-alarm rate of
    6e-5. Uniform play loses 2,150."""
    record = reproduced("private-glm", 20, epsilon=epsilon)
    assert abs(record["z"]) < 4
    assert record["certified_epsilon"] <= epsilon


@in_turn(0, slow=True)
def test_regret_is_that_of_the_reference():
    """The bounds of the test above, with 6 replicas."""
    for agent, settings in (
        ("ada-c-oful", {"epsilon": 1.0}),
        ("ada-c-oful", {"epsilon": 4.0, "calibration": "paper"}),
        ("batched-elimination", {"epsilon": 4.0, "width": 0.1}),
    ):
        assert abs(reproduced(agent, 6, **settings)["z"]) < 4


ONE_FEATURE = ContextualSpec(n_actions=3, dim=1, horizon=1000)
ONE = np.ones((1, 1))


def _after(config, *batches, spec=ONE_FEATURE):
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
    """By hand: gaps 0, 1/4 and 1/2 in the last batch, gamma = 2 sqrt(7 + 9) = 8 of all rounds so
    far; FastCB with a loss of 1/4 at best, and with none; a prediction above 1 counts as 1. Luck is
    put between sums of chances. Of survivors widths are 0.1 / sqrt(A) = 0.05: 0.65 + 0.05 reaches
    0.75 - 0.05, 0.6 + 0.05 not; AdaCB plays the second with 1 / (2 + gamma / 10)."""
    batches = (7, [0.1, 0.2, 0.9]), (9, [0.75, 0.5, 0.25])
    falcon = _after(FALCON(gamma_scale=2.0), *batches).chances(ONE)
    assert falcon == pytest.approx(np.array([[1 - 1 / 5 - 1 / 7, 1 / 5, 1 / 7]]))
    fast = _after(FastCB(gamma_scale=2.0), *batches).chances(ONE)
    a, b = 0.25 / (0.75 + 8 / 4), 0.25 / (0.75 + 8 / 2)
    assert fast == pytest.approx(np.array([[1 - a - b, a, b]]))
    sure = _after(FastCB(), (16, [0.5, 7.0, 1.0])).chances(ONE)
    assert sure == pytest.approx(np.array([[0, 2 / 3, 1 / 3]]))
    unnormed = np.array([[0.0, 1.0, 1.0]] * 3)
    assert drawn(unnormed, np.array([0.0, 0.49, 0.5])).tolist() == [1, 1, 2]
    for config, chances in (
        (RegCB(width=0.1), [1.0, 1.0, 0.0]),
        (AdaCB(width=0.1, gamma_scale=2.0), [1 - 1 / 2.8, 1 / 2.8, 0.0]),
    ):
        agent = _after(config, batches[0], (9, [0.75, 0.65 + 1e-9, 0.6]))
        four, found = np.full((1, 3, 1), 4.0), agent.released[-1]
        agent.geometry = Regression(found.theta, found.U, four, 0.0)
        assert agent.chances(ONE) == pytest.approx(np.array([chances]))


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


def test_all_learn():
    """Property, 2 replicas on the same users: half of what uniform play loses, which an agent that
    does not learn from its releases, or reads them upside down, does not reach."""
    private = ("vpo", "bpo", "falcon", "fastcb", "regcb", "adacb")
    agents = ["squarecb", *(f"{name}:epsilon=8" for name in private)]
    results = compare("GLMBandit", agents, horizon=1000, replicas=2, progress=False)
    mean = results.summary().set_index("agent")["mean"]
    assert (mean[agents] < mean["Uniform"] / 2).all()


def newton(replicas, *, mu, norm=4.0, most=1, steps=1, uses=9, dim=2):
    noise = np.array(Streams(range(replicas)).normals("noise", most, steps, dim).take(1)[0])
    return NewtonRefits(LOGISTIC, noise, mu=mu, uses=uses, norm=norm)


def test_refits_are_as_noisy_as_they_pay_for():
    """Statistical: 2 x 3 steps at mu = 3 ask for s = 2 sqrt(6) / 3. The first step from 0 on a row
    of zeros is -s z / (1 + s sqrt(2) / S) with S = 10^6."""
    R = 4000
    refits = newton(R, mu=3.0, norm=1e6, most=2, steps=3)
    refits._noise = refits._noise[:, :, :1]
    zeros, refitting = np.zeros((R, 2)), np.ones(R, bool)
    theta = refits(zeros, np.zeros(R), refitting, zeros, np.tile(np.eye(2), (R, 1, 1)))
    assert fits_chi_square(theta, stddev=2 * 6**0.5 / 3)


def test_refits_find_the_maximum_likelihood():
    """Oracle: without noise, and P above the Hessian, steps lead where the gradient of all rows is
    0; a replica that is not due keeps its parameter, and nobody has more fits than are paid for."""
    rng = np.random.default_rng(0)
    refits = newton(2, mu=np.inf, steps=90, uses=401)
    start, P = np.full((2, 2), 0.5), np.tile(30 * np.eye(2), (2, 1, 1))
    X = rng.standard_normal((400, 2, 2)) / 4
    Y = 1.0 * (rng.random((400, 2)) < LOGISTIC.mean(X @ np.array([2.0, -1.0])))
    refitting, nobody = np.array([True, False]), np.zeros(2, bool)
    for t in range(400):
        theta = refits(X[t], Y[t], refitting if t == 399 else nobody, start, P)
    gradient = ((LOGISTIC.mean(X[:, 0] @ theta[0]) - Y[:, 0])[:, None] * X[:, 0]).sum(axis=0)
    assert np.abs(gradient).max() < 1e-6
    assert (theta[1] == start[1]).all()
    refused("more than 1 fits", refits, X[0], Y[0], refitting, start, P)
