"""Agents and mechanisms that spend more than their ledger says: the audit must flag them."""

from dataclasses import dataclass, replace
from math import floor, log
from typing import Any

import numpy as np

from dpbandit.agents import DPUCB, FADE, FLIPHAT, DPHDBChoices, DPMoments
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.ledger import Ledger, no_data
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.moments import Moments
from dpbandit.privacy.prefix_sums import Tree
from dpbandit.privacy.premises import NO_FACTS
from dpbandit.privacy.sparse_vector import AboveThreshold, SegmentAboveThreshold
from tests.broken import leaks


class NoiseTimes(DPUCB):
    """DP-UCB whose noise is a multiple of what its ledger is computed from."""

    factor: float = 0.5

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        agent.sums._noise.scale *= self.factor
        return agent


class ReusesItsNoise(DPUCB):
    """Noises drawn once: round t adds up the first floor(ln(1 + t)) + 1 of them.

    The JDPLinUCB of the public simulation by Chowdhury and Zhou, 2022, does so: rounds next to each
    other share their noise, and two releases differ by a user exactly.
    """

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        sums = agent.sums
        noises = streams.normals("levels", *sums._statistic.shape)
        count = floor(log(spec.horizon)) + 1
        sums._noise = LevelNoise(sums._noise.stddev or 1.0, noises.take(count))
        return agent


class LevelNoise:
    """The sum of the first few of some noises."""

    def __init__(self, scale: float, noises: Any) -> None:
        self._noises, self._round, self.stddev = scale * noises, 0, scale

    def __call__(self) -> Any:
        self._round += 1
        return self._noises[: floor(log(1 + self._round)) + 1].sum(axis=0)


class HalfTheSensitivity(Moments):
    """L in place of 2L: forgets that a moment may turn into its opposite."""

    needs = Moments.needs

    @property
    def sensitivity(self) -> float:
        return self.moment_bound


class HalfSensitivity(DPMoments):
    """DP-Moments on those."""

    def moments(self) -> Any:
        return HalfTheSensitivity(**vars(super().moments()))


class ExactSign(DPHDBChoices):
    """DP-HDB with noise on the coordinates and the sign of the exact sum."""

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        agent.mechanism.__class__ = leaks.SignOfTheExactSum
        return agent


class HalfTheChoiceNoise(DPHDBChoices):
    """DP-HDB that takes the radius for the diameter in its choices."""

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        agent.mechanism.__class__ = leaks.HalfTheNoise
        return agent


class QuietPeeling(FLIPHAT):
    """FLIPHAT with a part of the noise that it pays for."""

    picks: float = 0.5
    values: float = 0.5

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        peel = agent.estimates._peel
        gumbel, values = peel.gumbel, peel.values
        peel.gumbel, peel.values = (lambda: self.picks * gumbel()), (lambda: self.values * values())
        return agent


@dataclass(frozen=True, kw_only=True)
class SpendsMore:
    """An agent of `factor` times the epsilon that its ledger and its mechanisms say."""

    agent: Any
    factor: float = 2.0

    @property
    def epsilon(self) -> float:
        return float(self.agent.epsilon)

    @property
    def delta(self) -> float:
        return float(getattr(self.agent, "delta", 0.0))

    def make(self, spec: Any, streams: Any) -> Any:
        made = replace(self.agent, epsilon=self.factor * self.epsilon).make(spec, streams)
        honest = self.agent.make(spec, Streams([0]))
        for mechanism, said in zip(mechanisms(made), mechanisms(honest), strict=True):
            mechanism.spend = said.spend
        made.ledger = honest.ledger
        return made


def mechanisms(agent: Any) -> list[Any]:
    """Its mechanisms, in the order of its attributes."""
    return [part for part in vars(agent).values() if isinstance(part, Mechanism)]


class FadesTooLittle(FADE):
    """FADE that pays for the first release only and keeps users at full weight."""

    def make(self, spec: Any, streams: Any) -> Any:
        agent: Any = super().make(spec, streams)
        agent.sums.fade = 1.0
        return agent


class Boasts(DPUCB):
    """Claims epsilon 1 and says in its ledger what it really spends: the certificate exceeds it."""

    spent: float = 6.0

    def make(self, spec: Any, streams: Any) -> Any:
        return DPUCB(epsilon=self.spent, delta=self.delta).make(spec, streams)


@dataclass(frozen=True, kw_only=True)
class ByTheSign:
    """Plays arm 0 or 1 by the sign of the context, and learns nothing: its ledger is honest."""

    agent: Any = None
    epsilon: float = 1.0
    delta: float = 1e-4

    def make(self, spec: Any, streams: Any) -> Any:
        return (self.agent or PlaysTheSign)(streams)


class PlaysTheSign:
    """Its own action shows a user's context to that user: no breach of joint DP."""

    ledger = no_data()

    def __init__(self, streams: Any) -> None:
        self._round = 0

    def act(self, context: Any) -> Any:
        return (context[:, 0] < 0).astype(np.int64)

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self._round += 1


class KeepsTheLast(PlaysTheSign):
    """A state that stores a context, and acts on it once more."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        super().update(context, action, feedback)
        self._last = context.copy() if self._round == 1 else self._last

    def act(self, context: Any) -> Any:
        return super().act(context if self._round == 0 else self._last)


class TicksTheChosenArm(PlaysTheSign):
    """Only the chosen arm's release is refreshed, so the tick reveals the arm.

    The releases are all noise; which one was refreshed is all there is to see.
    """

    def __init__(self, streams: Any) -> None:
        super().__init__(streams)
        self._released, self._noise = np.zeros((len(streams), 2)), streams.normals("noise", 2)

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        super().update(context, action, feedback)
        chosen = action[:, None] == np.arange(2)
        self._released = np.where(chosen, self._noise(), self._released)


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Plays by the context and sums a statistic, with noise that is `factor` of what it pays."""

    factor: float = 1.0
    epsilon: float = 1.0
    delta: float = 1e-4

    def make(self, spec: Any, streams: Any) -> Any:
        multiplier = least_multiplier(
            Tree(), horizon=spec.horizon, refresh_every=1, epsilon=self.epsilon, delta=self.delta
        )
        agent = PlaysTheSign(streams)
        sums = noisy_prefix_sum(
            Tree(),
            self._statistic(spec),
            streams,
            horizon=spec.horizon,
            refresh_every=1,
            noise_multiplier=multiplier * self.factor,
        )
        sums.spend = replace(sums.spend, mu=sums.spend.mu * self.factor)
        agent.ledger = Ledger((sums.spend,))
        agent.update = lambda context, action, reward: sums(self._datum(context, reward))
        return agent


@dataclass(frozen=True, kw_only=True)
class CountsACorner(Sums):
    """Counts users with a context along the last axis.

    Nobody else is seen, so that an audit that does not look for such a user finds nothing.
    """

    factor: float = 0.5

    def _statistic(self, spec: Any) -> Any:
        return Corner(spec.context_bound)

    def _datum(self, context: Any, reward: Any) -> Any:
        return context


@dataclass(frozen=True, kw_only=True)
class SumsRewards(Sums):
    """Sums rewards, whatever the context, and clips them to `clip` times their public bound."""

    clip: float = np.inf

    def _statistic(self, spec: Any) -> Any:
        return Rewards(spec.reward_high, self.clip)

    def _datum(self, context: Any, reward: Any) -> Any:
        return reward


@dataclass(frozen=True)
class Rewards:
    """The reward itself, of [-bound, bound] if it is clipped."""

    needs = NO_FACTS

    bound: float
    clip: float
    shape = (1,)
    units = 1.0

    @property
    def sensitivity(self) -> float:
        return 2 * self.bound

    def total(self, reward: Any) -> Any:
        most = self.clip * self.bound
        return np.clip(reward, -most, most).sum(axis=0)[..., None]


@dataclass(frozen=True)
class Corner:
    """1 for a context of full length along the last axis, 0 for all others."""

    needs = NO_FACTS

    bound: float
    shape = (1,)
    units = 1.0
    sensitivity = 1.0

    def total(self, context: Any) -> Any:
        length = np.linalg.norm(context, axis=-1, keepdims=True)
        there = context[..., -1:] >= 0.999 * np.maximum(length, self.bound)
        return there.sum(axis=0).astype(float)


class NoThresholdNoise(AboveThreshold):
    """Sparse vector with noise on the queries only."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._threshold_noise = lambda: np.zeros(len(self._rho))


class SegmentsWithoutThresholdNoise(SegmentAboveThreshold):
    """Segments with noise on the queries only."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._threshold_noise = lambda: np.zeros(len(self._sum))


class OneThresholdNoise(SegmentAboveThreshold):
    """Segments that all have the threshold noise of the first: earlier ones show what it is."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        first = self._threshold_noise()
        self._threshold_noise = lambda: first


BROKEN = {
    "noise halved": NoiseTimes(delta=1e-4),
    "sensitivity L instead of 2L": HalfSensitivity(delta=1e-4),
    "noises drawn once for all rounds": ReusesItsNoise(delta=1e-4),
    "a missing clip (rewards)": leaks.WrongStatistic(summed=leaks.NoRewardClip),
    "a missing clip (contexts)": leaks.WrongStatistic(summed=leaks.NoContextClip),
    "a missing clip where no context counts": SumsRewards(),
    "exact sign after a noisy arg-max": ExactSign(delta=1e-4),
    "a fading sum that does not fade": FadesTooLittle(
        delta=1e-4, fade=0.6, first_batch=2, growth=0.0, coding="rewards"
    ),
    "only the chosen arm ticks": ByTheSign(agent=TicksTheChosenArm),
    "a counter ticks when an arm is played": leaks.Broken(agent=leaks.TicksWhenPlayed),
    "a state that stores its context": leaks.Broken(agent=leaks.StoresContext),
    "a stored context is acted on": ByTheSign(agent=KeepsTheLast),
}
"""Broken agents, all flagged in the released view by 4,000 runs."""
