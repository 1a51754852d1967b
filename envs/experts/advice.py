"""Prediction with expert advice: follow one of d experts, then see how all of them did."""

from dataclasses import dataclass
from math import floor, log
from os import PathLike
from typing import Any

import numpy as np

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_ROUNDS,
    Floats,
    InputError,
    Streams,
    flag,
    inside,
    one_of,
    positive,
    reals,
    whole,
)
from dpbandit.envs.experts.problems import Adversary, ExpertsProblem, Oblivious, Table
from dpbandit.envs.experts.tables import Coins, Given, Halving, Luck, Policies, Switching, Tail
from dpbandit.specs.convex import ExpertsSpec

KINDS = (
    "bernoulli",
    "small-loss",
    "halving",
    "switching",
    "lower-bound",
    "counterexample",
    "policies",
    "table",
)
_MANY = 16
"""Experts where nobody says how many."""


@dataclass(kw_only=True, eq=False)
class Experts(ExpertsProblem):
    """Follow one of d experts each round; then every expert's loss in [0, 1] is told.

    Description:
        Each round a user brings a loss for every expert. The agent, which does not know them,
        follows one expert, suffers her loss and is told all d of them: full information. A user's
        datum is her whole loss vector. Regret is measured against the best expert in hindsight,
        whose total loss is L*. The realizable regime is L* = 0: somebody never errs, and privacy
        can be had for a price that does not grow with the rounds.

        ==============  ============================================================================
        kind            the losses
        ==============  ============================================================================
        bernoulli       1 with probability `other_loss`, one expert's with probability `best_loss`
        small-loss      fractions, uniform on [0, 2 x the same probabilities]
        halving         realizable: in each of log2 d stages half of those without loss begin to err
        switching       bernoulli, and who is best changes `switches` times: nobody is best for long
        lower-bound     0 for all, and in the last `tail` rounds 1 for all but one expert
        counterexample  d = 2 and losses (0, 1), always: a potential stands still at the wrong one
        policies        recommendation: see below
        table           an array (T, d), or a file of comma-separated numbers, a row for each round
        ==============  ============================================================================

        **Policies.** Each expert is a ranker of the items a user is shown; she loses 1 if her first
        is not what the user clicks on. One click answers for all policies at once, so off-line
        evaluation of candidate recommenders has full information, and following the best one
        privately hides every user's click. It can show what privacy costs when a recommender is
        chosen among candidates. It cannot show that recommending changes clicks: the user answers
        the slate, not the order it is shown in, and users are synthetic
        (`dpbandit.envs.experts.tables` has the model). The best policy knows everybody's
        favourite but for a share `best_loss` of users, who click at random.

    Action space:
        `Discrete(d)`: the expert to follow.

    Observation space:
        `Box(0, 1)`, shape (d,): the losses of the round before (of the last one told, where there
        is a delay), zeros at the start.

    Rewards:
        Minus the loss of the expert that was followed, in [-1, 0].

    Starting state:
        The first round; who is the best expert is drawn anew (in a shared table of coins she is 0).

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `kind`: see the table. `n_actions`: d; None: 16, or as many as the kind or the table has.
        * `best_loss`, `other_loss`: mean losses (bernoulli, small-loss up to 1/2, switching);
          `best_loss` also the share of whims (policies).
        * `switches`: changes of the best expert (switching).
        * `tail`: rounds of news at the end (lower-bound); None: floor(ln d / `epsilon`) + 1.
          `epsilon`: of the agents the bound is about.
        * `table`: the array, or the path of a file (table).
        * `shared_table`: all replicas meet the same losses, so that only the agents' coins differ,
          drawn by `numpy.random.default_rng(table_seed)`: for bernoulli `random((T, d)) < p`, for
          halving its `permutation(d)`.
        * `horizon`: rounds. `delay`: rounds until losses are told; 0 before.

    Version history:
        * v0: first release.
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
        one_of("kind", self.kind, KINDS)
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
        """d, checked against what the kind allows."""
        given: int | None = 2 if self.kind == "counterexample" else None
        if self._losses is not None:
            length, given = self._losses.shape
            if self.horizon > length:
                raise InputError(f"Expected horizon={self.horizon} <= {length}, the table's rows.")
        d = self.n_actions if self.n_actions is not None else given or _MANY
        whole("n_actions", d, 1, MOST_ACTIONS)
        if given not in (None, d):
            raise InputError(f"Expected n_actions={d} to be {given}, as the losses have it.")
        if self.kind == "halving" and d & (d - 1):
            raise InputError(f"Expected n_actions={d} to be a power of 2 for halving.")
        return d

    def _start(self, streams: Streams) -> Adversary:
        return Oblivious(self._table(Luck(streams, self.table_seed if self.shared_table else None)))

    def _table(self, luck: Luck) -> Table:
        d, T = self.spec.n_actions, self.horizon
        if self._losses is not None:
            return Given(self._losses)
        if self.kind == "counterexample":
            return Given(np.broadcast_to([0.0, 1.0], (T, 2)))
        if self.kind == "policies":
            return Policies(luck, d, whims=self.best_loss)
        if self.kind == "halving":
            return Halving(luck, d, horizon=T)
        if self.kind == "lower-bound":
            return Tail(luck, d, horizon=T, tail=self._tail)
        if self.kind == "switching":
            low, high = self.best_loss, self.other_loss
            return Switching(luck, d, low, high, switches=self.switches, horizon=T)
        best = np.zeros((1, 1), dtype=np.int64)
        if not self.shared_table:
            best = (luck.world.uniforms("best").take(1)[0] * d).astype(np.int64)[:, None]
        means = np.where(best == np.arange(d), self.best_loss, self.other_loss)
        return Coins(luck, means, fractions=self.kind == "small-loss")


def losses_of(table: Any) -> Floats:
    """A user's table as an array (T, d); raises `InputError` unless all are losses in [0, 1]."""
    named = f"table={table!r}" if isinstance(table, str | PathLike) else "table"
    try:
        if isinstance(table, str | PathLike):
            table = np.loadtxt(table, delimiter=",", ndmin=2)
        losses = reals(table)
    except (OSError, ValueError) as error:
        raise InputError(f"Expected {named} to be rows of numbers: {error}") from None
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
