"""Greedy: turns first, then LinUCB without a bonus."""

import numpy as np
import pytest

from dpbandit.agents import Greedy, LinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec


@pytest.mark.parametrize(("shared", "turns"), [(False, 0), (True, 0), (True, 5)])
def test_without_turns_it_is_linucb_without_a_bonus(shared, turns):
    """Difference 0.0; arms that share a parameter take no turns at all."""
    curves = [
        play(
            problem_maker("GLMBandit")(horizon=300, shared=shared),
            config,
            range(5),
            marks=log_marks(300),
        ).regret
        for config in (Greedy(turns=turns), LinUCB(alpha=0))
    ]
    np.testing.assert_array_equal(*curves)


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
