"""What all who follow experts owe: one clear sentence on bad input, actions of their own."""

from math import inf

import numpy as np
import pytest

from dpbandit import InputError, audit
from dpbandit.agents import (
    EXPERTS,
    POCP,
    AdaptiveSparseVectorExperts,
    BinaryTreeExperts,
    PotentialExperts,
    SparseVectorExperts,
)
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Linear
from dpbandit.privacy.choices import EpochSelection
from dpbandit.privacy.ledger import Ledger
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec

LEARNERS = [name for name in EXPERTS if name not in ("uniform", "best-fixed")]
STAY = ("shrinking-dartboard", "exponential-mechanism", "follow-the-leader")


def test_losses_of_another_shape_are_refused_not_broadcast():
    """R = d = 4: a number a replica looks like a vector of losses."""
    for name in LEARNERS:
        agent = EXPERTS[name]().make(ExpertsSpec(n_actions=4, horizon=9), Streams(range(4)))
        action = agent.act(np.zeros((4, 4)))
        for shape in ((4,), (4, 1), (1, 4), (1,), (4, 5)):
            with pytest.raises(InputError, match="losses of shape"):
                agent.update(np.zeros((4, 4)), action, np.ones(shape))


def test_writing_on_an_action_changes_nothing():
    """Of agents that stay with an expert: not even what she is charged for."""
    for name in STAY:
        agent = EXPERTS[name]().make(ExpertsSpec(n_actions=4, horizon=9), Streams([0, 1]))
        first = agent.act(np.zeros((2, 4)))
        kept = first.copy()
        first += 1
        np.testing.assert_array_equal(agent.act(np.zeros((2, 4))), kept)


def test_edges():
    """One expert, few or many; one round; all lose nothing, everything, no numbers."""
    for config in (
        BinaryTreeExperts(),
        BinaryTreeExperts(parameters="small"),
        *(
            PotentialExperts(calibration=calibration, threshold_units=units)
            for calibration in ("certified", "paper")
            for units in ("corrected", "literal")
        ),
    ):
        for d in (1, 2, 70):
            for T in (1, 2, 12):
                for loss in (0.0, 1.0, np.nan):
                    agent = config.make(ExpertsSpec(n_actions=d, horizon=T), Streams(range(4)))
                    for _ in range(T):
                        action = agent.act(None)
                        assert ((action >= 0) & (action < d)).all()
                        agent.update(None, action, np.full((4, d), loss))


def test_bad_settings():
    """One sentence that names the setting."""
    for kind, bad in (
        (SparseVectorExperts, {"epsilon": 0.0, "delta": 1.0, "beta": 1.0, "best_loss": -1.0}),
        (SparseVectorExperts, {"lag": 1}),
        (AdaptiveSparseVectorExperts, {"first_loss": 0}),
        (BinaryTreeExperts, {"size": 0, "phases": 0, "threshold": -1.0, "c": 0.0, "beta": 1.0}),
        (BinaryTreeExperts, {"delta": 0.0}),
        (PotentialExperts, {"epsilon": inf, "alpha": 0.0, "draws": 0, "eta": 0.0}),
    ):
        for name, value in bad.items():
            with pytest.raises(InputError, match=f"{name}={value}"):
                kind(**{name: value})
    with pytest.raises(InputError, match="did you mean paper"):
        SparseVectorExperts(calibration="papers")
    with pytest.raises(InputError, match="delta"):
        AdaptiveSparseVectorExperts(calibration="paper", delta=1e-6)
    with pytest.raises(InputError, match="epsilon / 2 K"):
        PotentialExperts(eta=0.5).make(ExpertsSpec(n_actions=4, horizon=9), Streams([0]))
    with pytest.raises(InputError, match="uses"):
        EpochSelection(2, Streams([0]), "p", epsilon=1.0, draws=1, uses=2**21 + 1)
    for window in (-3, 0, 2.5, True):
        with pytest.raises(InputError, match="window"):
            Ledger((), window=window)


def test_an_audit_says_that_a_certificate_is_conditional():
    spec = ConvexSpec(loss=Linear(Ball(2)), horizon=24, feedback="datum")
    report = audit(POCP(), spec, runs=400, progress=False)
    assert "(conditional)" in str(report)
    assert report.as_dict()["restricted"] == "conditional"
