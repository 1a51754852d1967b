"""Base classes of agents without contexts, for play, confidence bounds and released batches.

The agents play arms of contextual problems and ignore contexts; on a simplex with linear losses
they play vertices.
"""

from math import ceil, inf, log
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.agent import Agent, Epsilon, started
from dpbandit.base import Floats, InputError, Ints, clip_range, rows
from dpbandit.domains import Simplex
from dpbandit.losses import Linear
from dpbandit.losses.decisions import Experts
from dpbandit.privacy import ledger_of, no_privacy
from dpbandit.privacy.batches import CountedSums
from dpbandit.privacy.premises import Fact
from dpbandit.specs import Spec

Bools: TypeAlias = npt.NDArray[np.bool_]


class ArmAgent(Agent[Spec]):
    """Base class of agents that play one of K arms, with rewards scaled from [low, high]."""

    # arms are chosen without a look at the context
    blind = True

    vertices = False
    """True if an arm is played as a vertex of a simplex"""

    def begin(self) -> None:
        """Set K, the number of arms; raise `InputError` if the problem has none."""
        spec: Any = self.spec
        if spec.n_arms is not None:
            self.K = spec.n_arms
        elif _has_vertices(spec):
            self.K, self.vertices = spec.loss.domain.dim, True
        else:
            raise InputError(
                f"{type(self).__name__} plays finitely many arms, or linear losses on a simplex "
                f"with values as feedback, got {spec.kind}: choose another agent or environment."
            )
        self.low, self.high = spec.reward_low, spec.reward_high
        self.t = 0

    def act(self, context: Floats) -> npt.NDArray[Any]:
        arm = self.choose()
        return np.eye(self.K)[arm] if self.vertices else arm

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        return self.choose_among(mask)

    def update(self, context: Floats, action: npt.NDArray[Any], feedback: Floats) -> None:
        self.t += 1
        self.learn(action.argmax(axis=1) if self.vertices else action, feedback)

    def choose(self) -> Ints:
        """Return the arm of every replica in the next round, (R,)."""
        raise NotImplementedError

    def choose_among(self, mask: Bools) -> Ints:
        """Return arms (R,) among the available ones, a public mask (R, K)."""
        raise NotImplementedError

    def learn(self, arm: Ints, reward: Floats) -> None:
        """Learn from arms and rewards of one round, (R,) each; `t` already counts this round."""
        raise NotImplementedError


def _has_vertices(spec: Any) -> bool:
    return (
        isinstance(spec.domain, Simplex)
        and spec.feedback == "value"
        and isinstance(spec.loss, Linear | Experts)
    )


class ExactArms(ArmAgent):
    """Base class of agents without privacy: exact counts n and sums s of scaled rewards, (R, K)."""

    def start(self) -> None:
        self.begin()
        self.ledger = no_privacy("exact sums of rewards")
        self.n, self.s = np.zeros((self.R, self.K)), np.zeros((self.R, self.K))

    def learn(self, arm: Ints, reward: Floats) -> None:
        self.n[rows(self.R), arm] += 1
        self.s[rows(self.R), arm] += self.counted_reward(reward)

    def counted_reward(self, reward: Floats) -> Floats:
        """Return rewards clipped to their range and scaled to [0, 1]."""
        return (clip_range(reward, self.low, self.high) - self.low) / (self.high - self.low)

    def first_turns(self, index: Floats) -> Ints:
        """Return the arm with the largest index (R, K); arms that were never played come first."""
        return np.where(self.n == 0, inf, index).argmax(axis=1)


class ReleasedArms(ArmAgent):
    """Base class of agents that learn from noisy batch sums of every arm (`CountedSums`).

    `at_release` decides which sums are released, `take` learns from them. Rounds in which no
    replica's policy changes may come in blocks, see `rounds_to_release`.
    """

    # "pending", exact counts of plays: an arm, and that somebody played it, must be known anyway
    remembers = frozenset({Fact.CELL, Fact.PRESENCE})

    epsilon: Epsilon = 1.0
    """target, > 0; inf adds no noise and has no guarantee"""
    sums = started(CountedSums)
    delta = 0.0

    def start(self) -> None:
        self.begin()
        self.sums = CountedSums(
            self.streams,
            self.K,
            low=self.low,
            high=self.high,
            epsilon=self.epsilon,
            delta=self.delta,
            uses=self.spec.horizon,
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend, without="exact sums of batches")
        self.pending: Floats = np.zeros((self.R, self.K))
        self.nothing: Bools = np.zeros((self.R, self.K), dtype=np.bool_)
        self.reset()

    def reset(self) -> None:
        """Begin the first batch."""
        raise NotImplementedError

    def learn(self, arm: Ints, reward: Floats) -> None:
        self.pending[rows(self.R), arm] += 1
        self.feed(reward, arm)

    def feed(self, reward: Floats, arm: Ints) -> None:
        """Add a round's rewards (R,) to the sums of its arms (R,); learn from released sums."""
        at_release = self.at_release()
        self.learn_release(self.sums(reward, arm, at_release), at_release)

    def count_block(self, counts: Floats, rounds: int) -> Bools:
        """Count the plays (R, K) of a block of rounds; return the mask (R, K) of sums to release.

        The block's rewards go to `sums`, see `dpbandit.running.user_counts`.
        """
        self.t += rounds
        self.pending += counts
        return self.at_release()

    def learn_release(self, release: Floats | None, at_release: Bools) -> None:
        """Learn from released sums (R, K), if any, of the arms in the mask `at_release` (R, K)."""
        if release is not None:
            pending = self.pending.copy()
            self.pending[at_release] = 0.0
            self.take(release, np.where(at_release, pending, 0.0), at_release)

    @property
    def rounds_to_release(self) -> Ints:
        """Rounds (R,) until a release, with arms drawn from `chances`; 0 to call `act` instead."""
        return np.zeros(self.R, dtype=np.int64)

    @property
    def chances(self) -> Floats:
        """Probability (R, K) of every arm until the next release."""
        raise NotImplementedError

    def at_release(self) -> Bools:
        """Return the mask (R, K) of sums to release now; it depends on counts and releases only."""
        raise NotImplementedError

    def take(self, release: Floats, count: Floats, at_release: Bools) -> None:
        """Learn from released sums of `count` rounds, for arms in a mask; all (R, K)."""
        raise NotImplementedError


class OneArmBatches(ReleasedArms):
    """Base class of agents that play an arm for `length` rounds, then release its sum."""

    def reset(self) -> None:
        self.arm: Ints = np.zeros(self.R, dtype=np.int64)
        self.length: Floats = np.ones(self.R)

    def choose(self) -> Ints:
        return self.arm.copy()

    @property
    def rounds_to_release(self) -> Ints:
        return np.ceil(self.length - self.pending[rows(self.R), self.arm]).astype(np.int64)

    @property
    def chances(self) -> Floats:
        return np.eye(self.K)[self.arm]

    def at_release(self) -> Bools:
        full = self.pending[rows(self.R), self.arm] >= self.length
        if not np.count_nonzero(full):
            return self.nothing
        at_release = self.nothing.copy()
        at_release[full, self.arm[full]] = True
        return at_release


def kl_upper(mean: Floats, level: Floats) -> Floats:
    """Return the largest q in [mean, 1] with a divergence kl(mean, q) of at most `level`.

    Newton's method starts above q, and kl(mean, .) is convex, so every iterate is a bound.

    >>> round(float(kl_upper(np.array(0.5), np.array(0.1))), 6)
    0.712879
    """
    m, c = np.broadcast_arrays(np.clip(mean, 0.0, 1.0), np.asarray(level, dtype=np.float64))
    rest = 1 - m
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nan_to_num(m * np.log(m)) + np.nan_to_num(rest * np.log(rest))
        # kl >= 2 (q - m)^2, and kl >= entropy - (1 - m) log(1 - q)
        by_tail = 1 - np.exp(np.maximum((entropy - c) / rest, -700.0))
        q = np.minimum(m + np.sqrt(c / 2), np.where(m < 1, by_tail, 1.0))
        for _ in range(NEWTON_STEPS):
            kl = entropy - m * np.log(q) - rest * np.log1p(-q)
            step = (kl - c) * q * (1 - q) / (q - m)
            before, q = q, np.fmax(q - np.fmax(step, 0.0), m)  # where it is no number, q stays
            if (q == before).all():  # later steps would not move q either
                break
    return np.where((m < 1) & (c > 0), q, m)


NEWTON_STEPS = 12  # largest number of Newton steps in `kl_upper`


def tsallis_chances(losses: Floats, rate: Floats) -> Floats:
    """Return w (R, K), the minimiser of <w, losses> - (4 / rate) sum sqrt(w_a) on the simplex.

    Losses are (R, K), rates (R, 1).

    Zimmert and Seldin, "Tsallis-INF", JMLR 2021, section 3: w_a = 4 / (rate (losses_a - z))^2.
    Newton steps find the normaliser z from below; their number depends on K alone.

    >>> tsallis_chances(np.zeros((1, 2)), np.array([[0.3]]))
    array([[0.5, 0.5]])
    """
    above = losses - losses.min(axis=1, keepdims=True)
    u = 2 / rate
    for _ in range(12 + ceil(log(losses.shape[1]) / (2 * log(1.5)))):
        w = 4 / (rate * (above + u)) ** 2
        u = u + (w.sum(axis=1, keepdims=True) - 1) / (rate * (w**1.5).sum(axis=1, keepdims=True))
    w = 4 / (rate * (above + u)) ** 2
    return w / w.sum(axis=1, keepdims=True)
