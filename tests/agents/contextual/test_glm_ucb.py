"""GLM-UCB: LinUCB where the link is the identity, units of the reward elsewhere."""

import numpy as np
import pytest

from dpbandit.agents import GLMUCB, LinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec


@pytest.mark.parametrize("shared", [False, True])
def test_identity_link_is_linucb_bit_for_bit(shared):
    curves = [
        play(
            problem_maker("GLMBandit")(horizon=300, shared=shared),
            config,
            range(5),
            marks=log_marks(300),
        ).regret
        for config in (
            GLMUCB(alpha=0.7, regularization=0.4),
            LinUCB(alpha=0.7, regularization=0.4),
        )
    ]
    np.testing.assert_array_equal(*curves)


def test_first_bound_by_hand():
    """Golden: nothing seen, prior variance 1 / 0.25 = 4, x = 0.5: width sqrt(0.25 * 4) = 1; alpha 2
    gives predictor 2, so the score is low + span / (1 + e^-2) = -1 + 3 * 0.880797 = 1.642391."""
    spec = ContextualSpec(
        n_actions=2, dim=1, horizon=9, link="logistic", reward_low=-1.0, reward_high=2.0
    )
    agent = GLMUCB(alpha=2.0, regularization=0.25).make(spec, Streams([0]))
    assert agent.scores(np.array([[0.5]])) == pytest.approx(1.642391, abs=1e-6)
