"""Small leaks, each a few lines on top of what is honest."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpbandit.agents import DPUCB
from dpbandit.privacy.fading import FadingSum
from dpbandit.privacy.moments import SecondMoments
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.privacy.vertices import NoisyVertex


@dataclass(frozen=True, kw_only=True)
class Broken:
    """DP-UCB with its running agent replaced."""

    agent: Any
    epsilon: float = 1.0
    delta: float = 1e-4

    def make(self, spec: Any, streams: Any) -> Any:
        honest = DPUCB(epsilon=self.epsilon, delta=self.delta, refresh_every=3)
        made = honest.make(spec, streams)
        made.__class__ = self.agent
        return made


class OneByOne(DPUCB):
    """DP-UCB that is asked round by round."""

    rounds_to_release = 1  # type: ignore[assignment]


class StoresContext(OneByOne):
    """An act that keeps what it has read."""

    def act(self, context: Any) -> Any:
        self._last = context
        return super().act(context)


class LeaksIntoState(OneByOne):
    """A touch of the raw context beside the released estimate."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        super().update(context, action, feedback)
        self.ridge.theta = self.ridge.theta + 1e-3 * np.nan_to_num(context[:, None])


class TicksWhenPlayed(OneByOne):
    """A counter of plays for each arm, kept outside the mechanism."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self._pulls = getattr(self, "_pulls", 0) + (action[:, None] == np.arange(3))
        super().update(context, action, feedback)


def widened(statistic: SecondMoments, **bounds: float) -> SecondMoments:
    """The honest statistic with other bounds."""
    return SecondMoments(**{**arguments(statistic), **bounds})


def arguments(statistic: SecondMoments) -> dict[str, Any]:
    return {f.name: getattr(statistic, f.name) for f in fields(statistic) if f.init}


class NoRewardClip(SecondMoments):
    """Sums r x without clipping r."""

    needs = SecondMoments.needs

    def total(self, *batch: Any) -> Any:
        return widened(self, reward_low=-1e12, reward_high=1e12).total(*batch)


class ForgotRootTwo(SecondMoments):
    """Believes that |xx' - yy'| and |rx - sy| are at most 1 each."""

    needs = SecondMoments.needs

    @property
    def sensitivity(self) -> float:
        return 1.0


class NoContextClip(SecondMoments):
    """Trusts the environment for the norm of a context."""

    needs = SecondMoments.needs

    def total(self, *batch: Any) -> Any:
        return widened(self, context_bound=1e3).total(*batch)


class WrongStatistic(DPUCB):
    """DP-UCB summing another statistic."""

    summed: Any = SecondMoments

    def moments(self) -> Any:
        return self.summed(**arguments(super().moments()))


class SignOfTheExactSum(NoisyVertex):
    """Noise on the coordinates, but the sign of the exact sum picks between +R e_j and -R e_j.

    So the authors' own program of DP-HDB chooses; one user can decide that sign.
    """

    needs = NoisyVertex.needs

    def _release(self, *datum: Any) -> Any:
        noisy = super()._release(*datum)
        j = noisy % self._exact.shape[-1]
        exact = np.take_along_axis(self._exact, j[..., None], axis=-1)[..., 0]
        return np.where(noisy < 0, -1, j + self._exact.shape[-1] * (exact > 0))


class HalfTheNoise(NoisyVertex):
    """Takes the radius for the diameter."""

    needs = NoisyVertex.needs

    def _scales(self) -> Any:
        return super()._scales() / 2


class PaysForOneRelease(FadingSum):
    """Forgets that a user fades through later releases too."""

    def __init__(self, *args: Any, noise_multiplier: float, **named: Any) -> None:
        super().__init__(*args, noise_multiplier=noise_multiplier, **named)
        self.spend = GaussianSpend(1 / noise_multiplier, self.spend.note)


class KeepsTheWhole(FadingSum):
    """Does not fade: the user is in every release at full weight."""

    needs = FadingSum.needs

    def _release(self, *datum: Any) -> Any:
        release = super()._release(*datum)
        if release is not None:
            self._exact = self._exact / self.fade
        return release


STATE = [Broken(agent=agent) for agent in (StoresContext, LeaksIntoState, TicksWhenPlayed)]
MECHANISM = [
    WrongStatistic(summed=statistic) for statistic in (NoRewardClip, ForgotRootTwo, NoContextClip)
]
