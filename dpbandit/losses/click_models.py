"""Click models: observed clicks on a list, rewards, and the list of largest expected reward.

Positions k are counted from 0 in the code; a user looks at position k with probability chi_k or
gamma(k, distance to the last click), and a_k is the attraction of its item, the probability that
somebody who looks at it clicks::

    model      P(click at k)                        reward        expected, exactly
    position   chi_k a_k, independent               clicks        sum chi_k a_k
    cascade    a_k prod over j < k of (1 - a_j)     any click     1 - prod (1 - a_k)
    dependent  looked at: a_k; leaves after a       satisfied     1 - prod (1 - v_k a_k)
               click with probability v_k
    browsing   gamma(k, k - l) a_k, l the last      clicks        a recursion over l
               position that was clicked

Position: the best list has the largest a at the largest chi (rearrangement inequality). Cascade:
symmetric in the a, increasing in each. Dependent: (1 - v a)(1 - v' a') <= (1 - v a')(1 - v' a) for
v >= v' and a >= a', hence the largest a takes the largest v. For browsing no oracle is known; where
gamma decreases in both arguments, no list was found that beats the sorted one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev, whole

MAX_LENGTH = 100
"""Largest number of positions of a list."""


class ClickModel(ABC):
    """A model of users' clicks on a list of m items; its parameters are public."""

    length: int
    """Number m of positions"""
    reward_unit: ClassVar[str] = "clicks"
    exact: ClassVar[bool] = True
    """True if the list of items sorted by attraction is proved to be optimal"""

    @property
    def most(self) -> float:
        """Largest reward of a list."""
        return 1.0

    @property
    def weights(self) -> Floats:
        """Weight of each position, (m,); the best item belongs where the weight is largest."""
        return np.ones(self.length)

    @property
    def click_values(self) -> Floats:
        """Expected reward of a click at each position, (m,)."""
        return np.ones(self.length)

    @property
    def order(self) -> Ints:
        """Positions sorted by falling weight, (m,); ties keep their order."""
        return np.argsort(-self.weights, kind="stable")

    @property
    def square_total(self) -> float:
        """Public bound on the sum of squares of look probabilities (`looked_at`) over a list."""
        return float(self.length)

    @property
    def look_total(self) -> float:
        """Public bound on the sum of look probabilities (`looked_at`) over a list."""
        return float(self.length)

    @abstractmethod
    def expected(self, attraction: Floats) -> Floats:
        """Return expected rewards of lists with attractions by position, (..., m) -> (...)."""

    @abstractmethod
    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        """Draw clicks (R, m) and rewards (R,) for attractions (R, m), from uniforms (R, 2, m).

        uniforms[:, 0] decide clicks, uniforms[:, 1] whether a user leaves after her click.
        """

    @abstractmethod
    def looked_at(self, clicks: Floats) -> Floats:
        """Return the probabilities that items of attraction 1 are clicked, by position, (..., m).

        It is computed from the observed clicks (..., m) in {0, 1} alone, and is 0 at positions that
        the user is not known to have looked at.
        """

    def possible(self, clicks: Floats) -> Floats:
        """Return clicks (..., m) in {0, 1}; clicks that the model excludes are set to 0."""
        return clicks


@dataclass(frozen=True)
class PositionBased(ClickModel):
    """A model in which a user looks at position k with probability chi_k, whatever she clicked.

    The reward is the number of clicks. Richardson, Dominowska and Ragno, WWW 2007. Joachims,
    Swaminathan and Schnabel, WSDM 2017, simulate with chi_k = k^-eta, which is not fitted to data.
    """

    chances: tuple[float, ...]
    """Probabilities chi that a user looks at each position, each in (0, 1]"""
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chances", tuple(self.chances))
        object.__setattr__(self, "length", len(self.chances))
        _check_chances("chances", self.chances)

    @property
    def most(self) -> float:
        return float(self.length)

    @property
    def weights(self) -> Floats:
        return np.array(self.chances)

    @property
    def square_total(self) -> float:
        return float(np.square(self.chances).sum())

    @property
    def look_total(self) -> float:
        return float(self.weights.sum())

    def expected(self, attraction: Floats) -> Floats:
        return attraction @ self.weights

    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        clicks = 1.0 * (uniforms[:, 0] < self.weights * attraction)
        return clicks, clicks.sum(axis=1)

    def looked_at(self, clicks: Floats) -> Floats:
        # chi, whatever was clicked
        return np.broadcast_to(self.weights, clicks.shape)


@dataclass(frozen=True)
class UntoldPositions(ClickModel):
    """A `PositionBased` model whose probabilities of looks are unknown to agents."""

    length: int

    def __post_init__(self) -> None:
        whole("length", self.length, 1, MAX_LENGTH)

    @property
    def most(self) -> float:
        return float(self.length)

    @property
    def weights(self) -> Floats:
        raise InputError(
            "Expected an agent that learns how often users look at each position: "
            "list-fade:positions=learned."
        )

    def expected(self, attraction: Floats) -> Floats:
        return attraction @ self.weights

    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        return self.weights * attraction, self.expected(attraction)

    def looked_at(self, clicks: Floats) -> Floats:
        return np.broadcast_to(self.weights, clicks.shape)


@dataclass(frozen=True)
class Cascade(ClickModel):
    """A model in which a user looks from the top down and leaves with her first click.

    The reward is 1 for a click, else 0. Craswell, Zoeter, Taylor and Ramsey, WSDM 2008.
    """

    length: int
    reward_unit: ClassVar[str] = "lists with a click"

    def __post_init__(self) -> None:
        whole("length", self.length, 1, MAX_LENGTH)

    def expected(self, attraction: Floats) -> Floats:
        return np.asarray(1 - (1 - attraction).prod(axis=-1))

    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        clicks = self.possible(1.0 * (uniforms[:, 0] < attraction))
        return clicks, clicks.sum(axis=1)

    def looked_at(self, clicks: Floats) -> Floats:
        return _none_before(clicks)

    def possible(self, clicks: Floats) -> Floats:
        return clicks * _none_before(clicks)


@dataclass(frozen=True)
class DependentClicks(ClickModel):
    """A cascade in which a user who clicks at k leaves, satisfied, with probability v_k.

    The reward is 1 for a satisfied user and is not observed. Guo, Liu and Wang, WSDM 2009.
    """

    stops: tuple[float, ...]
    """Probabilities v of leaving after a click at each position, each in (0, 1]"""
    length: int = field(init=False)
    reward_unit: ClassVar[str] = "satisfied users"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stops", tuple(self.stops))
        object.__setattr__(self, "length", len(self.stops))
        _check_chances("stops", self.stops)

    @property
    def weights(self) -> Floats:
        return np.array(self.stops)

    @property
    def click_values(self) -> Floats:
        return self.weights

    def expected(self, attraction: Floats) -> Floats:
        return np.asarray(1 - (1 - self.weights * attraction).prod(axis=-1))

    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        would = 1.0 * (uniforms[:, 0] < attraction)
        leaves = would * (uniforms[:, 1] < self.weights)
        return would * _none_before(leaves), leaves.max(axis=1)

    def looked_at(self, clicks: Floats) -> Floats:
        # 1 down to the last click, 1 everywhere without a click: looks further down are unknown
        later = np.flip(np.maximum.accumulate(np.flip(clicks, -1), axis=-1), -1)
        return np.where(clicks.any(axis=-1, keepdims=True), later, 1.0)


@dataclass(frozen=True)
class Browsing(ClickModel):
    """A model in which a look at position k has probability gamma(k, distance to the last click).

    The distance is k + 1 if there was none. The reward is the number of clicks. Dupret and
    Piwowarski, SIGIR 2008.
    """

    length: int
    by_position: float = 0.9
    by_distance: float = 0.8
    """Base in gamma(k, d) = by_position^k by_distance^(d - 1), d the distance to the last click"""
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole("length", self.length, 1, MAX_LENGTH)
        _check_chances("by_position and by_distance", (self.by_position, self.by_distance))

    @property
    def most(self) -> float:
        return float(self.length)

    @property
    def weights(self) -> Floats:
        return self._gamma(np.arange(self.length), np.arange(self.length) + 1)

    def _gamma(self, k: Ints | int, distance: Ints) -> Floats:
        return np.asarray(self.by_position**k * self.by_distance ** (distance - 1.0))

    def expected(self, attraction: Floats) -> Floats:
        # The sum over k of P(click at k), by the position l of the last click, 0 for none::
        #
        # c = P_k(l) gamma(k, k - l) a_k;     P_{k+1}(k) += c;     P_{k+1}(l) += P_k(l) - c
        m = self.length
        last = np.zeros((*attraction.shape[:-1], m + 1))  # of l = 0, .., m, positions from 1
        last[..., 0] = 1.0
        clicks = np.zeros(attraction.shape[:-1])
        for k in range(m):
            looked = self._gamma(k, k + 1 - np.arange(k + 1))
            c = last[..., : k + 1] * looked * attraction[..., k, None]
            last[..., : k + 1] -= c
            last[..., k + 1] = c.sum(axis=-1)
            clicks += last[..., k + 1]
        return clicks

    def clicked(self, attraction: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        clicks = np.zeros(attraction.shape)
        last = np.zeros(len(attraction), np.int64)
        for k in range(self.length):
            clicks[:, k] = uniforms[:, 0, k] < self._gamma(k, k + 1 - last) * attraction[:, k]
            last = np.where(clicks[:, k] > 0, k + 1, last)
        return clicks, clicks.sum(axis=1)

    def looked_at(self, clicks: Floats) -> Floats:
        # gamma(k, k - l), from her own clicks
        places = np.arange(1, self.length + 1)
        last = np.maximum.accumulate(clicks * places, axis=-1)
        before = np.concatenate([np.zeros((*clicks.shape[:-1], 1)), last[..., :-1]], axis=-1)
        return self._gamma(places - 1, places - before.astype(np.int64))


def _none_before(clicks: Floats) -> Floats:
    """Return 1 at positions of each list up to and including that of the first click, 0 below."""
    above = np.maximum.accumulate(clicks, axis=-1)
    return 1.0 - np.concatenate([np.zeros((*clicks.shape[:-1], 1)), above[..., :-1]], axis=-1)


def _check_chances(name: str, chances: Sequence[float]) -> None:
    whole(f"the number of {name}", len(chances), 1, MAX_LENGTH)
    for chance in chances:
        if not (isinstance(chance, Real) and 0 < chance <= 1):
            raise InputError(f"Expected {name} to be in (0, 1], got {abbrev(chance)}.")
