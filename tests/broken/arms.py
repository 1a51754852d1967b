"""Agents of arms that are broken on purpose."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandit.agents import AllocationTS, KLUCBSums
from dpbandit.privacy.moments import ArmRewards


class EndsByAnExactSum(KLUCBSums):
    """A batch ends as soon as its exact sum is 2: when it ends tells what was in it."""

    first: float = 1.0

    def at_release(self) -> Any:
        full = self.sums._pending[np.arange(self.R), self.arm] >= 2  # private state
        at_release = self.nothing.copy()
        at_release[full, self.arm[full]] = True
        return at_release


class AnyReward(ArmRewards):
    """Shares of a range, whatever the reward."""

    needs = ArmRewards.needs

    def total(self, *batch: Any) -> Any:
        action, reward = batch
        played = action[..., None] == np.arange(self.n_actions)
        return (played * np.nan_to_num(reward)[..., None]).sum(axis=0)


class Unclipped(AllocationTS):
    """Forgets the clip."""

    def start(self) -> None:
        super().start()
        self.sums._shares = AnyReward(self.K, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class HalfTheLaplace:
    """An agent whose noise is half of what its ledger says."""

    config: Any
    epsilon: float = 1.0
    delta: float = 0.0

    def make(self, spec: Any, streams: Any) -> Any:
        agent = self.config.make(spec, streams)
        noise = agent.sums._noise
        source = getattr(noise, "_source", None) or noise.source
        make = source.make
        source.make = Halved(make)
        return agent


@dataclass(frozen=True)
class Halved:
    """Half of what another function makes."""

    make: Any

    def __call__(self, *blocks: Any) -> Any:
        return self.make(*blocks) / 2
