"""What problems of lists share: users drawn ahead, who look at a list and click."""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import inside, one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.envs.lists.best_lists import best_value
from dpbandit.envs.lists.shown import Shown
from dpbandit.losses.click_models import (
    Browsing,
    Cascade,
    ClickModel,
    DependentClicks,
    PositionBased,
)
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, Step

_USERS_AHEAD = 1 << 13
"""Drawn at once for all replicas. Changes speed, never values."""


class ListProblem(ABC):
    """A problem of lists; a subclass says who the users are and what attracts them."""

    spec: Spec
    _lists: ListSpec
    """what is shown to one user"""
    _model: ClickModel
    """how users click, told to agents or not"""

    @abstractmethod
    def _users(self, count: int) -> Floats:
        """What the next users say of themselves, (count, R, q)."""

    @abstractmethod
    def _attraction(self, u: Floats) -> Floats:
        """Of every item for users (R, q), (R, N)."""

    @abstractmethod
    def best_fixed(self) -> Ints:
        """The list (R, m) for everybody."""

    def _start(self, streams: Streams, ahead: int = _USERS_AHEAD) -> None:
        R = len(streams)
        self._luck = streams.uniforms("clicks", 2, self._lists.length)
        self._many = max(1, ahead // R)
        self._round, self._drawn = 0, 0
        self._ahead: Floats = np.empty((0, R, self._lists.dim))
        self._here = np.ones(R, np.bool_)
        self._shown = Shown(self._lists.catalogue, R)

    def context(self) -> Floats:
        """The current users' tastes u, (R, q)."""
        if self._round == self._drawn:
            self._ahead = self._users(self._many)
            self._drawn += self._many
        u: Floats = self._ahead[self._round % self._many]
        return u

    def step(self, action: npt.NDArray[np.int64]) -> Step:
        """Show the current users a list (R, m) and move on to the next."""
        R, model, here = self._ahead.shape[1], self._model, self._here
        lists = self._lists.validate(action, R)
        attraction = self._attraction(self._ahead[self._round % self._many])
        self._shown.see(lists, here)
        shown = attraction[rows(R)[:, None], lists]
        expected = model.expected(shown) * here
        oracle = np.maximum(
            best_value(model, attraction) * here, expected
        )  # but for rounding it is
        clicks, reward = model.clicked(shown, self._luck())
        self._round += 1
        return Step(reward * here, expected, oracle, oracle - expected, clicks * here[:, None])

    @property
    def coverage(self) -> Floats:
        """The share (R,) of the items there were in this episode that somebody was shown."""
        return self._shown.coverage

    @property
    def intra_list_distance(self) -> Floats:
        """How unlike the items of a list were, (R,), in the mean over lists and pairs of items.

        (1 - v_i . v_j) / 2: 1/2 of lists at random where vectors are uniform on a sphere; NaN of
        lists of one item, or before the first.
        """
        return self._shown.intra_list_distance

    def hindsight(self) -> float:
        """0: every user has a best list of her own."""
        return 0.0


def click_model(clicks: str, length: int, n_items: int, decay: float) -> ClickModel:
    """The model of that name for lists of so many out of `n_items`.

    "position" has weights k^-decay, k from 1; "dependent" has v_k = k^-(1/2).
    """
    one_of("clicks", clicks, ("position", "cascade", "dependent", "browsing"))
    inside("decay", decay, 0, 100, ends=True)
    whole("length", length, 1, n_items - 1)
    places = np.arange(1.0, length + 1)
    if clicks == "position":
        return PositionBased(tuple((places**-decay).tolist()))
    if clicks == "dependent":
        return DependentClicks(tuple((places**-0.5).tolist()))
    return Cascade(length) if clicks == "cascade" else Browsing(length)
