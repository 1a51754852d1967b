"""How much to run."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from dpbandit.base.inputs import whole


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the four questions."""

    horizons: Sequence[int] = tuple(2**j for j in range(10, 18))
    """of regret against T"""
    adaptive_horizons: Sequence[int] = (2**10, 2**12, 2**14, 2**16)
    """of the adversary that sees the point"""
    users: int = 20_000
    """rounds of regret against epsilon"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, inf)
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half


QUICK = Plan(
    horizons=(128, 256, 512, 1024),
    adaptive_horizons=(256, 1024),
    users=500,
    epsilons=(0.5, 5.0, inf),
    replicas=3,
)
