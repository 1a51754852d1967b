"""The agents of the study, by the words of its tables."""

from collections.abc import Callable
from typing import TypeAlias

from dpbandit.agents import (
    AdaptiveSparseVectorExperts,
    BinaryTreeExperts,
    ExponentialLeader,
    FollowTheLeader,
    Hedge,
    NoisyFTRL,
    PotentialExperts,
    ShrinkingDartboard,
    SparseVectorExperts,
    Uniform,
)
from dpbandit.specs.protocols import AgentConfig

Family: TypeAlias = Callable[[float, float], AgentConfig]
"""(epsilon, delta) -> the agent that promises it"""

SPARSE: dict[str, Family] = {
    "sparse vector": lambda epsilon, delta: SparseVectorExperts(epsilon=epsilon),
    "sparse vector, delta": lambda epsilon, delta: SparseVectorExperts(
        epsilon=epsilon, delta=delta
    ),
    "sparse vector, beta 0.05": lambda epsilon, delta: SparseVectorExperts(
        epsilon=epsilon, beta=0.05
    ),
    "sparse vector, L* unknown": lambda epsilon, delta: AdaptiveSparseVectorExperts(
        epsilon=epsilon
    ),
}
"""Algorithm 1 and its restarts, certified; pure where delta is not said."""
STEADY: dict[str, Family] = {
    "dartboard, delta": lambda epsilon, delta: ShrinkingDartboard(epsilon=epsilon, delta=delta),
    "a draw a round, delta": lambda epsilon, delta: ExponentialLeader(epsilon=epsilon, delta=delta),
    "noisy sums, delta": lambda epsilon, delta: NoisyFTRL(epsilon=epsilon, delta=delta),
    "trees of four, delta": lambda epsilon, delta: BinaryTreeExperts(
        epsilon=epsilon, delta=delta, parameters="small"
    ),
}
"""Agents with other mechanisms, all certified."""
PRINTED: dict[str, Family] = {
    "Algorithm 1 as printed": lambda epsilon, delta: SparseVectorExperts(
        epsilon=epsilon, calibration="paper"
    ),
    "Algorithm 1 as printed, delta": lambda epsilon, delta: SparseVectorExperts(
        epsilon=epsilon, delta=delta, calibration="paper"
    ),
    "Algorithm 2 as printed": lambda epsilon, delta: AdaptiveSparseVectorExperts(
        epsilon=epsilon, calibration="paper"
    ),
    "Algorithm 5 as printed": lambda epsilon, delta: PotentialExperts(
        epsilon=epsilon, calibration="paper", threshold_units="literal"
    ),
    "Algorithm 5, threshold 2/eta": lambda epsilon, delta: PotentialExperts(
        epsilon=epsilon, calibration="paper"
    ),
    "Algorithm 5, certified": lambda epsilon, delta: PotentialExperts(epsilon=epsilon),
}
"""What the paper prints; the last one has the potential's test with certified noise."""
PUBLIC: dict[str, AgentConfig] = {
    "uniform play": Uniform(),
    "Hedge": Hedge(),
    "Hedge, eta 1": Hedge(rate=1.0),
    "leader": FollowTheLeader(),
}
"""Not private, but for uniform play."""
