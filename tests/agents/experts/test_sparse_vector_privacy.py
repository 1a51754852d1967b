"""Sparse vector experts: exact laws of all transcripts, mistakes found by them, code against them.

For every 0/1 sequence of losses of two experts the law of the whole transcript is enumerated
(`sparse_vector_laws`, which shares nothing with the code); epsilon is its largest log-ratio.
"""

from collections import Counter

import numpy as np
import pytest

from dpbandit.agents.experts.calibration import SparseVectorPlan
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base.random_streams import Streams
from dpbandit.specs.convex import ExpertsSpec
from tests.agents.experts.sparse_vector_laws import Player
from tests.privacy.choices.test_sparse_vector import p_value

ONE = Player()


@pytest.mark.parametrize(
    ("player", "T", "expected"),
    [(ONE, 5, 0.858), (Player(K=2), 4, 1.059)],
    ids=["one draw", "two draws"],
)
def test_epsilon_is_kept(player, T, expected):
    """Golden: an independent program's enumeration, at eps1 = 0.6, eta = 0.4; K draws and all tests
    may cost eps1 + K eta."""
    worst = player.worst(T)
    assert worst == pytest.approx(expected, abs=6e-4)
    assert worst <= player.eps1 + player.K * player.eta


def test_enumeration_finds_a_mistake():
    """Broken on purpose, draws of twice the weight: more than eps1 + K eta = 1."""
    assert ONE.but(weight=1.0).worst(5) == pytest.approx(1.213, abs=6e-4)


SEQUENCE = ((1, 0), (1, 1), (0, 1), (1, 1), (1, 0), (1, 1))
EXTREME = {"eps1": 2.0, "eta": 3.0, "margin": 1.5}
"""So much budget that each step of a transcript shows whether it follows data as it should."""

HASTY = Player(restarts=True, best_loss=0.25, eps1=8.0, eta=3.0, margin=0.1)
"""It restarts often."""


def transcripts(player, R, copies=1):
    """What R replicas of the code did, {transcript: count}; `copies` of each of the two experts."""
    plan = SparseVectorPlan(
        player.K,
        player.eta,
        player.margin,
        player.eps1 / player.scales[0],
        player.eps1 / player.scales[1],
        noise=player.noise,
    )
    spec = ExpertsSpec(n_actions=2 * copies, horizon=len(SEQUENCE))
    kwargs = {"best_loss": player.best_loss, "restarts": player.restarts, "lag": player.lag}
    agent = PlannedSegments(plan=plan, **kwargs).make(spec, Streams(range(R)))
    past = [(x // copies,) for x in agent.act(None).tolist()]
    frozen = np.zeros(R, dtype=bool)
    for t, losses in enumerate(SEQUENCE[:-1], start=1):
        drawn, epoch = agent.drawn, agent.epoch
        told = np.broadcast_to(np.repeat(np.array(losses, dtype=float), copies), (R, 2 * copies))
        agent.update(told, agent.act(told), told)
        moved = (agent.drawn > drawn) | (agent.epoch > epoch)
        for r in np.flatnonzero(moved):
            past[r] = (*past[r], t, int(agent.expert[r]) // copies)
        for r in np.flatnonzero(agent.frozen & ~frozen):
            past[r] = (*past[r], t)
        frozen = agent.frozen
    return Counter(past)


@pytest.fixture(autouse=True)
def few_numbers_ahead(monkeypatch):
    """Streams draw blocks for thousands of rounds, which these agents do not live to see."""
    monkeypatch.setattr("dpbandit.base.random_streams._VALUES_AHEAD", 16)


def agreement(counts, player):
    """p-value of chi-square; a transcript without probability has none."""
    law = player.transcripts(SEQUENCE)
    if counts.keys() - law.keys():
        return 0.0
    return p_value(np.array([counts[key] for key in law]), np.array(list(law.values())))


@pytest.mark.parametrize(
    ("player", "R", "others"),
    [
        (
            Player(**EXTREME),
            8000,
            [{"weight": 1.0}, {"scales": (1.15, 1.15)}, {"broken": "overlap"}],
        ),
        (
            Player(noise="laplace", scales=(2.0, 4.0), K=2, lag=True, **EXTREME),
            5000,
            [{"scales": (2.0, 2.0)}, {"lag": False}, {"K": 1}],
        ),
        (HASTY, 4000, [{"broken": "keeps S"}, {"weight": 0.25}]),
    ],
    ids=["one draw", "printed noise and lag", "restarts"],
)
def test_code_has_the_enumerated_law(player, R, others):
    """Statistical: chi-square of thousands of runs over all transcripts. False alarm 1e-6 per
    change of seed; laws of mistakes are refused (asserted)."""
    counts = transcripts(player, R)
    assert agreement(counts, player) > 1e-6
    for changes in others:
        assert agreement(counts, player.but(**changes)) < 1e-6, changes


def test_copies_of_experts_change_nothing():
    """Statistical, as above: three copies of each expert, told apart by name only."""
    player = Player(K=2, **EXTREME)
    assert agreement(transcripts(player, 3000, copies=3), player) > 1e-6
