"""Mechanisms: data about a user reaches the future only through `Mechanism.__call__`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.privacy.accounting.ledger import Trust
from dpbandit.privacy.accounting.spends import Spend

AT_SERVER: tuple[Trust, ...] = ("central",)
ADDED_UP: tuple[Trust, ...] = ("central", "aggregated")
MIXED: tuple[Trust, ...] = ("central", "aggregated", "shuffled")
EVERYWHERE: tuple[Trust, ...] = ("central", "aggregated", "shuffled", "local")
"""Where noise can be added, from the server alone to every device"""

Witness: TypeAlias = Callable[["Mechanism", tuple[npt.NDArray[Any], ...], Any], None]
"""Told of every call, with the mechanism, its datum and what it released."""

_witness: ContextVar[Witness | None] = ContextVar("witness", default=None)
_roll: ContextVar["Roll | None"] = ContextVar("roll", default=None)


class BudgetExceededError(InputError):
    """A mechanism was called more often than its ledger entry covers."""


class Mechanism(ABC):
    """Counts its uses, refuses an overdraft, and hands on nothing but releases.

    Exact private state (running sums, pending batches) lives inside the mechanism; an agent
    keeps only what a call returns. Two tests watch over every agent: two extreme
    users must not move `query` by more than `sensitivity`, and with the releases held fixed nothing
    outside a mechanism may depend on the changed user.
    """

    spend: Spend
    """cost of all `uses` calls together, for one user"""
    sensitivity: float
    """how far replacing one user's round moves `query`, in the norm l_order; rounded, it may move
    further by `ledger.ROUNDING`, relatively, which every ledger adds"""
    order: float = 2
    uses: int
    """calls that `spend` covers"""
    trust: tuple[Trust, ...] = AT_SERVER
    """models of trust in which it can be run; a ledger of another one may not name it"""
    _used: int = 0

    def __call__(self, *datum: npt.NDArray[Any]) -> Floats | None:
        """One round of raw data, arrays (R, ...) -> a release (R, ...), or None: none is due."""
        if self._used >= self.uses:
            raise BudgetExceededError(
                f"{self.spend.note}: call {self._used + 1} exceeds uses={self.uses}; "
                "make the agent for a longer horizon."
            )
        self._used += 1
        roll = _roll.get()
        release = self._release(*datum) if roll is None else roll.through(self, datum)
        if (witness := _witness.get()) is not None:
            witness(self, datum, release)
        return release

    @abstractmethod
    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """What this round adds to the protected quantity, clipped: `(R, *shape)`."""

    def entered(self, *datum: npt.NDArray[Any]) -> Floats:
        """What the latest call added, for audits; `query`, but of what remembers whom it heard."""
        return self.query(*datum)

    @abstractmethod
    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None: ...


class Roll:
    """The mechanisms that were called; those inside another one are its own affair."""

    def __init__(self) -> None:
        self.calls: dict[Mechanism, int] = {}
        """so far, of each, in the order of first use"""
        self.released = False
        """anything so far"""
        self._inside = False

    def through(self, mechanism: Mechanism, datum: tuple[npt.NDArray[Any], ...]) -> Floats | None:
        """What `mechanism` releases for `datum`, with its call on the roll."""
        if self._inside:
            return mechanism._release(*datum)
        self.calls[mechanism] = self.calls.get(mechanism, 0) + 1
        self._inside = True
        try:
            release = mechanism._release(*datum)
        finally:
            self._inside = False
        self.released |= release is not None
        return release


@contextmanager
def enrolled(roll: Roll | None = None) -> Iterator[Roll]:
    """Keep a roll, a new one or this one, of all mechanisms that are called, in this thread."""
    roll = Roll() if roll is None else roll
    token = _roll.set(roll)
    try:
        yield roll
    finally:
        _roll.reset(token)


@contextmanager
def witnessed(witness: Witness) -> Iterator[None]:
    """Tell `witness` of every call of every mechanism, in this thread; for audits."""
    token = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(token)
