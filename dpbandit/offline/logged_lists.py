"""What a random policy of lists showed and what was clicked."""

from dataclasses import dataclass, field, replace

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, flag, shaped, whole
from dpbandit.offline.rows import LEAST, arrays_at, numbers_in, refuse_row


@dataclass(kw_only=True, eq=False)
class LoggedLists:
    """n rounds with an ordered list of m different items each, drawn with a known probability.

    Raises `InputError` where shapes do not fit, an item is named twice, a click is neither 0 nor 1,
    a probability lies outside (0, 1], a prefix becomes likelier as it grows, or than its last item
    is at its position.

    >>> log = LoggedLists(n_items=3, items=[[2, 0], [1, 2]], clicks=[[0, 1], [0, 0]],
    ...                   prefix=[[0.5, 0.25], [0.3, 0.15]])
    >>> print(log)
    2 rounds with lists of 2 of 3 items
    """

    n_items: int
    """N, of the catalogue"""
    items: Ints
    """(n, m), numbers of items below N, in the order in which they were shown"""
    clicks: Floats
    """(n, m), 0 or 1"""
    prefix: Floats
    """(n, m), the probability with which items 1..k were drawn, given the context"""
    marginal: Floats | None = None
    """(n, m), the probability with which item k stood at position k, whatever stood above it"""
    context: Floats | None = None
    """(n, d), of whoever chose the lists; None is the constant 1"""
    adaptive: bool = False
    """rows are in order of collection, and probabilities may depend on earlier rows"""
    reward: Floats = field(init=False)
    """(n,), clicks of a list"""

    def __post_init__(self) -> None:
        items = numbers_in("items", self.items)
        if items.ndim != 2 or not items.size:
            raise InputError(
                f"Expected items of shape (n, m), a list for each round, got {items.shape}."
            )
        n, m = items.shape
        whole("n_items", self.n_items, m)
        flag("adaptive", self.adaptive)
        fine = (items >= 0) & (items < self.n_items) & (items == np.floor(items))
        refuse_row(f"items that are whole numbers below n_items={self.n_items}", fine.all(axis=1))
        ordered = np.sort(items, axis=1)
        refuse_row("different items in a list", (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))
        self.items = items.astype(np.int64)
        self.clicks = numbers_in("clicks", self.clicks)
        shaped("clicks", self.clicks, (n, m))
        refuse_row("clicks that are 0 or 1", np.isin(self.clicks, (0, 1)).all(axis=1))
        self.prefix = self._chances("prefix", self.prefix)
        falling = self.prefix[:, 1:] <= self.prefix[:, :-1] * (1 + 1e-9)
        refuse_row("prefix probabilities that do not rise along a list", falling.all(axis=1))
        if self.marginal is not None:
            self.marginal = self._chances("marginal", self.marginal)
            refuse_marginal(self.marginal, self.prefix, "a log")
        given = np.ones((n, 1)) if self.context is None else numbers_in("contexts", self.context)
        if given.ndim != 2 or len(given) != n:
            raise InputError(f"Expected contexts of shape ({n}, d), got {given.shape}.")
        refuse_row("finite contexts", np.isfinite(given).all(axis=1))
        self.context = given
        self.reward = self.clicks.sum(axis=1)

    def __getitem__(self, rows: slice) -> "LoggedLists":
        """Some of the rows, such as `log[1000:]`."""
        names = ("items", "clicks", "prefix", "marginal", "context")
        return replace(self, **arrays_at(self, rows, names))

    def __str__(self) -> str:
        n, m = self.items.shape
        return f"{n} rounds with lists of {m} of {self.n_items} items"

    def _chances(self, name: str, values: Floats) -> Floats:
        chance = numbers_in(f"{name} probabilities", values)
        shaped(f"{name} probabilities", chance, self.items.shape)
        refuse_row(
            f"{name} probabilities in (0, 1]", ((chance >= LEAST) & (chance <= 1)).all(axis=1)
        )
        return chance


def refuse_marginal(marginal: Floats, prefix: Floats, of: str) -> None:
    """An item stands at its position at least as often as it does below the same items."""
    fine = (marginal >= prefix * (1 - 1e-9)).all(axis=1)
    refuse_row("marginal probabilities at least those of the prefix", fine, of)
