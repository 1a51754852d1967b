"""FADE asks its first users: what it chooses, whom it does not ask, and who pays for an answer."""

from dataclasses import replace
from functools import partial
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify, compare
from dpbandit.agents import FADE, FadeArms, FadeAsking, Guard, PerPerson
from dpbandit.agents.contextual.fade_asking import Means
from dpbandit.base.random_streams import Streams
from dpbandit.envs import RecommendationFromLog, ReturningUsers
from dpbandit.privacy import SecondMoments
from dpbandit.privacy.chosen_scores import ALTERNATIVE, SIGNED, ChosenScores
from dpbandit.privacy.premises import ALL_FACTS
from dpbandit.privacy.residuals import SignedResiduals
from dpbandit.specs import Prior
from dpbandit.testing.checks import check_agent, check_joint_dp
from tests.agents.contextual.runs import contextual
from tests.agents.contextual.test_fade import adversaries
from tests.each import each, refused

asked = partial(contextual, n_actions=3, dim=4, horizon=2_000, reward_low=0.0)
FEW = {"link": "other", "dim": 3, "horizon": 6_000}
"""Fields of a problem on which regression is the model of answers"""


@each(
    ("link", "rewards", "model", "level", "turn"), [
        ("other", [0.0, 1.0], ALTERNATIVE, 0.0, 0.4), ("other", [0.0, 1.0], SIGNED, 0.0, -0.4),
        ("other", [0.0, 0.0, 0.0, 1.0], ALTERNATIVE, -0.25, -1), ("other", [0.8], SIGNED, 0.3, 1),
        ("other", [0.0, 1.0, 0.6], ALTERNATIVE, 0.1 / 3, 1),
        ("other", [0.0] * 35 + [0.1], ALTERNATIVE, 0.1 / 36 - 0.5, 1),
        ("other", [0.0] * 16 + [0.1, 0.2], SIGNED, 0.3 / 18 - 0.5, 1),
        ("other", [0.0] * 16 + [0.5, 0.6], ALTERNATIVE, 1.1 / 18 - 0.5, 1),
        ("logistic", [0.2], SIGNED, 0.0, 1),
        ("other", [0.25, 0.5, 0.0], SIGNED, -0.25, 1), ("logistic", [0.0, 1.0], SIGNED, 0.0, 1),
        ("other", [-9.0, 0.5, 0.5, 99.0], ALTERNATIVE, 0.0, 1),
        ("logistic", [0.0, 1.0, 1.0, 1.0], ALTERNATIVE, 0.0, 1),
        ("logistic", [0.0, 1.0, 1.0], SIGNED, 0.0, 1),
    ],
)  # fmt: skip
def test_released_answers_choose_model_level_and_centre(link, rewards, model, level, turn):
    """Golden, without noise: rewards are answers if at most 5 % are inside the range, or at most
    half and these so far off that m^2 e / (1 - e) > 0.11^2, m their mean, e the others; they have
    the model of answers if more than 0.2 of the range off the middle, or without a link if contexts
    are alike: of x and t x the mean has (1 + t)^2 / (2 + 2 t^2) of the mean |x|^2. Levels are in
    rewards. Arms have the mean for centre, and a constant without a link or if the mean has a tenth
    of the mean |x|^2; scores of numbers are wider if a fifth of the rewards are at an end."""
    agent = FadeAsking(epsilon=inf, first_batch=36).make(asked(link=link), Streams([0]))
    x = np.array([[0.3, 0.2, -0.1, 0.0]])
    for t in range(36):
        assert agent.rounds_to_release == 1
        context = x * (turn if t % 2 else 1.0)
        agent.update(context, agent.act(context), np.array([rewards[t % len(rewards)]]))
    assert agent.rounds_to_release > 1
    assert agent._part.tolist() == [model]
    assert agent._arms._law.level == pytest.approx([level], abs=1e-9)
    centre = x * (1 + turn) / 2
    assert agent._alternative._centre == pytest.approx(centre, abs=1e-12)
    assert agent._arms.centred == (link == "other")
    assert agent._arms._centre == pytest.approx(centre * agent._arms.centred, abs=1e-12)
    skewed = np.mean([not 0 < one < 1 for one in rewards]) > 0.2
    assert link != "other" or agent._arms._law._soft.tolist() == [2.0 if skewed else 1.0]
    assert agent._arms._answers.tolist() == [False]  # without noise


@each(
    ("epsilon", "rewards", "middle"), [
        (1.0, [0, 1], True), (6.5, [0, 1], True), (6.6, [0, 1], False), (1.0, [0.4, 0.6], False),
    ],
)  # fmt: skip
def test_answers_are_compared_with_the_middle_if_noise_is_large(epsilon, rewards, middle):
    """Golden: 40 to 60 users are asked, and their shares have noise of up to 0.06. The slope of
    signs is that of answers, 1 / half the range, and their expectation does not depend on
    releases. Noise 2 sqrt(8) / mu of a Gram matrix is above 4, its sampling error, if mu < 1.41."""
    agent = FadeAsking(epsilon=epsilon).make(asked(link="logistic"), Streams(range(3)))
    while not agent._released:
        answer = np.array(rewards)[agent.round % 2 * np.ones(3, int)]
        agent.update(np.full((3, 4), 0.4), np.zeros(3, int), answer)
    assert (agent._part == SIGNED).all()
    assert (agent._arms._answers == middle).all()
    slope = agent._arms._design[:, 0].trace(axis1=1, axis2=2) / (agent.round - agent._queried) * 3
    assert (np.isclose(slope, 2) == middle).all()
    assert agent._arms._theta.any()
    compared = agent._arms.reference(np.zeros(3, int)).theta
    assert (not compared.any()) == middle
    while not len(agent._arms._ends) > 1:
        agent.update(np.full((3, 4), 0.4), np.zeros(3, int), np.array(rewards)[np.zeros(3, int)])
    assert (not agent._arms._offset.any()) == middle


@each(
    ("epsilon", "link", "size"), [
        (1.0, "logistic", 2), (10.0, "logistic", 7), (1.0, "other", 7), (inf, "logistic", 7),
    ],
)  # fmt: skip
def test_contexts_are_asked_if_answers_stay_precise(epsilon, link, size):
    """Golden: with a link, if the share of answers has noise of at most 0.1 beside them."""
    agent = FadeAsking(epsilon=epsilon).make(asked(link=link), Streams(range(3)))
    assert agent._questions.size == size
    for _ in range(agent._queried):
        agent.update(np.full((3, 4), 0.4), np.zeros(3, int), np.ones(3))
    assert agent._alternative._centre.any() == (size > 2)


@each(("times", "share"), [(0.9, 0), (3, 2 / 3), (4, 3 / 4)])
def test_noise_is_taken_off_the_mean_of_contexts(times, share):
    """Golden: a released mean has `times` the square of its noise in 4 coordinates."""
    agent = FadeAsking().make(asked(link="other"), Streams([0]))
    questions, direction = agent._questions, np.array([[0.0, 0.6, -0.8, 0.0]])
    noise = 2 / questions.mu / questions.users / 0.9
    mean = sqrt(4 * times) * noise * direction
    zero = np.zeros(1)
    told = questions.mean_context(Means(zero, zero, zero + 0.5, mean))
    assert told == pytest.approx(share * mean)


@each(
    ("rewards", "model"), [
        ([0.0, 1.0, 0.3], ALTERNATIVE), ([0.0] * 16 + [0.1, 0.2], SIGNED), ([0.2, 0.4], SIGNED),
    ],
)  # fmt: skip
def test_regression_plays_answers_on_few_features(rewards, model):
    """Golden, without noise: of 3 features no centre is learned; the regression plays answers.
    The moments that are summed are those of `FadeTrying`."""
    spec = asked(link="other", dim=3, horizon=6_000)
    agent = FadeAsking(epsilon=inf, first_batch=36).make(spec, Streams([0]))
    rng, totals = np.random.default_rng(0), 0.0
    for t in range(72):
        x = rng.uniform(-0.5, 0.5, (1, 3))
        action, reward = agent.act(x), np.array([rewards[t % len(rewards)]])
        if t >= 36:
            totals += agent._alternative.statistic.total(
                x[None], action[None], 2 * reward[None] - 1
            )
        agent.update(x, action, reward)
    assert agent._part.tolist() == [model]
    gram, moment = (
        agent._alternative.statistic.unpack(totals) if model == ALTERNATIVE else (0.0, 0.0)
    )
    scale = agent._alternative._gram.max() / np.max(gram) if model == ALTERNATIVE else 0.0
    np.testing.assert_allclose(agent._alternative._gram, scale * gram, rtol=1e-9)
    np.testing.assert_allclose(agent._alternative._moment, scale * moment, rtol=1e-9, atol=1e-12)
    assert (agent._arms._precision.max() > 0) == (model == SIGNED)


@each("privately", [False, True])
def test_arms_around_a_centre_learn_levels_and_slopes(privately):
    """Statistical: mean rewards are linear in a constant and the direction from a centre. After
    4,000 rounds predictions for the best arms are off by less than 0.06, in the average over 20
    replicas, which has standard errors of about 0.01; their range is 0.4."""
    spec = asked(link="other", dim=2, horizon=4_001)
    epsilon = 20.0 if privately else inf
    agent = FadeArms(epsilon=epsilon, level=False, centred=True).make(spec, Streams(range(20)))
    turns = 2 * np.pi * np.arange(12) / 12
    u = np.column_stack([np.cos(turns), np.sin(turns)])
    # of random play: E u u', and with weights E v u', to which the agent's is near
    known, weights = np.column_stack([np.full(12, 0.3), sqrt(0.91) * u]), np.array([2, 0.5, 0.5])
    np.testing.assert_allclose(agent._moments[0][0, 0], known.T @ known / 36, atol=1e-12)
    weighted = known * weights / np.linalg.norm(known * weights, axis=1, keepdims=True)
    other = FadeArms(level=False, centred=True).make(spec, Streams([0]))
    other._weights = np.tile(weights, (1, 3, 1))
    other._add(np.zeros((1, 3, 3)), other._moments[0])
    np.testing.assert_allclose(other._design[0, 0], weighted.T @ known / 36, atol=1e-3)
    centre, rng = np.array([0.5, -0.3]), np.random.default_rng(3)
    agent.start_contexts(np.tile(centre, (20, 1)))
    level, slope = np.array([0.6, 0.5, 0.4]), np.array([[0.2, 0.1], [-0.2, 0.1], [0.0, -0.2]])
    while agent.round < 4_000:
        u = rng.standard_normal((20, 2))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        x = centre + 0.3 * u
        arm = agent.act(x)
        mean = (level + u @ slope.T)[np.arange(20), arm]
        agent.update(x, arm, mean + 0.05 * rng.standard_normal(20))
    u = np.column_stack([np.cos(turns), np.sin(turns)])
    best = (level + u @ slope.T).argmax(axis=1)
    found = np.stack([agent.scores(np.tile(centre + 0.3 * one, (20, 1))) for one in u])
    off = found.mean(axis=1) - (level + u @ slope.T)
    assert np.abs(off[np.arange(12), best]).max() < 0.06


@each(
    "changed", [{"moment_weight": 1.0}, {"moment_clip": 0.5}, {"precise_trace": True}]
)  # fmt: skip
def test_moments_that_would_cost_more_are_refused(changed):
    """Golden: beside residuals moments have a weight of sqrt(2), no clip and no precise trace."""
    settings = {"n_actions": 3, "dim": 3, "reward_low": -1.0, "moment_weight": sqrt(2)} | changed
    signed = SignedResiduals(n_actions=3, dim=3)
    refused("moment_weight", ChosenScores, signed=signed, alternative=SecondMoments(**settings))


def test_answers_are_played_at_random_for_a_first_batch_of_their_own():
    """Golden, without noise: after 40 questions come 120 rounds at random, 40 for each arm, though
    scores are released after 30; then the arm that alone earns is played, by draws near theta."""
    agent = FadeAsking(epsilon=inf).make(asked(link="logistic"), Streams(range(50)))
    x, share = np.ones((50, 4)) / 2, []
    for t in range(200):
        action = agent.act(x)
        share.append((action == 0).mean())
        agent.update(x, action, 1.0 * ((action == 0) | (t < 40)))
    assert max(share[:160]) < 2 / 3 < 0.9 < min(share[170:])
    off = np.abs(agent._alternative._played - agent._alternative._theta).max(axis=(1, 2))
    assert 0 < off.min() < off.max() < 0.5


@each(
    ("changed", "fields"), [
        ({"asks": False}, {}), ({"prior": Prior([0.0] * 12, 1.0)}, {}),
        ({"trust": "aggregated", "fade": 0.0}, {}), ({"anytime": True}, {}),
        ({"centring": "private"}, {}), ({"model": "arms"}, {}), ({"coding": "rewards"}, {}),
        ({}, {"delay": 3}), ({}, {"dim": 3}), ({}, {"link": "probit"}), ({}, {"horizon": 500}),
        ({"first_batch": 28}, {}), ({"epsilon": 0.1}, {"horizon": 5_000}),
        ({}, {"masks": "public"}), ({}, {"masks": "user"}),
    ],
)  # fmt: skip
def test_who_is_not_asked(changed, fields):
    """Golden: noise of at most a fifth in the share of answers, and without a link 4 features."""
    for link in ("other", "logistic")[: 1 + (fields != {"dim": 3})]:
        assert isinstance(FADE().chosen(asked(link=link)), FadeAsking)
        spec = asked(**{"link": link, **fields})
        assert not isinstance(FADE(**changed).chosen(spec), FadeAsking)


def test_who_returns_or_may_be_vetoed_is_not_asked():
    """Golden: their wrappers play the variant without questions, at its own noise."""
    visit = asked(link="logistic", horizon=4_000)
    people = replace(ReturningUsers(horizon=4_000, people=400).spec, visit=visit)
    assert isinstance(FADE().chosen(people.visit), FadeAsking)
    wrapped = PerPerson(FADE()).make(people, Streams([0]))
    assert not isinstance(wrapped.inner, FadeAsking)
    assert wrapped.ledger == PerPerson(FADE(asks=False)).make(people, Streams([0])).ledger
    guarded = Guard(FADE()).make(asked(link="other"), Streams([0]))
    assert not isinstance(guarded.inner, FadeAsking)


@each("fields", [{"link": "other"}, {"link": "logistic"}, FEW])
def test_a_user_moves_the_sum_by_at_most_1_whatever_her_part_is(fields):
    """600 users, each replacing the first of 30 in a block, with a part of their own; and each
    asked, where a vector of norm 1 against its opposite moves the sum by 2."""
    spec = asked(**fields)
    agent = FadeAsking().make(spec, Streams(range(600)))
    statistic, rng = agent.statistic, np.random.default_rng(1)
    x, action, reward = (np.tile(one, (30, *[1] * one.ndim)) for one in adversaries(spec, 600, 2))
    x[1:], action[1:], reward[1:] = x[1:, :1], action[1:, :1], reward[1:, :1]  # the same others
    part = np.full((30, 600), ALTERNATIVE)
    part[0] = rng.integers(2, size=600)
    with np.errstate(all="ignore"):
        reference = agent._references(x, action, reward)
        moved = statistic.total(part, *reference, x, action, reward) / statistic.units
    told = agent._questions.vectors(x[0], reward[0])
    for vectors, bound in ((moved, 1), (told, 2)):
        furthest = max(np.linalg.norm(vectors - one, axis=1).max() for one in vectors)
        assert 0.7 * bound <= furthest <= bound + 1e-9


class AskedTwice(FadeAsking):
    """Broken: the users who are asked are summed, too."""

    hands_on = ALL_FACTS

    def update(self, context, action, feedback):
        if self.round == 0:
            part, given = np.zeros(action.shape, int), self._references(context, action, feedback)
            self.sums(part, *given, context, action, feedback)
        if self.round < self.spec.horizon - 1:  # the sums take one round less
            super().update(context, action, feedback)


@each("fields", [{"link": "other"}, {"link": "logistic"}, FEW])
def test_replicas_choose_and_the_ledger_covers_it(fields):
    """With noise replicas choose different models, and still do not know each other; a user who is
    asked and summed is found."""
    spec = asked(**fields | {"horizon": 40})
    agent = FadeAsking().make(spec, Streams(range(30)))
    for _ in range(agent._queried):
        agent.update(np.ones((30, spec.dim)) / 2, np.zeros(30, int), np.ones(30))
    assert {SIGNED, ALTERNATIVE} == {*agent._part.tolist()}
    assert "replicas: six equal three runs" in check_agent(FadeAsking(), spec)
    assert certify(FadeAsking(), spec).epsilon == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(AssertionError, match="hear no user twice"):
        check_joint_dp(AskedTwice(), spec)


@pytest.mark.slow
def test_regret_falls_with_epsilon_on_a_log_of_clicks():
    """Statistical: one-sided, at 3 standard errors of 12 runs (false alarm below 1 %). Without
    questions regret at epsilon 10 is not below that at 1 on such logs."""
    rng = np.random.default_rng(3)
    x, item = rng.uniform(-1, 1, (20_000, 3)), rng.integers(6, size=20_000)
    base, slopes = rng.normal(-2.2, 0.6, 6), rng.normal(0, 0.9, (6, 3))
    clicks = rng.random(20_000) < 1 / (1 + np.exp(-base[item] - (x * slopes[item]).sum(axis=1)))
    data = {"item": item, "click": 1 * clicks, **dict(zip("abc", x.T, strict=True))}
    ranges = dict.fromkeys("abc", (-1, 1))
    log = RecommendationFromLog(data, items=range(6), features=ranges, horizon=8_000)
    agents = {str(epsilon): FADE(epsilon=epsilon) for epsilon in (0.3, 1.0, 10.0, inf)}
    found = compare(log, agents, replicas=12, seed=7).summary().set_index("agent")
    mean, error = found["mean"], found["se"]
    for less, more in zip(list(agents)[:-1], list(agents)[1:], strict=True):
        assert mean[more] <= mean[less] + 3 * np.hypot(error[more], error[less])
    assert mean["10.0"] < 0.7 * mean["0.3"]
