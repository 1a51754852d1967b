"""PriceCells: prices are dropped cell by cell of customers, without a model of demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.base import Floats, InputError, Ints, Streams, gaussian_target, positive, whole
from dpbandit.privacy.sales import CellSales
from dpbandit.specs import BanditSpec, PriceListSpec, fits

_BATCHES = 64
"""The first batch is T over this."""


@dataclass(frozen=True, kw_only=True)
class PriceCells:
    """Learn the best price of every cell of customers by elimination, whatever demand is.

    After Chen, Miao and Wang, "Differential privacy in personalized pricing with nonparametric
    demand models", Operations Research (arXiv 2109.04615), central privacy; reconstructed from the
    abstract::

        1. cells of customers: each of some coordinates of the context, halved `depth` times
        2. public batches of T/64, 2 T/64, 4 T/64, ... customers; each sees a random price of those
           that are left in her cell
        3. at the end of one release, with noise, sales and non-sales of every price in every cell;
           add them to the earlier ones: s and n in all, v the variance of the noise in s
        4. in every cell drop each price with
             margin (s/n + w) < the largest margin (s/n - w),   w = alpha sqrt(1 / (4 n) + v / n^2)

    Code:
        Cells and counts are `CellSales` in a `FadingSum` that forgets at once,
        which `FadingReleases` (fading_releases.py) makes; step 2 is `PriceCellsAgent.act`, steps 3
        and 4 `PriceCellsAgent.update`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, moves its counts by at most sqrt(2) (`CellSales`),
        and enters nothing else; she sees a price of her own cell, which nobody remembers. Cells and
        the ends of batches are public.

    Differs from the paper:
        1. It was not read but for its abstract: cells, batches, widths and all constants are ours.
        2. A list of prices, none of which is ever interpolated.
        3. Cells are as fine from beginning to end, and of few coordinates: with `depth` fixed,
           regret grows linearly where demand differs within a cell.
        4. Exact Gaussian DP.

    Where demand is no logit, or one that differs much from customer to customer, counting does not
    mind; its price is that no cell, and no price, learns from another.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> round(certify(PriceCells(epsilon=1.0), OJPricing().spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    depth: int = 1
    """how often each coordinate is halved, 0 to 10"""
    coordinates: Sequence[int] | None = None
    """of the context, counted from 0, which tell cells apart; if None, the second and the last"""
    alpha: float = 1.0
    """half the length of an interval, in standard errors that no share of sales exceeds"""
    first_batch: int | None = None
    """rounds of uniform play; if None, T / 64"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        whole("depth", self.depth, 0, 10)
        positive("alpha", self.alpha)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        if self.coordinates is not None:
            object.__setattr__(self, "coordinates", _distinct(self.coordinates))

    def make(self, spec: BanditSpec, streams: Streams) -> "PriceCellsAgent":
        """A running agent; raises `InputError` for anything but a list of prices."""
        return PriceCellsAgent(self, fits(self, spec, PriceListSpec), streams)

    def cells(self, spec: PriceListSpec) -> CellSales:
        """What is counted; raises `InputError` for coordinates that a context does not have."""
        last = spec.dim - 1
        usual = tuple(dict.fromkeys((min(1, last), last)))
        coordinates = usual if self.coordinates is None else tuple(self.coordinates)
        if any(one > last for one in coordinates):
            raise InputError(f"Expected coordinates={list(coordinates)} to be at most {last}.")
        return CellSales(
            margins=tuple(spec.margins.tolist()),
            coordinates=coordinates,
            depth=self.depth,
            context_bound=spec.context_bound,
        )


class PriceCellsAgent:
    """See `PriceCells`."""

    def __init__(self, config: PriceCells, spec: PriceListSpec, streams: Streams) -> None:
        self._counts, self._margins, self._alpha = config.cells(spec), spec.margins, config.alpha
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=1.0,
            fade=0.0,
        )
        first = config.first_batch or max(1, spec.horizon // _BATCHES)
        self._sums = releases.sums(self._counts, spec, streams, first)
        self.ledger = releases.ledger(self._sums)
        self._luck = streams.uniforms("prices")
        self._sold, self._unsold = np.zeros((2, len(streams), *self._counts.shape[1:]))
        self._variance = 0.0
        self._left = np.ones(self._sold.shape, dtype=bool)

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list: any that is left in the customer's cell."""
        left = self._left[np.arange(len(context)), self._counts.cells(context)]  # (R, K)
        which = (self._luck() * left.sum(axis=1)).astype(np.int64)
        nth: Ints = (left.cumsum(axis=1) > which[:, None]).argmax(axis=1)
        return nth

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; drop prices when it releases."""
        release = self._sums(context, action, feedback)
        if release is None:
            return
        self._sold, self._unsold = self._sold + release[:, 0], self._unsold + release[:, 1]
        self._variance += self._sums.stddev**2
        n = np.maximum(self._sold + self._unsold, 1.0)
        share = np.clip(self._sold / n, 0.0, 1.0)
        width = self._alpha * np.sqrt(1 / (4 * n) + self._variance / n**2)
        sure = np.where(self._left, self._margins * (share - width), -inf)
        self._left &= self._margins * (share + width) >= sure.max(axis=-1, keepdims=True)


def _distinct(coordinates: Sequence[int]) -> tuple[int, ...]:
    """Different whole numbers >= 0."""
    if isinstance(coordinates, str) or not isinstance(coordinates, Sequence):
        raise InputError(f"Expected coordinates={coordinates!r} to be a list, such as [1, 2].")
    for one in coordinates:
        whole("coordinates", one, 0)
    if len(set(coordinates)) < len(coordinates):
        raise InputError(f"Expected coordinates={list(coordinates)} to be different ones.")
    return tuple(int(one) for one in coordinates)
