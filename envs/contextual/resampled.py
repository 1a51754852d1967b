"""People who are rows of a table, drawn with replacement."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, flag
from dpbandit.base.random_streams import Streams
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.envs.tides import Tides


def row_of(uniforms: Floats, count: int) -> Ints:
    """Rows of a table of `count`, from uniform numbers."""
    return (uniforms * count).astype(np.int64)


class Resampled(ContextualProblem):
    """Each round's user is a row of a table, and a uniform number is her luck.

    Subclasses set `spec` and `_known`, the contexts of the rows, (n, d), and say what the people of
    some rows would answer, given their luck.
    """

    _random: ClassVar[tuple[str, str]] = ("customers", "purchases")
    """What the streams of rows and of luck are called."""
    _known: Floats

    def _start(self, streams: Streams) -> None:
        who, luck = self._random
        self._rows, self._luck = streams.uniforms(who), streams.uniforms(luck)

    def _users(self, count: int) -> Users:
        row = self._who_comes(self._rows.take(count))  # (n, R)
        return self._answers(row, self._luck.take(count))

    def _who_comes(self, uniforms: Floats) -> Ints:
        """Rows, from uniform numbers."""
        return row_of(uniforms, len(self._known))

    @abstractmethod
    def _answers(self, row: Ints, luck: Floats) -> Users: ...


class ResampledChoices(Resampled):
    """Each answers an arm with yes or no: a sale at a price, a click on an item.

    Subclasses also set `_chances`, P(yes) of every row and arm (n, K), and `_worth`, what a yes
    earns, (K,).
    """

    _chances: Floats
    _worth: Floats

    def _answers(self, row: Ints, luck: Floats) -> Users:
        shown, chance = self._shows(row), self._says_yes(row)  # (n, R, d), (n, R, K)
        yes = luck[..., None] < chance
        return Users(shown, self._worth * chance, self._worth * yes)

    def _shows(self, row: Ints) -> Floats:
        """Contexts of the people of the next rounds, (n, R, d)."""
        return self._known[row]

    def _says_yes(self, row: Ints) -> Floats:
        """P(yes) of the people of the next rounds, (n, R, K)."""
        return self._chances[row]


@dataclass(kw_only=True, eq=False)
class TidalChoices(ResampledChoices):
    """Choices whose utilities move with time, see `Tides`: logits of all answers by as much.

    The oracle knows the tide and is exact. Agents see no clock, unless `clock` shows them where
    the season stands: contexts are then (x, sin(2 pi t / period), cos(2 pi t / period)) / sqrt(2).
    """

    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None
    clock: bool = False

    def _dim(self) -> int:
        """Features that are shown, once tides and clock have been looked at, after `_known`."""
        self._tides = Tides(season=self.season, drift=self.drift, shock=self.shock)
        flag("clock", self.clock)
        if self.clock and self.season is None:
            raise InputError("Expected season=(amplitude, period) to be said with clock=True.")
        return self._known.shape[1] + 2 * self.clock

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._tide = self._tides.start(streams)

    def _shows(self, row: Ints) -> Floats:
        x = super()._shows(row)
        if not self.clock:
            return x
        clock = np.broadcast_to(self._tide.clock(len(row))[:, None], (*row.shape, 2))
        return np.concatenate([x, clock], axis=-1) / np.sqrt(2)

    def _says_yes(self, row: Ints) -> Floats:
        chance = super()._says_yes(row)
        if self._tides == Tides():
            return chance
        return np.asarray(expit(logit(chance) + self._tide.take(len(row))[..., None]))
