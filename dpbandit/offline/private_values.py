"""Release from a log one private number: what a policy would have earned."""

from dataclasses import dataclass
from math import inf, sqrt
from secrets import randbits
from typing import Any, Literal

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Streams,
    positive,
    privacy_target,
    shaped,
    shown,
    whole,
)
from dpbandit.offline.logs import Logged, numbers_in
from dpbandit.offline.policies import asked
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise import Laplace
from dpbandit.privacy.premises import Fact
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.sparse_vector import AboveThreshold

COVERS = (
    "DP of this number, replace one row of the log: its context, action, propensity and reward; "
    "what that user changed in later rows of an adaptive log is its agent's to protect"
)
_GRID = tuple(2.0**k for k in range(8))
"""Clips that are tried, 1 to 128."""
_OF_CLIP = 0.2
"""The share of epsilon that a private clip costs."""
_LEAST = 0.05
_NOISE = 4.41
"""In place of 4, for the variance 4 b^2 of two Laplace variables, whose tails are heavier: coverage
at 95 % is .955 for .941 where noise dominates."""


@dataclass(frozen=True, kw_only=True)
class PrivateValue:
    """A private estimate of a policy's value, with its interval; safe to publish."""

    value: float
    """self-normalised, in units of the reward"""
    low: float
    high: float
    """a 95 % interval for the value, whatever the clip cut off; asymptotic"""
    clip: float
    """the largest weight of a row"""
    scale: float
    """of the Laplace noise of either sum, per row of the log"""
    unit: str
    certificate: Certificate
    """pure epsilon-DP, and what it covers"""

    def __str__(self) -> str:
        return (
            f"{self.value:.4g} {self.unit} a round (95 % interval {self.low:.4g} to {self.high:.4g}"
            f"), epsilon {self.certificate.epsilon:g}, weights up to {self.clip:g}"
        )


def release(
    policy: Any,
    log: Logged,
    *,
    epsilon: float,
    clip: float | Literal["private"] | None = None,
    seed: int | None = None,
) -> PrivateValue:
    """Release what a frozen policy would have earned per round, with pure differential privacy.

    With weights w = pi(a | x) / p, c = min(w, M), rewards r on [0, 1] by their public bounds::

        N = mean c (r - 1/2) + Lap(M / (n epsilon)),    D = mean c / 2 + Lap(M / (n epsilon))
        value = 1/2 + N / (2 max(D, 1/40)), within [0, 1]
        low:  N + D estimates E[c r] <= v;     high: 1 - (D - N) estimates 1 - E[c (1 - r)] >= v

    The denominator is free: (c (r - 1/2), c / 2) is a point of the triangle (0, 0), (+-M/2, M/2),
    whose diameter in l_1 is M, as that of the numerator alone. The interval is +-1.96
    sqrt(M max(x, 1/n) / n + 4.41 b^2) beyond either end, b the scale of the noise; it holds
    whatever the clip cut off, since 0 <= E[(w - c) r] <= 1 - E[c].

    Args:
        policy: an object whose `probabilities(contexts)` is asked for one row at a time, so that no
            weight depends on other rows, and that was not made from these; one that draws draws the
            same for every row. Or probabilities (K,) that are the same for all. What is no
            probability counts as 0.
        log: rows of arms with known propensities.
        epsilon: > 0; pure.
        clip: M, a public number; "private" finds one of 1, 2, 4, ..., 128, for a fifth of epsilon,
            by the sparse vector technique: the least beyond which hardly 2 / (.8 epsilon) rows lie.
            None: 1 / lowest, if that bound of the log is public.
        seed: of the noise, for tests alone: noise whose seed is known protects nobody. None draws
            from the operating system.

    Guarantee:
        epsilon-DP for replacing one row of the log, the others as they are (`COVERS`): Laplace
        noise on two sums that a row moves by M / n in l_1 together, and with a private clip
        `AboveThreshold` at .2 epsilon before, the sums at .8 epsilon. No diagnostics are given and
        no sentence names a row; that the log was accepted at all (`Logged` holds propensities
        against counts), and what was warned of as it was made, are functions of its rows that no
        certificate covers.

    Raises:
        InputError: a learner, probabilities of every row, a policy that remembers what it was
            asked, no log of arms, an argument out of range, or clip=None where `lowest` was read
            off the log.

    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=1)
    >>> action = np.arange(1000) % 2
    >>> log = Logged(spec=spec, context=np.ones((1000, 1)), action=action, reward=1.0 * action,
    ...              propensity=0.5)
    >>> print(release([0.2, 0.8], log, epsilon=1.0, seed=0))
    0.7978 reward a round (95 % interval 0.7162 to 0.8388), epsilon 1, weights up to 2
    """
    if not isinstance(log, Logged):
        raise InputError(f"Expected log={shown(log)} to be Logged, rows of arms.")
    privacy_target(epsilon, 0.0)
    if seed is not None:
        whole("seed", seed, 0)
    n, spec = len(log.action), log.spec
    streams = Streams([randbits(128) if seed is None else seed])
    weight = _weights(policy, log)
    span = spec.reward_high - spec.reward_low
    share = (log.reward[None] - spec.reward_low) / span
    M, spent, first = _clip(clip, log, weight, epsilon, streams)
    sums = TriangleSums(n, M, epsilon - spent, streams)
    released = sums(weight, share)
    assert released is not None
    N, D = released[0].tolist()
    b = sums.scale
    value = float(np.clip(0.5 + N / (2 * max(D, _LEAST / 2)), 0, 1))

    def error(x: float) -> float:
        return 1.96 * sqrt(M * max(x, 1 / n) / n + _NOISE * b * b)

    low = max(0.0, N + D - error(N + D))
    high = min(1.0, 1 - (D - N) + error(D - N))
    ends = min(low, value), value, max(high, value)
    low, value, high = (spec.reward_low + span * end for end in ends)
    ledger = Ledger((*first, sums.spend), COVERS)
    return PrivateValue(
        value=value,
        low=low,
        high=high,
        clip=M,
        scale=b,
        unit=spec.reward_unit,
        certificate=certificate(ledger, claim=(epsilon, 0.0), accountants=False),
    )


class TriangleSums(Mechanism):
    """Both sums of a log, once: called with weights and rewards (1, n), it releases (1, 2).

    Guarantee:
        Whatever is fed, a row is a point of a triangle of l_1 diameter M, over n.
    """

    # "Whatever is fed, a row is a point of a triangle"
    needs = frozenset({Fact.ONCE})

    order = 1
    uses = 1

    def __init__(self, n: int, clip: float, epsilon: float, streams: Streams) -> None:
        self._n, self._clip = n, clip
        self.sensitivity = clip / n
        self.spend = LaplaceSpend(epsilon, note="two sums of a log, a row in a triangle")
        self.scale = self.sensitivity / epsilon if epsilon < inf else 0.0
        self._noise = Laplace(self.scale).sampler(streams, "sums of a log", (2,))

    def query(self, *datum: AnyArray) -> Floats:
        """Means of c (r - 1/2) and of c / 2, (1, 2)."""
        weight, share = datum
        fine = np.isfinite(weight) & np.isfinite(share)
        c = np.where(fine, weight, 0.0).clip(0, self._clip)
        r = np.where(fine, share, 0.0).clip(0, 1)
        return np.stack([c * (r - 0.5), c / 2], axis=-1).sum(axis=1) / self._n

    def _release(self, *datum: AnyArray) -> Floats:
        return self.query(*datum) + self._noise()


def _weights(policy: Any, log: Logged) -> Floats:
    """pi(a | x) / p of every row, (1, n); nothing is said of what a row holds."""
    n, K = len(log.action), log.spec.n_actions
    if asked(policy, "probabilities", *_shown(log, 0)) is policy:
        fixed = numbers_in("policy", policy)
        if fixed.shape != (K,):
            raise InputError(
                f"Expected policy to be {K} probabilities that are the same for all rows, or to "
                f"have probabilities(contexts), got an array {fixed.shape}: a row of it may be "
                "made of others, which no certificate would cover."
            )
        law = np.tile(fixed, (n, 1))
    else:
        law = np.concatenate([_alone(policy, log, row) for row in range(n)])
        again = [_alone(policy, log, row) for row in reversed(range(n))][::-1]
        if not np.array_equal(np.concatenate(again), law, equal_nan=True):
            raise InputError(
                f"Expected policy={shown(policy)} to remember nothing of what it is asked, got "
                "another answer for a row once it had been asked for all."
            )
    chosen = np.take_along_axis(law, log.action[:, None], axis=1)[:, 0]
    chosen = np.where(np.isfinite(chosen), chosen, 0.0).clip(0, 1)
    return np.asarray(chosen / log.propensity)[None]


def _alone(policy: Any, log: Logged, row: int) -> Floats:
    """Probabilities (1, K) at one row, of a policy that is shown no other."""
    law = numbers_in("policy", asked(policy, "probabilities", *_shown(log, row)))
    shaped("the policy's probabilities", law, (1, log.spec.n_actions))
    return law


def _shown(log: Logged, row: int) -> tuple[Any, ...]:
    """What one row shows of its user; a view would lead to all of them."""
    hers = slice(row, row + 1)
    return log.context[hers].copy(), None if log.mask is None else log.mask[hers].copy()


def _clip(
    clip: float | str | None, log: Logged, weight: Floats, epsilon: float, streams: Streams
) -> tuple[float, float, tuple[Any, ...]]:
    """M, the epsilon that it cost, and the spends."""
    if clip is None:
        if not log.lowest_is_public:
            raise InputError(
                "Expected clip=, a public bound on weights or 'private', or lowest= to be given "
                "with the log: read off it, the least propensity is somebody's data."
            )
        return 1 / log.uniform_share, 0.0, ()
    if clip != "private":
        if isinstance(clip, str):
            raise InputError(f"Expected clip={clip!r} to be a number, or 'private'.")
        positive("clip", clip)
        return float(clip), 0.0, ()
    own, left = _OF_CLIP * epsilon, (1 - _OF_CLIP) * epsilon
    test = AboveThreshold(streams, "clip of weights", epsilon=own, uses=len(_GRID))
    most = 2 / left + 6 / own
    found = _GRID[-1]
    for M in _GRID:
        beyond = -1.0 * (weight > M).sum(axis=1)
        fired = test(beyond, np.array([-most]))
        if fired is not None and fired[0]:
            found = M
            break
    return found, own if own < inf else 0.0, (test.spend,)
