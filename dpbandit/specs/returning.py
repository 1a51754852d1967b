"""The public facts of problems in which people come back: who may, how often, what is shown."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, shown, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.visits import Visits as Visits
from dpbandit.specs.protocols import ContextualSpec, Spec

NOBODY = -1
"""The person of an empty slot."""
MOST_PEOPLE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ReturningSpec(Spec):
    """Finitely many arms for one of N people in every slot of a public clock, or for nobody.

    Context (R, 1 + features): who she is, a dense public number in [0, N) that was given out
    beforehand and never by first arrival, or -1 in an empty slot; behind it what a visit of hers
    shows, as `visit` says, flattened, zeros in an empty slot. `person` and `shown` take it apart.
    An empty slot's action is played to nobody, its reward is 0.
    """

    kind: ClassVar[str] = "people who return"
    visit: ContextualSpec
    """what one visit is"""
    people: int
    """N"""
    visits: Visits
    """how often one person may come; what is protected"""
    reward_low: float = field(init=False)
    reward_high: float = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.visit, ContextualSpec):
            raise InputError(f"Expected visit to be a ContextualSpec, got {shown(self.visit)}.")
        if not isinstance(self.visits, Visits):
            raise InputError(f"Expected visits to be Visits, got {shown(self.visits)}.")
        whole("people", self.people, 1, MOST_PEOPLE)
        whole("delay", self.delay, 0, 0)
        for name in ("reward_low", "reward_high"):
            object.__setattr__(self, name, getattr(self.visit, name))
        super().__post_init__()
        object.__setattr__(self, "visit", replace(self.visit, horizon=self.horizon))
        if not self.reward_low <= 0 <= self.reward_high:
            raise InputError(
                f"Expected rewards in [{self.reward_low}, {self.reward_high}] to be 0 at times, as "
                "those of empty slots are."
            )

    @property
    def context_shape(self) -> tuple[int, ...]:
        """(1 + features,)."""
        return (1 + prod(self.visit.context_shape),)

    @property
    def n_actions(self) -> int:
        """K."""
        return self.visit.n_actions

    @property
    def default_action(self) -> int:
        """What is played where nothing else is known, the first arm."""
        return self.visit.default_action

    def person(self, context: Floats) -> Ints:
        """Who comes, (R,): in [0, N), or -1 for nobody, and for what is nobody's number."""
        said = np.asarray(context)[:, 0]
        known = (said >= 0) & (said < self.people) & (said == np.floor(said))
        return np.where(known, said, NOBODY).astype(np.int64)

    def shown(self, context: Floats) -> Floats:
        """What the visit shows, `(R, *visit.context_shape)`."""
        x: Floats = np.asarray(context)[:, 1:].reshape(-1, *self.visit.context_shape)
        return x

    def context(self, person: Ints, shown: Floats) -> Floats:
        """Both together, the inverse of `person` and `shown`."""
        return np.column_stack([person, shown.reshape(len(person), -1)])

    def validate(self, action: Any, replicas: int) -> npt.NDArray[Any]:
        """Arms (R,), whole numbers in [0, K)."""
        return self.visit.validate(action, replicas)

    def uniform(self, streams: Streams) -> Callable[[], npt.NDArray[Any]]:
        """Draws arms (R,)."""
        return self.visit.uniform(streams)

    def action_space(self) -> gym.Space[Any]:
        """The arms."""
        return self.visit.action_space()

    def told(self, potential: Floats, action: npt.NDArray[Any]) -> Floats:
        """What users (R, K) say of their arm."""
        return self.visit.told(potential, action)
