"""Private selection of the best of n candidates, each choice by one noisy maximum::

    mechanism               noise, of scale 2 s / epsilon               one selection is
    ExponentialMechanism    Gumbel                                      epsilon-bounded range
    OneShotTopK             Gumbel; the k largest, in order             k such choices
    ReportNoisyMax          Laplace                                     epsilon-DP

s is the largest change of one score by one user. The noise is scaled, never the scores: at epsilon
= inf it is exactly zero, and the choice is the argmax, ties to the lowest index.

`RemainingTopK` releases, several times, the k best candidates that were not taken before;
`EpochSelection` selects by the losses since the start of a replica's epoch.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    clip_range,
    pick,
    positive,
    privacy_target,
    whole,
)
from dpbandit.privacy.mechanism import BudgetExceededError, Mechanism
from dpbandit.privacy.noise import Gumbel, Laplace, Law
from dpbandit.privacy.premises import NO_FACTS, SUMMED
from dpbandit.privacy.pure import BoundedRangeSpend, PureSpend


@dataclass(frozen=True)
class GivenScores:
    """Scores (R, n) computed anew for each call; one user moves each by at most `sensitivity`.

    The caller guarantees the sensitivity, as there is no public range to clip to. -inf excludes a
    candidate (a public choice); no scores of earlier calls are used.
    """

    # "one user moves each by at most `sensitivity`"
    needs = NO_FACTS

    n: int
    sensitivity: float = 1.0

    def query(self, scores: Floats) -> Floats:
        """Return the scores (R, n) of this call, unchanged."""
        return scores

    def after(self, total: Floats, query: Floats) -> Floats:
        """Return the scores (R, n) that replace the scores of the call before."""
        return query

    def scores(self, total: Floats) -> Floats:
        """Return the scores to be maximised, (R, n)."""
        return total


@dataclass(frozen=True)
class CumulativeLosses:
    """Scores -max(S, floor), S the sum of all loss vectors (R, n) so far, clipped to [low, high].

    The sum is exact and stays inside the mechanism. Non-finite losses become `low`; `floor` is a
    public number below which candidates are equally good, and does not change the sensitivity.
    """

    # "S the sum of all loss vectors (R, n) so far, clipped to [low, high]"
    needs = NO_FACTS

    n: int
    low: float = 0.0
    high: float = 1.0
    floor: float = -inf

    @property
    def sensitivity(self) -> float:
        """Largest change of one score if one user's losses are replaced, high - low."""
        return self.high - self.low

    def query(self, losses: Floats) -> Floats:
        """Return the losses (R, n) of one round, clipped to [low, high]."""
        return np.broadcast_to(clip_range(distinct(losses), self.low, self.high), losses.shape)

    def after(self, total: Floats, query: Floats) -> Floats:
        """Return the total losses, (1, n) while all replicas had the same losses, else (R, n)."""
        return total + distinct(query)

    def scores(self, total: Floats) -> Floats:
        """Return the scores -max(S, floor) for total losses S, (R, n)."""
        return -np.maximum(total, self.floor)


ScoreSource: TypeAlias = GivenScores | CumulativeLosses


def distinct(values: Floats) -> Floats:
    """Return `values` (R, n), or the one row (1, n) of which all R rows are views."""
    return values[:1] if values.strides[0] == 0 else values


class OneShotTopK(Mechanism):
    """Mechanism that selects the k best of n candidates: the k largest of scores + Gumbel noise.

    Durfee and Rogers, "Practical differentially private top-k selection with pay-what-you-get
    composition", NeurIPS 2019: one shot has exactly the law of peeling, k exponential mechanisms
    with weights exp(epsilon u / (2 s)) for scores u, each on the candidates that are left::

        call(data, at_release=None) -> indices (R, k);  data (R, n): scores or one round's losses

    `at_release` (R,) marks the replicas that select in this round (all if left out) and must be a
    function of releases; other replicas get -1. The j-th selection of a replica always uses the
    j-th noise of its own stream, in whichever round and beside whichever replicas it happens.

    Guarantee:
        If one user moves every score by at most s, then all selections together cost `spend`:
        bounded range epsilon for each candidate selected, because log-weights move by at most
        epsilon / 2 and the normaliser is the same for all candidates.

    Args:
        source: computes the scores from a round's data.
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        k: number of candidates that one selection returns.
        epsilon: cost of each candidate, a number or one for each selection; inf adds no noise.
        uses: number of calls.
        draws: largest number of selections of a replica; None for `uses`.

    Raises `BudgetExceededError` for calls beyond `uses` and selections beyond `draws`, and
    `InputError` for scores of a shape other than (R, n).
    """

    # "must be a function of releases"
    needs = SUMMED
    controls = (1, 2, 3)

    order = inf
    """order of the norm of `sensitivity`, which bounds the change of a single score"""
    _kind: ClassVar[str] = "top-k"
    _law: ClassVar[Law] = Gumbel(1.0)
    _spend: ClassVar[type[PureSpend]] = BoundedRangeSpend

    def __init__(
        self,
        source: ScoreSource,
        streams: Streams,
        name: str,
        *,
        k: int,
        epsilon: float | Sequence[float],
        uses: int,
        draws: int | None = None,
    ) -> None:
        draws = uses if draws is None else draws
        whole("n", source.n, 1)
        whole("k", k, 1, source.n)
        whole("uses", uses, 0)
        whole("draws", draws, 0)
        positive("sensitivity", source.sensitivity)
        if np.ndim(epsilon) > 0 and np.shape(epsilon) != (draws,):
            raise InputError(f"Expected {np.size(epsilon)} epsilons to be one per draw, {draws}.")
        each = np.broadcast_to(np.asarray(epsilon, dtype=float), (draws,))
        for value in np.unique(each):
            privacy_target(float(value), 0.0)
        note = f"{name}: {draws} x {self._kind}, {k} of {source.n}"
        self.spend = self._spend.of(note, np.repeat(each, k))
        self.sensitivity, self.uses, self.draws = source.sensitivity, uses, draws
        self.source, self._k, self._shape = source, k, (len(streams), source.n)
        self.scale: Floats = 2 * source.sensitivity / each
        self._noise = self._law.sampler(streams, name, (source.n,))
        self._total: Floats = np.zeros((1, source.n))  # exact: never leaves here
        self._drawn = np.zeros(len(streams), dtype=np.int64)
        self._before = np.zeros(len(streams), dtype=np.int64)  # selections that no longer count
        self._noises: deque[Floats] = deque()  # of the selections _first, _first + 1, ...
        self._first = 0

    def query(self, *datum: AnyArray) -> Floats:
        # the scores of this round, or its clipped losses, (R, n)
        if datum[0].shape != self._shape:
            raise InputError(f"Expected scores of shape {datum[0].shape} to be {self._shape}.")
        return self.source.query(datum[0])

    def _release(self, *datum: AnyArray) -> Any:
        self._total = self.source.after(self._total, self.query(*datum))
        replicas = np.flatnonzero(datum[1]) if len(datum) > 1 else np.arange(self._shape[0])
        chosen = np.full((self._shape[0], self._k), -1)
        if len(replicas):
            scores = self.scores(self._summed(replicas), replicas, *datum[2:])
            chosen[replicas] = self._largest(self._noisy(scores, replicas))
        return chosen

    def scores(self, sums: Floats, replicas: Ints, *public: AnyArray) -> Floats:
        """Return the scores to be maximised, (len(replicas), n), from `sums` of `replicas`."""
        return self.source.scores(sums)

    def _summed(self, replicas: Ints) -> Floats:
        return np.broadcast_to(self._total, self._shape)[replicas]

    def _noisy(self, scores: Floats, replicas: Ints) -> Floats:
        noise, scale = self._next_noise(replicas)
        return scores + scale * noise

    def _largest(self, noisy: Floats) -> Ints:
        if self._k == 1:
            return noisy.argmax(axis=1)[:, None]
        return np.argsort(-noisy, axis=1, kind="stable")[:, : self._k]

    def _next_noise(self, replicas: Ints) -> tuple[Floats, Floats]:
        """Return noise of scale 1 for one more selection of `replicas`, (len(replicas), n), and its
        scale, (len(replicas), 1)."""
        drawn = self._drawn[replicas]
        selections = drawn - self._before[replicas]
        if selections.max() >= self.draws:
            raise BudgetExceededError(
                f"{self.spend.note}: selection {self.draws + 1} of a replica exceeds "
                f"draws={self.draws}."
            )
        while self._first + len(self._noises) <= drawn.max():
            self._noises.append(self._noise().copy())
        if (drawn == drawn[0]).all():
            noise = self._noises[int(drawn[0]) - self._first][replicas]
        else:
            noise = np.empty((len(replicas), self._shape[1]))
            for j in np.unique(drawn):
                mine = drawn == j
                noise[mine] = self._noises[j - self._first][replicas[mine]]
        self._drawn[replicas] += 1
        while self._first < self._drawn.min():
            self._noises.popleft()
            self._first += 1
        return noise, self.scale[selections, None]


class ExponentialMechanism(OneShotTopK):
    """Mechanism that selects with probability prop. to exp(epsilon score / (2 sensitivity)).

    McSherry and Talwar, FOCS 2007. This is `OneShotTopK` with k = 1, which documents the arguments
    and the guarantee; a call returns indices (R,).

    >>> best = ExponentialMechanism(CumulativeLosses(3), Streams([0]), "em", epsilon=inf, uses=2)
    >>> best(np.array([[1.0, 0.0, 0.5]])), best(np.array([[0.0, 1.0, 0.0]]))
    (array([1]), array([2]))
    """

    # "This is `OneShotTopK` with k = 1, which documents the arguments and the guarantee"
    needs = SUMMED

    _kind = "exponential mechanism"

    def __init__(
        self,
        source: ScoreSource,
        streams: Streams,
        name: str,
        *,
        epsilon: float | Sequence[float],
        uses: int,
        draws: int | None = None,
    ) -> None:
        super().__init__(source, streams, name, k=1, epsilon=epsilon, uses=uses, draws=draws)

    def _release(self, *datum: AnyArray) -> Any:
        return super()._release(*datum)[:, 0]


class ReportNoisyMax(ExponentialMechanism):
    """Mechanism that returns the argmax (R,) of scores + Laplace(2 sensitivity / epsilon) noise.

    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, section 3.3.
    Arguments as for `ExponentialMechanism`. It serves for comparison: as its loss has no bounded
    range, many selections cost twice as much.

    Guarantee:
        If one user moves every score up or down by at most s, then one selection with noise of
        scale lam is (2 s / lam)-DP, because given the others' noise candidate i wins if its own
        exceeds a threshold that moves by at most 2 s. The spend is a `PureSpend` (zCDP epsilon^2 /
        2).
    """

    # "because given the others' noise candidate i wins if its own exceeds a threshold"
    needs = SUMMED

    _kind = "report noisy max"
    _law = Laplace(1.0)
    _spend = PureSpend


class NoisyTotal(Mechanism):
    """Total loss S(x) of a queried candidate x plus Laplace noise, for losses in [0, 1]::

        call(losses (R, n), x (R,), at_release (R,) bool) -> (R,), -inf where not at release

    Guarantee:
        If x and at_release are public or functions of releases, one answer is (1 / scale)-DP,
        because a round moves S(x) by at most 1. All calls together cost `draws` times that, and
        more answers than `draws` for one replica raise `BudgetExceededError`.

    >>> total = NoisyTotal(2, Streams([0]), "total", scale=0.0, draws=2, uses=2)
    >>> x, yes, loss = np.array([1]), np.ones(1, dtype=bool), np.array([[0.0, 0.75]])
    >>> total(loss, x, yes), total(loss, x, yes)
    (array([0.75]), array([1.5]))
    """

    # "If x and at_release are public or functions of releases"
    needs = SUMMED
    controls = (1, 2)

    order = np.inf

    def __init__(
        self, n: int, streams: Streams, name: str, *, scale: float, draws: int, uses: int
    ) -> None:
        whole("draws", draws, 0, uses)
        self._source, self._shape = CumulativeLosses(n), (len(streams), n)
        cost = 1 / scale if scale else np.inf
        self.spend = PureSpend.alike(f"{name}: {draws} Laplace totals", cost, draws)
        self.sensitivity, self.uses = self._source.sensitivity, uses
        self._draws, self._queries = draws, np.zeros(len(streams), dtype=np.int64)
        self._noise = Laplace(scale).sampler(streams, name, ())
        self._total: Floats = np.zeros((1, n))  # exact: never leaves here

    def query(self, *datum: AnyArray) -> Floats:
        if datum[0].shape != self._shape:
            raise InputError(f"Expected losses of shape {datum[0].shape} to be {self._shape}.")
        return self._source.query(datum[0])

    def _release(self, *datum: AnyArray) -> Any:
        _, x, at_release = datum
        # also where `at_release` is no bool: any number but 0 releases an answer
        self._queries = self._queries + (at_release != 0)
        if self._queries.max() > self._draws:
            raise BudgetExceededError(
                f"{self.spend.note}: total {self._draws + 1} of a replica exceeds "
                f"draws={self._draws}."
            )
        self._total = self._total + distinct(self.query(*datum))
        noisy = pick(np.broadcast_to(self._total, self._shape), x) + self._noise()
        return np.where(at_release, noisy, -np.inf)


class RemainingTopK(OneShotTopK):
    """Mechanism that selects the k best candidates not taken before, in order, where at release::

        call(losses (R, n), at_release (R,) bool, taken (R, n) bool) -> candidates (R, k), -1 for
        none

    Where fewer than k are left, all of them are released, followed by -1. `taken` is the mask of
    excluded candidates, public or a function of releases.

    Guarantee:
        As for `OneShotTopK`, k exponential mechanisms on the candidates left each time, of bounded
        range epsilon each. Selecting the only candidate left costs nothing, but is charged; a
        candidate is taken once, so at most `most` are selected in all. Any more raise
        `BudgetExceededError`, whatever `taken` says.

    Args:
        n: number of candidates.
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        k: number of candidates that one selection returns.
        epsilon: cost of each candidate selected; inf: no noise.
        draws: largest number of selections of one replica.
        uses: number of calls.
        most: number of candidates that are not taken at the start; None for all n.
        floor: candidates with a smaller total loss are equally good.

    >>> top = RemainingTopK(3, Streams([0]), "top", k=2, epsilon=np.inf, draws=1, uses=1)
    >>> top(np.array([[0.0, 1.0, 0.5]]), np.array([True]), np.array([[True, False, False]]))
    array([[2, 1]])
    """

    # "`taken` is the mask of excluded candidates, public or a function of releases"
    needs = SUMMED

    def __init__(
        self,
        n: int,
        streams: Streams,
        name: str,
        *,
        k: int,
        epsilon: float,
        draws: int,
        uses: int,
        most: int | None = None,
        floor: float = 0.0,
    ) -> None:
        source = CumulativeLosses(n, floor=floor)
        super().__init__(source, streams, name, k=k, epsilon=epsilon, uses=uses, draws=draws)
        most = n if most is None else most
        whole("most", most, 0, n)
        self._most, self._picked = min(draws * k, most), np.zeros(len(streams), dtype=np.int64)
        note = f"{name}: {self._most} picks of {n}"
        self.spend = BoundedRangeSpend.alike(note, epsilon, self._most)

    def _release(self, *datum: AnyArray) -> Any:
        chosen = super()._release(*datum)
        self._picked = self._picked + (chosen >= 0).sum(axis=1)
        if self._picked.max() > self._most:
            raise BudgetExceededError(
                f"{self.spend.note}: pick {self._picked.max()} of a replica exceeds "
                f"most={self._most}."
            )
        return chosen

    def scores(self, sums: Floats, replicas: Ints, *public: AnyArray) -> Floats:
        return np.where(public[0][replicas], -np.inf, super().scores(sums, replicas))

    def _largest(self, noisy: Floats) -> Ints:
        best = np.argsort(-noisy, axis=1, kind="stable")[:, : self._k]
        there = np.take_along_axis(noisy, best, axis=1) > -np.inf
        return np.where(there, best, -1)


_LOSS_GRID = 2.0**32
"""Losses are rounded to multiples of 1 / _LOSS_GRID, so that sums over 2^21 rounds are exact and
subtracting the sum of earlier epochs leaves no rounding error"""
_MAX_ROUNDS = 2**21
"""Largest number of calls for which sums of rounded losses are exact in double precision"""


class EpochSelection(ExponentialMechanism):
    """Exponential mechanism on the losses of a replica's current epoch::

        call(losses (R, n), at_release (R,) bool, floor (R,), ends (R,) bool) -> candidate (R,)

          1. S <- S + clip(losses to [0, 1])
          2. where `at_release`: x with prob. prop. to exp(-epsilon max(S, floor) / 2), else -1
          3. where `ends`: S <- 0, and the count of the epoch's selections starts at 0

    `floor` >= 0 is a level below which candidates are equally good. At epsilon = inf x is uniform
    among the best: the limit of step 2.

    Guarantee:
        If at_release, floor and ends are public or functions of releases, then all calls cost
        `spend`, the cost of `draws` selections: a round's losses are in one epoch's S only, where
        they move every score by at most 1, and a floor does not increase this change.

    Args:
        n: number of candidates.
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        epsilon: bounded range of one selection; inf: no noise.
        draws: largest number of selections of a replica in one epoch.
        uses: number of calls.

    >>> pick = EpochSelection(2, Streams([0]), "pick", epsilon=np.inf, draws=1, uses=2)
    >>> yes, zero = np.ones(1, dtype=bool), np.zeros(1)
    >>> pick(np.array([[1.0, 0.0]]), yes, zero, yes), pick(np.array([[0.0, 0.5]]), yes, zero, ~yes)
    (array([1]), array([0]))
    """

    # "If at_release, floor and ends are public or functions of releases"
    needs = SUMMED

    def __init__(
        self, n: int, streams: Streams, name: str, *, epsilon: float, draws: int, uses: int
    ) -> None:
        whole("uses", uses, 0, _MAX_ROUNDS)
        source = CumulativeLosses(n)
        super().__init__(source, streams, name, epsilon=epsilon, draws=draws, uses=uses)
        self._start: Floats = np.zeros((1, n))  # S of all rounds before the epoch

    def query(self, *datum: AnyArray) -> Floats:
        clipped = super().query(*datum)
        return np.broadcast_to(np.rint(distinct(clipped) * _LOSS_GRID) / _LOSS_GRID, self._shape)

    def _release(self, *datum: AnyArray) -> Any:
        chosen, ends = super()._release(*datum), datum[3]
        if ends.any():
            self._start = np.where(ends[:, None], self._total, self._start)
            self._before = np.where(ends, self._drawn, self._before)
        return chosen

    def scores(self, sums: Floats, replicas: Ints, *public: AnyArray) -> Floats:
        return -np.maximum(sums, public[0][replicas, None])

    def _summed(self, replicas: Ints) -> Floats:
        return super()._summed(replicas) - np.broadcast_to(self._start, self._shape)[replicas]

    def _noisy(self, scores: Floats, replicas: Ints) -> Floats:
        noise, scale = self._next_noise(replicas)
        best = scores == scores.max(axis=1, keepdims=True)
        return np.where(scale == 0, np.where(best, noise, -np.inf), scores + scale * noise)
