"""Spec of problems with ordered lists of items, and the public catalogue of the items."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Draws,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    norms,
    reals,
    rows,
    shaped,
    whole,
)
from dpbandit.losses.click_models import ClickModel
from dpbandit.specs.protocols import BanditSpec


class Catalogue:
    """Public unit vectors of items, shared by all replicas or drawn for each one.

    A catalogue holds no user's data, and its current items are known to all. Two catalogues are
    equal if their sizes and seeds are equal, whatever items they hold now; if made by `of`, their
    initial vectors must be equal, too.

    Args:
        n_items, taste: number of items, and number of coordinates of their vectors.
        seed: seed of vectors that all replicas share; None if a problem draws each replica's.
    """

    def __init__(self, n_items: int, taste: int, *, seed: int | None = 0) -> None:
        whole("n_items", n_items, 1)
        whole("taste", taste, 1)
        self.n_items, self.taste, self.seed = n_items, taste, seed
        self._vectors: Floats | None = None
        self._columns: Floats | None = None
        self._refilled = np.zeros((1, n_items), np.int64)
        self.clock = 0
        """number of refills so far"""
        self._last: tuple[Ints, Floats] | None = None

    @classmethod
    def of(cls, vectors: Floats) -> "Catalogue":
        """Return a shared catalogue of vectors (items, coordinates), none longer than 1."""
        if vectors.ndim != 2 or not (norms(vectors) <= 1 + 1e-9).all():
            raise InputError(
                "Expected vectors of items (N, q), none longer than 1, got an array of shape "
                f"{vectors.shape} with norms up to {np.max(np.linalg.norm(vectors, axis=-1)):g}."
            )
        made = cls(*vectors.shape, seed=0)
        made._vectors = vectors[None].copy()
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        if self._vectors is not None:
            return f"Catalogue.of({self._digest()}: {self.n_items} x {self.taste})"
        return f"Catalogue({self.n_items}, {self.taste}, seed={self.seed})"

    def _facts(self) -> tuple[int, int, int | None, str]:
        return self.n_items, self.taste, self.seed, self._digest()

    def _digest(self) -> str:
        """Return a hash of the vectors passed to `of`; empty for a catalogue drawn from a seed."""
        return "" if self._vectors is None else sha256(self._vectors.tobytes()).hexdigest()[:12]

    @property
    def items(self) -> Floats:
        """Vectors of all items, (R, items, coordinates); R is 1 if all replicas share them."""
        if self._columns is None and self._vectors is not None:
            self._columns = columns(self._vectors)
        if self._columns is None:
            seed = 0 if self.seed is None else self.seed
            self._columns = columns(drawn(Streams([seed]), self.n_items, self.taste))
        return self._columns.swapaxes(1, 2)

    @property
    def refilled(self) -> Ints:
        """Number of replacements of each item, (R, items); R is 1 if replicas share the items."""
        return self._refilled

    def vectors(self, lists: Ints, clock: int | None = None) -> Floats:
        """Return the items' vectors (R, m, taste) of `lists` (R, m), now or one refill ago."""
        items = self.items
        replica = rows(len(lists))[:, None] if len(items) == len(lists) else 0
        found: Floats = items[replica, lists]
        if self._last is not None and clock is not None and clock < self.clock:
            place, vector = self._last
            was = (lists == place[:, None])[..., None]
            found = np.where(was, vector[:, None], found)
        return found

    def products(self, directions: Floats) -> Floats:
        """Return scalar products (R, items) of all items' vectors and each replica's direction."""
        return np.matvec(self.items, directions)  # replica by replica, shared or not

    def start(self, streams: Streams, churn: bool) -> None:
        """Reset all items; if an episode replaces items (`churn`), copy them for each replica."""
        self._columns = None
        if self.seed is None:
            self._columns = columns(drawn(streams, self.n_items, self.taste))
        elif churn:  # places change one by one
            self._columns = columns(np.repeat(self.items, len(streams), axis=0))
        self._refilled = np.zeros((len(self.items), self.n_items), np.int64)
        self.clock, self._last = 0, None

    def refill(self, place: Ints, vector: Floats) -> None:
        """Replace in each replica the item numbered `place` (R,) by one with this vector."""
        r = rows(len(place))
        self._last = place, self.items[r, place]
        self.items[r, place] = vector
        self.clock += 1
        self._refilled[r, place] += 1


def drawn(streams: Streams, n_items: int, taste: int) -> Floats:
    """Draw vectors uniform on the unit sphere, (R, `n_items`, `taste`)."""
    z = streams.world.normals("catalogue", n_items, taste)()
    return z / norms(z)


def columns(vectors: Floats) -> Floats:
    """Transpose vectors (R, N items, q numbers) -> (R, q, N); scores then sum q contiguous rows."""
    return np.ascontiguousarray(vectors.swapaxes(1, 2))


MOST_ITEMS = 20_000  # largest number of items of a catalogue


@dataclass(frozen=True, kw_only=True)
class ListSpec(BanditSpec):
    """Ordered lists: every user is shown m different items out of N and clicks some of them.

    A context is a user's vector u (R, q), entries in [-1, 1]. The catalogue of items' vectors v_i,
    q numbers with a norm of at most 1, and the click model are public. The features of item i for
    the user are (1, u * v_i) / sqrt(2), of norm at most 1. An action is item numbers in order, (R,
    m). An agent observes clicks (R, m), 0 or 1, in place of the reward; the click model says how
    likely users see an item.
    """

    kind: ClassVar[str] = "ordered lists of items"
    feedback_name: ClassVar[str | None] = "clicks"
    measured_as = "lists"
    answers = (0.0, 1.0)
    nouns: ClassVar[tuple[str, str]] = ("users", "list")
    may_be_masked: ClassVar[bool] = True
    visited_as: ClassVar[str] = "lists for people"
    catalogue: Catalogue
    clicks: ClickModel
    dim: int = field(init=False)
    """number of entries of a context"""
    context_bound: float = field(init=False, default=1.0)
    context_order: float = field(init=False, default=np.inf)
    reward_low: float = field(init=False, default=0.0)
    reward_high: float = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (("catalogue", Catalogue), ("clicks", ClickModel)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise InputError(f"Expected {name} to be a {kind.__name__}, got {abbrev(value)}.")
        whole("n_items", self.n_items, 2, MOST_ITEMS)
        whole("length", self.length, 1, self.n_items - 1)
        whole("delay", self.delay, 0, 0)
        object.__setattr__(self, "dim", self.catalogue.taste)
        object.__setattr__(self, "reward_high", self.clicks.most)
        super().__post_init__()

    @property
    def n_items(self) -> int:
        """Number of items in the catalogue."""
        return self.catalogue.n_items

    @property
    def length(self) -> int:
        """Number of positions of a list."""
        return self.clicks.length

    @property
    def mask_size(self) -> tuple[int, int]:
        return self.n_items, self.length

    def stand_in(self, action: AnyArray, mask: Bools, random: AnyArray) -> AnyArray:
        lists = action.copy()
        gone = ~np.take_along_axis(mask, lists, axis=1)
        for r in np.flatnonzero(gone.any(axis=1)):
            present = set(lists[r, ~gone[r]].tolist())
            others = [item for item in random[r].tolist() if item not in present]
            lists[r, gone[r]] = others[: np.count_nonzero(gone[r])]
        return lists

    @property
    def features(self) -> int:
        """Number of features of an item for a user, 1 + `dim`."""
        return 1 + self.dim

    @property
    def datum_shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def default_action(self) -> list[int]:
        return list(range(self.length))

    def validate(self, action: Any, replicas: int) -> Ints:
        lists = _numbers(self, action, replicas)
        fine = np.isfinite(lists) & (lists == np.floor(lists)) & (lists >= 0)
        fine &= lists < self.n_items
        if not fine.all():
            raise InputError(
                f"Expected lists of whole numbers in [0, {self.n_items}), got {lists[~fine][0]:g}."
            )
        ordered = np.sort(lists, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            raise InputError(
                f"Expected lists of {self.length} different items, got "
                f"{lists[twice][0].astype(int).tolist()}."
            )
        return lists.astype(np.int64)

    def repaired(self, action: Any, mask: Bools | None = None) -> Any:
        # Lists without repetition: first occurrences stay, later ones become, in order, the lowest
        # items that are there and not on the list. What is no list of item numbers is handed back
        # as it is.
        try:
            lists = reals(action)
        except ValueError:
            return action
        wrong = lists.ndim != 2 or lists.shape[1] != self.length
        if wrong or not ((lists >= 0) & (lists < self.n_items)).all():
            return action
        fixed = lists.copy()
        ordered = np.sort(lists, axis=1)
        for r in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)):
            seen: dict[float, None] = dict.fromkeys(lists[r].tolist())
            there = range(self.n_items) if mask is None else np.flatnonzero(mask[r]).tolist()
            spare = (i for i in there if i not in seen)
            chosen = set()
            for k, item in enumerate(lists[r].tolist()):
                fixed[r, k] = next(spare) if item in chosen else item
                chosen.add(item)
        return fixed

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        uniforms = streams.uniforms("exploration", self.length)
        return partial(_fresh_lists, uniforms, self.n_items, self.length)

    def action_space(self) -> gym.Space[Any]:
        # An item number for each position; samples that name one twice are repaired
        return gym.spaces.MultiDiscrete(np.full(self.length, self.n_items))

    def answer_to(self, potential: Floats, action: Any) -> Floats:
        classes = np.asarray(action) % potential.shape[1]
        return np.take_along_axis(potential, classes, axis=1)


def _fresh_lists(uniforms: Draws, n_items: int, length: int, *, mask: Bools | None = None) -> Ints:
    """Draw uniform ordered lists of distinct items, (R, m), each from m uniform numbers."""
    if mask is not None:
        there = np.count_nonzero(mask, axis=1)[:, None]
        lists = _without_repetition(uniforms(), there)
        return np.take_along_axis(np.argsort(~mask, axis=1, kind="stable"), lists, axis=1)
    return _without_repetition(uniforms(), n_items)


def _without_repetition(uniforms: Floats, n_items: Ints | int) -> Ints:
    length = uniforms.shape[1]
    place = (uniforms * (n_items - rows(length))).astype(np.int64)  # among those not taken yet
    lists = np.empty_like(place)
    for k in range(length):
        item = place[:, k]
        for taken in np.sort(lists[:, :k], axis=1).T:
            item = item + (item >= taken)
        lists[:, k] = item
    return lists


def _numbers(spec: ListSpec, action: Any, replicas: int) -> Floats:
    try:
        numbers = reals(action)
    except ValueError:
        raise InputError(
            f"Expected a list to be {spec.length} item numbers, got {abbrev(action)}."
        ) from None
    shaped("lists", numbers, (replicas, spec.length))
    return numbers
