"""Neighbouring streams of users, who change the inputs of mechanisms as much as users can.

Two streams are neighbours if they have the same users in all rounds but one. Users have a context
and rewards in bandits, losses in expert problems, and a datum in convex problems.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from math import prod
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from dpbandit.base import AnyArray, Floats, InputError
from dpbandit.losses.loss import Loss
from dpbandit.shelf import open_shelves
from dpbandit.specs import BanditSpec, ConvexSpec, ExpertsSpec, Spec

Number = TypeVar("Number", bound=np.generic)

Answer: TypeAlias = Callable[[AnyArray], Floats]
"""Function from the actions (R, ...) of all runs to a user's feedback (R, ...) on them."""


@dataclass(frozen=True, eq=False)
class ByArm:
    """An answer that depends on the arm alone."""

    rewards: Floats
    """reward of each arm, shape (K,)"""

    def __call__(self, action: AnyArray) -> Floats:
        """Return the rewards (R,) of arms (R,)."""
        return self.rewards[action]


@dataclass(frozen=True, eq=False)
class Always:
    """A constant answer, the same to every action."""

    feedback: Floats
    """a reward, of shape (), or with full information a datum of shape `datum_shape`"""

    def __call__(self, action: AnyArray) -> Floats:
        """Return the answer for each of R actions, `(R, *feedback.shape)`."""
        return np.broadcast_to(self.feedback, (len(action), *self.feedback.shape)).copy()


@dataclass(frozen=True, eq=False)
class LossOf:
    """An answer in a convex problem: minus the loss of the user's datum at the point played."""

    loss: Loss
    datum: Floats
    """datum of the user, of shape `datum_shape`"""

    def __call__(self, action: AnyArray) -> Floats:
        """Return the rewards (R,) of points (R, N)."""
        return -self.loss.value(
            action, np.broadcast_to(self.datum, (len(action), *self.datum.shape))
        )


@dataclass(frozen=True, eq=False)
class World:
    """A stream of T users: their contexts, and their answers to any action."""

    context: Floats
    """contexts of all rounds, `(T, *context_shape)`"""
    answers: tuple[Answer, ...]
    """answers of all rounds, T functions"""

    def with_user(self, t: int, context: Floats, answer: Answer) -> "World":
        """Return a copy of the stream with another user in round t."""
        contexts, answers = self.context.copy(), list(self.answers)
        contexts[t], answers[t] = context, answer
        return World(contexts, tuple(answers))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring streams."""

    note: str
    round: int
    """first round, from 0, in which the streams differ"""
    first: World
    second: World
    more: tuple[int, ...] = field(default=(), kw_only=True)
    """further rounds, in order, in which the streams differ, if the differing person returns"""
    person: int | None = field(default=None, kw_only=True)
    """number of the differing person, None if people do not return"""

    @property
    def rounds(self) -> tuple[int, ...]:
        """All rounds in which the streams differ."""
        return (self.round, *self.more)


class User(NamedTuple):
    """A candidate for the differing user: her context and her answers."""

    note: str
    context: Floats
    """context, of `context_shape`; with full information her datum, which is the next context"""
    answer: Answer


class Users(Protocol):
    """A source of users and neighbouring streams for one kind of problem."""

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs of streams between which inputs of most mechanisms differ most."""
        ...

    def candidates(self, rng: np.random.Generator) -> list[User]:
        """Return users, among whom a search finds two that change a mechanism's input most."""
        ...

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        """Return two streams that differ in round t: its user is `one` in the first, else `two`."""
        ...


def full_information(users: Sequence[User], delay: int) -> World:
    """Make a stream with full information; the context is the last observed datum, 0 before any."""
    data = np.array([user.context for user in users])
    context, observed = np.zeros_like(data), max(0, len(data) - 1 - delay)
    context[len(data) - observed :] = data[:observed]
    return World(context, tuple(user.answer for user in users))


def twin(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Swap the halves of `values` (2 R, ...), so that each run gets the value of its twin.

    The twin is the run on the other stream that has the same noise until the differing round.
    """
    return np.roll(values, len(values) // 2, axis=0)


def contexts_of(worlds: Sequence[World], t: int, runs: int) -> Floats:
    """Return the contexts `(worlds x runs, *context_shape)` of round t, sorted by streams."""
    return np.repeat(np.stack([world.context[t] for world in worlds]), runs, axis=0)


def answers_of(worlds: Sequence[World], t: int, action: AnyArray) -> Floats:
    """Return the answers to the actions (worlds x runs, ...) of round t, sorted by streams."""
    parts = np.split(action, len(worlds))
    return np.concatenate(
        [world.answers[t](part) for world, part in zip(worlds, parts, strict=True)]
    )


_MAX_AXES = 8  # largest number of axes among `directions`, spread evenly over all
_RANDOM_DIRECTIONS = 4  # number of random vectors among `directions`


def directions(dim: int, rng: np.random.Generator) -> list[tuple[str, Floats]]:
    """Return named vectors (dim,): axes and diagonal, with either sign, and four random vectors."""
    axes = np.unique(np.linspace(0, dim - 1, min(dim, _MAX_AXES)).round().astype(int))
    found = [(f"e_{i + 1}", np.eye(dim)[i]) for i in axes] + [("diagonal", np.ones(dim))]
    found += [(f"-{note}", -v) for note, v in found]
    return found + [
        (f"random {i + 1}", rng.standard_normal(dim)) for i in range(_RANDOM_DIRECTIONS)
    ]


def random_round(horizon: int, rng: np.random.Generator) -> int:
    """Draw a round, from 0, that is neither the first nor the last if the horizon is above 2."""
    return int(rng.integers(1, horizon - 1)) if horizon > 2 else 0


BACKGROUND_SCALE = 1e-6
"""Norm of background users' contexts, in units of the bound; too short to change a sum."""
_OUT_OF_BOUNDS_FACTOR = 10.0
"""Norm of contexts out of bounds, in bounds; distance of rewards to their range, in its width."""


class ContextUsers:
    """Users of bandits, each with a context and a reward for every arm.

    All users but the differing one are background users, whose contexts are parallel to hers and
    too short to change a sum, so that their actions show what was learned in her direction; or
    random users; or users with one and the same context, whose rewards teach which arm is best.
    """

    def __init__(self, spec: BanditSpec) -> None:
        self._spec = spec
        self._rows = len(spec.context_shape) == 2
        self._answers = self._extremes()

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        # Her context goes from x to -x, her reward from the highest to the lowest, or both turn.
        #
        # She is in round 1, which touches every level of a tree, or in a random round. All
        # coordinates of x are alike or one stands alone; her answer may depend on the arm, so that
        # a random arm does not hide her; she keeps the public bounds, or is far beyond them (an
        # honest agent clips).
        T, (a, b) = self._spec.horizon, _diagonal_and_turned(self._spec.dim, rng)
        x, y, edge = (self._at_the_bound(v) for v in (a, b, np.eye(self._spec.dim)[0]))
        later, background = random_round(T, rng), self._background(x)
        high, low, *turns = self._answers.values()
        one, two = turns or (high, low)
        ends, factor = self._spec.answers, _OUT_OF_BOUNDS_FACTOR
        width = ends[-1] - ends[0]
        far = Always(self._constant_answer(ends[-1] + factor * width))
        deep = Always(self._constant_answer(ends[0] - factor * width))
        for note, first, second in (
            ("context from x to -x", (x, high), (-x, high)),
            ("context from e_1 to -e_1", (edge, high), (-edge, high)),
            ("reward from high to low", (x, high), (x, low)),
            ("context turned by 60 degrees, reward from high to low", (x, high), (y, low)),
            ("rewards by turns of the arms, the other way round", (x, one), (x, two)),
            ("context from x to -x beyond the bounds", (factor * x, far), (-factor * x, far)),
            ("reward from above the bounds to below", (x, far), (x, deep)),
        ):
            worlds = background.with_user(0, *first), background.with_user(0, *second)
            yield Pair(f"round 1, {note}", 0, *worlds)
        across = self._at_the_bound((-1.0) ** np.arange(self._spec.dim))
        taught, agreed = (World(np.broadcast_to(x, (T, *x.shape)), (r,) * T) for r in (one, high))
        for t, others, v, among in (
            (later, background, x, ""),
            (0, self._ordinary(rng), x, " among ordinary users"),
            (max(0, T - 2), taught, x, " among users who teach which arm is best along x"),
            (T // 4, agreed, across, " across that of users who agree"),
        ):
            worlds = others.with_user(t, v, high), others.with_user(t, -v, high)
            yield Pair(f"round {t + 1}, context from x to -x{among}", t, *worlds)

    def candidates(self, rng: np.random.Generator) -> list[User]:
        # Contexts at the bound in many directions, rewards high, low and by turns of the arms.
        #
        # Where arms have rows of their own, these also point one way and the other by turns
        contexts = [(note, self._at_the_bound(v)) for note, v in directions(self._spec.dim, rng)]
        if self._rows:
            contexts += [(f"{note} by turns of the rows", _by_turns(x)) for note, x in contexts]
        return [
            User(f"context {where}, reward {what}", x, answer)
            for where, x in contexts
            for what, answer in self._answers.items()
        ]

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        background = self._background(one.context)
        worlds = (background.with_user(t, user.context, user.answer) for user in (one, two))
        return Pair(note, t, *worlds)

    def _at_the_bound(self, direction: Floats) -> Floats:
        """Return the longest allowed context along `direction`, repeated in all rows."""
        size = float(np.linalg.norm(direction, ord=self._spec.context_order))
        x = self._spec.context_bound * direction / size
        return np.broadcast_to(x, self._spec.context_shape).copy()

    def _background(self, x: Floats) -> World:
        # rows of opposite signs, so that the action shows the sign of what was learned
        context = BACKGROUND_SCALE * (_by_turns(x) if self._rows else x)
        T = self._spec.horizon
        return World(np.broadcast_to(context, (T, *x.shape)), (Always(self._silence()),) * T)

    def _ordinary(self, rng: np.random.Generator) -> World:
        spec, T = self._spec, self._spec.horizon
        context = rng.standard_normal((T, *spec.context_shape))
        size = np.linalg.norm(context, ord=spec.context_order, axis=-1, keepdims=True)
        answers = tuple(self._ordinary_answer(rng) for _ in range(T))
        return World(context * spec.context_bound / size, answers)

    def _extremes(self) -> dict[str, Answer]:
        """Return named answers: highest reward, lowest reward, and both by turns of the arms."""
        spec = self._spec
        low, high = spec.reward_low, spec.reward_high
        found: dict[str, Answer] = {"high": Always(np.array(high)), "low": Always(np.array(low))}
        if spec.n_arms is not None:
            odd = np.arange(spec.n_arms) % 2 == 1
            found["high and low by turns of the arms"] = ByArm(np.where(odd, low, high))
            found["low and high by turns of the arms"] = ByArm(np.where(odd, high, low))
        return found

    def _constant_answer(self, value: float) -> Floats:
        return np.full(self._spec.datum_shape or (), value)

    def _silence(self) -> Floats:
        """Return the answer that teaches least: 0, or the admissible reward nearest to 0."""
        return np.array(min(max(0.0, self._spec.reward_low), self._spec.reward_high))

    def _ordinary_answer(self, rng: np.random.Generator) -> Answer:
        spec = self._spec
        answer = rng.uniform(spec.reward_low, spec.reward_high, spec.n_arms or ())
        return Always(answer) if spec.n_arms is None else ByArm(answer)


def _diagonal_and_turned(dim: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the unit diagonal (dim,), and a random unit vector at 60 degrees to the diagonal."""
    x = np.full(dim, dim**-0.5)
    if dim == 1:
        return x, -x
    v = rng.standard_normal(dim)
    v -= (v @ x) * x
    return x, 0.5 * x + 0.75**0.5 * v / np.linalg.norm(v)


def _by_turns(rows: Floats) -> Floats:
    """Return `rows` (K, d) with the sign of every other row reversed."""
    turned = rows.copy()
    turned[1::2] *= -1
    return turned


_OUT_OF_BOUNDS_LOSS = 10.0
"""Absolute value of losses that break the public range [0, 1]."""


class AdviceUsers:
    """Users of expert problems, each with the losses (d,) of all d experts.

    All users but the differing one have losses 0; or losses 1, so that totals grow and tests of
    sparse vectors fire while all experts are equal; or 1 except for expert 1; or random bits.
    """

    def __init__(self, spec: ExpertsSpec) -> None:
        self._spec = spec
        self._first = np.eye(spec.n_actions)[0]

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        # The loss of expert 1 alone turns into that of all others, or everybody's into nobody's.
        #
        # She is in round 1 or in a random round, with losses in [0, 1] or far beyond
        T, first, others = self._spec.horizon, self._first, 1 - self._first
        none, all_ = np.zeros_like(first), np.ones_like(first)
        coins = rng.integers(0, 2, (T, len(first))).astype(float)
        later = random_round(T, rng)
        turned, ceased = "loss of expert 1 turned to all others", "loss of all to loss of none"
        far = _OUT_OF_BOUNDS_LOSS * (first - others)
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
        # Losses of 0 and 1 in many directions: of one expert, of all but one, of all, none, some
        return [
            self._user(note, 1.0 * np.where(v == 0, v.sum() < 0, v > 0))
            for note, v in directions(self._spec.n_actions, rng)
        ]

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        none = np.zeros_like(self._first)
        return Pair(note, t, self._world(none, t, one), self._world(none, t, two))

    def _user(self, note: str, losses: Floats) -> User:
        return User(f"losses {note}", losses, Always(losses))

    def _world(self, rest: Floats, t: int, user: User) -> World:
        rows = np.broadcast_to(rest, (self._spec.horizon, len(self._first)))
        users = [self._user("", row) for row in rows]
        users[t] = user
        return full_information(users, self._spec.delay)


_OUTWARD_STEP = 1e3
"""Size of entries of data out of bounds, in bounds of a datum; spread of values, in ranges."""


class DataUsers:
    """Users of convex problems, each with a datum; some have a constant loss if values are seen.

    All users but the differing one have the admissible datum nearest to 0.
    """

    def __init__(self, spec: ConvexSpec) -> None:
        self._spec, self._data = spec, spec.feedback == "datum"
        self._background = self._user("quiet", self._public(np.zeros(prod(spec.loss.datum_shape))))

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        # Her datum goes from one end of the public set to the other, or far beyond both.
        #
        # She is in round 1 or in a random round. Where only values are seen they go from the lowest
        # to the highest, or beyond, too.
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
        yield self.neighbours(0, *self._values(_OUTWARD_STEP), "round 1, value beyond the bounds")

    def candidates(self, rng: np.random.Generator) -> list[User]:
        found = [
            self._user(note, self._public(self._far(v)))
            for note, v in directions(prod(self._spec.loss.datum_shape), rng)
        ]
        return found + ([] if self._data else [*self._values(1.0)])

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        return Pair(note, t, self._in_background(t, one), self._in_background(t, two))

    def _in_background(self, t: int, user: User) -> World:
        users = [self._background] * self._spec.horizon
        users[t] = user
        if self._data:
            return full_information(users, self._spec.delay)
        context = np.zeros((self._spec.horizon, *self._spec.context_shape))
        return World(context, tuple(one.answer for one in users))

    def _ends(self, direction: Floats) -> tuple[User, User]:
        one, two = (self._public(self._far(way * direction)) for way in (1, -1))
        return self._user("at one end", one), self._user("at the other end", two)

    def _values(self, size: float) -> tuple[User, User]:
        """Return two users whose constant losses differ by `size` times the range of losses."""
        low, high = self._spec.loss.value_range
        middle, step = (low + high) / 2, size * (high - low) / 2
        one, two = (Always(np.array(-value)) for value in (middle - step, middle + step))
        return User("value low", np.zeros(1), one), User("value high", np.zeros(1), two)

    def _far(self, direction: Floats) -> Floats:
        return _OUTWARD_STEP * self._spec.loss.datum_bound * direction

    def _public(self, z: Floats) -> Floats:
        shape = self._spec.loss.datum_shape
        return self._spec.loss.admissible(z.reshape(1, *shape))[0]

    def _user(self, note: str, z: Floats) -> User:
        z = z.reshape(self._spec.loss.datum_shape)
        answer = Always(z) if self._data else LossOf(self._spec.loss, z)
        return User(f"datum {note}", z, answer)


def users_of(spec: Spec) -> Users:
    """Return the source of users for a spec; load the optional modules that may define one."""
    open_shelves("auditing")
    return users_by_spec(spec)


@singledispatch
def users_by_spec(spec: Spec) -> Users:
    """Make the source of users for a spec's class; optional modules register further classes."""
    raise InputError(
        f"Expected a bandit, a convex problem or experts to audit, got a {type(spec).__name__}."
    )


users_by_spec.register(ConvexSpec, DataUsers)
users_by_spec.register(BanditSpec, ContextUsers)
users_by_spec.register(ExpertsSpec, AdviceUsers)
