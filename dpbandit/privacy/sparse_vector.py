"""Sparse vector technique: the first query above a threshold, at the cost of one answer::

    class                   queries                        threshold noise, query noise   costs
    AboveThreshold          any, of sensitivity s          Laplace, 2 s/eps and 4 s/eps   eps a run
    SegmentAboveThreshold   prefix sums of losses of one   exponential or Laplace, both   eps in all
                            fixed expert, in [0, s]        s/eps

A run (or segment) draws one threshold noise, tests a query with fresh noise in every call, and
ends when a test fires. Replicas end at different times, so every call draws one threshold noise
and one query noise for all of them: no stream depends on data, and unused noise is discarded. After
an end the old threshold noise is never used again. epsilon = inf is scale 0, by the same code.

`RedrawBit` decides by one random bit a round whether an agent draws its action anew; a user
influences one bit.
"""

from math import expm1, inf, log1p
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Streams,
    at_least,
    clip_range,
    inside,
    one_of,
    positive,
    privacy_target,
    whole,
)
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise import Laplace, OneSidedExponential
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.pure import PureSpend

SegmentNoise: TypeAlias = Literal["exponential", "laplace"]
_SEGMENT_LAWS: dict[str, type[OneSidedExponential] | type[Laplace]] = {  # `noise` -> law
    "exponential": OneSidedExponential,
    "laplace": Laplace,
}


class AboveThreshold(Mechanism):
    """Mechanism that fires at the first query above a threshold, then halts.

    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, section 3.6,
    Algorithm 1; with `runs` > 1 a replica starts again after a halt, all noise fresh (Algorithm
    2)::

        call(query (R,), threshold (R,)) -> fired (R,) bool
        fired = query + Lap(4 s / epsilon) >= threshold + rho,  rho = Lap(2 s / epsilon) of this run

    A replica that has halted for good answers False. The threshold must be public or a function
    of releases.

    Guarantee:
        If one user moves every query up or down by at most s, then one run is epsilon-DP up
        to and including its halt (Theorem 3.23): shifting rho by s keeps all tests that did not
        fire, at cost epsilon / 2, and the test that fired moves by at most 2 s, at cost epsilon /
        2. All `runs` compose.

    Args:
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        epsilon: cost of one run; inf adds no noise.
        uses: number of calls.
        sensitivity: s, guaranteed by the caller, as there is no public range to clip to.
        runs: largest number of times that a replica fires.

    >>> test = AboveThreshold(Streams([0, 1]), "svt", epsilon=np.inf, uses=3)
    >>> [test(np.array([t, t - 1.0]), np.array(1.0)).tolist() for t in range(3)]
    [[False, False], [True, False], [False, True]]
    """

    # "The threshold must be public or a function of releases"
    needs = SUMMED
    controls = (1,)

    def __init__(
        self,
        streams: Streams,
        name: str,
        *,
        epsilon: float,
        uses: int,
        sensitivity: float = 1.0,
        runs: int = 1,
    ) -> None:
        privacy_target(epsilon, 0.0)
        whole("uses", uses, 0)
        positive("sensitivity", sensitivity)
        whole("runs", runs, 1)
        self.spend = PureSpend.alike(f"{name}: {runs} x above threshold", epsilon, runs)
        self.sensitivity, self.uses = sensitivity, uses
        R, s = len(streams), sensitivity
        self._threshold_noise = Laplace(2 * s / epsilon).sampler(streams, f"{name} threshold", ())
        self._query_noise = Laplace(4 * s / epsilon).sampler(streams, f"{name} query", ())
        self._rho = np.zeros(R)
        self._ended = np.ones(R, dtype=bool)  # the next call begins a run
        self._left = np.full(R, runs)

    @property
    def halted(self) -> Bools:
        """Mask (R,) of replicas that will never fire again, a function of releases."""
        return self._left == 0

    def query(self, *datum: AnyArray) -> Floats:
        return _checked_values(datum[0], len(self._left))

    def _release(self, *datum: AnyArray) -> Any:
        value, threshold = self.query(*datum), datum[1]
        self._rho = np.where(self._ended, self._threshold_noise(), self._rho)
        above = value + self._query_noise() >= threshold + self._rho
        self._ended = above & (self._left > 0)
        self._left = self._left - self._ended
        return self._ended.copy()


class SegmentAboveThreshold(Mechanism):
    """Mechanism that fires when an expert's losses since the segment's start exceed a threshold.

    Lemma A: tests of prefix sums may use far less noise than `AboveThreshold`, and segments cost
    nothing together. The exact sum is never released. A call at the end of round t, for the expert
    x that was played in it::

        call(loss (R,) = l_t(x), threshold (R,), restart (R,) bool = none) -> fired (R,) bool

          1. where the last call fired, or `restart`: a segment begins, q <- 0, rho <- fresh noise
          2. q <- q + clip(loss)
          3. fired = q + fresh noise > threshold + rho

    Guarantee:
        If within each segment the expert is fixed before its first round, and experts, thresholds
        and restarts are public or functions of releases, then all calls together are epsilon-DP for
        replacing one round, because of Lemma A for the one segment the user is in; other segments
        do not see the user.

    *Lemma A.* Let rho have a density p with p(r + b) >= e^(-epsilon b) p(r), and the query noise a
    survival function G with G(z - b) <= e^(epsilon b) G(z), for 0 <= b <= 1 (losses in [0, 1]).
    Then the firing time k is epsilon-DP, not 2 epsilon. *Proof.* Let P, P' be its laws under losses
    l, l' that differ in round i, b = l'_i(x) - l_i(x) > 0 and F = 1 - G: queries q_t grow by b from
    round i on. If k < i, P'(k) = P(k). Else P'(k) = int p(r) prod_{t<k} F(threshold + r - q_t - b)
    G(threshold + r - q_k - b) dr, with b only where t >= i. Put r = r0 + b: these factors become
    those of P, earlier F grow, and p(r) >= e^(-epsilon b) p(r0), so P <= e^(epsilon b) P'. And b
    makes F smaller and G at most e^(epsilon b) times as large, so P' <= e^(epsilon b) P. If no test
    fires, G is left out. So both noises may be exponential of mean 1 / epsilon.

    Args:
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        epsilon: cost of all segments together; inf adds no noise, and q > threshold fires.
        uses: number of calls.
        low, high: losses are clipped to this range, non-finite ones become `low`.
        noise: "exponential" (never negative, mean (high - low) / epsilon) or "laplace" of that
            scale, for threshold and query.
        query_epsilon: epsilon of the query noise, None for `epsilon`; by Lemma A with p and G each
            at its own epsilon, the larger of the two is the cost.

    >>> test = SegmentAboveThreshold(Streams([0]), "svt", epsilon=np.inf, uses=4)
    >>> [test(np.array([1.0]), np.array(1.5)).item() for _ in range(4)]
    [False, True, False, True]
    """

    # "If within each segment the expert is fixed before its first round, and experts, thresholds
    # and restarts are public or functions of releases"
    needs = SUMMED
    controls = (1, 2)

    def __init__(
        self,
        streams: Streams,
        name: str,
        *,
        epsilon: float,
        uses: int,
        low: float = 0.0,
        high: float = 1.0,
        noise: SegmentNoise = "exponential",
        query_epsilon: float | None = None,
    ) -> None:
        query_epsilon = epsilon if query_epsilon is None else query_epsilon
        privacy_target(epsilon, 0.0)
        privacy_target(query_epsilon, 0.0)
        whole("uses", uses, 0)
        positive("high - low", high - low)
        one_of("noise", noise, _SEGMENT_LAWS)
        cost = max(epsilon, query_epsilon)
        self.spend = PureSpend.of(f"{name}: sparse vector on segments, {noise}", [cost])
        self.sensitivity, self.uses = high - low, uses
        self._range = low, high
        law, s = _SEGMENT_LAWS[noise], self.sensitivity
        self.noise, self.scales = noise, (s / epsilon, s / query_epsilon)
        self._threshold_noise = law(self.scales[0]).sampler(streams, f"{name} threshold", ())
        self._query_noise = law(self.scales[1]).sampler(streams, f"{name} query", ())
        self._sum, self._rho = np.zeros(len(streams)), np.zeros(len(streams))  # never leave here
        self._ended = np.ones(len(streams), dtype=bool)  # the next call begins a segment

    def query(self, *datum: AnyArray) -> Floats:
        # the clipped loss of this round, (R,)
        return clip_range(_checked_values(datum[0], len(self._sum)), *self._range)

    def _release(self, *datum: AnyArray) -> Any:
        loss, threshold = self.query(*datum), datum[1]
        begins = self._ended | datum[2] if len(datum) > 2 else self._ended
        self._rho = np.where(begins, self._threshold_noise(), self._rho)
        self._sum = np.where(begins, 0.0, self._sum) + loss
        self._ended = self._sum + self._query_noise() > threshold + self._rho
        return self._ended.copy()


def _checked_values(values: AnyArray, replicas: int) -> Floats:
    if values.shape != (replicas,):
        raise InputError(f"Expected values of shape {values.shape} to be {(replicas,)}.")
    return values


def bit_epsilon(rate: float, probability: float) -> float:
    """Return the epsilon of `RedrawBit`, max(h, log(1 + (1 - p) (1 - e^-h) / p)), with its h and p.

    >>> round(bit_epsilon(0.1, 0.1), 4)
    0.6187
    """
    if probability == 0 or rate == inf:
        return inf
    return max(rate, log1p((1 - probability) * -expm1(-rate) / probability))


def redraw_probability(rate: float, epsilon: float) -> float:
    """Return the least redraw probability for which a bit costs `epsilon`, if that is >= `rate`.

    >>> round(redraw_probability(0.1, 0.6187), 3)
    0.1
    """
    moved = -expm1(-rate)
    return moved / (expm1(min(epsilon, 700.0)) + moved)


class RedrawBit(Mechanism):
    """Mechanism that decides to redraw with probability 1 - (1 - p) e^(-h loss)::

        call(loss (R,), active (R,) bool) -> redraw (R,) bool;  never where not `active`

    The keep probability of the shrinking dartboard (Geulen, Voecking and Winkler, "Regret
    minimization for online buffering problems using the weighted majority algorithm", COLT 2010),
    times 1 - p, so that no loss rules out a redraw.

    Guarantee:
        If every call's loss is the loss of a choice fixed before its round, and choices and
        `active` are public or functions of releases, then all calls together are epsilon-DP for
        replacing one round, epsilon = `bit_epsilon(h, p)`: given the releases before it, a user's
        loss decides her own round's bit alone. There loss l in [0, 1] keeps with probability (1 -
        p) e^(-h l), which moves by a factor of e^h at most, and redraws with probability between p
        and p + (1 - p) (1 - e^-h).

    Args:
        streams: the random streams of the replicas.
        name: name of the random stream of the coins.
        rate: h >= 0; with inf any loss > 0 is a redraw.
        probability: p in [0, 1], probability of a redraw without a loss.
        uses: number of calls.

    >>> bit = RedrawBit(Streams([0, 1]), "bits", rate=np.inf, probability=0.0, uses=1)
    >>> bit(np.array([0.0, 0.1]), np.array([True, True]))
    array([False,  True])
    """

    # "choices and `active` are public or functions of releases"
    needs = SUMMED
    controls = (1,)

    def __init__(
        self, streams: Streams, name: str, *, rate: float, probability: float, uses: int
    ) -> None:
        if rate != inf:
            at_least("rate", rate, 0)
        inside("probability", probability, 0, 1, ends=True)
        whole("uses", uses, 0)
        self.spend = PureSpend.of(f"{name}: keep or redraw", [bit_epsilon(rate, probability)])
        self.sensitivity, self.uses = 1.0, uses
        self.rate, self._keep, self._replicas = rate, 1 - probability, len(streams)
        self._coins = streams.uniforms(name)

    def query(self, *datum: AnyArray) -> Floats:
        if datum[0].shape != (self._replicas,):
            raise InputError(
                f"Expected losses of shape {datum[0].shape} to be {(self._replicas,)}."
            )
        return clip_range(datum[0], 0.0, 1.0)

    def keeps(self, loss: Floats) -> Floats:
        """Return the probability of no redraw of active replicas, for losses (R,)."""
        return self._keep * np.exp(-np.where(loss > 0, self.rate, 0.0) * loss)  # inf x 0 is 0 here

    def _release(self, *datum: AnyArray) -> Any:
        loss, active = self.query(*datum), datum[1]
        return (self._coins() >= self.keeps(loss)) & active
