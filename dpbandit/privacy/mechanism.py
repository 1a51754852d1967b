"""Base class of mechanisms: a user's data reaches later rounds only through their calls.

`LedgerCheck` holds what is called against the ledger: a certificate knows of no mechanism outside
it. `PersonalMemory` keeps a person's data for her own actions, which takes no mechanism.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Ints, abbrev, rows
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.notion import TrustModel
from dpbandit.privacy.premises import Facts, Hearing
from dpbandit.privacy.spends import Parallel, Repeated, Spend

CENTRAL_TRUST: tuple[TrustModel, ...] = ("central",)
AGGREGATED_TRUST: tuple[TrustModel, ...] = ("central", "aggregated")
SHUFFLED_TRUST: tuple[TrustModel, ...] = ("central", "aggregated", "shuffled")
LOCAL_TRUST: tuple[TrustModel, ...] = ("central", "aggregated", "shuffled", "local")
"""Where noise can be added, from the server alone to every device"""

Witness: TypeAlias = Callable[["Mechanism", tuple[AnyArray, ...], Any], None]
"""Told of every call, with the mechanism, its datum and what it released."""

Listener: TypeAlias = Callable[["Mechanism", tuple[AnyArray, ...], int], None]
"""Told of every call before it is made, with the mechanism, its arguments and how many calls they
are, arrays (n, R, ...) where they are several"""

_witness: ContextVar[Witness | None] = ContextVar("witness", default=None)
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_call_log: ContextVar["CallLog | None"] = ContextVar("call log", default=None)


class BudgetExceededError(InputError):
    """A mechanism was called more often than its ledger entry covers."""


class Statistic(Protocol):
    """A clipped function of one user's round, to be summed, with its sensitivity."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum of one replica."""
        ...

    @property
    def units(self) -> Floats | float:
        """What one unit is in each coordinate of the sum, broadcasting against `shape`."""
        ...

    @property
    def sensitivity(self) -> float:
        """The most that replacing one user moves the sum, in L2 and in `units`."""
        ...

    def total(self, *batch: AnyArray) -> Floats:
        """Raw data of n rounds, arrays (n, R, ...) -> their sum `(R, *shape)`."""
        ...


def moving(statistic: Statistic) -> float:
    """What a round that was null, and another that becomes null, cost together, in replacements.

    With v what a round adds beyond a null round, V the largest `|v|` and m the least <v, v'>, that
    is sqrt(2 V^2 + 2 max(0, -m)) over the sensitivity: `statistic.move_sensitivity`, where it has
    one. It is never more than 2, one replacement each, nor less than 1.
    """
    move_sensitivity: float = getattr(statistic, "move_sensitivity", inf)
    return float(np.clip(move_sensitivity / statistic.sensitivity, 1.0, 2.0))


class Mechanism(ABC):
    """Base class of mechanisms: counts its uses, refuses too many, and returns only releases.

    Exact private state (running sums, pending batches) lives inside the mechanism; an agent
    keeps only what a call returns. Two tests watch over every agent: two extreme
    users must not move `query` by more than `sensitivity`, and with the releases held fixed nothing
    outside a mechanism may depend on the changed user.
    """

    needs: ClassVar[Facts]
    """what the proof takes for public about the rounds that are told, besides clipped data; it
    holds for the class that says so, and whoever overrides a method has to say it anew"""
    controls: ClassVar[tuple[int, ...]] = ()
    """places of those arguments of a call that may be functions of public facts, coins and earlier
    releases alone; the others are data"""
    releases_sum: ClassVar[bool] = False
    """whether a release is the sum of what was fed, with noise added"""
    spend: Spend
    """cost of all `uses` calls together, for one user"""
    sensitivity: float
    """how far replacing one user's round moves `query`, in the norm l_order; rounded, it may move
    further by `ledger.MOVEMENT_ROUNDING`, relatively, which every ledger adds"""
    order: float = 2
    uses: int
    """calls that `spend` covers"""
    trust: tuple[TrustModel, ...] = CENTRAL_TRUST
    """models of trust in which it can be run; a ledger of another one may not name it"""
    public: tuple[Any, ...] = ()
    """what it remembers of how it was asked, which may not depend on data but by releases"""
    _used: int = 0

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "__call__" in vars(cls):  # it counts, and is heard
            raise InputError(f"Expected {cls.__name__} to override _release, not __call__.")

    def __call__(self, *datum: AnyArray) -> Floats | None:
        """One round of raw data, arrays (R, ...) -> a release (R, ...), or None: none is due."""
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
        """Number of calls up to the next that may release; `several` takes at most so many."""
        return 1

    def take_rounds(self, lead: tuple[int, ...], *data: AnyArray) -> Floats | None:
        """One call with arrays (R, ...), if `lead` is (R,), or `several`, if it is (n, R)."""
        return self(*data) if len(lead) == 1 else self.several(*data)

    def several(self, *data: AnyArray) -> Floats | None:
        """Return what the last of n <= `rounds_to_release` calls returns; arrays (n, R, ...)."""
        rounds = len(data[0])
        if rounds == 1 or _witness.get() is not None:
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
        return take(*data) if call_log is None else call_log.through(self, data, take, rounds)

    def control_places(self) -> tuple[int, ...]:
        """Places of the arguments that may not depend on data, its statistic's among them."""
        statistic = getattr(self, "_statistic", None)
        return tuple(sorted({*self.controls, *getattr(statistic, "controls", ())}))

    @abstractmethod
    def query(self, *datum: AnyArray) -> Floats:
        """What this round adds to the protected quantity, clipped: `(R, *shape)`."""

    def entered(self, *datum: AnyArray) -> Floats:
        """What the latest call added, for audits; `query`, but of what remembers whom it heard."""
        return self.query(*datum)

    @abstractmethod
    def _release(self, *datum: AnyArray) -> Floats | None: ...

    def _release_several(self, *data: AnyArray) -> Floats | None:
        """`_release` of all, where `rounds_to_release` is more than 1."""
        raise NotImplementedError


class CallLog:
    """The mechanisms that were called; those inside another one are its own affair."""

    def __init__(self) -> None:
        self.calls: dict[Mechanism, int] = {}
        """so far, of each, in the order of first use"""
        self.released = False
        """anything so far"""
        self.users = 0
        """of whom it was said that all calls for them were made"""
        self.crowded: list[tuple[int, dict[Mechanism, int]]] = []
        """how many users, and who heard them how often, where that is more than once on average"""
        self.known: set[Mechanism] = set()
        """what the agent held when it was made"""
        self.premises: list[Callable[[Mechanism], None]] = []
        """told of every mechanism before its first call, which they may refuse"""
        self._now: dict[Mechanism, int] = {}
        self._patterns: set[tuple[Any, ...]] = set()  # of users so far: who heard them how often
        self._inside = False
        self._within: set[Mechanism] = set()  # called by others

    def hold(self, premises: Callable[[Mechanism], None], known: Iterable["Mechanism"]) -> None:
        """Ask `premises` before the first call of every mechanism, and of those called before."""
        for mechanism in self.calls:
            premises(mechanism)
        self.premises.append(premises)
        self.known |= {*known}

    def unheard(self) -> list[Mechanism]:
        """Mechanisms that were called elsewhere, in another thread, since they were known."""
        apart = self.known - self._within
        return [one for one in apart if one._used > self.calls.get(one, 0)]

    def through(
        self,
        mechanism: Mechanism,
        datum: tuple[AnyArray, ...],
        take: Callable[..., Floats | None] | None = None,
        calls: int = 1,
    ) -> Floats | None:
        """What `mechanism` releases for `datum`, with its call in the log, or several at once."""
        take = take or mechanism._release
        if self._inside:
            self._within.add(mechanism)
            return take(*datum)
        if mechanism not in self.calls:
            for allow in self.premises:
                allow(mechanism)
        self.calls[mechanism] = self.calls.get(mechanism, 0) + calls
        self._now[mechanism] = self._now.get(mechanism, 0) + calls
        self._inside = True
        try:
            release = take(*datum)
        finally:
            self._inside = False
        self.released |= release is not None
        return release

    def count_users(self, users: int) -> None:
        """Say that all calls for the next users, one or several at once, have been made."""
        self.users += users
        pattern = (users, *self._now.items())
        if pattern not in self._patterns:
            self._patterns.add(pattern)
            if sum(self._now.values()) > users:
                self.crowded.append((users, self._now))
        self._now = {}

    def overlap(self, mechanisms: Sequence[Mechanism], most: int = 1) -> str:
        """Name more than `most` of the mechanisms that heard one user, or one that heard her twice;
        or ''."""
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
    """Say in the call log that is kept, if any, that the next users were learned from."""
    if (call_log := _call_log.get()) is not None:
        call_log.count_users(users)


def unused_call_log() -> CallLog | None:
    """The call log that is kept for a run in which nothing has been called, if there is one."""
    call_log = _call_log.get()
    return None if call_log is None or call_log.calls else call_log


@contextmanager
def logged_calls(call_log: CallLog | None = None) -> Iterator[CallLog]:
    """Keep a log, a new one or this one, of all mechanisms that are called, in this thread."""
    call_log = CallLog() if call_log is None else call_log
    token = _call_log.set(call_log)
    try:
        yield call_log
    finally:
        _call_log.reset(token)


@contextmanager
def overheard(listener: Listener) -> Iterator[None]:
    """Tell `listener` of the arguments of every call, in this thread; blocks stay blocks."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def witnessed(witness: Witness) -> Iterator[None]:
    """Tell `witness` of every call of every mechanism, in this thread; for audits."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(token)


class PersonalMemory:
    """Sums of a person's own rounds, `(R, N, *shape)`, read and added to under her number alone.

    Guarantee:
        Costs nothing, whatever is kept and however it is used, as long as it reaches no action but
        her own: if all that others see is made of releases that are (epsilon, delta)-DP for
        persons, and of their own memory, then what they see is a function of those releases and of
        their own data. So the agent is (epsilon, delta)-joint DP for persons; without any mechanism
        it is 0-joint DP. `dpbandit.testing` swaps a person and compares everybody else's memory
        byte for byte; whatever an agent keeps elsewhere must not change at all.

    >>> memory = PersonalMemory(1, people=3, shape=(2,))
    >>> memory.add(np.array([1]), np.array([[1.0, 2.0]]))
    >>> memory.of(np.array([1])), memory.of(np.array([-1]))
    (array([[1., 2.]]), array([[0., 0.]]))
    """

    def __init__(self, replicas: int, *, people: int, shape: tuple[int, ...]) -> None:
        self._sums: Floats = np.zeros((replicas, people, *shape))

    def of(self, person: Ints) -> Floats:
        """What is kept of the people who have come, `(R,) -> (R, *shape)`; nothing of nobody."""
        found: Floats = self._sums[rows(len(person)), np.maximum(person, 0)]
        found[person < 0] = 0.0
        return found

    def add(self, person: Ints, value: Floats, *place: Ints) -> None:
        """Add `value`, `(R, *shape)`, to what is kept of them, or `(R, *shape[1:])` to the entry at
        `place` (R,) of its first axis; nothing for nobody, or not finite."""
        finite = np.isfinite(value).all(axis=tuple(range(1, value.ndim)))
        here = np.flatnonzero((person >= 0) & finite)
        self._sums[here, person[here], *(at[here] for at in place)] += value[here]

    def everybody(self) -> Floats:
        """All of it, `(R, N, *shape)`, for checks; no agent may look."""
        return self._sums.copy()


def checked_ledger(owner: str, ledger: object) -> Ledger:
    """`ledger`; raises `InputError` unless it is one."""
    if type(ledger) is not Ledger:  # a subclass may find any epsilon
        raise InputError(
            f"Expected the agent of {owner} to have a Ledger, got ledger={abbrev(ledger)}: let "
            "start set self.ledger = ledger_of(self.epsilon, mechanism.spend) or no_privacy(...)."
        )
    return ledger


class LedgerCheck:
    """One agent's ledger, held against the call log of the mechanisms that it calls.

    An entry pays for one mechanism whose `spend` it is. A `Parallel` pays for any number of its
    parts, opened as the agent goes along, as long as they hear no user twice: no two of them are
    called for one user, where `CallLog.count_users` told of all users, and else all together no
    more often than there were users. A `Sequential` may stand in a ledger part by part.
    What `Repeated` pays for by a factor must hear every user once, or visits would be less far
    apart in its calls than they are.
    What costs nothing needs no entry, and who promises nothing may do anything.

    Args:
        owner: whose ledger it is, for the sentence.
        ledger: what is promised.
        call_log: what is called.

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
        """what is promised"""
        self._entries = Counter(part for spend in ledger.spends for part in parts_of(spend))
        self._left = self._entries.copy()
        self._every = {
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
        """Raise `InputError` for what is not paid, once that many users have been heard."""
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
        exact = self._call_log.users == users  # else nobody said which calls were for whom
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
            if self._every and mechanism.spend in self._every:
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
        owed = Counter(part for part in parts_of(mechanism.spend) if part.pure > 0)
        if owed <= self._left:
            self._left -= owed
            return
        for entry, mechanisms in self._parallel.items():
            if mechanism.spend in entry.parts:
                mechanisms.append(mechanism)
                return
        why = "which it calls" if not owed <= self._entries else "once for each that it calls"
        raise InputError(
            f"Expected the ledger of {self._owner} to name {mechanism.spend.note!r}, {why}: make "
            "it Ledger((mechanism.spend, ...)) of all mechanisms, or no_privacy(...)."
        )


def _opened(spends: Sequence[Spend]) -> Iterator[Spend]:
    """The spends and all that they are made of."""
    for spend in spends:
        yield spend
        yield from _opened(getattr(spend, "parts", ()))


def parts_of(spend: Spend) -> tuple[Spend, ...]:
    """The spends that add up to this one, each as its mechanism knows it."""
    if isinstance(spend, Repeated):
        return parts_of(spend.part)
    if not isinstance(spend, Sequential):
        return (spend,)
    return tuple(part for one in spend.parts for part in parts_of(one))
