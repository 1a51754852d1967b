"""Audits that stop when they know: a bet against a certificate, won only if it is false.

Runs come in pairs, one of each world. With a test phi in {0, 1} that is chosen before a pair is
seen, a promise (epsilon, delta) says that::

    g = phi(b) - e^epsilon phi(a) - delta

has a mean of at most 0, and so has the same with a and b exchanged. Who stakes a part lambda of her
wealth on it, 0 <= lambda <= 1 / (e^epsilon + delta), has W_n = prod (1 + lambda g), a
supermartingale if the promise is kept, whatever she chooses from earlier pairs. So the probability
that W ever reaches 1 / failure is at most `failure` (Ville 1939; Shafer, JRSS A 2021; Waudby-Smith
and Ramdas, JRSS B 2024): it may be looked at after every pair and stopped at any time.

A curve delta(epsilon), that of GDP too, is many promises at once: every bet takes the one that it
hopes most of. Wealth is divided equally between scores, anew for each block of pairs.
"""

from collections.abc import Callable, Mapping
from math import exp, inf
from typing import NamedTuple, TypeAlias

import numpy as np

from dpbandit.auditing.bounds import Claim, Finding
from dpbandit.auditing.views import Columns, Scorer, halves, joined, learned_scores
from dpbandit.base import Bools, Floats, rounded
from dpbandit.privacy.curves import delta_of

Points: TypeAlias = tuple[tuple[float, float], ...]
"""Promises (epsilon, delta) that all hold if a claim does."""
Scores: TypeAlias = dict[str, tuple[Floats, Floats]]
"""Name of a score -> its values for runs of worlds A and B, (n,) each."""

FIRST = 50
"""Pairs that are only learned from, and the least in a block"""
GROWTH = 0.25
"""A block has this part of all pairs before it"""
_CUTS = np.linspace(0.02, 0.98, 33)
_STAKES: Floats = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""lambda, in units of the largest there may be"""
_CAREFUL = 0.7
"""Of the stake that would have won most so far: what was chosen for having won wins less"""
_LEVELS = np.linspace(0.05, 2.0, 40)
"""Of epsilon and of mu, in units of those claimed: what can be proven"""
_LARGE = 30.0


class Bet(NamedTuple):
    """On the next block: that runs of B, or backward of A, score at least, or below, `cut`."""

    score: str
    cut: float
    forward: bool
    epsilon: float
    delta: float
    stake: float

    def gains(self, scores: Scores) -> Floats:
        """1 + lambda g of each pair, (n,)."""
        a, b = (values >= self.cut for values in scores[self.score])
        hits, false = (b, a) if self.forward else (~a, ~b)
        factor: Floats = 1 + self.stake * (hits - exp(self.epsilon) * false - self.delta)
        return factor


class Wealth:
    """What has been won against one promise, or against several that hold together.

    Args:
        points: the promises.
        failure: the probability that `refuted` is wrong, at most, whenever one looks.
    """

    def __init__(self, points: Points, failure: float) -> None:
        self.points = tuple((e, d) for e, d in points if e < _LARGE and d < 1)
        self.log, self.most, self._enough = 0.0, 0.0, -np.log(failure)

    @property
    def refuted(self) -> bool:
        """Whether that much has been won."""
        return bool(self.most >= self._enough)

    def play(self, past: Scores, block: Scores) -> int:
        """Bet on a block what the past suggests; how many of its pairs were needed."""
        bets = [self._best(name, *past[name]) for name in past] if self.points else []
        gains = [np.cumsum(np.log(bet.gains(block))) for bet in bets if bet is not None]
        n = len(next(iter(block.values()))[0])
        if not gains:
            return n
        idle = [np.zeros(n)] * (len(bets) - len(gains))
        path = self.log + np.logaddexp.reduce([*gains, *idle], axis=0) - np.log(len(bets))
        self.log, self.most = float(path[-1]), max(self.most, float(path.max()))
        reached = np.flatnonzero(path >= self._enough)
        return int(reached[0]) + 1 if len(reached) else n

    def _best(self, name: str, a: Floats, b: Floats) -> Bet | None:
        """The bet that would have grown most in the past; None if none would have."""
        cuts = np.unique(np.quantile(np.concatenate([a, b]), _CUTS, method="nearest"))
        above_a, above_b = (values[:, None] >= cuts for values in (a, b))
        outcomes = _outcomes(above_a, above_b)
        epsilons, deltas = (np.array(one)[:, None, None] for one in zip(*self.points, strict=True))
        factors = np.exp(epsilons)
        stakes = _STAKES / (factors + deltas)  # (P, 1, L)
        found: tuple[float, Bet | None] = 0.0, None
        shares = np.stack([*outcomes.values()], axis=1)  # (C, 4)
        for forward in (True, False):
            called = [(b, a) if forward else (not a, not b) for a, b in outcomes]
            gains = [stakes * (hit - factors * wrong - deltas) for hit, wrong in called]
            growth: Floats = shares @ np.log1p(np.concatenate(gains, axis=1))  # (P, C, L)
            p, c, stake = np.unravel_index(int(growth.argmax()), growth.shape)
            if growth[p, c, stake] > found[0]:
                lam = _CAREFUL * float(stakes[p, 0, stake])
                bet = Bet(name, float(cuts[c]), forward, *self.points[int(p)], lam)
                found = float(growth[p, c, stake]), bet
        return found[1]


def _outcomes(a: Bools, b: Bools) -> dict[tuple[bool, bool], Floats]:
    """(above in A, in B) -> the share of such pairs at each cut, as if each were met half more."""
    n, both = len(a), (a & b).sum(axis=0)
    one, other = a.sum(axis=0), b.sum(axis=0)
    counts = {
        (True, True): both,
        (True, False): one - both,
        (False, True): other - both,
        (False, False): n - one - other + both,
    }
    return {outcome: (count + 0.5) / (n + 2) for outcome, count in counts.items()}


def gaussian_points(mu: float) -> Points:
    """Points of the curve of mu-GDP, with the epsilons up to 3 mu; none where it allows all."""
    if mu == inf:
        return ()
    return tuple((e, delta_of(mu, e)) for e in np.linspace(0, 3 * mu, 8).tolist())


class Evidence:
    """All that is bet on: the claim, and less epsilon or mu at a time, for lower bounds.

    A bound is the largest level up to which every one is refuted: if it is wrong, so is the one
    level just at or above the truth, which happens with the probability given to it.

    Args:
        claim: what is tested.
        failure: probability that anything said, at any time, is wrong: half of it for the claim.
    """

    def __init__(self, claim: Claim, failure: float) -> None:
        points = claim.pairs if claim.mu is None else gaussian_points(claim.mu)
        self._claim, self.claim = claim, Wealth((*points, *claim.pairs), failure / 2)
        bounded = 0 < claim.epsilon < inf
        epsilons = (_LEVELS * (claim.epsilon if bounded else 1.0)).tolist()
        mus = [] if claim.mu is None or not bounded else (_LEVELS * claim.mu).tolist()
        share = failure / (4 if mus else 2)
        self._epsilons = {e: Wealth(((e, claim.delta),), share) for e in epsilons}
        self._mus = {mu: Wealth(gaussian_points(mu), share) for mu in mus}

    def play(self, past: Scores, block: Scores) -> int:
        """How many pairs of the block the claim's refutation needed, or all."""
        for levels in (self._epsilons, self._mus):
            for wealth in levels.values():
                if not wealth.refuted:
                    wealth.play(past, block)
        return self.claim.play(past, block)

    def finding(self, failure: float) -> Finding:
        """What is known now."""
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
            direction=f"wealth {rounded(exp(min(self.claim.most, 700)))}",
        )


def _refuted(levels: Mapping[float, Wealth]) -> float:
    lower = 0.0
    for level, wealth in levels.items():
        if not wealth.refuted:
            break
        lower = level
    return lower


def blocks(runs: int) -> list[range]:
    """The pairs of each block; those of the first are only learned from.

    >>> blocks(200)
    [range(0, 50), range(50, 100), range(100, 150), range(150, 200)]
    """
    found, start = [], 0
    while start < runs:
        end = min(runs, start + max(FIRST, int(GROWTH * start)))
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
    """Play blocks of pairs until the claim is refuted, or `runs` pairs are; and how many were used.

    Scores are learned on the first half of what has been played, bets chosen on the other half, up
    to `_LEARNED` pairs; from then on the scores stay.

    Args:
        sample: plays these runs, of both worlds.
        claim, failure: as of `Evidence`.
        runs: the most pairs.
    """
    evidence = Evidence(claim, failure)
    selections: list[tuple[Columns, Columns]] = []
    known: dict[str, Scorer] = {}
    past: Scores = {}
    for block in blocks(runs):
        both = sample(block)
        if past:
            fresh = _scored(known, both)
            used = block.start + evidence.play(past, fresh)
            finding = evidence.finding(failure)
            if finding.flagged:
                return finding, used
            past = {
                name: (np.append(a, fresh[name][0]), np.append(b, fresh[name][1]))
                for name, (a, b) in past.items()
            }
        if block.start < _LEARNED:
            selections.append(both)
            worlds = [joined([two[world] for two in selections]) for world in (0, 1)]
            train, choose = zip(*map(halves, worlds), strict=True)
            known = dict(learned_scores(*train))
            past = _scored(known, choose)
    return evidence.finding(failure), runs


_LEARNED = 10_000


def _scored(scores: Mapping[str, Scorer], both: tuple[Columns, ...]) -> Scores:
    return {name: (score(both[0]), score(both[1])) for name, score in scores.items()}
