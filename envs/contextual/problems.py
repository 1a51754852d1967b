"""Base classes of contextual problems: users are drawn ahead in tables.

A round's user is her context and her potential rewards for every arm. Nothing about her depends
on what was played, so whole blocks of users are drawn at once, every agent with the same seed
faces the same ones, and a round costs two gathers. People may be rows of a table, drawn with
replacement.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    flag,
    of_kind,
    rows,
    shaped,
    takes,
)
from dpbandit.envs.nonstationarity import Delay, Tides, WithAvailability
from dpbandit.specs import ContextualSpec, Spec, Step, check_available

_VALUES_AHEAD = 1 << 17
"""Table entries drawn at once, for all replicas. Changes speed, never values."""
_MIN_ROUNDS_AHEAD = 64
"""Rounds drawn at once at least: of 1,000 replicas fewer cost more in calls than in draws."""
_MAX_VALUES_AHEAD = 1 << 24
"""Table entries (128 MB) that `_MIN_ROUNDS_AHEAD` may not exceed."""


class Users(NamedTuple):
    """n rounds of users for R replicas and K arms."""

    context: Floats
    """`(n, R, *context_shape)`"""
    mean: Floats
    """(n, R, K), the expected reward of each arm"""
    reward: Floats
    """(n, R, K), the reward she would give for each arm"""
    mask: Bools | None = None
    """(n, R, K), which arms are there for her, where `spec.masks` says that not all are"""


class ContextualProblem(WithAvailability, ABC):
    """A `Problem` with finitely many arms; a subclass says how users are drawn.

    Subclasses set `spec`, prepare an episode in `_start` and draw blocks of users in `_users`.
    Where arms come and go, by `spec.masks` and `Users.mask` or by `restrict`, an arm that is not
    there is refused, regret is against the best that is, and a fixed arm that is not there has
    uniform play among the others for a stand-in.
    """

    spec: ContextualSpec

    @abstractmethod
    def _start(self, streams: Streams) -> None: ...

    @abstractmethod
    def _users(self, count: int) -> Users: ...

    def reset(self, streams: Streams) -> None:
        R, K = len(streams), _visit(self.spec).n_actions
        takes(f"_start of {type(self).__name__}", self._start, "streams")
        takes(f"_users of {type(self).__name__}", self._users, "count")
        self._start(streams)
        self._drawn, self._next = 0, 0
        values = R * (self._values_per_user() + K)
        least = min(_MIN_ROUNDS_AHEAD, _MAX_VALUES_AHEAD // values)
        self._ahead = max(1, _VALUES_AHEAD // values, least)
        self._offset = rows(R) * K
        self._totals = np.zeros((R, K))
        self._delay = Delay(self.spec.delay, R)
        self._mask: Bools | None = None
        self._there = None if self._availability is None else self._availability.start(streams)

    def context(self) -> Floats:
        self._draw()
        return self._context[self._next]

    def mask(self) -> Bools:
        """Which arms are there for the current users, (R, K)."""
        return self.masks_ahead(1)[0]

    @property
    def in_blocks(self) -> bool:
        """Whether users of several rounds can be served at once."""
        is_plain = type(self).step is ContextualProblem.step
        is_plain = is_plain and type(self).context is ContextualProblem.context
        return is_plain and not (self.spec.delay or self.spec.returning)

    def contexts_ahead(self, most: int) -> Floats:
        """Those of the next rounds, at most so many, `(n, R, *context_shape)`."""
        self._draw()
        return self._context[self._next : self._next + most]

    def masks_ahead(self, most: int) -> Bools:
        """The masks of the same rounds, (n, R, K)."""
        self._draw()
        if self._mask is None:
            raise InputError("Expected masks to be asked for where spec.masks is not 'none'.")
        return self._mask[self._next : self._next + most]

    def steps(self, action: AnyArray) -> Step:
        """Serve the users of n rounds with arms `action` (n, R); all of the step is (n, R), too."""
        action = self.spec.validate(action.ravel(), action.size).reshape(action.shape)
        i = self._next
        if self._mask is not None:
            check_available(action, self._mask[i : i + len(action)])
        self._next = i + len(action)
        mean, reward = self._table.mean[i : self._next], self._table.reward[i : self._next]
        # added one by one, as rounds are
        fixed = self._fixed[i : self._next]
        self._totals = np.add.accumulate(np.concatenate([self._totals[None], fixed]))[-1]
        chosen = action[..., None]
        expected = np.take_along_axis(mean, chosen, axis=2)[..., 0]
        feedback = np.take_along_axis(reward, chosen, axis=2)[..., 0]
        oracle = self._best[i : self._next]
        return Step(feedback, expected, oracle, oracle - expected)

    def _draw(self) -> None:
        if self._next == self._drawn:
            users = self._users(self._ahead)
            _check(type(self).__name__, users, len(self._offset), self.spec)
            self._context, self._next, self._drawn = users.context, 0, len(users.context)
            self._table = users
            self._fixed = users.mean
            if self.spec.masks != "none":
                self._fixed, self._best = self._among(users)
                return
            if users.mask is not None:
                raise InputError(
                    f"Expected masks='public' or 'user' of the spec of {type(self).__name__}, "
                    "whose _users bring masks, got 'none'."
                )
            same_law = users.mean.strides[0] == 0  # one law for all these rounds
            best = users.mean[: 1 if same_law else None].max(axis=2)
            self._best = np.broadcast_to(best, users.mean.shape[:2])

    def _among(self, users: Users) -> tuple[Floats, Floats]:
        """Means of fixed arms (n, R, K), and of the best that are there (n, R)."""
        mask = users.mask
        if self._there is not None:
            scheduled = self._there.take(len(users.mean))
            mask = scheduled if mask is None else mask & scheduled
        if mask is None:
            raise InputError(
                f"Expected _users of {type(self).__name__} to bring a mask, as its spec says "
                f"masks={self.spec.masks!r}."
            )
        if not mask.any(axis=2).all():
            raise InputError(f"Expected masks of {type(self).__name__} to allow some arm.")
        self._mask = mask
        alone = np.where(mask, users.mean, 0.0).sum(axis=2) / np.count_nonzero(mask, axis=2)
        best = np.where(mask, users.mean, -np.inf).max(axis=2)
        return np.where(mask, users.mean, alone[..., None]), best

    def step(self, action: AnyArray) -> Step:
        action = self.spec.validate(action, len(self._offset))
        i = self._next
        if self._mask is not None:
            check_available(action, self._mask[i])
        self._next = i + 1
        chosen = self._offset + action
        mean = self._table.mean[i]
        self._totals += self._fixed[i]
        expected, oracle = mean.take(chosen), self._best[i]
        reward = self._table.reward[i].take(chosen)
        if self.spec.delay:
            reward = self._delay(reward)
        return Step(reward, expected, oracle, oracle - expected)

    def best_fixed(self) -> Ints:
        # The arm (R,) with the largest expected total over the rounds so far.
        #
        # Where it is not there, uniform play among the others is counted
        return self._totals.argmax(axis=1)

    def hindsight(self) -> float | Floats:
        return 0.0

    def _values_per_user(self) -> int:
        return int(np.prod(self.spec.context_shape))


def _visit(spec: Spec) -> ContextualSpec:
    """What one round is, also of people who come back."""
    visit: Any = getattr(spec, "visit", spec)
    of_arms: ContextualSpec = visit
    return of_arms


def _check(name: str, users: Any, replicas: int, spec: ContextualSpec) -> None:
    """Raise `InputError` unless these are `Users` whose arrays fit each other."""
    if not isinstance(users, Users):
        raise InputError(
            f"Expected _users of {name} to return Users(context, mean, reward), got "
            f"{of_kind(users)}."
        )
    for part, values in users._asdict().items():
        if part == "mask" and values is None:
            continue
        if not isinstance(values, np.ndarray):
            raise InputError(
                f"Expected {part} of Users of {name} to be an array, got {of_kind(values)}."
            )
    found = users.context.shape
    if found[1:] != (replicas, *spec.context_shape) or not found[0]:
        shape = ", ".join(map(str, ("n", replicas, *spec.context_shape)))
        least = ", n >= 1" * (found[:1] == (0,))
        raise InputError(
            f"Expected context of Users of {name} of shape ({shape}){least}, got {found}."
        )
    for part in ("mean", "reward", *(["mask"] if users.mask is not None else [])):
        whole = (found[0], replicas, _visit(spec).n_actions)
        shaped(f"{part} of Users of {name}", getattr(users, part), whole)


def row_of(uniforms: Floats, count: int) -> Ints:
    """Rows of a table of `count`, from uniform numbers."""
    return (uniforms * count).astype(np.int64)


class Resampled(ContextualProblem):
    """Each round's user is a row of a table, and a uniform number is her luck.

    Subclasses set `spec` and `_known`, the contexts of the rows, (n, d), and say what the people of
    some rows would answer, given their luck.
    """

    _random: ClassVar[tuple[str, str]] = ("customers", "purchases")
    """What the streams of rows and of luck are called."""
    _known: Floats

    def _start(self, streams: Streams) -> None:
        who, uniforms = self._random
        self._rows, self._uniforms = streams.uniforms(who), streams.uniforms(uniforms)

    def _users(self, count: int) -> Users:
        row = self._who_comes(self._rows.take(count))  # (n, R)
        return self._answers(row, self._uniforms.take(count))

    def _who_comes(self, uniforms: Floats) -> Ints:
        """Rows, from uniform numbers."""
        return row_of(uniforms, len(self._known))

    @abstractmethod
    def _answers(self, row: Ints, uniforms: Floats) -> Users: ...


class ResampledChoices(Resampled):
    """Each answers an arm with yes or no: a sale at a price, a click on an item.

    Subclasses also set `_chances`, P(yes) of every row and arm (n, K), and `_margins`, what a yes
    earns, (K,).
    """

    _chances: Floats
    _margins: Floats

    def _answers(self, row: Ints, uniforms: Floats) -> Users:
        shown, chance = self._shows(row), self._says_yes(row)  # (n, R, d), (n, R, K)
        yes = uniforms[..., None] < chance
        return Users(shown, self._margins * chance, self._margins * yes)

    def _shows(self, row: Ints) -> Floats:
        """Contexts of the people of the next rounds, (n, R, d)."""
        return self._known[row]

    def _says_yes(self, row: Ints) -> Floats:
        """P(yes) of the people of the next rounds, (n, R, K)."""
        return self._chances[row]


@dataclass(kw_only=True, eq=False)
class TidalChoices(ResampledChoices):
    """Choices whose utilities move with time, see `Tides`: logits of all answers by as much.

    The oracle knows the tide and is exact. Agents see no clock, unless `clock` shows them where
    the season stands: contexts are then (x, sin(2 pi t / period), cos(2 pi t / period)) / sqrt(2).
    """

    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None
    clock: bool = False

    def _dim(self) -> int:
        """Features that are shown, once tides and clock have been looked at, after `_known`."""
        self._tides = Tides(season=self.season, drift=self.drift, shock=self.shock)
        flag("clock", self.clock)
        if self.clock and self.season is None:
            raise InputError("Expected season=(amplitude, period) to be said with clock=True.")
        return self._known.shape[1] + 2 * self.clock

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._tide = self._tides.start(streams)

    def _shows(self, row: Ints) -> Floats:
        x = super()._shows(row)
        if not self.clock:
            return x
        clock = np.broadcast_to(self._tide.clock(len(row))[:, None], (*row.shape, 2))
        return np.concatenate([x, clock], axis=-1) / np.sqrt(2)

    def _says_yes(self, row: Ints) -> Floats:
        chance = super()._says_yes(row)
        if self._tides == Tides():
            return chance
        return np.asarray(
            scipy.special.expit(scipy.special.logit(chance) + self._tide.take(len(row))[..., None])
        )
