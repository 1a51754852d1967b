"""From the scores of all items to a list: the best m, in the order in which users look."""

from abc import ABC, abstractmethod

import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.losses.click_models import ClickModel
from dpbandit.privacy.ledger import Ledger
from dpbandit.specs.lists import ListSpec


class ListPlayer(ABC):
    """Shows lists and learns from clicks on them; a subclass says which, and what.

    Vectors of the items shown are those of the catalogue when they were shown, although a place may
    have got a new item by the time that the clicks are known.
    """

    def __init__(self, spec: ListSpec, ledger: Ledger) -> None:
        _ = spec.clicks.weights  # raises `InputError` where nobody is told them
        self.ledger, self._spec, self._clock = ledger, spec, 0

    @abstractmethod
    def _choose(self, u: Floats) -> Ints: ...

    @abstractmethod
    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None: ...

    def act(self, context: Floats) -> Ints:
        """Lists (R, m) for users (R, q)."""
        self._clock = self._spec.catalogue.clock
        return self._choose(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from clicks (R, m)."""
        vectors = self._spec.catalogue.vectors(action, self._clock)
        self._learn(context, action, vectors, feedback)


def products(spec: ListSpec, u: Floats, theta: Floats) -> Floats:
    """phi . theta of every item, (R, N), for users u (R, q) and parameters theta (R, 1 + q)."""
    mine = np.where(np.isfinite(u), u, 0.0).clip(-1, 1) * theta[:, 1:]
    return (theta[:, :1] + spec.catalogue.products(mine)) / np.sqrt(2)


def best_lists(scores: Floats, model: ClickModel) -> Ints:
    """The m largest scores (R, N) of each replica in the order in which they are shown, (R, m).

    Of equal scores the lowest items; what is looked at most gets the best of the list.
    """
    m = model.length
    chosen = np.argpartition(-scores, m - 1, axis=1)[:, :m]
    least = np.take_along_axis(scores, chosen, axis=1).min(axis=1, keepdims=True)
    tied = (scores >= least).sum(axis=1) > m
    chosen = np.sort(chosen, axis=1)
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    best = np.take_along_axis(chosen, order, axis=1)
    if tied.any():  # where partial sorting takes any of them
        best[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :m]
    return placed(best, model)


def diverse_lists(scores: Floats, spec: ListSpec, weight: float) -> Ints:
    """Item by item the largest score - `weight` times its largest v_i . v_j with one before it.

    With weight 0 that is `best_lists`.
    """
    if weight == 0:
        return best_lists(scores, spec.clicks)
    R, r = len(scores), rows(len(scores))
    lists = np.empty((R, spec.length), np.int64)
    likeness: Floats = np.zeros(scores.shape)
    left = scores.copy()
    for k in range(spec.length):
        lists[:, k] = (left - weight * likeness).argmax(axis=1)
        left[r, lists[:, k]] = -np.inf
        alike = spec.catalogue.products(spec.catalogue.vectors(lists[:, k : k + 1])[:, 0])
        likeness = np.maximum(likeness, alike) if k else alike
    return placed(lists, spec.clicks)


def placed(lists: Ints, model: ClickModel) -> Ints:
    """Lists (R, m), best first, with the best where most look."""
    if (np.diff(model.weights) <= 0).all():
        return lists
    found = np.empty_like(lists)
    found[:, model.order] = lists
    return found
