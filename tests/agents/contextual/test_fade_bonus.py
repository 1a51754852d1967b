"""FADE's bonus: standard deviations of privacy's noise, kept where nobody was sent."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

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


def test_scores_are_predictions_and_bonus():
    agent, plain = (taught(replace(LINEAR, bonus=b), PAIR, 150, 5) for b in (BONUS, 0.0))
    x = np.array([[0.6, 0.8]] * 5)
    wide = np.linalg.norm(np.einsum("rkij,rj->rki", agent._width, x), axis=2)
    np.testing.assert_allclose(agent.scores(x), plain.scores(x) + wide / 2, rtol=1e-12)
    assert wide.min() > 0


def test_by_default_arms_of_their_own_have_a_bonus_and_a_shared_parameter_none():
    plain = FADE(model="regression")
    made = [config.make(PAIR, Streams([0]))._bonus for config in (plain, LINEAR)]
    assert made == [2.0, BONUS]
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
