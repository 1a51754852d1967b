"""Small leaks, each a few lines on top of the honest DP-UCB."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpbandit.agents import DPUCB
from dpbandit.optimism import BatchedUCB
from dpbandit.privacy.statistics import SecondMoments


@dataclass(frozen=True, kw_only=True)
class Prey:
    """DP-UCB with its running agent replaced."""

    agent: Any

    def make(self, spec: Any, streams: Any) -> Any:
        made = DPUCB(refresh_every=3).make(spec, streams)
        made.__class__ = self.agent
        return made


class StoresContext(BatchedUCB):
    """An act that keeps what it has read."""

    def act(self, context: Any) -> Any:
        self._last = context
        return super().act(context)


class LeaksIntoState(BatchedUCB):
    """A touch of the raw context beside the released estimate."""

    def update(self, context: Any, action: Any, reward: Any) -> None:
        super().update(context, action, reward)
        self._ridge.theta = self._ridge.theta + 1e-3 * np.nan_to_num(context[:, None])


class TicksWhenPlayed(BatchedUCB):
    """A counter of plays for each arm, kept outside the door."""

    def update(self, context: Any, action: Any, reward: Any) -> None:
        self._pulls = getattr(self, "_pulls", 0) + (action[:, None] == np.arange(3))
        super().update(context, action, reward)


def widened(statistic: SecondMoments, **bounds: float) -> SecondMoments:
    """The honest statistic with other bounds."""
    return SecondMoments(**{**arguments(statistic), **bounds})


def arguments(statistic: SecondMoments) -> dict[str, Any]:
    return {f.name: getattr(statistic, f.name) for f in fields(statistic) if f.init}


class NoRewardClip(SecondMoments):
    """Sums r x without clipping r."""

    def total(self, *batch: Any) -> Any:
        return widened(self, reward_low=-1e12, reward_high=1e12).total(*batch)


class ForgotRootTwo(SecondMoments):
    """Believes that |xx' - yy'| and |rx - sy| are at most 1 each."""

    @property
    def sensitivity(self) -> float:
        return 1.0


class NoContextClip(SecondMoments):
    """Trusts the environment for the norm of a context."""

    def total(self, *batch: Any) -> Any:
        return widened(self, context_bound=1e3).total(*batch)


@dataclass(frozen=True, kw_only=True)
class WrongStatistic(DPUCB):
    """DP-UCB summing another statistic."""

    statistic: Any = SecondMoments

    def _statistic(self, spec: Any) -> Any:
        return self.statistic(**arguments(super()._statistic(spec)))


STATE = [Prey(agent=agent) for agent in (StoresContext, LeaksIntoState, TicksWhenPlayed)]
DOOR = [
    WrongStatistic(statistic=statistic)
    for statistic in (NoRewardClip, ForgotRootTwo, NoContextClip)
]
