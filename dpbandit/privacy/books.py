"""Whether a ledger names what is called: a certificate knows of no mechanism outside its ledger."""

from collections import Counter
from math import inf

from dpbandit.base.inputs import InputError, shown
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.sequential import Sequential
from dpbandit.privacy.accounting.spends import Parallel, Repeated, Spend
from dpbandit.privacy.mechanism import Mechanism, Roll


def checked_ledger(owner: str, ledger: object) -> Ledger:
    """`ledger`; raises `InputError` unless it is one."""
    if not isinstance(ledger, Ledger):
        raise InputError(
            f"Expected the agent of {owner} to have a Ledger, got ledger={shown(ledger)}: make it "
            "Ledger((mechanism.spend, ...)), or no_privacy(...)."
        )
    return ledger


class Books:
    """One agent's ledger, held against the roll of the mechanisms that it calls.

    An entry pays for one mechanism whose `spend` it is. A `Parallel` pays for any number of its
    parts, opened as the agent goes along, as long as they hear no user twice: all together are
    called no more often than there were users. A `Sequential` may stand in a ledger part by part.
    What `Repeated` pays for by a factor must hear every user once, or visits would be less far
    apart in its calls than they are.
    What costs nothing needs no entry, and who promises nothing may do anything.

    Args:
        owner: whose ledger it is, for the sentence.
        ledger: what is promised.
        roll: what is called.

    >>> from dpbandit.privacy.mechanism import enrolled
    >>> from dpbandit.privacy.sums.one_point import LocalValues
    >>> from dpbandit.base.random_streams import Streams
    >>> import numpy as np
    >>> values = LocalValues(Streams([0]), low=0, high=1, noise_multiplier=2)
    >>> with enrolled() as roll:
    ...     _ = values(np.ones(1))
    >>> Books("Mine", Ledger((values.spend,)), roll).check(users=1)
    >>> Books("Mine", Ledger(), roll).check(users=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpbandit.base.inputs.InputError: Expected the ledger of Mine to name 'local laplace values', ...
    """

    def __init__(self, owner: str, ledger: object, roll: Roll) -> None:
        ledger = checked_ledger(owner, ledger)
        self._owner, self._roll, self._read = owner, roll, 0
        self._ledger = ledger
        self._entries = Counter(part for spend in ledger.spends for part in _parts(spend))
        self._left = self._entries.copy()
        self._apart = {
            spend.part
            for spend in ledger.spends
            if isinstance(spend, Repeated) and spend.factor is not None
        }
        self._promises = not any(spend.mu == inf for spend in ledger.spends)
        self._parallel: dict[Parallel, list[Mechanism]] = {
            entry: [] for entry in self._entries if isinstance(entry, Parallel)
        }

    def check(self, users: int) -> None:
        """Raise `InputError` for what is not paid, once that many users have been heard."""
        if not self._promises:
            return
        calls = self._roll.calls
        for mechanism in list(calls)[self._read :]:
            self._pay(mechanism)
        self._read = len(calls)
        for entry, mechanisms in self._parallel.items():
            made = sum(calls[mechanism] for mechanism in mechanisms)
            if made > users * self._left[entry]:
                raise InputError(
                    f"Expected the mechanisms of {entry.note!r} in the ledger of {self._owner} to "
                    f"hear no user twice, got {made} calls for {users} users: give the ledger the "
                    "spend of each, as they add up."
                )

        for mechanism, made in calls.items():
            if self._apart and mechanism.spend in self._apart and made != users:
                raise InputError(
                    f"Expected {mechanism.spend.note!r} of {self._owner} to hear every round once, "
                    f"got {made} calls for {users} users: give the ledger its spend without slots, "
                    "replace(spend, slots=None), and group privacy is paid."
                )

    def _pay(self, mechanism: Mechanism) -> None:
        trust = self._ledger.trust
        if trust not in mechanism.trust and mechanism.spend.pure > 0:
            raise InputError(
                f"Expected the ledger of {self._owner} to promise what {mechanism.spend.note!r} "
                f"can keep, trust={' or '.join(mechanism.trust)}, got trust={trust!r}."
            )
        owed = Counter(part for part in _parts(mechanism.spend) if part.pure > 0)
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


def _parts(spend: Spend) -> tuple[Spend, ...]:
    """The spends that add up to this one, each as its mechanism knows it."""
    if isinstance(spend, Repeated):
        return _parts(spend.part)
    if not isinstance(spend, Sequential):
        return (spend,)
    return tuple(part for one in spend.parts for part in _parts(one))
