"""Agents for people who return that leak one person to another, which swapping her must show."""

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from dpbandit.agents import DPUCB, MemoryAlone, PerPerson, PersonalFADE
from dpbandit.agents.people import per_person, personal
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.person_sums import PersonSum


class OneDrawer(PersonalMemory):
    """Everybody's memory in one drawer."""

    def of(self, person: Any) -> Any:
        return super().of(np.where(person >= 0, 0, person))

    def add(self, person: Any, value: Any) -> None:
        super().add(np.where(person >= 0, 0, person), value)


class NextDoor(PersonalMemory):
    """Opened with the number of a neighbour."""

    def of(self, person: Any) -> Any:
        return super().of(np.where(person >= 0, (person + 1) % 3, person))


class StoppedClock(PersonSum):
    """Batches of visits that count, not of slots: who stays away shifts everybody behind her."""

    needs = PersonSum.needs

    def _release(self, *datum: Any) -> Any:
        if not self._counts(datum[0]).all():
            self._used -= 1
            return None
        return super()._release(*datum)


class AddsUp(PersonSum):
    """What her memory makes of her is added to what it made of her before, not put in its place."""

    needs = PersonSum.needs

    def _release(self, *datum: Any) -> Any:
        release = super()._release(*datum)
        self._contribution[:] = 0.0
        return release


class CapOfAll(per_person.Turnstile):
    """k visits of all people together: who comes displaces others."""

    def admits(self, person: Any) -> Any:
        return super().admits(np.where(person >= 0, 0, person))


class OpenDoor(per_person.Turnstile):
    """Lets everybody through, however often they came."""

    def admits(self, person: Any) -> Any:
        return super().admits(person) | (person >= 0)


@dataclass(frozen=True, kw_only=True)
class With:
    """An agent made with a part that is broken."""

    config: Any
    where: Any
    part: type

    def make(self, spec: Any, streams: Any) -> Any:
        with patch.object(self.where, self.part.__mro__[1].__name__, self.part):
            return self.config.make(spec, streams)


def _fade(**settings: Any) -> PersonalFADE:
    return PersonalFADE(**{"first_batch": 2, "counted": "first"} | settings)


BROKEN = {
    "one drawer": With(config=_fade(), where=personal, part=OneDrawer),
    "next door": With(config=MemoryAlone(), where=personal, part=NextDoor),
    "a clock that stops": With(config=_fade(), where=personal, part=StoppedClock),
    "what was said stays": With(config=_fade(counted="latest"), where=personal, part=AddsUp),
    "a cap of all": With(config=PerPerson(DPUCB()), where=per_person, part=CapOfAll),
    "an open door": With(config=PerPerson(DPUCB()), where=per_person, part=OpenDoor),
}
