"""An algorithm as one class: what a description is, and what runs."""

from copy import deepcopy
from dataclasses import FrozenInstanceError

import pytest

from dpbandit import certify
from dpbandit.agents import DPUCB, BallExperts
from dpbandit.base.random_streams import Streams
from tests.harness import SHARED


def test_a_description_stays_as_it_was_made_and_equals_its_like():
    """Caught are settings that can be set or deleted, a running agent that equals its description
    or another one, and two that share what they learn."""
    told = DPUCB(epsilon=2.0)
    first, second = (told.make(SHARED, Streams([0])) for _ in range(2))
    assert told == DPUCB(epsilon=2.0) == deepcopy(told) != DPUCB()
    assert len({told, DPUCB(epsilon=2.0), first, second}) == 3
    assert first == first != second != told
    assert first.sums is not second.sums
    for agent in (told, first):
        with pytest.raises(FrozenInstanceError, match="stay as it was made"):
            agent.epsilon = 1.0
        with pytest.raises(FrozenInstanceError, match="stay as it was made"):
            del agent.epsilon


def test_large_targets_of_experts_on_a_ball_are_met():
    """The closed form is below what the composed curve certifies there; before, 18.04 for 18."""
    for epsilon in (18.0, 25.0):
        agent = BallExperts(epsilon=epsilon, delta=1e-5)
        proof = certify(agent, "OnlineConvex", horizon=2000, accountants=False)
        assert 0.98 * epsilon < proof.epsilon <= epsilon
