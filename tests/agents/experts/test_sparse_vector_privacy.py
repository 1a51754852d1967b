"""Sparse vector experts: exact laws of all transcripts, mistakes found by them, code against them.

For every 0/1 sequence of losses of two experts the law of the whole transcript is enumerated
(`sparse_vector_laws`, which shares nothing with the code); epsilon is its largest log-ratio.
"""

from collections import Counter
from math import log

import numpy as np
import pytest

from dpbandit.agents.experts.calibration import SparseVectorPlan
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base.random_streams import Streams
from dpbandit.specs.convex import ExpertsSpec
from tests.agents.experts.sparse_vector_laws import Player
from tests.privacy.choices.test_sparse_vector import p_value

ONE, ADAPTIVE = Player(), Player(restarts=True, best_loss=1.0)
TEXTBOOK = Player(noise="laplace", scales=(2.0, 4.0), margin=1.0)


@pytest.mark.parametrize(
    ("player", "T", "expected"),
    [
        (ONE, 5, 0.858),
        (Player(noise="laplace"), 5, 0.843),
        (TEXTBOOK, 5, 0.433),
        (Player(K=2), 4, 1.059),
        (ADAPTIVE, 5, 0.839),
    ],
    ids=["exponential", "laplace", "textbook", "two draws", "restarts"],
)
def test_epsilon_is_kept(player, T, expected):
    """Golden: an independent program's enumeration, at eps1 = 0.6, eta = 0.4; K draws and all tests
    may cost eps1 + K eta, with the printed scales of noise eps1/2 + K eta."""
    tests = player.eps1 / min(player.scales)
    worst = player.worst(T)
    assert worst == pytest.approx(expected, abs=6e-4)
    assert worst <= tests + player.K * player.eta


@pytest.mark.parametrize("changes", [{"lag": True}, {"margin": 1.0}, {"best_loss": 1.0}], ids=str)
def test_epsilon_is_kept_by_variants(changes):
    """Exact: a round of lag, a low threshold, a floor."""
    assert ONE.but(**changes).worst(5) <= 1.0


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (ONE.but(scales=(0.5, 0.5)), 1.458),
        (ONE.but(weight=1.0), 1.213),
        (ONE.but(broken="overlap"), 1.400),
        (ONE.but(broken="no threshold noise"), None),
        (ONE.but(broken="wrong side"), None),
        (ADAPTIVE.but(broken="keeps S"), 1.020),
    ],
    ids=["half scales", "exp(-eta S)", "overlap", "no rho", "wrong side", "restart keeps S"],
)
def test_enumeration_finds_mistakes(broken, expected):
    """Broken on purpose: all exceed eps1 + K eta = 1. Overlap: a segment begins with the round that
    was tested last. Without rho, or with its sign wrong, what can happen in one world cannot in the
    other."""
    worst = broken.worst(5)
    assert worst > 1.01
    if expected:
        assert worst == pytest.approx(expected, abs=6e-4)


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
    ("player", "others"),
    [
        (Player(**EXTREME), [{"weight": 1.0}, {"scales": (1.15, 1.15)}, {"broken": "overlap"}]),
        (Player(K=2, lag=True, **EXTREME), [{"lag": False}, {"K": 1}]),
        (Player(noise="laplace", scales=(2.0, 4.0), K=2, **EXTREME), [{"scales": (2.0, 2.0)}]),
        (HASTY, [{"broken": "keeps S"}, {"weight": 0.25}]),
    ],
    ids=["one draw", "lag", "printed noise", "restarts"],
)
def test_code_has_the_enumerated_law(player, others):
    """Statistical: chi-square of 8,000 runs over all transcripts. False alarm 1e-6 per change of
    seed; laws of mistakes are refused (asserted)."""
    counts = transcripts(player, 8000)
    assert agreement(counts, player) > 1e-6
    for changes in others:
        assert agreement(counts, player.but(**changes)) < 1e-6, changes


def test_copies_of_experts_change_nothing():
    """Statistical, as above: three copies of each expert, told apart by name only."""
    player = Player(K=2, **EXTREME)
    assert agreement(transcripts(player, 8000, copies=3), player) > 1e-6


@pytest.mark.slow
def test_monte_carlo():
    """Statistical: T = 60, d = 8, neighbours that differ in round 1, l = (1, 0, .., 0) against
    (0, 1, .., 1), the rest such that draws and tests notice. No event's log-ratio may exceed
    epsilon by 5 standard errors of 20,000 runs each; false alarm below 1e-5. The events have power:
    at epsilon = 10 they see more than twice the odds that epsilon = 1 allows (asserted)."""

    def events(flip, epsilon):
        plan = SparseVectorPlan(2, epsilon / 4, 2.0, epsilon / 2, epsilon / 2)
        R, d, T = 20_000, 8, 60
        spec = ExpertsSpec(n_actions=d, horizon=T)
        agent = PlannedSegments(plan=plan).make(spec, Streams(range(R)))
        first, zero = np.full(R, T), np.ones(R, dtype=bool)
        for t in range(T - 1):
            loss = np.ones(d) * (t % 4 == 0)
            if t == 0:
                loss = np.eye(d)[0] if flip else 1 - np.eye(d)[0]
            before = agent.drawn
            told = np.broadcast_to(loss, (R, d))
            agent.update(told, agent.act(told), told)
            first = np.where((before == 0) & (agent.drawn == 1), t, first)
            zero &= (agent.drawn == before) | (agent.expert == 0)
        yield from ((first <= k).mean() for k in (1, 4, 8, 16, 32))
        yield from ((agent.expert == 0).mean(), zero.mean(), ((first <= 8) & zero).mean())

    def worst(epsilon):
        P, Q = (np.array(list(events(flip, epsilon))) for flip in (False, True))
        error = np.sqrt((1 - P) / P + (1 - Q) / Q) / 20_000**0.5
        return (np.abs(np.log(P / Q)) - 5 * error).max()

    assert worst(1.0) <= 1.0
    assert worst(10.0) > 1.0 + log(2)
