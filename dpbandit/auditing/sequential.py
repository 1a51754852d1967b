"""Audits that stop early: bets against a certificate, which win much only if it is false.

Runs come in pairs, a on data set A and b on its neighbour B. For a test phi in {0, 1} chosen before
a pair is seen, (epsilon, delta)-DP says that the gain::

    g = phi(b) - e^epsilon phi(a) - delta

has a mean of at most 0, also with a and b exchanged. To bet a share lambda of the wealth on each
pair, with 0 <= lambda <= 1 / (e^epsilon + delta), leads to the wealth W_n = prod (1 + lambda g), a
supermartingale if the claim is true, however lambda and phi depend on earlier pairs. So the
probability that W ever reaches 1 / failure is at most `failure` (Ville 1939; Shafer, JRSS A 2021;
Waudby-Smith and Ramdas, JRSS B 2024), and an audit may look after every pair and stop at any time.

A curve delta(epsilon), also the curve of GDP, is many claims at once; every bet is against the pair
(epsilon, delta) against which bets would have won most in the past. Wealth is divided equally
between scores, anew for each block of pairs.
"""

from collections.abc import Callable, Mapping
from math import exp, inf
from typing import NamedTuple, TypeAlias

import numpy as np

from dpbandit.auditing.bounds import Claim, Finding
from dpbandit.auditing.views import Columns, Scorer, halves, joined, learned_scores
from dpbandit.base import Floats, rounded
from dpbandit.privacy.curves import delta_of

Points: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs (epsilon, delta) that all hold if a claim holds."""
Scores: TypeAlias = dict[str, tuple[Floats, Floats]]
"""Name of a score -> its values in n runs on data set A and n on its neighbour B, (n,) each."""

MIN_BLOCK_PAIRS = 50
"""Smallest number of pairs of runs in a block; the first block is used for learning only."""
BLOCK_GROWTH = 0.25
"""Number of pairs in a block, as a share of all pairs before the block."""
_CUT_QUANTILES = np.linspace(0.02, 0.98, 33)  # levels of quantiles of scores tried as thresholds
_STAKES: Floats = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""Candidate shares of wealth to bet, in units of the largest allowed, 1 / (e^epsilon + delta)."""
_STAKE_DISCOUNT = 0.7
"""Factor on the stake that would have won most so far, as the best of many is overestimated."""
_TESTED_LEVELS = np.linspace(0.05, 2.0, 40)
"""Candidate lower bounds of epsilon and of mu, in units of the claimed epsilon and mu."""
_MAX_EPSILON = 30.0  # no feasible number of runs refutes a larger epsilon
_MAX_LEARNING_PAIRS = 10_000
"""Number of pairs from which on scores are not learned anew."""


class Bet(NamedTuple):
    """Bet that runs on B score >= `cut` in the next block (backward: that runs on A score less)."""

    score: str
    cut: float
    forward: bool
    epsilon: float
    delta: float
    stake: float

    def gains(self, scores: Scores) -> Floats:
        """Return the factor 1 + stake x gain by which each pair changes the wealth, (n,)."""
        a, b = (values >= self.cut for values in scores[self.score])
        hits, false = (b, a) if self.forward else (~a, ~b)
        factor: Floats = 1 + self.stake * (hits - exp(self.epsilon) * false - self.delta)
        return factor


class Counted(NamedTuple):
    """Thresholds for a score, and how often runs on A and on B reached them so far."""

    cuts: Floats
    """(C,)"""
    shares: Floats
    """(C, 4), of pairs with each of `_OUTCOMES`; 0.5 is added to counts"""


_OUTCOMES = ((True, True), (True, False), (False, True), (False, False))
"""(A's score >= cut, B's score >= cut)."""


def outcome_counts(past: Scores) -> dict[str, Counted]:
    """Count the outcomes of all pairs so far at each threshold, by score."""
    return {name: _counted(*values) for name, values in past.items()}


def _counted(a: Floats, b: Floats) -> Counted:
    cuts = np.unique(np.quantile(np.concatenate([a, b]), _CUT_QUANTILES, method="nearest"))
    reached_a, reached_b = (values[:, None] >= cuts for values in (a, b))
    n, joint = len(a), (reached_a & reached_b).sum(axis=0)
    in_a, in_b = reached_a.sum(axis=0), reached_b.sum(axis=0)
    counts = np.stack([joint, in_a - joint, in_b - joint, n - in_a - in_b + joint], axis=1)
    return Counted(cuts, (counts + 0.5) / (n + 2))


class Wealth:
    """Wealth, at first 1, of bets against one or several pairs (epsilon, delta) of a claim.

    Args:
        points: the pairs (epsilon, delta).
        failure: largest probability that `refuted` is ever wrong.
    """

    def __init__(self, points: Points, failure: float) -> None:
        self.points = tuple((e, d) for e, d in points if e < _MAX_EPSILON and d < 1)
        self.log, self.max_log, self._refuting_log = 0.0, 0.0, -np.log(failure)
        if self.points:
            self._stakes, self._log_gains = _gains(self.points)

    @property
    def refuted(self) -> bool:
        """True if the wealth has ever reached 1 / `failure`."""
        return bool(self.max_log >= self._refuting_log)

    def play(self, past: Mapping[str, Counted], block: Scores) -> int:
        """Bet on a block, given `past`; return the number of pairs until a refutation, or all."""
        bets = [self._best(name, past[name]) for name in past] if self.points else []
        gains = [np.cumsum(np.log(bet.gains(block))) for bet in bets if bet is not None]
        n = len(next(iter(block.values()))[0])
        if not gains:
            return n
        idle = [np.zeros(n)] * (len(bets) - len(gains))
        path = self.log + np.logaddexp.reduce([*gains, *idle], axis=0) - np.log(len(bets))
        self.log, self.max_log = float(path[-1]), max(self.max_log, float(path.max()))
        reached = np.flatnonzero(path >= self._refuting_log)
        return int(reached[0]) + 1 if len(reached) else n

    def _best(self, name: str, past: Counted) -> Bet | None:
        """Return the bet on a score that would have won most so far, None if no bet would have."""
        found: tuple[float, Bet | None] = 0.0, None
        for forward, log_gains in self._log_gains.items():
            growth: Floats = past.shares @ log_gains  # (P, C, L)
            p, c, stake = np.unravel_index(int(growth.argmax()), growth.shape)
            if growth[p, c, stake] > found[0]:
                lam = _STAKE_DISCOUNT * float(self._stakes[p, 0, stake])
                bet = Bet(name, float(past.cuts[c]), forward, *self.points[int(p)], lam)
                found = float(growth[p, c, stake]), bet
        return found[1]


def _gains(points: Points) -> tuple[Floats, dict[bool, Floats]]:
    """Return stakes, (P, 1, L), and for each direction logarithms of the factors by which a pair of
    each of `_OUTCOMES` changes the wealth, (P, 4, L)."""
    epsilons, deltas = (np.array(one)[:, None, None] for one in zip(*points, strict=True))
    factors = np.exp(epsilons)
    stakes = _STAKES / (factors + deltas)
    logs = {}
    for forward in (True, False):
        called = [(b, a) if forward else (not a, not b) for a, b in _OUTCOMES]
        gains = [stakes * (hit - factors * wrong - deltas) for hit, wrong in called]
        logs[forward] = np.log1p(np.concatenate(gains, axis=1))
    return stakes, logs


def gaussian_points(mu: float) -> Points:
    """Return eight points of the curve of mu-GDP, with epsilon from 0 to 3 mu; none if mu = inf."""
    if mu == inf:
        return ()
    return tuple((e, delta_of(mu, e)) for e in np.linspace(0, 3 * mu, 8).tolist())


class Evidence:
    """Wealth of bets against the claim and against candidate lower bounds of epsilon and of mu.

    The lower bound is the largest candidate up to which all candidates are refuted. It is wrong
    only if the smallest candidate at or above the true value was refuted. The probability of this
    is at most the `failure` of the candidate's `Wealth`.

    Args:
        claim: the claim to be tested.
        failure: largest probability that any finding is ever wrong; half of it is for the claim.
    """

    def __init__(self, claim: Claim, failure: float) -> None:
        points = claim.pairs if claim.mu is None else gaussian_points(claim.mu)
        self._claim, self.claim = claim, Wealth((*points, *claim.pairs), failure / 2)
        bounded = 0 < claim.epsilon < inf
        epsilons = (_TESTED_LEVELS * (claim.epsilon if bounded else 1.0)).tolist()
        mus = [] if claim.mu is None or not bounded else (_TESTED_LEVELS * claim.mu).tolist()
        share = failure / (4 if mus else 2)
        self._epsilons = {e: Wealth(((e, claim.delta),), share) for e in epsilons}
        self._mus = {mu: Wealth(gaussian_points(mu), share) for mu in mus}

    def play(self, past: Scores, block: Scores) -> int:
        """Play all bets on a block; return the number of pairs played against the claim."""
        counts = outcome_counts(past)
        for levels in (self._epsilons, self._mus):
            for wealth in levels.values():
                if not wealth.refuted:
                    wealth.play(counts, block)
        return self.claim.play(counts, block)

    def finding(self, failure: float) -> Finding:
        """Return the finding from all blocks; it is wrong with probability at most `failure`."""
        eps_lower, mu_lower = _refuted(self._epsilons), _refuted(self._mus)
        return Finding(
            eps_lower=eps_lower,
            mu_lower=mu_lower if self._mus else None,
            fpr=0.0,
            tpr=0.0,
            above_curve=self.claim.refuted,
            flagged=self.claim.refuted or eps_lower > self._claim.epsilon,
            failure=failure,
            score="a bet on every pair of runs",
            direction=f"wealth {rounded(exp(min(self.claim.max_log, 700)))}",
        )


def _refuted(levels: Mapping[float, Wealth]) -> float:
    lower = 0.0
    for level, wealth in levels.items():
        if not wealth.refuted:
            break
        lower = level
    return lower


def blocks(runs: int) -> list[range]:
    """Split `runs` pairs into growing blocks; the first is used for learning only.

    >>> blocks(200)
    [range(0, 50), range(50, 100), range(100, 150), range(150, 200)]
    """
    found, start = [], 0
    while start < runs:
        end = min(runs, start + max(MIN_BLOCK_PAIRS, int(BLOCK_GROWTH * start)))
        found.append(range(start, end))
        start = end
    return found


def bet_until_known(
    sample: Callable[[range], tuple[Columns, Columns]],
    claim: Claim,
    *,
    runs: int,
    failure: float,
) -> tuple[Finding, int]:
    """Play blocks of pairs until the claim is refuted; return the finding and the number of pairs.

    Scores are learned on the first half of all pairs played, and bets chosen on the other half;
    from `_MAX_LEARNING_PAIRS` pairs on, scores do not change any more.

    Args:
        sample: function that plays the pairs of a range; returns the views of runs on A and on B.
        claim: the claim to be tested.
        runs: largest number of pairs.
        failure: largest probability that the finding is wrong.
    """
    evidence = Evidence(claim, failure)
    selections: list[tuple[Columns, Columns]] = []
    known: dict[str, Scorer] = {}
    past: Scores = {}
    for block in blocks(runs):
        views = sample(block)
        if past:
            fresh = _scored(known, views)
            used = block.start + evidence.play(past, fresh)
            finding = evidence.finding(failure)
            if finding.flagged:
                return finding, used
            past = {
                name: (np.append(a, fresh[name][0]), np.append(b, fresh[name][1]))
                for name, (a, b) in past.items()
            }
        if block.start < _MAX_LEARNING_PAIRS:
            selections.append(views)
            worlds = [joined([two[world] for two in selections]) for world in (0, 1)]
            train, choose = zip(*map(halves, worlds), strict=True)
            known = dict(learned_scores(*train))
            past = _scored(known, choose)
    return evidence.finding(failure), runs


def _scored(scores: Mapping[str, Scorer], views: tuple[Columns, ...]) -> Scores:
    return {name: (score(views[0]), score(views[1])) for name, score in scores.items()}
