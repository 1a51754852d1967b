"""FADE's bonus: standard deviations of privacy's noise, kept where nobody was sent."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.special import ndtr

from dpbandit.agents import FADE
from dpbandit.agents.contextual.fading_regression import LogisticPlayer
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec

PAIR = ContextualSpec(n_actions=2, dim=2, horizon=400)
SHARED = replace(PAIR, shared=True)
REPLICAS, BONUS = 2000, 1.5
LINEAR = FADE(model="regression", bonus=BONUS)


def taught(config, spec, rounds, replicas=REPLICAS):
    """An agent of whom all replicas saw the same users: first e1 alone, then arm 0 on e2, too."""
    agent, arms = config.make(spec, Streams(range(replicas))), np.arange(2)
    for t in range(rounds):
        late, arm = t >= rounds // 2, t % 2
        x = np.eye(2)[1 if late and arm == 0 else 0]
        context = np.outer(1 - 0.5 * arms, x) if spec.shared else x
        context = np.broadcast_to(context, (replicas, *context.shape))
        agent.update(context, np.full(replicas, arm), np.full(replicas, float(t % 3 == 0)))
    return agent


@pytest.mark.parametrize(
    ("config", "spec", "rounds"),
    [
        (LINEAR, PAIR, 150),
        (LINEAR, SHARED, 150),
        (replace(LINEAR, response="logistic"), SHARED, 40),
    ],
    ids=["arms", "shared", "logistic"],
)
def test_a_bonus_is_as_many_standard_deviations_of_a_prediction(config, spec, rounds, monkeypatch):
    """Statistical. All replicas saw the same users, so A theta = moment + noise differs by noise
    alone, and bonus s A^-1 turns theta into that in units of bonus s: of variance 1, whatever A is.
    False alarm 6e-7 a coordinate, 16 % off are caught. Newton steps are left as long as they are:
    those that are cut short scatter less."""
    monkeypatch.setattr(LogisticPlayer, "_longest_step", inf)
    monkeypatch.setattr(LogisticPlayer, "_ball", inf)
    agent = taught(config, spec, rounds)
    moment = np.linalg.solve(agent._width / BONUS, agent._theta[..., None])[..., 0]
    assert np.abs(moment.var(axis=0) - 1).max() < 5 * (2 / REPLICAS) ** 0.5 < 0.16


def test_scores_of_a_shared_parameter_are_predictions_and_bonus():
    agent, plain = (taught(replace(LINEAR, bonus=b), SHARED, 150, 5) for b in (BONUS, 0.0))
    x = np.array([[[0.6, 0.8], [0.1, 0.2]]] * 5)
    wide = np.linalg.norm(x @ agent._width[:, 0], axis=2)
    np.testing.assert_allclose(agent.scores(x), plain.scores(x) + wide / 2, rtol=1e-12)
    assert wide.min() > 0


def test_an_arm_of_its_own_is_tried_as_often_as_its_draw_is_the_largest():
    """Statistical. Where nobody was sent both arms are tried, and each about as often as
    P(N(0, 1) > difference of predictions over the length of both widths); a fixed bonus would send
    all users to one. False alarm 1e-5, .01 off is caught."""
    agent = taught(LINEAR, PAIR, 300, 1)
    x, n = np.array([0.3, 0.9]), 60_000
    low, high = (2 * agent.scores(x[None])[0] - 1).tolist()  # rewards on a scale from -1 to 1
    width = np.linalg.norm(np.einsum("kij,j->ki", agent._width[0], x))
    expected = ndtr((high - low) / width)
    assert 0.05 < expected < 0.95
    tried = agent.act(np.broadcast_to(x, (n, 1, 2))).mean()
    assert abs(tried - expected) < 4.5 * (expected * (1 - expected) / n) ** 0.5 < 0.01


def test_the_latest_release_counts_more():
    """Golden: a release at fade 0.5 counts 1 + 0.5 0.5 / (1 - 0.5) = 1.5 times where it is the
    latest: without noise, and with the ridge of one user, the fit is that of these sums."""
    config = replace(LINEAR, epsilon=inf, fade=0.5, first_batch=40, growth=0.0, shift=1e-9)
    spec = ContextualSpec(n_actions=2, dim=1, horizon=200)
    agent = config.make(spec, Streams([0]))
    one, arm = np.ones((1, 1)), np.zeros(1, np.int64)
    for t in range(80):
        agent.update(one, arm, np.array([1.0 if t < 40 else 0.0]))
    # releases: 40 rewards of 1, then half of these and 40 of -1; each has weight 1
    moment, gram = 40 + 1.5 * (20 - 40), 40 + 1.5 * (20 + 40)
    assert 2 * agent.scores(one)[0, 0] - 1 == pytest.approx(moment / (gram + 1), rel=1e-6)


def test_by_default_arms_of_their_own_have_a_bonus_and_a_shared_parameter_none():
    plain = FADE(model="regression")
    made = [config.make(PAIR, Streams([0]))._bonus for config in (plain, replace(plain, bonus=0.5))]
    assert made == [1.5, 0.5]
    assert plain.make(SHARED, Streams([0]))._bonus == 0.0
    assert LINEAR.make(SHARED, Streams([0]))._bonus == BONUS


def test_what_was_never_tried_keeps_its_width():
    """On e2 only arm 0 was played; on e1, both."""
    agent = taught(LINEAR, PAIR, 300)
    on_e2 = np.linalg.norm(agent._width[..., 1], axis=2).mean(axis=0)
    on_e1 = np.linalg.norm(agent._width[..., 0], axis=2).mean(axis=0)
    assert on_e2[1] > 1.3 * on_e2[0]
    assert on_e2[1] > 1.3 * on_e1.max()


def test_without_noise_there_is_no_bonus_and_elsewhere_it_is_refused():
    agent = taught(replace(LINEAR, epsilon=inf), PAIR, 150, 2)
    assert not agent._width.any()
    for model in ("arms", "moments"):
        with pytest.raises(InputError, match=r"Expected bonus=1\.0 only with model=regression or"):
            FADE(model=model, bonus=1.0).make(PAIR, Streams([0]))
    with pytest.raises(InputError, match="Expected bonus=-1 to be a finite number >= 0"):
        FADE(bonus=-1)
