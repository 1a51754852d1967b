"""Spec of problems in which people come back."""

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
"""Person number in a time slot in which nobody comes."""
MOST_PEOPLE = 1_000_000  # who may return, in a problem


def _visit_property(name: str) -> Any:
    """Return a property whose value is the attribute `name` of the spec's `visit`."""
    return property(attrgetter(f"visit.{name}"), doc=getattr(Spec, name).__doc__)


@dataclass(frozen=True, kw_only=True)
class ReturningSpec(Spec):
    """Arms or lists for people who return: one of N people, or nobody, in each slot of a clock.

    A context is (R, 1 + features): first the person's number in [0, N), public and assigned
    beforehand, not by first arrival, or -1 in an empty slot; then the context of her visit, as in
    the spec `visit`, flattened, or zeros in an empty slot. `person` and `visit_context` return the
    two parts. In an empty slot nobody sees the action, and the reward is 0.
    """

    kind: ClassVar[str] = "people who return"
    returning: ClassVar[bool] = True
    visit: BanditSpec
    """public facts of one visit, arms or lists"""
    people: int
    """number of people"""
    visits: Visits
    """limit of one person's visits, and the unit of privacy"""
    reward_low: float = field(init=False)
    reward_high: float = field(init=False)

    matrix_entries = _visit_property("matrix_entries")
    carries = _visit_property("carries")
    operator_sees_round = _visit_property("operator_sees_round")
    default_action = _visit_property("default_action")
    datum_shape = _visit_property("datum_shape")
    feedback_name = _visit_property("feedback_name")
    answers = _visit_property("answers")
    action_space = _visit_property("action_space")
    validate = _visit_property("validate")
    uniform = _visit_property("uniform")
    repaired = _visit_property("repaired")
    answer_to = _visit_property("answer_to")

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
        """Spec of one visit, for agents that learn a parameter for each person.

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
        """Return person numbers (R,) from 0, or -1 for nobody and for invalid numbers."""
        number = np.asarray(context)[:, 0]
        known = (number >= 0) & (number < self.people) & (number == np.floor(number))
        return np.where(known, number, NOBODY).astype(np.int64)

    def visit_context(self, context: Floats) -> Floats:
        """Return contexts of visits without the person, `(R, *visit.context_shape)`."""
        return np.asarray(context)[:, 1:].reshape(-1, *self.visit.context_shape)

    def context(self, person: Ints, visit_context: Floats) -> Floats:
        """Join persons (R,) and contexts of visits to contexts (R, 1 + features)."""
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
