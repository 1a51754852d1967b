"""The public facts of prediction with expert advice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium as gym

from dpbandit.base.arrays import Ints
from dpbandit.base.inputs import MOST_ACTIONS, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import ALL_ACTIONS
from dpbandit.specs.actions import arms_in_range, uniform_arms
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class ExpertsSpec(Spec):
    """Follow one of d experts each round; then every expert's loss in [0, 1] is told.

    The action is an expert (R,), the reward minus her loss. A round's datum is its whole loss
    vector (R, d), which the agent is told in place of the reward; the context is the loss vector
    of the round before, 0 before round 1. Regret is measured against the best expert in hindsight.
    """

    n_actions: int
    """d, the number of experts"""
    reward_low: float = field(init=False, default=-1.0)
    reward_high: float = field(init=False, default=0.0)
    reward_unit: str = "loss"
    in_hindsight: ClassVar[bool] = True
    scope: ClassVar[str] = ALL_ACTIONS
    """an expert is followed before the losses of the round are seen"""
    kind: ClassVar[str] = "advice of experts"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n_actions", self.n_actions, 1, MOST_ACTIONS)

    @property
    def context_shape(self) -> tuple[int, ...]:
        """(d,), the losses of the round before."""
        return (self.n_actions,)

    @property
    def datum_shape(self) -> tuple[int, ...]:
        """(d,), everybody's loss."""
        return (self.n_actions,)

    @property
    def default_action(self) -> int:
        """What is played where nothing else is known, the first expert."""
        return 0

    def validate(self, action: Any, replicas: int) -> Ints:
        """Experts (R,), whole numbers in [0, d)."""
        return arms_in_range(action, replicas, self.n_actions)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        """Draws experts (R,)."""
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        """The experts."""
        return gym.spaces.Discrete(self.n_actions)
