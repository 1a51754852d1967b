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
from dpbandit.privacy.ledger import Visits as Visits
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import ContextualSpec, Spec

NOBODY = -1
"""The person of an empty slot."""
MOST_PEOPLE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ReturningSpec(Spec):
    """Arms, or lists of items, for one of N people in every slot of a public clock, or for nobody.

    Context (R, 1 + features): who she is, a dense public number in [0, N) that was given out
    beforehand and never by first arrival, or -1 in an empty slot; behind it what a visit of hers
    shows, as `visit` says, flattened, zeros in an empty slot. `person` and `shown` take it apart.
    An empty slot's action is played to nobody, its reward is 0.
    """

    kind: ClassVar[str] = "people who return"
    visit: ContextualSpec | ListSpec
    """what one visit is"""
    people: int
    """N"""
    visits: Visits
    """how often one person may come; what is protected"""
    reward_low: float = field(init=False)
    reward_high: float = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.visit, ContextualSpec | ListSpec):
            raise InputError(
                f"Expected visit to be a ContextualSpec or ListSpec, got {shown(self.visit)}."
            )
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
    def arms(self) -> ContextualSpec:
        """What one visit is to agents that keep a person's parameter in mind.

        Raises `InputError` unless every arm has a row of features of its own.
        """
        if isinstance(self.visit, ContextualSpec) and self.visit.shared:
            return self.visit
        seen = "lists" if isinstance(self.visit, ListSpec) else "arms with parameters of their own"
        raise InputError(
            "Expected every arm to have a row of features of its own (shared=True), got "
            f"{seen}: choose PerPerson(agent)."
        )

    @property
    def carries(self) -> bool:
        """Whether a visit does."""
        return self.visit.carries

    @property
    def watched(self) -> bool:
        """Whether a visit is."""
        return self.visit.watched

    @property
    def default_action(self) -> Any:
        """What is played where nothing else is known, the first arm, or the first items."""
        return self.visit.default_action

    @property
    def datum_shape(self) -> tuple[int, ...] | None:
        """Of what one replica is told in place of the reward, as `visit` says."""
        return self.visit.datum_shape

    @property
    def told_as(self) -> str | None:
        """Its name, as `visit` says."""
        return self.visit.told_as

    @property
    def answers(self) -> tuple[float, ...]:
        """The most extreme of what a person may say to an action."""
        return self.visit.answers

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
        """Arms (R,), or lists (R, m), that a visit allows."""
        return self.visit.validate(action, replicas)

    def uniform(self, streams: Streams) -> Callable[[], npt.NDArray[Any]]:
        """Draws arms (R,), or lists (R, m)."""
        return self.visit.uniform(streams)

    def action_space(self) -> gym.Space[Any]:
        """The arms, or a list."""
        return self.visit.action_space()

    def repaired(self, action: Any) -> Any:
        """The nearest lists, of samples of `action_space` that are none."""
        return self.visit.repaired(action)

    def told(self, potential: Floats, action: npt.NDArray[Any]) -> Floats:
        """What people (R, C) say to `action`."""
        return self.visit.told(potential, action)
