"""Users for audits of problems whose people return."""

from collections.abc import Iterator, Sequence

import numpy as np

from dpbandit.auditing.users import Always, Answer, Pair, User, World, users_by_spec
from dpbandit.base import Floats, InputError
from dpbandit.specs.people import NOBODY, ReturningSpec

_EMPTY_SLOT_PERIOD = 3
"""Distance between rounds without a user, in which only the differing person may come."""


class People:
    """Users of problems whose people return; the differing person is the last one.

    The differing person comes as often as she may, in the earliest or in evenly spread rounds,
    each time with the same context and answers. If her pattern of visits is private, she may come
    in other rounds on the second stream. All other people share one context and one answer.
    """

    def __init__(self, spec: ReturningSpec) -> None:
        if spec.people < 2:
            raise InputError("Expected people=1 to be 2 or more: others see what a person changes.")
        self._spec, self._visit = spec, users_by_spec(spec.visit)
        self._silence = Always(np.zeros(spec.datum_shape or ()))
        self._her = spec.people - 1

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        soon, spread = self._soon(), self._spread()
        for pair in self._visit.extreme_pairs(rng):
            t, background = pair.round, (pair.round + 1) % self._spec.horizon
            note = pair.note.partition(", ")[2] or pair.note
            users = [
                User("", world.context[t], world.answers[t]) for world in (pair.first, pair.second)
            ]
            others = User("", pair.first.context[background], pair.first.answers[background])
            yield self._pair(f"every visit, {note}", (soon, soon), users, others)
        yield self._pair(f"spread visits, {note}", (spread, spread), users, others)
        if self._spec.visits.pattern == "private":
            later = tuple(s for s in self._latest() if s not in soon)
            yield self._pair(f"other slots, {note}", (soon, later), users, others)

    def candidates(self, rng: np.random.Generator) -> list[User]:
        return self._visit.candidates(rng)

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        background = User("", 1e-6 * one.context, self._silence)
        soon = self._soon()
        return self._pair(note, (soon, soon), [one, two], background)

    def _soon(self) -> tuple[int, ...]:
        """Return the earliest rounds in which a person can make all visits that she may make."""
        k, b, T = self._spec.visits.cap, self._spec.visits.separation, self._spec.horizon
        return tuple(range(0, T, b))[:k]

    def _spread(self) -> tuple[int, ...]:
        k, b, T = self._spec.visits.cap, self._spec.visits.separation, self._spec.horizon
        return tuple(range(0, T, max(b, T // k)))[:k]

    def _latest(self) -> tuple[int, ...]:
        T = self._spec.horizon
        return tuple(sorted(T - 1 - t for t in self._soon()))

    def _pair(
        self,
        note: str,
        slots: tuple[Sequence[int], Sequence[int]],
        users: Sequence[User],
        others: User,
    ) -> Pair:
        rounds = sorted({*slots[0], *slots[1]})
        first, second = (
            self._world(mine, set(rounds), user, others)
            for mine, user in zip(slots, users, strict=True)
        )
        later = tuple(rounds[1:])
        return Pair(note, rounds[0], first, second, more=later, person=self._her)

    def _world(self, mine: Sequence[int], her_rounds: set[int], user: User, others: User) -> World:
        """Make a stream of `user` in rounds `mine`, nobody in other `her_rounds`, else `others`."""
        rounds: list[tuple[int, Floats, Answer]] = []
        nobody = NOBODY, np.zeros_like(user.context), self._silence
        for t in range(self._spec.horizon):
            other = t % (self._spec.people - 1)
            if t in mine:
                rounds.append((self._her, user.context, user.answer))
            elif t in her_rounds or t % _EMPTY_SLOT_PERIOD == _EMPTY_SLOT_PERIOD - 1:
                rounds.append(nobody)
            else:
                rounds.append((other, others.context, others.answer))
        context = np.array([np.append(person, np.ravel(x)) for person, x, _ in rounds])
        return World(context, tuple(answer for *_, answer in rounds))


users_by_spec.register(ReturningSpec, People)
