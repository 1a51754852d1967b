"""How much to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpbandit.base.inputs import whole


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of all questions."""

    horizons: tuple[int, ...] = (1_000, 3_000, 10_000, 100_000)
    """of regret against T"""
    n_experts: int = 256
    """of regret against T and epsilon"""
    sizes: Sequence[int] = (16, 64, 256, 1024, 4096)
    """of regret against d"""
    sizes_horizon: int = 10_000
    epsilons: Sequence[float] = (0.1, 1.0, 10.0)
    """of regret after the last of the horizons, and of clicks"""
    stages: Sequence[int] = (16, 256)
    """d of halving, where switches are counted"""
    users: int = 10_000
    """whose clicks choose among rankers, and rounds of halving"""
    rankers: int = 32
    tails: Sequence[tuple[int, float]] = ((16, 1.0), (256, 1.0), (256, 0.1))
    """(d, epsilon) of the lower bound"""
    audited: int = 400
    """replicas there"""
    delta: float = 1e-6
    """of agents that have one"""
    replicas: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("audited", self.audited, 2)
        for name in ("horizons", "sizes", "epsilons"):  # a slope needs two in the larger half
            whole(name, len(getattr(self, name)), 3)


QUICK = Plan(
    horizons=(100, 200, 300, 400),
    n_experts=16,
    sizes=(4, 8, 16),
    sizes_horizon=200,
    epsilons=(1.0, 10.0, 100.0),
    stages=(4, 16),
    users=200,
    rankers=8,
    tails=((16, 1.0),),
    audited=40,
    replicas=3,
)
