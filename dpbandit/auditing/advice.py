"""Users of experts' problems: losses of all experts that push draws and tests to their bounds."""

from collections.abc import Iterator

import numpy as np

from dpbandit.auditing.worlds import Always, Pair, User, World, full_information, random_round, ways
from dpbandit.base.arrays import Floats
from dpbandit.specs.convex import ExpertsSpec

_FAR = 10.0
"""How far beyond [0, 1] losses are that do not keep to it."""


class AdviceUsers:
    """A user is a loss of every expert, (d,), and all of them are told.

    Everybody else brings no losses at all; or everybody loses, so that totals grow and tests fire
    while no expert is better than another; or all but expert 1 do; or losses are coins.
    """

    def __init__(self, spec: ExpertsSpec) -> None:
        self._spec = spec
        self._first = np.eye(spec.n_actions)[0]

    def handful(self, rng: np.random.Generator) -> Iterator[Pair]:
        """The loss of expert 1 alone turns into that of all others, or everybody's into nobody's.

        She is in round 1 or in a random round, with losses in [0, 1] or far beyond.
        """
        T, first, others = self._spec.horizon, self._first, 1 - self._first
        none, all_ = np.zeros_like(first), np.ones_like(first)
        coins = rng.integers(0, 2, (T, len(first))).astype(float)
        later = random_round(T, rng)
        turned, ceased = "loss of expert 1 turned to all others", "loss of all to loss of none"
        far = _FAR * (first - others)
        for t, rest, note, one, two in (
            (0, none, turned, first, others),
            (later, none, turned, first, others),
            (0, none, f"{turned}, beyond the bounds", far, -far),
            (0, all_, f"{turned} where all lose", first, others),
            (later, all_, f"{turned} where all lose", first, others),
            (0, all_, f"{ceased} where all lose", all_, none),
            (0, others, f"{turned} where expert 1 never loses", first, others),
            (0, coins, f"{turned} among coins", first, others),
        ):
            worlds = (self._world(rest, t, self._user("", losses)) for losses in (one, two))
            yield Pair(f"round {t + 1}, {note}", t, *worlds)

    def candidates(self, rng: np.random.Generator) -> list[User]:
        """Losses of 0 and 1 in many `ways`: of one expert, of all but one, of all, none, some."""
        return [
            self._user(note, 1.0 * np.where(v == 0, v.sum() < 0, v > 0))
            for note, v in ways(self._spec.n_actions, rng)
        ]

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        """Either user in round t, among others without losses."""
        none = np.zeros_like(self._first)
        return Pair(note, t, self._world(none, t, one), self._world(none, t, two))

    def _user(self, note: str, losses: Floats) -> User:
        return User(f"losses {note}", losses, Always(losses))

    def _world(self, rest: Floats, t: int, user: User) -> World:
        rows = np.broadcast_to(rest, (self._spec.horizon, len(self._first)))
        users = [self._user("", row) for row in rows]
        users[t] = user
        return full_information(users, self._spec.delay)
