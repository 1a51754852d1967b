"""Agents whose users are in one release: episodes, widths that hold, and regret by reference."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit import audit, certify
from dpbandit.agents import AdaCOFUL, AdaPrivateTS, BatchedElimination
from dpbandit.agents.contextual.epochs import EpisodeMoments, Regression, _optimal_design
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.experiments import reproduce
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing.checks import billboard_differences
from dpbandit.testing.tapes import extreme_users, run
from tests.harness import SHARED

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
    total of both has noise sqrt(2) 12 / mu. Two-sided chi-square, false alarm 1e-6 per change of
    seed; a fifth less is caught."""
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
    size = (left**2).sum() / (2 * 24**2)
    assert 5e-7 < chi2.cdf(size, 2 * R) < 1 - 5e-7
    assert chi2.cdf(size / 0.64, 2 * R) > 1 - 1e-6


def test_contexts_are_public_where_the_ledger_says_so():
    """The printed agent keeps exact Gram matrices: replacing a user's answers changes nothing once
    releases are fixed, replacing her context does, and audits refuse to try."""
    assert certify(PAPER, SHARED, accountants=False).ledger.public_contexts
    assert not certify(AdaCOFUL(), SHARED, accountants=False).ledger.public_contexts
    world, other = (extreme_users(SHARED, 4, seed).tame() for seed in (1, 2))
    first, t = run(PAPER, SHARED, world), np.full(4, 7)
    changed = world.swapped(t, other, answers_only=True)
    assert not billboard_differences(first, run(PAPER, SHARED, changed, replay=first), t)
    with pytest.raises(AssertionError, match="when EpisodeMoments releases to be public"):
        run(PAPER, SHARED, world.swapped(t, other), replay=first)
    with pytest.raises(InputError, match="covers contexts"):
        audit(PAPER, SHARED, runs=400, progress=False)


def test_every_release_spends_the_whole_budget():
    """Golden: noise 2 / mu off the diagonal and in the moment, at C = 1 and rewards within 1."""
    spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True, reward_low=-1.0)
    for config in (AdaCOFUL(), AdaPrivateTS(), BatchedElimination()):
        agent = config.make(spec, Streams([0]))
        assert agent.gram_noise == pytest.approx(2 / mu_of(1.0, 1e-5))
        assert agent.moment_noise == pytest.approx(2 / mu_of(1.0, 1e-5))
        assert agent.ledger.mu == pytest.approx(mu_of(1.0, 1e-5))


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
        refuted = 0
        for _ in range(500):
            context = problem.context()
            action = agent.act(context)
            best = problem._linear(context).argmax(axis=1)
            refuted += (~agent.survivors(context)[np.arange(20), best]).sum()
            agent.update(context, action, problem.step(action).reward)
        lost[width] = refuted
    assert lost[1.0] == 0 < lost[0.01]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("ada-c-oful", {"epsilon": 1.0}),
        ("ada-c-oful", {"epsilon": 4.0, "calibration": "paper"}),
        ("batched-elimination", {"epsilon": 4.0, "width": 0.1}),
    ],
    ids=str,
)
def test_regret_is_that_of_the_reference(agent, settings):
    """|z| <= 4 for independent means has a false-alarm rate of 6e-5. Uniform play loses 2,150."""
    record = reproduce(
        "contextual/pr2",
        agent,
        settings=settings,
        horizon=5000,
        replicas=6,
        seed=11,
        progress=False,
    )
    assert abs(record["z"]) < 4
