"""People who are rows of a table, drawn with replacement."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Streams
from dpbandit.envs.contextual.problems import ContextualProblem, Users


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
        row = row_of(self._rows.take(count), len(self._known))  # (n, R)
        return self._answers(row, self._luck.take(count))

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
        chance = self._says_yes(row)  # (n, R, K)
        yes = luck[..., None] < chance
        return Users(self._known[row], self._worth * chance, self._worth * yes)

    def _says_yes(self, row: Ints) -> Floats:
        """P(yes) of the people of the next rounds, (n, R, K)."""
        return self._chances[row]
