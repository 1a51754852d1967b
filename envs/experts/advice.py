"""Prediction with expert advice: follow one of d experts, then observe all their losses.

An adversary is called once per round::

    losses = adversary(action)               (R,) -> (R, d), or (1, d) if all replicas share them

The adversaries here are oblivious: they draw blocks of a table ahead and ignore actions. The regret
bounds of the realizable regime need this, as losses must not depend on the expert followed; privacy
holds against adaptive adversaries, too.

Tables of losses, fixed in advance::

    table       loss of expert i in round t
    Coins       1 with probability p_i (or uniform on [0, 2 p_i]), independent over rounds
    Switching   as Coins, but the expert with the smallest p changes a few times
    Halving     in stage s all but d / 2^s experts lose 1: each stage halves the set without loss
    Tail        0 for everybody, and in the last k rounds 1 for all experts but one
    FixedRows   row t of an array
    Policies    experts rank items for a user: 1 if she does not click on the expert's first item

Numbers come from one stream for each replica, or from NumPy's default generator with a public
seed where all replicas share a table. Rounds are made block by block; the size of a block never
changes a value.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log
from os import PathLike
from typing import Any, Protocol, TypeAlias
from zlib import crc32

import numpy as np

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_ROUNDS,
    AnyArray,
    Draws,
    Floats,
    InputError,
    Ints,
    Streams,
    flag,
    inside,
    norms,
    one_of,
    pick,
    positive,
    reals,
    rows,
    whole,
)
from dpbandit.envs.nonstationarity import Delay
from dpbandit.offline.tables import matrix_at
from dpbandit.specs import ExpertsSpec, Step

Adversary: TypeAlias = Callable[[Ints], Floats]
"""Function that returns a round's losses, (R, d) or (1, d), given its actions (R,)"""

_VALUES_AHEAD = 1 << 17
"""Number of losses drawn at once, for all replicas; changes speed and memory, never values"""


class Table(Protocol):
    """Losses fixed in advance, one table for each replica or one for all (then R = 1)."""

    @property
    def values(self) -> int:
        """Number of random numbers or losses that one round of all replicas takes."""
        ...

    def __call__(self, first: int, count: int) -> Floats:
        """Return losses in [0, 1] of `count` rounds from round `first` on, (count, R, d)."""
        ...


class Oblivious:
    """Adversary that reads losses from a table, block by block, and ignores actions."""

    def __init__(self, table: Table) -> None:
        self._table, self._ahead = table, max(1, _VALUES_AHEAD // table.values)
        self._block: Floats = np.empty(0)
        self._first = self._next = self._drawn = 0

    def __call__(self, action: Ints) -> Floats:
        """Return the losses of the next round, whatever the action."""
        if self._next == self._drawn:
            self._block = self._table(self._first, self._ahead)
            self._block.flags.writeable = False  # agents get views of it
            self._first, self._drawn, self._next = self._first + self._ahead, self._ahead, 0
        self._next += 1
        return self._block[self._next - 1]


class ExpertsProblem(ABC):
    """A `Problem` of experts; subclasses set `spec` and make an adversary in `_start`.

    The sum of `Step.regret` is the sum of the losses suffered; `hindsight` is minus the total loss
    of the best expert. The feedback, `Step.datum`, is the whole loss vector (R, d) of this round,
    or of `spec.delay` rounds ago.
    """

    spec: ExpertsSpec

    @abstractmethod
    def _start(self, streams: Streams) -> Adversary: ...

    def reset(self, streams: Streams) -> None:
        R, d, delay = len(streams), self.spec.n_actions, self.spec.delay
        self._adversary = self._start(streams)
        self._shape, self._oracle = (R, d), np.zeros(R)
        self._late_reward = Delay(delay, R)
        self._context: Floats = np.zeros((R, d))
        self._late_losses: deque[Floats] = deque([np.zeros((R, d))] * delay)
        for shared in (self._oracle, self._context, *self._late_losses):
            shared.flags.writeable = False
        self._totals: Floats = np.zeros((1, d))  # of every expert: (R, d), or (1, d) if shared

    def context(self) -> Floats:
        return self._context

    def step(self, action: AnyArray) -> Step:
        expert = self.spec.validate(action, self._shape[0])
        losses = self._adversary(expert)
        self._totals = self._totals + losses
        feedback = losses = np.broadcast_to(losses, self._shape)
        suffered = pick(losses, expert)
        reward = -suffered
        if self.spec.delay:
            reward = self._late_reward(reward)
            self._late_losses.append(losses)
            feedback = self._late_losses.popleft()
        self._context = feedback
        return Step(reward, -suffered, self._oracle, suffered, feedback)

    def best_fixed(self) -> Ints:
        # least total loss over the rounds so far; ties: the lowest index
        return np.broadcast_to(self._totals.argmin(axis=1), self._shape[:1]).copy()

    def hindsight(self) -> Floats:
        return 0.0 - np.broadcast_to(self._totals.min(axis=1), self._shape[:1])


class TableStreams:
    """Random streams for one table of losses per replica, or for one that all replicas share.

    Args:
        streams: streams of the replicas.
        shared_seed: if None, each replica has its own table. Else all share one, whose losses, or
            their permutation, come from `numpy.random.default_rng(shared_seed)`, and other numbers
            from generators derived from this seed.
    """

    def __init__(self, streams: Streams, shared_seed: int | None = None) -> None:
        self._streams, self._seed = streams, shared_seed
        self.replicas = len(streams) if shared_seed is None else 1

    @property
    def world(self) -> "TableStreams":
        """Random streams of parameters, such as which experts are good, not of users."""
        return TableStreams(self._streams.world, self._seed)

    def uniforms(self, name: str, *shape: int) -> Draws:
        """Return a stream of uniforms on [0, 1); `take(n)` draws `(n, replicas, *shape)`."""
        if self._seed is None:
            return self._streams.uniforms(name, *shape)
        return Draws([_generator(self._seed, name)], shape, "random", ())

    def normals(self, name: str, *shape: int) -> Draws:
        """Return a stream of standard normals; `take(n)` draws `(n, replicas, *shape)`."""
        if self._seed is None:
            return self._streams.normals(name, *shape)
        return Draws([_generator(self._seed, name)], shape, "standard_normal", ())

    def order(self, n: int) -> Ints:
        """Draw a uniformly random permutation of 0, ..., n - 1, (replicas, n)."""
        if self._seed is None:
            return self._streams.uniforms("order", n).take(1)[0].argsort(axis=1)
        return np.random.default_rng(self._seed).permutation(n)[None]


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(seed if name == "losses" else (seed, crc32(name.encode())))


class Coins:
    """Independent losses with given means: 0 or 1, or, with `fractions`, uniform on [0, 2 mean]."""

    def __init__(self, streams: TableStreams, means: Floats, *, fractions: bool = False) -> None:
        self._means, self._fractions = means, fractions
        self._uniforms = streams.uniforms("losses", means.shape[1])
        self.values = streams.replicas * means.shape[1]

    def __call__(self, first: int, count: int) -> Floats:
        return _losses(self._uniforms.take(count), self._means, fractions=self._fractions)


class Switching:
    """Losses 0 or 1 whose best expert changes `switches` times, at evenly spaced rounds.

    The first best expert is drawn uniformly, each later one uniformly among the others.
    """

    def __init__(
        self, streams: TableStreams, n: int, low: float, high: float, *, switches: int, horizon: int
    ) -> None:
        moves = streams.world.uniforms("switches", switches + 1).take(1)[0]  # (replicas, segments)
        best = (moves[:, :1] * n).astype(np.int64)
        further = 1 + (moves[:, 1:] * max(1, n - 1)).astype(np.int64)  # 1 .. n - 1
        self._best = np.concatenate([best, further], axis=1).cumsum(axis=1) % n
        self._low, self._high, self._horizon = low, high, horizon
        self._uniforms = streams.uniforms("losses", n)
        self.values = streams.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        # the loss is [U < p of the round's segment], (count, replicas, d)
        U = self._uniforms.take(count)
        segments = self._best.shape[1]
        segment = np.minimum((first + rows(count)) * segments // self._horizon, segments - 1)
        is_best = self._best.T[segment][..., None] == rows(U.shape[2])
        return _losses(U, np.where(is_best, self._low, self._high), fractions=False)


class Halving:
    """Losses in stages: in stage s the first d / 2^s of d experts, randomly ordered, have loss 0.

    The others have loss 1. There are log2 d stages of floor(T / log2 d) rounds; the last has the
    remaining rounds, too. d is a power of 2.
    """

    def __init__(self, streams: TableStreams, n: int, *, horizon: int) -> None:
        self._place = streams.world.order(n).argsort(axis=1)  # place of each expert in the order
        self._stages = max(1, n.bit_length() - 1)
        self._rounds = max(1, horizon // self._stages)
        self.values = streams.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        # the loss is [place >= d / 2^s], (count, replicas, d)
        n = self._place.shape[1]
        stage = np.minimum((first + rows(count)) // self._rounds + 1, self._stages)
        return 1.0 * (self._place >= (n >> stage)[:, None, None])


class Tail:
    """Losses 0, but 1 in the last `tail` rounds for all experts except one, drawn uniformly."""

    def __init__(self, streams: TableStreams, n: int, *, horizon: int, tail: int) -> None:
        good = (streams.world.uniforms("good expert").take(1)[0] * n).astype(np.int64)
        self._good = good[:, None] == rows(n)  # (replicas, d)
        self._start = horizon - tail
        self.values = streams.replicas * n

    def __call__(self, first: int, count: int) -> Floats:
        late = first + rows(count) >= self._start
        return 1.0 * (late[:, None, None] & ~self._good)


class FixedRows:
    """Losses that are the rows of an array (T, d), shared by all replicas."""

    def __init__(self, array: Floats) -> None:
        self._array, self.values = array, array.shape[1]

    def __call__(self, first: int, count: int) -> Floats:
        return self._array[first : first + count, None]


def _losses(U: Floats, means: Floats, *, fractions: bool) -> Floats:
    return 2 * means * U if fractions else 1.0 * (means > U)


_ITEMS = 200
"""Number of items in the catalogue of the losses `Policies`"""
_TASTE = 4
"""Number of features of users and items in `Policies`"""
_SLATE = 5
"""Number of items that are shown to a user in `Policies`"""


class Policies:
    """Losses of experts that rank items for users: 1 if a user does not click on the first item.

    An episode has 200 items, unit vectors v_i in R^4, and weights theta of the features::

        phi = (v_i, u * v_i)                                                  in R^8

    for a user with tastes u, uniform on the sphere of radius 2. A user sees 5 items of the
    catalogue and clicks on the one with the largest phi . theta, or, with probability `whims`, on
    any of the five. Policy i ranks by phi . (theta + s_i g_i), g_i uniform on the unit sphere. One
    policy has s_i = 0 and ranks the user's favourite first; the others have errors s_i from 0.2 to
    3, in random order. A policy that ranks at random has a mean loss of 4/5.
    """

    def __init__(self, streams: TableStreams, n: int, *, whims: float) -> None:
        self.values = streams.replicas * (n + _ITEMS + _SLATE * 2 * _TASTE)
        self._items = _unit(streams.world.normals("catalogue", _ITEMS, _TASTE).take(1)[0])
        theta = _unit(streams.world.normals("theta", 1, 2 * _TASTE).take(1)[0])
        ignorance = _unit(streams.world.normals("ignorance", n, 2 * _TASTE).take(1)[0])
        ranks = streams.world.order(n)[..., None]  # (replicas, d, 1)
        steps = np.concatenate([[0.0], np.geomspace(0.2, 3.0, n)[: n - 1]])
        self._theta, self._whims = theta, whims
        self._rankers = np.swapaxes(theta + steps[ranks] * ignorance, 1, 2)  # (replicas, 8, d)
        self._tastes = streams.normals("tastes", _TASTE)
        self._slates = streams.uniforms("slates", _ITEMS)
        self._whim_uniforms = streams.uniforms("whims", 2)

    def __call__(self, first: int, count: int) -> Floats:
        # the loss is [policy's first item != the click], (count, replicas, d)
        u = 2 * _unit(self._tastes.take(count))[:, :, None]  # (n, replicas, 1, taste)
        slate = self._slates.take(count).argpartition(_SLATE - 1, axis=-1)[..., :_SLATE]
        v = self._items[rows(self._items.shape[0])[:, None], slate]  # (n, replicas, slate, taste)
        phi = np.concatenate([v, u * v], axis=-1)
        favourite = np.matvec(phi, self._theta[:, 0]).argmax(axis=-1)
        whim, wish = np.moveaxis(self._whim_uniforms.take(count), -1, 0)
        click = np.where(whim < self._whims, (wish * _SLATE).astype(np.int64), favourite)
        firsts = (phi @ self._rankers).argmax(axis=2)  # (n, replicas, d)
        return 1.0 * (firsts != click[..., None])


def _unit(x: Floats) -> Floats:
    return x / norms(x)


LOSS_KINDS = (  # values of the argument `kind`
    "bernoulli",
    "small-loss",
    "halving",
    "switching",
    "lower-bound",
    "counterexample",
    "policies",
    "table",
)
_DEFAULT_EXPERTS = 16
"""Number of experts if neither `n_actions` nor the kind of losses says it"""


@dataclass(kw_only=True, eq=False)
class Experts(ExpertsProblem):
    """Follow one of d experts each round, then observe the losses of all, in [0, 1].

    Description:
        In each round a user has a loss for every expert. The agent follows one expert, suffers its
        loss and then observes all d losses: full information. A user's datum is her whole loss
        vector. Regret is measured against the best expert in hindsight, whose total loss is L*.
        The realizable regime is L* = 0: some expert always has loss 0, and the regret due to
        privacy need not grow with the number of rounds.

        ==============  ============================================================================
        kind            the losses
        ==============  ============================================================================
        bernoulli       1 with probability `other_loss`, one expert's with probability `best_loss`
        small-loss      uniform on [0, 2 x mean], with the means of bernoulli
        halving         realizable: in each of log2 d stages half of those without loss start to err
        switching       bernoulli, where the best expert changes `switches` times
        lower-bound     0 for all, and in the last `tail` rounds 1 for all but one expert
        counterexample  d = 2, losses (0, 1) always: `potential-experts` as published may stay wrong
        policies        recommendation: see below
        table           an array (T, d), or a CSV or parquet file of numbers, one row per round
        ==============  ============================================================================

        **Policies.** Each expert ranks the items shown to a user, and loses 1 if the user does not
        click on its first item. One click determines the losses of all policies, so off-line
        evaluation of candidate recommenders has full information, and a private agent protects
        every user's click. The problem measures the cost of privacy when a recommender is chosen
        among candidates, not the effect of recommendations on clicks: a click does not depend on
        the order of the items, and users are synthetic (`dpbandit.envs.experts.advice.Policies`).
        The best policy ranks the favourite first, but a share `best_loss` of users clicks at
        random.

    Action space:
        `Discrete(d)`: the expert to follow.

    Observation space:
        `Box(0, 1)`, shape (d,): the losses that were observed last, zeros at the start.

    Rewards:
        Minus the loss of the expert that was followed, in [-1, 0].

    Starting state:
        The first round; the best expert is drawn anew (in a shared bernoulli or small-loss table it
        is expert 0).

    Arguments:
        * `kind`: see the table. `n_actions`: d; None: 16, or the kind's or the table's number.
        * `best_loss`, `other_loss`: mean losses of experts (bernoulli, switching, small-loss up to
          1/2); `best_loss` is also the share of random clicks (policies).
        * `switches`: changes of the best expert (switching).
        * `tail`: number of last rounds, those with losses (lower-bound); None: floor(ln d /
          `epsilon`) + 1. `epsilon`: privacy budget of the agents that the lower bound holds for.
        * `table`: the array, or the path of a .csv, .csv.gz or .parquet file (table).
        * `shared_table`: True if all replicas have the same losses, so that only the agents'
          randomness differs; drawn by `numpy.random.default_rng(table_seed)`: for bernoulli
          `random((T, d)) < p`, for halving its `permutation(d)`.
        * `horizon`: rounds. `delay`: rounds until losses are observed; 0 before.
    """

    kind: str = "bernoulli"
    n_actions: int | None = None
    best_loss: float = 0.0
    other_loss: float = 0.5
    switches: int = 4
    epsilon: float = 1.0
    tail: int | None = None
    table: Any = None
    shared_table: bool = False
    table_seed: int = 0
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        one_of("kind", self.kind, LOSS_KINDS)
        whole("horizon", self.horizon, 1, MOST_ROUNDS)
        flag("shared_table", self.shared_table)
        whole("table_seed", self.table_seed, 0)
        whole("switches", self.switches, 0)
        positive("epsilon", self.epsilon)
        largest = 0.5 if self.kind == "small-loss" else 1
        inside("other_loss", self.other_loss, 0, largest, ends=True)
        inside("best_loss", self.best_loss, 0, largest, ends=True)
        if self.kind != "policies" and self.best_loss > self.other_loss:
            raise InputError(
                f"Expected best_loss={self.best_loss} <= other_loss={self.other_loss}."
            )
        if (self.table is not None) != (self.kind == "table"):
            raise InputError("Expected kind='table' and a table=, the losses, both or neither.")
        self._losses = None if self.table is None else losses_of(self.table)
        d = self._experts()
        self.spec = ExpertsSpec(n_actions=d, horizon=self.horizon, delay=self.delay)
        hardest = floor(min(log(d) / self.epsilon, self.horizon)) + 1
        self._tail = hardest if self.tail is None else self.tail
        whole("tail", self._tail, 1)
        if self.kind == "lower-bound" and self._tail > self.horizon:
            raise InputError(f"Expected horizon={self.horizon} to hold the tail of {self._tail}.")

    def _experts(self) -> int:
        """Check the number of experts against the kind and the table, and return it."""
        fixed: int | None = 2 if self.kind == "counterexample" else None
        if self._losses is not None:
            length, fixed = self._losses.shape
            if self.horizon > length:
                raise InputError(f"Expected horizon={self.horizon} <= {length}, the table's rows.")
        d = self.n_actions if self.n_actions is not None else fixed or _DEFAULT_EXPERTS
        whole("n_actions", d, 1, MOST_ACTIONS)
        if fixed not in (None, d):
            raise InputError(f"Expected n_actions={d} to be {fixed}, the number of the losses.")
        if self.kind == "halving" and d & (d - 1):
            raise InputError(f"Expected n_actions={d} to be a power of 2 for halving.")
        return d

    def _start(self, streams: Streams) -> Adversary:
        return Oblivious(
            self._table(TableStreams(streams, self.table_seed if self.shared_table else None))
        )

    def _table(self, streams: TableStreams) -> Table:
        d, T = self.spec.n_actions, self.horizon
        if self._losses is not None:
            return FixedRows(self._losses)
        if self.kind == "counterexample":
            return FixedRows(np.broadcast_to([0.0, 1.0], (T, 2)))
        if self.kind == "policies":
            return Policies(streams, d, whims=self.best_loss)
        if self.kind == "halving":
            return Halving(streams, d, horizon=T)
        if self.kind == "lower-bound":
            return Tail(streams, d, horizon=T, tail=self._tail)
        if self.kind == "switching":
            low, high = self.best_loss, self.other_loss
            return Switching(streams, d, low, high, switches=self.switches, horizon=T)
        best = np.zeros((1, 1), dtype=np.int64)
        if not self.shared_table:
            best = (streams.world.uniforms("best").take(1)[0] * d).astype(np.int64)[:, None]
        means = np.where(best == np.arange(d), self.best_loss, self.other_loss)
        return Coins(streams, means, fractions=self.kind == "small-loss")


def losses_of(table: Any) -> Floats:
    """Read a table of losses (T, d); raise `InputError` unless all are in [0, 1]."""
    named = f"table={table!r}" if isinstance(table, str | PathLike) else "table"
    try:
        losses = matrix_at(table) if isinstance(table, str | PathLike) else reals(table)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"Expected {named} to be rows of numbers: {error}.") from None
    if losses.ndim != 2 or losses.size == 0:
        raise InputError(f"Expected {named} of shape {losses.shape} to be (T, d), T and d >= 1.")
    wrong = np.argwhere(~((losses >= 0) & (losses <= 1)))  # NaN is neither
    if len(wrong):
        row, column = wrong[0]
        raise InputError(
            f"Expected losses in [0, 1], got {losses[row, column]} of expert {column} in round "
            f"{row + 1} of {named}."
        )
    return losses
