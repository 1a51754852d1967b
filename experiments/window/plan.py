"""How much to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpbandit.base.inputs import positive, whole


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the five questions."""

    horizon: int = 8192
    """of regret against W"""
    windows: Sequence[int] = (1, 4, 16, 64, 256, 1024, 8192)
    horizons: Sequence[int] = tuple(2**j for j in range(8, 17))
    """of regret against T"""
    fixed_windows: Sequence[int] = (16, 256)
    """there"""
    epsilon: float = 10.0
    """of both"""
    customers: int = 20_000
    retentions: Sequence[int] = (100, 1_000)
    """retention periods of the pricing problem, in customers"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    """there"""
    corners: Sequence[int] = (10, 100, 1_000)
    """of simplices on which rounds are timed"""
    layers: Sequence[int] = (2, 4, 6)
    """of flow networks, three nodes each, on which rounds are timed"""
    timed_rounds: int = 64
    timed_runs: int = 5
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("timed_runs", self.timed_runs, 2)
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half
        positive("epsilon", self.epsilon)


QUICK = Plan(
    horizon=256,
    windows=(1, 16, 256),
    horizons=(64, 128, 256, 512),
    fixed_windows=(16,),
    customers=500,
    retentions=(50,),
    epsilons=(1.0, 5.0),
    corners=(10, 50),
    layers=(2,),
    timed_rounds=16,
    timed_runs=2,
    replicas=3,
)
