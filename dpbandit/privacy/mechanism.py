"""Base class of mechanisms: a user's data reaches later rounds only through their calls.

`LedgerCheck` compares the mechanisms called with the ledger: a certificate covers no others.
`PersonalMemory` stores a person's data for her own actions, which needs no mechanism.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from math import inf, prod
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    abbrev,
    counted_as,
    record_counts,
    rounds_in,
    rows,
)
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.notion import TrustModel
from dpbandit.privacy.premises import Facts, Hearing
from dpbandit.privacy.spends import Parallel, Repeated, Spend

CENTRAL_TRUST: tuple[TrustModel, ...] = ("central",)  # of mechanisms of a trusted server
AGGREGATED_TRUST: tuple[TrustModel, ...] = ("central", "aggregated")  # of secure sums
SHUFFLED_TRUST: tuple[TrustModel, ...] = ("central", "aggregated", "shuffled")  # of shuffles
LOCAL_TRUST: tuple[TrustModel, ...] = ("central", "aggregated", "shuffled", "local")
"""Trust models under which a mechanism can run, each tuple named after its least trusting model"""

Witness: TypeAlias = Callable[["Mechanism", tuple[AnyArray, ...], Any], None]
"""Callback after every call of a mechanism, with the mechanism, the arguments and the release"""

Listener: TypeAlias = Callable[["Mechanism", tuple[AnyArray, ...], int], None]
"""Callback before every call, or block of n calls, with the mechanism, the arguments and n; arrays
of a block are (n, R, ...) if n > 1"""

_witness: ContextVar[Witness | None] = ContextVar("witness", default=None)
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_call_log: ContextVar["CallLog | None"] = ContextVar("call log", default=None)


_CHUNK_ENTRIES = 2**15
"""Entries of records' statistics computed at once for a replica, so that memory is bounded"""
_CHUNK_ROUNDS = 2**12
"""Rounds that are repeated at once from records, so that memory is bounded"""


class BudgetExceededError(InputError):
    """Error of a mechanism that is called more often than its spend covers."""


class Statistic(Protocol):
    """Protocol of a clipped function of one user's round, to be summed, with its sensitivity."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum of one replica."""
        ...

    @property
    def units(self) -> Floats | float:
        """Unit of each coordinate of the sum, broadcasting against `shape`."""
        ...

    @property
    def sensitivity(self) -> float:
        """Largest L2 change of the sum, in `units`, if one user's round is replaced."""
        ...

    def total(self, *batch: AnyArray) -> Floats:
        """Return the sum `(R, *shape)` over n rounds of raw data, arrays (n, R, ...)."""
        ...


def moving(statistic: Statistic) -> float:
    """Return the cost of moving a user to another time slot, divided by that of replacing her.

    With v, v' contributions of rounds beyond that of a null round, V the largest `|v|` and m the
    least <v, v'>, it is sqrt(2 V^2 + 2 max(0, -m)) divided by the sensitivity, clipped to [1, 2].
    The numerator is `statistic.move_sensitivity`; without one the cost is 2, one for each slot.
    """
    move_sensitivity: float = getattr(statistic, "move_sensitivity", inf)
    return float(np.clip(move_sensitivity / statistic.sensitivity, 1.0, 2.0))


class Mechanism(ABC):
    """Base class of mechanisms: counts its calls, refuses too many, and returns only releases.

    Exact private state (running sums, pending batches) stays inside the mechanism; an agent
    stores only releases. Two tests check every agent: two extreme users must not move `query` by
    more than `sensitivity`, and with the releases held fixed nothing outside a mechanism may
    depend on the changed user.
    """

    needs: ClassVar[Facts]
    """facts about rounds that the proof takes for public; a subclass that overrides a method of the
    proof has to declare its own"""
    controls: ClassVar[tuple[int, ...]] = ()
    """positions of the arguments of a call that must be functions of public facts, coins and
    earlier releases; the other arguments are data"""
    releases_sum: ClassVar[bool] = False
    """True if a release is the sum of the queries so far, plus noise"""
    spend: Spend
    """privacy cost of all `uses` calls together, for one user"""
    sensitivity: float
    """largest change of `query` in the norm l_order if one user's round is replaced, without the
    rounding that `ledger.MOVEMENT_ROUNDING` covers"""
    order: float = 2
    uses: int
    """number of calls that `spend` covers"""
    trust: tuple[TrustModel, ...] = CENTRAL_TRUST
    """trust models under which the mechanism can run; ledgers of other models may not contain it"""
    public: tuple[Any, ...] = ()
    """state of the caller's requests, which may depend on data through releases alone"""
    _used: int = 0

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "__call__" in vars(cls):  # which counts calls and informs audits
            raise InputError(f"Expected {cls.__name__} to override _release, not __call__.")
        if vars(cls).keys() & {"query", "_release", "_release_several"}:
            # sums of records that a base class inherits would leave out these steps
            cls._release_counted = vars(cls).get("_release_counted")

    def __call__(self, *datum: AnyArray) -> Floats | None:
        """Feed one round of raw data, arrays (R, ...); return a release (R, ...), or None."""
        if self._used >= self.uses:
            raise BudgetExceededError(
                f"{self.spend.note}: call {self._used + 1} exceeds uses={self.uses}; "
                "make the agent for a longer horizon."
            )
        self._used += 1
        if (listener := _listener.get()) is not None:
            listener(self, datum, 1)
        call_log = _call_log.get()
        release = self._release(*datum) if call_log is None else call_log.through(self, datum)
        if (witness := _witness.get()) is not None:
            witness(self, datum, release)
        return release

    @property
    def rounds_to_release(self) -> int:
        """Number of calls until the next possible release, the most that `several` accepts."""
        return 1

    def take_rounds(self, lead: tuple[int, ...], *data: AnyArray) -> Floats | None:
        """Make one call if `lead` is (R,), or n calls by `several` if `lead` is (n, R)."""
        return self(*data) if len(lead) == 1 else self.several(*data)

    def several(self, *data: AnyArray) -> Floats | None:
        """Make n <= `rounds_to_release` calls, arrays (n, R, ...); return the last release.

        If the entries are `counted_as` several rounds each, n is the number of these rounds.
        """
        counts, rounds = record_counts(), rounds_in(data[0].shape[:2])
        witness, take_counted = _witness.get(), self._release_counted
        if counts is not None and (witness or _listener.get() or take_counted is None):
            with counted_as(None):
                for some in each_round(counts, data):
                    release = self.several(*some)
            return release
        if counts is None and (rounds == 1 or witness):
            for datum in zip(*data, strict=True):
                release = self(*datum)
            return release
        if rounds > self.rounds_to_release or self._used + rounds > self.uses:
            raise BudgetExceededError(
                f"{self.spend.note}: {rounds} calls at once exceed "
                f"rounds_to_release={self.rounds_to_release}, or uses={self.uses}."
            )
        self._used += rounds
        if (listener := _listener.get()) is not None:
            listener(self, data, rounds)
        call_log = _call_log.get()
        take = self._release_several
        if counts is not None and take_counted is not None:
            take = partial(take_counted, counts)
        return take(*data) if call_log is None else call_log.through(self, data, take, rounds)

    def control_places(self) -> tuple[int, ...]:
        """Return positions of arguments, also of the statistic's, that may not depend on data."""
        statistic = getattr(self, "_statistic", None)
        return tuple(sorted({*self.controls, *getattr(statistic, "controls", ())}))

    @abstractmethod
    def query(self, *datum: AnyArray) -> Floats:
        """Return the clipped contribution of a round to the protected sum, `(R, *shape)`."""

    def entered(self, *datum: AnyArray) -> Floats:
        """Return the latest call's contribution to the sum, for audits; it is `query`, unless
        contributions depend on earlier calls."""
        return self.query(*datum)

    @abstractmethod
    def _release(self, *datum: AnyArray) -> Floats | None: ...

    def _release_several(self, *data: AnyArray) -> Floats | None:
        """Feed several rounds and return the last release; needed if `rounds_to_release` > 1."""
        raise NotImplementedError

    _release_counted: Callable[..., Floats | None] | None = None
    """method that feeds counts (n, R) of records (n, R, ...), and returns the last release"""


def each_round(counts: Ints, data: Sequence[AnyArray]) -> Iterator[tuple[AnyArray, ...]]:
    """Yield the rounds of records (n, R, ...) in order, record i counts[i, r] times; in chunks."""
    ends = counts.cumsum(axis=0)
    for start in range(0, int(ends[-1, 0]), _CHUNK_ROUNDS):
        t = np.arange(start, min(start + _CHUNK_ROUNDS, int(ends[-1, 0])))
        record = np.stack([np.searchsorted(end, t, side="right") for end in ends.T], axis=1)
        yield tuple(array[record, rows(counts.shape[1])] for array in data)


def counted_total(statistic: Statistic, counts: Ints, data: Sequence[AnyArray]) -> Floats:
    """Return the sum `(R, *shape)` of records' clipped statistics, record i counts[i, r] times."""
    (n, R), shape = counts.shape, statistic.shape
    total = np.zeros((R, *shape))
    few = max(1, _CHUNK_ENTRIES // prod(shape))  # whatever R is: the order decides the last bits
    for some in (slice(start, start + few) for start in range(0, n, few)):
        flat = (np.reshape(array[some], (1, -1, *array.shape[2:])) for array in data)
        each = statistic.total(*flat).reshape(-1, R, prod(shape))  # each record by itself
        weights = np.ascontiguousarray(counts[some].T, np.float64)[:, None]
        total += (weights @ np.ascontiguousarray(each.swapaxes(0, 1))).reshape(R, *shape)
    return total


class CallLog:
    """Log of mechanism calls in a run, without the calls that one mechanism makes to another."""

    def __init__(self) -> None:
        self.calls: dict[Mechanism, int] = {}
        """number of calls of each mechanism, in the order of first use"""
        self.released = False
        """True if a call has returned a release"""
        self.users = 0
        """number of users for whom all calls were made, see `count_users`"""
        self.crowded: list[tuple[int, dict[Mechanism, int]]] = []
        """(users, calls of each mechanism for them) where calls exceed users"""
        self.known: set[Mechanism] = set()
        """mechanisms that the agent held when it was made"""
        self.premises: list[Callable[[Mechanism], None]] = []
        """checks that run before the first call of a mechanism and may raise"""
        self._calls_now: dict[Mechanism, int] = {}
        self._seen_patterns: set[tuple[Any, ...]] = set()  # (users, calls of each mechanism)
        self._inside = False
        self._inner: set[Mechanism] = set()  # mechanisms called by another mechanism

    def hold(self, premises: Callable[[Mechanism], None], known: Iterable["Mechanism"]) -> None:
        """Run the check `premises` on every mechanism, now or before its first call."""
        for mechanism in self.calls:
            premises(mechanism)
        self.premises.append(premises)
        self.known |= {*known}

    def unheard(self) -> list[Mechanism]:
        """Return the mechanisms of the agent that were called in another thread."""
        apart = self.known - self._inner
        return [one for one in apart if one._used > self.calls.get(one, 0)]

    def through(
        self,
        mechanism: Mechanism,
        datum: tuple[AnyArray, ...],
        take: Callable[..., Floats | None] | None = None,
        calls: int = 1,
    ) -> Floats | None:
        """Log `calls` calls of `mechanism` with `datum`, make them, and return the release."""
        take = take or mechanism._release
        if self._inside:
            self._inner.add(mechanism)
            return take(*datum)
        if mechanism not in self.calls:
            for allow in self.premises:
                allow(mechanism)
        self.calls[mechanism] = self.calls.get(mechanism, 0) + calls
        self._calls_now[mechanism] = self._calls_now.get(mechanism, 0) + calls
        self._inside = True
        try:
            release = take(*datum)
        finally:
            self._inside = False
        self.released |= release is not None
        return release

    def count_users(self, users: int) -> None:
        """Record that all calls for the next `users` users have been made."""
        self.users += users
        if not self._calls_now:
            return
        pattern = (users, *self._calls_now.items())
        if pattern not in self._seen_patterns:
            self._seen_patterns.add(pattern)
            if sum(self._calls_now.values()) > users:
                self.crowded.append((users, self._calls_now))
        self._calls_now = {}

    def overlap(self, mechanisms: Sequence[Mechanism], most: int = 1) -> str:
        """Return a message if more than `most` of the mechanisms were called for one user, or one
        of them twice; else ''."""
        queried = set(mechanisms)
        for users, calls in self.crowded:
            mine = {one: made for one, made in calls.items() if one in queried}
            twice = [one for one, made in mine.items() if made > users]
            if twice or sum(mine.values()) > most * users:
                names = " and ".join(sorted(repr(one.spend.note) for one in twice or mine))
                how = "twice" if twice else "both" if len(mine) == 2 else "all"
                return f"{names} {how} for one user"
        return ""


def count_users(users: int) -> None:
    """Record in the active call log, if any, that all calls for `users` users were made."""
    if (call_log := _call_log.get()) is not None:
        call_log.count_users(users)


def unused_call_log() -> CallLog | None:
    """Return the active call log if it has no calls yet, else None."""
    call_log = _call_log.get()
    return None if call_log is None or call_log.calls else call_log


@contextmanager
def logged_calls(call_log: CallLog | None = None) -> Iterator[CallLog]:
    """Log all calls of mechanisms in this thread, in `call_log` or a new log; yield the log."""
    call_log = CallLog() if call_log is None else call_log
    token = _call_log.set(call_log)
    try:
        yield call_log
    finally:
        _call_log.reset(token)


@contextmanager
def overheard(listener: Listener) -> Iterator[None]:
    """Call `listener` before every mechanism call, or block of calls, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def witnessed(witness: Witness) -> Iterator[None]:
    """Call `witness` after every mechanism call in this thread, for audits."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(token)


class PersonalMemory:
    """Sums of each person's own rounds, `(R, N, *shape)`, read and changed for that person alone.

    Guarantee:
        Costs nothing as long as a person's sums reach no action but her own: if the actions of
        others are computed from releases that are (epsilon, delta)-DP for persons and from their
        own sums, they are functions of those releases and of their own data. So the agent is
        (epsilon, delta)-joint DP for persons; without any mechanism it is 0-joint DP.
        `dpbandit.testing` swaps a person and compares everybody else's memory byte for byte; state
        that an agent stores elsewhere must not change at all.

    >>> memory = PersonalMemory(1, people=3, shape=(2,))
    >>> memory.add(np.array([1]), np.array([[1.0, 2.0]]))
    >>> memory.of(np.array([1])), memory.of(np.array([-1]))
    (array([[1., 2.]]), array([[0., 0.]]))
    """

    def __init__(self, replicas: int, *, people: int, shape: tuple[int, ...]) -> None:
        self._sums: Floats = np.zeros((replicas, people, *shape))

    def of(self, person: Ints) -> Floats:
        """Return the sums `(R, *shape)` of the persons (R,); 0 for negative indices (nobody)."""
        found: Floats = self._sums[rows(len(person)), np.maximum(person, 0)]
        found[person < 0] = 0.0
        return found

    def add(self, person: Ints, value: Floats, *place: Ints) -> None:
        """Add `value`, `(R, *shape)`, to the sums of the persons (R,), or `(R, *shape[1:])` to the
        entry at `place` (R,) of their first axis; skip negative indices and values not finite."""
        finite = np.isfinite(value).all(axis=tuple(range(1, value.ndim)))
        here = np.flatnonzero((person >= 0) & finite)
        if len(here) < len(person):
            person, value, place = person[here], value[here], tuple(at[here] for at in place)
        self._sums[here, person, *place] += value

    def everybody(self) -> Floats:
        """Return a copy of all sums, `(R, N, *shape)` for N persons, for checks, not for agents."""
        return self._sums.copy()


def checked_ledger(owner: str, ledger: object) -> Ledger:
    """Return `ledger`; raises `InputError`, naming its `owner`, unless it is a `Ledger`."""
    if type(ledger) is not Ledger:  # a subclass may find any epsilon
        raise InputError(
            f"Expected the agent of {owner} to have a Ledger, got ledger={abbrev(ledger)}: let "
            "start set self.ledger = ledger_of(self.epsilon, mechanism.spend) or no_privacy(...)."
        )
    return ledger


class LedgerCheck:
    """Check of one agent's ledger against the log of the mechanisms that the agent calls.

    An entry pays for one mechanism, that with the same `spend`. A `Parallel` pays for any number of
    its parts, as long as no two of them are called for one user; unless `CallLog.count_users`
    recorded all users, only the total number of calls is compared with the number of users. A
    `Sequential` may be in a ledger part by part. A mechanism that `Repeated` pays for by a factor
    must be called once for every user, or visits would be closer in calls than in rounds.
    Mechanisms without cost need no entry, and a ledger of infinite cost allows all calls.

    Args:
        owner: name of the agent, for messages.
        ledger: the agent's ledger.
        call_log: log of the calls to check.

    >>> from dpbandit.privacy.mechanism import logged_calls
    >>> from dpbandit.privacy.batches import LocalValues
    >>> from dpbandit.base.random_streams import Streams
    >>> import numpy as np
    >>> values = LocalValues(Streams([0]), low=0, high=1, noise_multiplier=2)
    >>> with logged_calls() as call_log:
    ...     _ = values(np.ones(1))
    >>> LedgerCheck("Mine", Ledger((values.spend,)), call_log).check(users=1)
    >>> LedgerCheck("Mine", Ledger(), call_log).check(users=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpbandit.base.inputs.InputError: Expected the ledger of Mine to name 'local laplace values', ...
    """

    def __init__(self, owner: str, ledger: object, call_log: CallLog) -> None:
        ledger = checked_ledger(owner, ledger)
        self._owner, self._call_log, self._read = owner, call_log, 0
        self.ledger = ledger
        self._entries = Counter(part for spend in ledger.spends for part in parts_of(spend))
        self._left = self._entries.copy()
        self._repeated_by_factor = {
            spend.part
            for spend in _opened(ledger.spends)
            if isinstance(spend, Repeated) and Hearing.EVERY in spend.needs
        }
        self._promises = not any(spend.mu == inf for spend in ledger.spends)
        self._parallel: dict[Parallel, list[Mechanism]] = {
            entry: []
            for entry in self._entries
            if isinstance(entry, Parallel) and Hearing.APART in entry.needs
        }

    def check(self, users: int) -> None:
        """Raise `InputError` for a call that the ledger does not pay for, after `users` users."""
        if not self._promises:
            return
        calls = self._call_log.calls
        for mechanism in self._call_log.unheard():
            raise InputError(
                f"Expected {self._owner} to call {mechanism.spend.note!r} in the thread that plays."
            )
        for mechanism in list(calls)[self._read :]:
            self._pay(mechanism)
        self._read = len(calls)
        exact = self._call_log.users == users  # else calls are not assigned to users
        for entry, mechanisms in self._parallel.items():
            made, most = sum(calls[one] for one in mechanisms), users * self._left[entry]
            twice = exact and self._call_log.overlap(mechanisms, self._left[entry])
            if made > most or twice:
                got = f"{made} calls for {users} users" if made > most else twice
                raise InputError(
                    f"Expected the mechanisms of {entry.note!r} in the ledger of {self._owner} to "
                    f"{Hearing.APART}, got {got}: give the ledger the spend of each, as they add "
                    "up."
                )
        for mechanism, made in calls.items():
            if self._repeated_by_factor and mechanism.spend in self._repeated_by_factor:
                twice = exact and self._call_log.overlap([mechanism])
                if made != users or twice:
                    raise InputError(
                        f"Expected {mechanism.spend.note!r} of {self._owner} to {Hearing.EVERY}, "
                        f"got {made} calls for {users} users: give the ledger its spend without "
                        "slots, replace(spend, slots=None), and group privacy is paid."
                    )

    def _pay(self, mechanism: Mechanism) -> None:
        trust = self.ledger.notion.trust.model
        if trust not in mechanism.trust and mechanism.spend.pure > 0:
            raise InputError(
                f"Expected the ledger of {self._owner} to promise what {mechanism.spend.note!r} "
                f"can keep, trust={' or '.join(mechanism.trust)}, got trust={trust!r}."
            )
        charged = Counter(part for part in parts_of(mechanism.spend) if part.pure > 0)
        if charged <= self._left:
            self._left -= charged
            return
        for entry, mechanisms in self._parallel.items():
            if mechanism.spend in entry.parts:
                mechanisms.append(mechanism)
                return
        why = "which it calls" if not charged <= self._entries else "once for each that it calls"
        raise InputError(
            f"Expected the ledger of {self._owner} to name {mechanism.spend.note!r}, {why}: make "
            "it Ledger((mechanism.spend, ...)) of all mechanisms, or no_privacy(...)."
        )


def _opened(spends: Sequence[Spend]) -> Iterator[Spend]:
    """Yield the spends and all their parts, recursively."""
    for spend in spends:
        yield spend
        yield from _opened(getattr(spend, "parts", ()))


def parts_of(spend: Spend) -> tuple[Spend, ...]:
    """Return the spends, as their mechanisms declare them, of the mechanisms in `spend`."""
    if isinstance(spend, Repeated):
        return parts_of(spend.part)
    if not isinstance(spend, Sequential):
        return (spend,)
    return tuple(part for one in spend.parts for part in parts_of(one))
