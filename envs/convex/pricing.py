"""Prices of several goods that compete for the same customers, under linear demand."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.base import Floats, InputError, Streams, at_least, inside, one_of, positive, whole
from dpbandit.domains import Box
from dpbandit.envs.convex.adversaries import Adversary, Constant, Oblivious
from dpbandit.envs.convex.problems import ConvexProblem
from dpbandit.losses import Revenue
from dpbandit.specs.convex import ConvexSpec


@dataclass(kw_only=True, eq=False)
class ConvexPricing(ConvexProblem):
    """Set the prices of several goods, customer by customer.

    Description:
        A customer buys q = a - B p units of the goods at prices p. What she would buy at price 0,
        a, is her own and private; B is public: a dollar on a good costs `own_effect` of its units
        and adds `cross_effect` units to each of the others, its substitutes. B is symmetric and
        positive definite, so that profit is concave in the prices and its negative a convex loss
        (`dpbandit.losses.Revenue`) with public constants: H = 2 lambda_min(B), and exact L and
        range.

        Synthetic, all of it. The orange-juice fit in `envs/data` cannot serve: its customers buy
        one of two brands and never nothing, so both demands sum to 1 and no positive definite B
        follows; its own- and cross-price coefficients are not symmetric either.

        With the defaults (3 goods at 1 to 2 dollars, unit cost 0.40) the best fixed prices are
        about 1.63, 1.68 and 1.73 dollars and earn 3.92 a round; the list price, 1.50, earns 3.84,
        and uniform prices 3.59.

    Action space:
        `Box`, shape (goods,): dollars above or below the list price, which is the middle of
        [low, high]: from -(high - low) / 2 to (high - low) / 2.

    Observation space:
        `Box`, shape (1,): 0. With feedback `"datum"` shape (goods,): the demand a of the customer
        told last, zeros at the start.

    Rewards:
        Dollars of profit, <p - unit cost, q>, which is minus the loss.

    Starting state:
        The first customer.

    Episode end:
        Truncation after `horizon` customers; never terminates.

    Arguments:
        * `goods`, from 1 to 12. `low`, `high`: the range of every price. `unit_cost`: below `low`.
        * `demand`: units of the first good at price 0 for the mean customer; that of the last is
          `variety` (relatively) larger, the others lie evenly in between.
        * `spread`: customers' a lie within mean (1 +- spread). `common`: the part of their
          deviation that is the same for all goods, the rest is independent; both uniform.
        * `own_effect`, `cross_effect` >= 0: units per dollar. Needs own_effect > (goods - 1)
          cross_effect, and demand that stays positive at all prices for all customers.
        * `feedback`: `"value"`, the agent is told the profit; `"datum"`, it is told a.
        * `retention`: customers for whom a customer is protected, a retention period: once that
          many more have come, prices may reveal what she told. None: for ever. It changes nothing
          but what agents are told (`spec.retention`): `wdp-cocop` and `wdp-cocol` with window=None
          take it, and refuse a shorter window; all others protect for ever, or not at all.
        * `horizon`: rounds. `delay`: rounds until a profit (or a) is told; 0 before.

    Version history:
        * v0: first release.
    """

    goods: int = 3
    low: float = 1.0
    high: float = 2.0
    unit_cost: float = 0.4
    demand: float = 2.25
    variety: float = 0.1
    spread: float = 0.2
    common: float = 0.5
    own_effect: float = 1.0
    cross_effect: float = 0.1
    feedback: Literal["value", "datum"] = "value"
    retention: int | None = None
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        whole("goods", self.goods, 1, 12)
        one_of("feedback", self.feedback, ("value", "datum"))
        for name in ("demand", "own_effect"):
            positive(name, getattr(self, name))
        for name in ("unit_cost", "cross_effect", "low"):
            at_least(name, getattr(self, name), 0)
        inside("variety", self.variety, 0, 1000, ends=True)
        positive("high", self.high)
        if not self.low < self.high:
            raise InputError(f"Expected high={self.high!r} to be a number above low={self.low!r}.")
        inside("common", self.common, 0, 1, ends=True)
        N = self.goods
        B = (self.own_effect + self.cross_effect) * np.eye(N) - self.cross_effect
        self._demand = self.demand * np.linspace(1, 1 + float(self.variety), N)
        loss = Revenue(
            Box(N, (self.high - self.low) / 2),
            list_prices=((self.low + self.high) / 2,) * N,
            effects=tuple(map(tuple, B.tolist())),
            demand=tuple(self._demand.tolist()),
            spread=self.spread,
            unit_costs=(float(self.unit_cost),) * N,
        )
        self.spec = ConvexSpec(
            loss=loss,
            feedback=self.feedback,
            horizon=self.horizon,
            delay=self.delay,
            reward_unit="dollars",
            retention=self.retention,
        )

    def _start(self, streams: Streams) -> Adversary:
        R, N = len(streams), self.goods
        customers = _Customers(streams, self._demand, self.spread, self.common)
        return Oblivious(Constant(np.zeros((R, N))), customers, R * (N + 1))


class _Customers:
    """a_i = mean_i (1 + spread (common w_0 + (1 - common) w_i)), w uniform on [-1, 1]."""

    def __init__(self, streams: Streams, mean: Floats, spread: float, common: float) -> None:
        self._mean, self._spread, self._common = mean, spread, common
        self._uniforms = streams.uniforms("customers", len(mean) + 1)

    def __call__(self, directions: Floats) -> Floats:
        w = 2 * self._uniforms.take(len(directions)) - 1
        away = self._common * w[..., :1] + (1 - self._common) * w[..., 1:]
        return self._mean * (1 + self._spread * away)
