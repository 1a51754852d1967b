"""Users of convex problems that push mechanisms to their bounds."""

from collections.abc import Iterator
from math import prod

import numpy as np

from dpbandit.auditing.worlds import (
    Always,
    LossOf,
    Pair,
    User,
    World,
    full_information,
    random_round,
    ways,
)
from dpbandit.base.arrays import Floats
from dpbandit.specs.convex import ConvexSpec

_FAR = 1e3
"""A step that leaves the public set in every direction, in units of its largest entry."""


class DataUsers:
    """A user is a datum; where only values are seen, she may have a constant loss as well.

    Everybody else has the public datum next to 0.
    """

    def __init__(self, spec: ConvexSpec) -> None:
        self._spec, self._data = spec, spec.feedback == "datum"
        self._quiet = self._user("quiet", self._public(np.zeros(prod(spec.loss.datum_shape))))

    def handful(self, rng: np.random.Generator) -> Iterator[Pair]:
        """Her datum goes from one end of the public set to the other, or far beyond both.

        She is in round 1 or in a random round. Where only values are seen they go from the lowest
        to the highest, or beyond, too.
        """
        axes = np.eye(prod(self._spec.loss.datum_shape))
        along, first = self._ends(axes.sum(axis=0)), self._ends(axes[0])
        later = random_round(self._spec.horizon, rng)
        yield self.neighbours(0, *along, "round 1, datum from one end to the other")
        yield self.neighbours(0, *first, "round 1, datum from one end to the other of axis 1")
        yield self.neighbours(later, *along, f"round {later + 1}, datum from one end to the other")
        far = self._far(axes.sum(axis=0))
        beyond = self._user("beyond", far), self._user("beyond", -far)
        yield self.neighbours(0, *beyond, "round 1, datum beyond the bounds")
        if self._data:
            return
        low, high = self._values(1.0)
        yield self.neighbours(0, low, high, "round 1, value from low to high")
        yield self.neighbours(later, low, high, f"round {later + 1}, value from low to high")
        yield self.neighbours(0, *self._values(_FAR), "round 1, value beyond the bounds")

    def candidates(self, rng: np.random.Generator) -> list[User]:
        """Ends of the public set in many `ways`, and the two ends of the values."""
        found = [
            self._user(note, self._public(self._far(v)))
            for note, v in ways(prod(self._spec.loss.datum_shape), rng)
        ]
        return found + ([] if self._data else [*self._values(1.0)])

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        """Either user in round t, among quiet ones."""
        return Pair(note, t, self._among_quiet(t, one), self._among_quiet(t, two))

    def _among_quiet(self, t: int, user: User) -> World:
        users = [self._quiet] * self._spec.horizon
        users[t] = user
        if self._data:
            return full_information(users, self._spec.delay)
        context = np.zeros((self._spec.horizon, *self._spec.context_shape))
        return World(context, tuple(one.answer for one in users))

    def _ends(self, direction: Floats) -> tuple[User, User]:
        one, two = (self._public(self._far(way * direction)) for way in (1, -1))
        return self._user("at one end", one), self._user("at the other end", two)

    def _values(self, size: float) -> tuple[User, User]:
        """Users with constant losses, `size` times as far apart as the ends of the range."""
        low, high = self._spec.loss.value_range
        middle, step = (low + high) / 2, size * (high - low) / 2
        one, two = (Always(np.array(-value)) for value in (middle - step, middle + step))
        return User("value low", np.zeros(1), one), User("value high", np.zeros(1), two)

    def _far(self, direction: Floats) -> Floats:
        return _FAR * self._spec.loss.datum_bound * direction

    def _public(self, z: Floats) -> Floats:
        shape = self._spec.loss.datum_shape
        return self._spec.loss.admissible(z.reshape(1, *shape))[0]

    def _user(self, note: str, z: Floats) -> User:
        z = z.reshape(self._spec.loss.datum_shape)
        answer = Always(z) if self._data else LossOf(self._spec.loss, z)
        return User(f"datum {note}", z, answer)
