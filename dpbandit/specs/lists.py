"""The public facts of problems in which an ordered list of items is shown to every user."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import InputError, reals, shaped, shown, whole
from dpbandit.base.random_streams import Draws, Streams
from dpbandit.losses.click_models import ClickModel
from dpbandit.specs.catalogues import Catalogue
from dpbandit.specs.protocols import BanditSpec

MOST_ITEMS = 20_000


@dataclass(frozen=True, kw_only=True)
class ListSpec(BanditSpec):
    """Show every user an ordered list of m different items out of N; she clicks some of them.

    Context u (R, q), entries in [-1, 1]; the catalogue, vectors v_i in R^q no longer than 1, and
    the click model are public. The features of item i for her are phi = (1, u * v_i) / sqrt(2), no
    longer than 1. Action (R, m), item numbers in order. An agent is told the clicks (R, m), 0 or 1,
    in place of the reward; whether an item was looked at, it knows from the click model.
    """

    kind: ClassVar[str] = "ordered lists of items"
    catalogue: Catalogue
    clicks: ClickModel
    dim: int = field(init=False)
    """q, entries of a context"""
    context_bound: float = field(init=False, default=1.0)
    context_order: float = field(init=False, default=np.inf)
    reward_low: float = field(init=False, default=0.0)
    reward_high: float = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (("catalogue", Catalogue), ("clicks", ClickModel)):
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise InputError(f"Expected {name} to be a {kind.__name__}, got {shown(given)}.")
        whole("n_items", self.n_items, 2, MOST_ITEMS)
        whole("length", self.length, 1, self.n_items - 1)
        whole("delay", self.delay, 0, 0)
        object.__setattr__(self, "dim", self.catalogue.taste)
        object.__setattr__(self, "reward_high", self.clicks.most)
        super().__post_init__()

    @property
    def n_items(self) -> int:
        """N."""
        return self.catalogue.n_items

    @property
    def length(self) -> int:
        """m."""
        return self.clicks.length

    @property
    def features(self) -> int:
        """d = 1 + q, of an item for a user."""
        return 1 + self.dim

    @property
    def datum_shape(self) -> tuple[int, ...]:
        """(m,), the clicks."""
        return (self.length,)

    @property
    def told_as(self) -> str:
        """The clicks, in place of a reward."""
        return "clicks"

    @property
    def answers(self) -> tuple[float, ...]:
        """Not clicked, clicked."""
        return (0.0, 1.0)

    @property
    def default_action(self) -> list[int]:
        """What is shown where nothing else is known, the first items."""
        return list(range(self.length))

    def validate(self, action: Any, replicas: int) -> Ints:
        """Lists (R, m) of different item numbers in [0, N)."""
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

    def repaired(self, action: Any) -> Any:
        """Lists without repetition: first occurrences stay, later ones become, in order, the lowest
        items that are not on the list. What is no list of item numbers is handed back as it is."""
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
            spare = (i for i in range(self.n_items) if i not in seen)
            kept = set()
            for k, item in enumerate(lists[r].tolist()):
                fixed[r, k] = next(spare) if item in kept else item
                kept.add(item)
        return fixed

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        """Draws lists (R, m), each as likely as any other."""
        return RandomLists(streams, self.n_items, self.length)

    def action_space(self) -> gym.Space[Any]:
        """An item number for each position; samples that name one twice are repaired."""
        return gym.spaces.MultiDiscrete(np.full(self.length, self.n_items))

    def told(self, potential: Floats, action: Any) -> Floats:
        """What each of a few classes of items is answered, (R, C)."""
        classes = np.asarray(action) % potential.shape[1]
        return np.take_along_axis(potential, classes, axis=1)


class RandomLists:
    """Uniform ordered samples without repetition, (R, m): m uniforms each, whatever N."""

    def __init__(self, streams: Streams, n_items: int, length: int) -> None:
        self._luck: Draws = streams.uniforms("exploration", length)
        self._n_items, self._length = n_items, length

    def __call__(self) -> Ints:
        """Fresh lists."""
        left = self._n_items - rows(self._length)
        place = (self._luck() * left).astype(np.int64)  # among those not taken yet
        lists = np.empty_like(place)
        for k in range(self._length):
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
            f"Expected a list to be {spec.length} item numbers, got {shown(action)}."
        ) from None
    shaped("lists", numbers, (replicas, spec.length))
    return numbers
