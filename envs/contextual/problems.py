"""Base classes of contextual problems, whose users are drawn ahead in blocks of rounds.

A round's user is her context and her potential rewards for every arm. They do not depend on earlier
actions, so blocks of users are drawn at once, all agents with the same seed face the same users,
and a round costs two array look-ups. Users may be rows of a table, drawn with replacement.
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
"""Array entries drawn at once, for all replicas; changes speed, never values"""
_MIN_ROUNDS_AHEAD = 64
"""Smallest number of rounds drawn at once; for fewer, calls would cost more than draws"""
_MAX_VALUES_AHEAD = 1 << 24
"""Largest number of array entries (128 MB) for which `_MIN_ROUNDS_AHEAD` are drawn"""


_DRAWING = {
    *("context", "step", "steps", "contexts_ahead", "_users", "_answers"),
    *("_rows_from", "_contexts_of", "_chances_of"),
}
"""Methods that decide how users are drawn"""


class Users(NamedTuple):
    """Users of n rounds for R replicas and K arms."""

    context: Floats
    """Contexts of the users, `(n, R, *context_shape)`"""
    mean: Floats
    """Expected reward of each arm, (n, R, K)"""
    reward: Floats
    """Reward that a user would give for each arm, (n, R, K)"""
    mask: Bools | None = None
    """True for arms that are available to a user, (n, R, K); None if `spec.masks` is "none\""""


class UserTable(NamedTuple):
    """Rows of which every round's user is one, drawn independently, with A possible answers."""

    context: Floats
    """contexts of the rows, (M, d)"""
    weight: Floats
    """probability of each row, (M,)"""
    chance: Floats
    """probability of each answer of a row to an arm, (M, K, A)"""
    reward: Floats
    """reward for each answer, (M, K, A)"""


class ContextualProblem(WithAvailability, ABC):
    """A `Problem` with finitely many arms; a subclass defines how users are drawn.

    Subclasses set `spec`, prepare an episode in `_start` and draw blocks of users in `_users`.
    Arms may be unavailable, by `spec.masks` and `Users.mask` or by `restrict`: then an unavailable
    action raises `InputError`, regret is measured against the best available arm, and the best
    fixed arm is replaced, when it is unavailable, by uniform play among available arms.
    """

    spec: ContextualSpec
    user_table: UserTable | None = None
    """rows of users, if they have the same law in all rounds; then rounds can be drawn as counts"""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        above = [vars(kind).keys() for kind in cls.__mro__]
        with_table = next(i for i, names in enumerate(above) if "user_table" in names)
        if any(names & _DRAWING for names in above[:with_table]):
            cls.user_table = None  # that of a base class would be another law

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
        if self._next == self._drawn:
            self._draw()
        return self._context[self._next]

    def mask(self) -> Bools:
        """Return the mask of available arms of the current users, (R, K)."""
        return self.masks_ahead(1)[0]

    @property
    def in_blocks(self) -> bool:
        """True if several rounds can be played at once, by `contexts_ahead` and `steps`."""
        is_plain = type(self).step is ContextualProblem.step
        is_plain = is_plain and type(self).context is ContextualProblem.context
        return is_plain and not (self.spec.delay or self.spec.returning)

    def contexts_ahead(self, most: int) -> Floats:
        """Return contexts of the next rounds, at most `most`: `(n, R, *context_shape)`."""
        self._draw()
        return self._context[self._next : self._next + most]

    def masks_ahead(self, most: int) -> Bools:
        """Return masks of available arms in the rounds of `contexts_ahead(most)`, (n, R, K)."""
        self._draw()
        if self._mask is None:
            raise InputError("Expected spec.masks 'public' or 'user' where masks are read.")
        return self._mask[self._next : self._next + most]

    def steps(self, action: AnyArray) -> Step:
        """Play n rounds with arms `action` (n, R); return a `Step` of arrays (n, R)."""
        action = self.spec.validate(action.ravel(), action.size).reshape(action.shape)
        i = self._next
        if self._mask is not None:
            check_available(action, self._mask[i : i + len(action)])
        self._next = i + len(action)
        mean, reward = self._table.mean[i : self._next], self._table.reward[i : self._next]
        # added round by round, so that totals equal those of single steps to the last bit
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
                self._fixed, self._best = self._among_available(users)
                return
            if users.mask is not None:
                raise InputError(
                    f"Expected masks='public' or 'user' of the spec of {type(self).__name__}, "
                    "whose _users bring masks, got 'none'."
                )
            same_law = users.mean.strides[0] == 0  # broadcast: all rounds have equal means
            best = users.mean[: 1 if same_law else None].max(axis=2)
            self._best = np.broadcast_to(best, users.mean.shape[:2])

    def _among_available(self, users: Users) -> tuple[Floats, Floats]:
        """Return means of each arm as a fixed choice, (n, R, K), and of the best available arm."""
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
        uniform = np.where(mask, users.mean, 0.0).sum(axis=2) / np.count_nonzero(mask, axis=2)
        best = np.where(mask, users.mean, -np.inf).max(axis=2)
        return np.where(mask, users.mean, uniform[..., None]), best

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

    def add_expected(self, totals: Floats) -> None:
        """Add expected total rewards (R, K) of each arm in rounds that were drawn as counts."""
        self._totals += totals

    def best_fixed(self) -> Ints:
        # the arm (R,) with the largest expected total so far; see the class for masked arms
        return self._totals.argmax(axis=1)

    def hindsight(self) -> float | Floats:
        return 0.0

    def _values_per_user(self) -> int:
        return int(np.prod(self.spec.context_shape))


def _visit(spec: Spec) -> ContextualSpec:
    """Return the spec of one visit: `spec.visit` if people come back, else `spec` itself."""
    visit: Any = getattr(spec, "visit", spec)
    of_arms: ContextualSpec = visit
    return of_arms


def _check(name: str, users: Any, replicas: int, spec: ContextualSpec) -> None:
    """Raise `InputError` unless `users` are `Users`, arrays of the shapes that `spec` demands."""
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
    """Return indices of rows of a table of `count` rows, drawn by uniform numbers in [0, 1)."""
    return (uniforms * count).astype(np.int64)


class Resampled(ContextualProblem):
    """A problem whose users are rows of a table; a uniform number draws all answers of a user.

    Subclasses set `spec` and the contexts of the rows, `_known` (rows, d), and return, in
    `_answers`, the potential rewards of given rows and uniform numbers.
    """

    _stream_names: ClassVar[tuple[str, str]] = ("customers", "purchases")
    """Names of the random streams that draw rows and answers"""
    _known: Floats

    def _start(self, streams: Streams) -> None:
        users, answers = self._stream_names
        self._rows, self._uniforms = streams.uniforms(users), streams.uniforms(answers)

    def _users(self, count: int) -> Users:
        row = self._rows_from(self._rows.take(count))  # (n, R)
        return self._answers(row, self._uniforms.take(count))

    def _rows_from(self, uniforms: Floats) -> Ints:
        """Return indices of the users' rows, drawn by uniform numbers in [0, 1)."""
        return row_of(uniforms, len(self._known))

    @abstractmethod
    def _answers(self, row: Ints, uniforms: Floats) -> Users: ...


class ResampledChoices(Resampled):
    """A resampled problem with answers yes or no: a sale at a price, a click on an item.

    Subclasses also set `_chances`, P(yes) of every row and arm, (rows, K), and `_margins`, the
    reward for a yes to each arm, (K,) or (rows, K). If `_most_units` = m is above 1, a user says
    yes a binomial number of times, of m with this probability.
    """

    _chances: Floats
    _margins: Floats
    _most_units = 1

    @property
    def user_table(self) -> UserTable | None:  # type: ignore[override]
        yes, M, m = self._chances, len(self._known), self._most_units
        answers = np.broadcast_to(self._margins[..., None] * rows(m + 1), (*yes.shape, m + 1))
        chance = np.stack([1 - yes, yes], -1)
        if m > 1:
            most = scipy.special.bdtr(rows(m), m, yes[..., None])  # P(at most 0, ..., m - 1)
            chance = np.diff(most, prepend=0.0, append=1.0)
        return UserTable(self._known, np.full(M, 1 / M), chance, answers)

    def _answers(self, row: Ints, uniforms: Floats) -> Users:
        context, chance = self._contexts_of(row), self._chances_of(row)  # (n, R, d), (n, R, K)
        margins = self._margins if self._margins.ndim == 1 else self._margins[row]
        m = self._most_units
        if m == 1:
            return Users(context, margins * chance, margins * (uniforms[..., None] < chance))
        count = np.zeros(chance.shape)
        for j in range(m):  # u < P(more than j)
            count += uniforms[..., None] < scipy.special.bdtrc(j, m, chance)
        return Users(context, m * margins * chance, margins * count)

    def _contexts_of(self, row: Ints) -> Floats:
        """Return contexts (n, R, d) of the next rounds, whose users are the rows `row` (n, R)."""
        return self._known[row]

    def _chances_of(self, row: Ints) -> Floats:
        """Return P(yes) to each arm in the next rounds, (n, R, K); users are rows `row` (n, R)."""
        return self._chances[row]


@dataclass(kw_only=True, eq=False)
class TidalChoices(ResampledChoices):
    """Choices whose logits of yes shift equally for all users in a round, as `Tides` defines.

    The oracle knows the shift and is exact. With `clock` agents observe the phase of the season:
    contexts in round t are (x, sin(2 pi t / period), cos(2 pi t / period)) / sqrt(2).
    """

    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None
    clock: bool = False

    def _dim(self) -> int:
        """Check `season`, `drift`, `shock` and `clock`; return the number of features."""
        self._tides = Tides(season=self.season, drift=self.drift, shock=self.shock)
        flag("clock", self.clock)
        if self.clock and self.season is None:
            raise InputError("Expected season=(amplitude, period) with clock=True, got none.")
        return self._known.shape[1] + 2 * self.clock

    @property
    def user_table(self) -> UserTable | None:  # type: ignore[override]
        return None if self.clock or self._tides != Tides() else super().user_table

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._tide = self._tides.start(streams)

    def _contexts_of(self, row: Ints) -> Floats:
        x = super()._contexts_of(row)
        if not self.clock:
            return x
        clock = np.broadcast_to(self._tide.clock(len(row))[:, None], (*row.shape, 2))
        return np.concatenate([x, clock], axis=-1) / np.sqrt(2)

    def _chances_of(self, row: Ints) -> Floats:
        chance = super()._chances_of(row)
        if self._tides == Tides():
            return chance
        return np.asarray(
            scipy.special.expit(scipy.special.logit(chance) + self._tide.take(len(row))[..., None])
        )
