"""What experts' agents owe: a claim kept on a grid, and one clear sentence on bad input."""

from itertools import product
from math import inf

import numpy as np
import pytest

from dpbandit import InputError, audit, certify
from dpbandit.agents import (
    EXPERTS,
    POCP,
    AdaptiveSparseVectorExperts,
    BallExperts,
    BinaryTreeExperts,
    ExponentialLeader,
    ShrinkingDartboard,
)
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Linear, Squared
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.choices.epochs import EpochSelection
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec

LEARNERS = [name for name in EXPERTS if name not in ("uniform", "best-fixed")]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("shape", [(4,), (4, 1), (1, 4), (1,), (4, 5)])
def test_losses_of_another_shape_are_refused_not_broadcast(name, shape):
    """R = d = 4: a number a replica looks like a vector of losses."""
    agent = EXPERTS[name]().make(ExpertsSpec(n_actions=4, horizon=9), Streams(range(4)))
    action = agent.act(np.zeros((4, 4)))
    with pytest.raises(InputError, match="shape"):
        agent.update(np.zeros((4, 4)), action, np.ones(shape))


@pytest.mark.parametrize(
    "name", ["shrinking-dartboard", "exponential-mechanism", "follow-the-leader"]
)
def test_writing_on_an_action_changes_nothing(name):
    """Of agents that stay with an expert: not even what she is charged for."""
    agent = EXPERTS[name]().make(ExpertsSpec(n_actions=4, horizon=9), Streams([0, 1]))
    first = agent.act(np.zeros((2, 4)))
    kept = first.copy()
    first += 1
    np.testing.assert_array_equal(agent.act(np.zeros((2, 4))), kept)


def test_certificates_on_a_grid():
    """Plans are searched for; what is returned has been tried, wherever the search ends."""
    for epsilon, d, T in product((1 / 3, 1.3, 7.7), (2, 17), (37, 1000)):
        spec = ExpertsSpec(n_actions=d, horizon=T)
        for config in (
            ShrinkingDartboard(epsilon=epsilon, delta=1e-6),
            ExponentialLeader(epsilon=epsilon, delta=0.0),
        ):
            ledger = config.make(spec, Streams([0])).ledger
            assert ledger.delta(epsilon) <= config.delta
            assert certify(config, spec, accountants=False).holds


def test_a_loss_whose_range_is_not_verified_gets_no_exact_sampler():
    """A family that leaves its public range would move a draw by more than its certificate."""

    class Steeper(Squared):
        value_range = (0.0, 0.05)

    spec = ConvexSpec(loss=Steeper(Ball(2)), horizon=50, feedback="datum")
    with pytest.raises(InputError, match="not verified"):
        BallExperts().make(spec, Streams([0]))
    assert certify(BallExperts(calibration="heuristic"), spec).epsilon == inf


def test_a_threshold_of_zero_is_a_threshold():
    spec = ExpertsSpec(n_actions=4, horizon=50)
    assert BinaryTreeExperts(threshold=0.0, delta=1e-6).plan(spec).threshold == 0


def test_an_audit_says_that_a_certificate_is_conditional():
    spec = ConvexSpec(loss=Linear(Ball(2)), horizon=24, feedback="datum")
    report = audit(POCP(), spec, runs=400, progress=False)
    assert "(conditional)" in str(report)
    assert report.as_dict()["restricted"] == "conditional"


@pytest.mark.parametrize("window", [-3, 0, 2.5, True])
def test_windows_are_whole_numbers(window):
    with pytest.raises(InputError, match="window"):
        Ledger((), window=window)


def test_what_cannot_be_promised_is_refused():
    with pytest.raises(InputError, match="delta"):
        AdaptiveSparseVectorExperts(calibration="paper", delta=1e-6)
    with pytest.raises(InputError, match="uses"):
        EpochSelection(2, Streams([0]), "p", epsilon=1.0, draws=1, uses=2**21 + 1)
