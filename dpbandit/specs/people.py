"""The public facts of problems in which people come back."""

from dataclasses import dataclass, field, replace
from math import prod
from operator import attrgetter
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev, one_of, whole
from dpbandit.privacy.notion import Visits
from dpbandit.specs.protocols import BanditSpec, Bound, ContextualSpec, Spec

NOBODY = -1
"""The person of an empty slot."""
MOST_PEOPLE = 1_000_000


def _of_the_visit(name: str) -> Any:
    """What a visit says, as a property."""
    return property(attrgetter(f"visit.{name}"), doc=getattr(Spec, name).__doc__)


@dataclass(frozen=True, kw_only=True)
class ReturningSpec(Spec):
    """Arms, or lists of items, for one of N people in every slot of a public clock, or for nobody.

    Context (R, 1 + features): who she is, a dense public number in [0, N) that was given out
    beforehand and never by first arrival, or -1 in an empty slot; behind it what a visit of hers
    shows, as `visit` says, flattened, zeros in an empty slot. `person` and `visit_context` take it
    apart. An empty slot's action is played to nobody, its reward is 0.
    """

    kind: ClassVar[str] = "people who return"
    returning: ClassVar[bool] = True
    visit: BanditSpec
    """what one visit is"""
    people: int
    """N"""
    visits: Visits
    """how often one person may come; what is protected"""
    reward_low: float = field(init=False)
    reward_high: float = field(init=False)

    matrix_entries = _of_the_visit("matrix_entries")
    carries = _of_the_visit("carries")
    operator_sees_round = _of_the_visit("operator_sees_round")
    default_action = _of_the_visit("default_action")
    datum_shape = _of_the_visit("datum_shape")
    feedback_name = _of_the_visit("feedback_name")
    answers = _of_the_visit("answers")
    action_space = _of_the_visit("action_space")
    validate = _of_the_visit("validate")
    uniform = _of_the_visit("uniform")
    repaired = _of_the_visit("repaired")
    answer_to = _of_the_visit("answer_to")

    def __post_init__(self) -> None:
        if not getattr(self.visit, "visited_as", ""):
            raise InputError(
                f"Expected visit to be a ContextualSpec or ListSpec, got {abbrev(self.visit)}."
            )
        if not isinstance(self.visits, Visits):
            raise InputError(f"Expected visits to be Visits, got {abbrev(self.visits)}.")
        whole("people", self.people, 1, MOST_PEOPLE)
        whole("delay", self.delay, 0, 0)
        one_of("masks of a visit", self.visit.masks, ("none",))
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
    def measured_as(self) -> str:
        return self.visit.visited_as

    @property
    def unit(self) -> Visits:
        return self.visits

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (1 + prod(self.visit.context_shape),)

    @property
    def arms(self) -> ContextualSpec:
        """What one visit is to agents that keep a person's parameter in mind.

        Raises `InputError` unless every arm has a row of features of its own.
        """
        if isinstance(self.visit, ContextualSpec) and self.visit.shared:
            return self.visit
        parameters_per_arm = self.visit.n_arms is not None
        seen = "arms with parameters of their own" if parameters_per_arm else "lists"
        raise InputError(
            "Expected every arm to have a row of features of its own (shared=True), got "
            f"{seen}: choose PerPerson(agent)."
        )

    def person(self, context: Floats) -> Ints:
        """Who comes, (R,): in [0, N), or -1 for nobody, and for what is nobody's number."""
        number = np.asarray(context)[:, 0]
        known = (number >= 0) & (number < self.people) & (number == np.floor(number))
        return np.where(known, number, NOBODY).astype(np.int64)

    def visit_context(self, context: Floats) -> Floats:
        """Context of the visit without the person, `(R, *visit.context_shape)`."""
        return np.asarray(context)[:, 1:].reshape(-1, *self.visit.context_shape)

    def context(self, person: Ints, visit_context: Floats) -> Floats:
        """Both together, the inverse of `person` and `visit_context`."""
        return np.column_stack([person, visit_context.reshape(len(person), -1)])

    def observation_space(self) -> gym.Space[Any]:
        high = np.full(self.context_shape, self.visit.context_bound)
        low = -high
        low[0], high[0] = NOBODY, self.people - 1
        return gym.spaces.Box(low, high, dtype=np.float64)

    def bounds(self) -> list[Bound]:
        rewards, contexts = self.visit.bounds()
        return [rewards, replace(contexts, array=lambda context, step: self.visit_context(context))]

    def with_few_people(self) -> Self:
        return replace(self, people=min(self.people, self.horizon + 1))
