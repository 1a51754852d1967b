"""Exact laws of the lazy player's whole transcript, mistakes found by them, code against them.

A transcript is who plays first, when tests fire and who is drawn then. Given the experts the
threshold noises of segments are independent, so it has a probability that is a product of
integrals, one a segment (`tests.privacy.choices.test_sparse_vector.Law`), and of softmaxes. For
every 0/1 sequence of losses of two experts it is enumerated, apart from the code; epsilon is the
largest log-ratio.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, product
from math import exp

import numpy as np
import pytest
from scipy.stats import expon, laplace

from dpbandit.agents.experts.calibration import SparseVectorPlan
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base.random_streams import Streams
from dpbandit.specs.convex import ExpertsSpec
from tests.privacy.choices.test_sparse_vector import Law, p_value

LOSSES = tuple(product((0, 1), repeat=2))


@dataclass(frozen=True)
class Player:
    """Algorithm 1 of two experts, or with `restarts` its repetition with a doubled L*.

    Tests follow rounds 1..T-1. The remaining fields are mistakes, for the tests to find.
    """

    noise: str = "exponential"
    eps1: float = 0.6
    eta: float = 0.4
    K: int = 1
    margin: float = 3.0
    best_loss: float = 0.0
    restarts: bool = False
    lag: bool = False
    scales: tuple = (1.0, 1.0)
    """of threshold and test noise, times 1 / eps1"""
    weight: float = 0.5
    """draws have weights exp(-weight eta S)"""
    broken: str = ""
    """a mistake of `Law`, or of this class: "overlap", "keeps S\""""

    @cached_property
    def segment(self):
        """P(queries (less the threshold) do not fire but, if asked, the last)."""
        noise = expon if self.noise == "exponential" else laplace
        broken = self.broken if self.broken not in ("overlap", "keeps S") else None
        scales = [factor / self.eps1 for factor in self.scales]
        law = Law(noise, *scales, broken or None, theta=0.0)
        return cache(lambda queries, fires: law.of([(queries, fires)]))

    def transcripts(self, sequence):
        """{transcript: probability} for losses (T, 2)."""
        found = {}
        for x in (0, 1):
            self._segments(found, sequence, (x,), 0.5, start=0, since=0, k=0, best=self.best_loss)
        return found

    def _segments(self, found, sequence, past, p, *, start, since, k, best):
        """All that can follow `past`; a segment of its last expert begins in round `start`.

        `since` is the first round that counts for draws.
        """
        x, T = past[-1], len(sequence)
        first = start - (self.broken == "overlap" and start > 0)
        theta, late = self.margin + best, int(self.lag)
        losses = (losses[x] for losses in sequence[first:])
        q = tuple(total - theta for total in accumulate(losses))[start - first :]
        for n in range(1, T - start - late):
            t = start + n + late  # the rounds that are over when somebody else begins
            fires = p * self.segment(q[:n], True)
            if k < self.K:
                weights = self.weights(sequence, since, t, best)
                for y in (0, 1):
                    arguments = {"start": t, "since": since, "k": k + 1, "best": best}
                    self._segments(found, sequence, (*past, t, y), fires * weights[y], **arguments)
            elif self.restarts:
                for y in (0, 1):
                    new = since if self.broken == "keeps S" else t
                    arguments = {"start": t, "since": new, "k": 0, "best": 2 * best}
                    self._segments(found, sequence, (*past, t, y), fires / 2, **arguments)
            else:
                found[*past, t] = fires
        n = T - start - late - 1
        found[past] = p * self.segment(q[:n], False) if n > 0 else p

    def weights(self, sequence, since, t, best):
        totals = (sum(losses[y] for losses in sequence[since:t]) for y in (0, 1))
        w = [exp(-self.weight * self.eta * max(S, best)) for S in totals]
        return [one / sum(w) for one in w]

    def worst(self, T):
        """The largest log-ratio of any transcript, one round replaced, over all 0/1 losses."""
        laws = [self.transcripts(s) for s in product(LOSSES, repeat=T)]
        P = np.array([list(law.values()) for law in laws])
        assert all(law.keys() == laws[0].keys() for law in laws)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
        with np.errstate(divide="ignore", invalid="ignore"):  # what never happens has no ratio
            log = np.log(P).reshape(*[4] * T, -1)
            return max(np.nanmax(log.max(axis=i) - log.min(axis=i)) for i in range(T))

    def but(self, **changes):
        return replace(self, **changes)


ONE = Player()


@pytest.mark.parametrize(
    ("player", "T", "expected"),
    [(ONE, 5, 0.858), (Player(K=2), 4, 1.059)],
    ids=["one draw", "two draws"],
)
def test_epsilon_is_kept(player, T, expected):
    """Golden: an independent program's enumeration, at eps1 = 0.6, eta = 0.4; K draws and all tests
    may cost eps1 + K eta. Broken on purpose, draws of twice the weight cost more."""
    worst = player.worst(T)
    assert worst == pytest.approx(expected, abs=6e-4)
    assert worst <= player.eps1 + player.K * player.eta
    if player is ONE:
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
