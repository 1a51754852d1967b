"""Pricing for a shop, simulated by a demand model that is fitted once to a log of its offers.

The model is a logit of sales on features and price; logs that do not identify it raise
`InputError`. If the log has ids of people who come back, each person has her own coefficients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from dpbandit.base import (
    MOST_ACTIONS,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    flag,
    one_of,
    vector,
)
from dpbandit.envs.contextual.logs import (
    CHOSEN,
    FUNCTION,
    NO_RIDGE,
    WHICH_PERSON_IS,
    WHO_IS_PROTECTED,
    HeldOut,
    Log,
    check_slope,
    check_within,
    covariance,
    enough_answers,
    explained,
    fit_logit,
    fitted_once,
    hold_out,
    numbered,
    price_range_of,
    read,
    ridge_of,
    separation,
    unit_cost_of,
)
from dpbandit.envs.contextual.problems import TidalChoices, Users, UserTable
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.offline.columns import (
    Levels,
    at_most_units,
    cost_range,
    counts,
    levels_in,
    numbers,
    unit_of,
)
from dpbandit.shelf import from_shelf
from dpbandit.specs import CostSpec, PriceListSpec

_MAX_RISING_SHARE = 0.1  # largest share of rows in which demand rises with the price
_MAX_DISPERSION = 1.5
"""Variance of units sold, divided by that of the model, above which a warning is given"""
FLATTEST = -0.05
"""Upper bound of the logit's slope per half price range that `monotone="clip"` enforces"""

WHY_PRICES = (  # assumption printed with the diagnostics
    "A log does not record why a price was set. If prices followed demand, for reasons in no "
    "column, the curve below is wrong and no diagnostic finds it."
)


class Prices(NamedTuple):
    """Prices of a log, the public price range, and the prices that an agent can choose."""

    logged: Floats
    """Price of each row of the log, (n,)"""
    low: float
    high: float
    """Upper end of the public price range, whose lower end is `low`"""
    grid: Floats
    """Prices that an agent can choose, (K,)"""
    cost: Floats
    """Cost of a unit, of all rows () or of each row, (n, 1)"""
    unit: str
    """Unit of prices, such as "dollars\""""
    most_units: int
    """Largest number of units in a row"""

    @property
    def half(self) -> float:
        """Half the length of the price range."""
        return (self.high - self.low) / 2

    def scaled(self, price: Floats) -> Floats:
        """Scale prices linearly so that the public price range becomes [-1, 1]."""
        return (price - self.low) / self.half - 1


@dataclass(frozen=True, kw_only=True)
class PricingDiagnostics:
    """Diagnostics of a model of demand; exact functions of the log, so not private."""

    rows: int
    sales: int
    """number of units sold"""
    distinct_prices: int
    coefficients: Mapping[str, float]
    """coefficients of the logit by name; numbers are scaled to [-1, 1], levels are 0 or 1"""
    slope: float
    """slope of the logit per unit of price, averaged over rows"""
    unit: str
    """unit of prices, such as "dollars\""""
    z: float
    """slope divided by its standard error, from a sandwich covariance of rows"""
    z_clustered: float | None
    """slope divided by its standard error, from a sandwich covariance of clusters; None without"""
    rising: float
    """share of rows in which demand rises with the price (slope >= 0), before clipping"""
    r_squared: float
    """R2 of a regression of the price on the features"""
    r_squared_p: float
    """p-value of the F test of `r_squared`, small where prices followed features"""
    held_out: HeldOut
    outside: Mapping[str, float]
    """share of rows outside the public bounds of each feature, which were clipped"""
    curve: tuple[tuple[float, float, float], ...]
    """rows (price, units that customers buy at this price, mean margin per customer)"""
    oracle: float
    """mean margin per customer if each is offered the best price for her"""
    cautions: tuple[str, ...]
    """sentences of the warnings that were given"""
    most_units: int = 1
    """largest number of units that a customer buys"""
    tastes: Any = None
    """estimated differences between people, `Tastes`, if people come back; else None"""

    def __str__(self) -> str:
        best = max(self.curve, key=lambda point: point[2])
        uniform = sum(margin for *_, margin in self.curve) / len(self.curve)
        errors = "" if self.z_clustered is None else f", by clusters {self.z_clustered:.2f}"
        outside = ", ".join(f"{name} {100 * s:.2g} %" for name, s in self.outside.items() if s)
        bought = "share who buy" if self.most_units == 1 else "units bought"
        points = [f"    {p:8.2f} {share:14.3f} {margin:16.3f}" for p, share, margin in self.curve]
        return "\n".join(
            [
                WHO_IS_PROTECTED if self.tastes is None else WHICH_PERSON_IS,
                WHY_PRICES,
                f"{self.rows} offers, {self.sales} sales, {self.distinct_prices} different prices",
                f"slope {self.slope:.3f} (prices in {self.unit}), z {self.z:.2f}{errors}; demand "
                f"rises with the price in {100 * self.rising:.2g} % of rows",
                f"R2 of price on features {self.r_squared:.3f} (F test p = {self.r_squared_p:.2g})",
                str(self.held_out),
                *([] if self.tastes is None else [str(self.tastes)]),
                f"clipped to public bounds: {outside or 'nothing'}",
                *(f"Caution: {caution}" for caution in self.cautions),
                f"margin a customer, fitted: random price {uniform:.3f}, best fixed price "
                f"{best[2]:.3f} (at {best[0]:.2f}), best for each {self.oracle:.3f}",
                f"       price  {bought:>13}  margin a customer",
                *points,
            ]
        )


class FrozenDemand(NamedTuple):
    """Demand model of a log, with its contexts and diagnostics."""

    context: Floats
    """Contexts of the customers of the log, (n, 1 + d)"""
    chances: Floats
    """P(the customer of a row buys a unit) at each price, (n, K)"""
    diagnostics: PricingDiagnostics


def fit_demand(
    log: Log, yes: Floats, prices: Prices, penalty: Floats, *, sold: str, clip: bool
) -> FrozenDemand:
    """Fit a logit of sales `yes`; `clip` makes every customer's demand decrease in the price.

    If customers may buy several units, `yes` is their number divided by the largest one.

    Raises:
        InputError: the log does not identify the effect of prices.
    """
    F, q = log.design, prices.scaled(prices.logged)
    n, k = F.shape
    _refuse_prices(prices)
    G = F if len(penalty) == 2 * k else np.ones((n, 1))  # what the price's slope depends on
    x = np.column_stack([F, G * q[:, None]])
    known = ("1", *log.features.names)
    names = (*known, *(["price", *(f"price x {f}" for f in known[1:])][: G.shape[1]]))
    # rows separated by whether anything is sold, a little more than what has no finite fit
    apart = separation(x, yes, names, name=sold, lone=log.levels, penalty=penalty)
    share, p_value = explained(prices.logged, log.features.rows)
    if share > FUNCTION:
        raise InputError(
            f"Expected prices that differ where features do not, got R2 = {share:.5f} of the price "
            "on the features: its effect cannot be separated from theirs."
        )
    b = fit_logit(x, yes, penalty)
    average = np.concatenate([np.zeros(k), G.mean(axis=0)])
    z = _slope_z(x, yes, penalty, b, average, None)
    clustered = None if log.groups is None else _slope_z(x, yes, penalty, b, average, log.groups)
    slopes = G @ b[k:]
    rising = float((slopes >= 0).mean())
    _refuse_slopes(float(average @ b), z if clustered is None else clustered, rising, clip)
    if clip:
        slopes = np.minimum(slopes, FLATTEST)
    chances = expit((F @ b[:k])[:, None] + slopes[:, None] * prices.scaled(prices.grid))
    m = prices.most_units
    margins = m * (prices.grid - prices.cost) * chances  # (n, K)
    held = hold_out(x, yes, penalty, log.groups)
    means = zip(prices.grid, m * chances.mean(axis=0), margins.mean(axis=0), strict=True)
    warned = [*log.cautions(), *apart, *_cautions(prices, share, p_value, rising, held)]
    if m > 1:
        warned += _dispersion(m * yes, m, expit(x @ b))
    diagnostics = PricingDiagnostics(
        rows=n,
        sales=round(m * yes.sum()),
        distinct_prices=len(np.unique(prices.logged)),
        coefficients=dict(zip(names, b.tolist(), strict=True)),
        slope=float(slopes.mean()) / prices.half,
        unit=prices.unit,
        z=z,
        z_clustered=clustered,
        rising=rising,
        r_squared=share,
        r_squared_p=p_value,
        held_out=held,
        outside={name: count / n for name, count in log.features.outside.items()},
        curve=tuple((float(p), float(s), float(m)) for p, s, m in means),
        oracle=float(margins.max(axis=1).mean()),
        cautions=tuple(warned),
        most_units=m,
    )
    return FrozenDemand(log.features.context, chances, diagnostics)


def _slope_z(
    x: Floats, yes: Floats, penalty: Floats, b: Floats, a: Floats, groups: Ints | None
) -> float:
    return float(a @ b / np.sqrt(a @ covariance(x, yes, penalty, b, groups) @ a))


def _refuse_prices(prices: Prices) -> None:
    logged_prices = prices.logged
    if np.ptp(logged_prices) == 0:
        raise InputError(
            f"Expected more than one price in the log, all are {logged_prices[0]:g}: it has no "
            "information on other prices."
        )
    beyond = (logged_prices < prices.low) | (logged_prices > prices.high)
    check_within(logged_prices, beyond, prices.low, prices.high)


def _refuse_slopes(mean: float, z: float, rising: float, clip: bool) -> None:
    check_slope(mean, z)
    if rising > _MAX_RISING_SHARE and not clip:
        raise InputError(
            f"Expected demand to fall with the price for nine in ten customers, it rises for "
            f"{100 * rising:.0f} %: leave out features or interactions, or set monotone='clip'."
        )


def _cautions(
    prices: Prices, share: float, p_value: float, rising: float, held: HeldOut
) -> list[str]:
    logged_prices, warned = prices.logged, []
    far = prices.grid[(prices.grid < logged_prices.min()) | (prices.grid > logged_prices.max())]
    if len(far):
        warned.append(
            f"Demand at {len(far)} of {len(prices.grid)} prices extrapolates: {far[0]:.4g} lies "
            f"outside the logged {logged_prices.min():.4g} to {logged_prices.max():.4g}."
        )
    if p_value < CHOSEN:
        warned.append(
            f"Prices were not randomised: they follow features (R2 = {share:.3f}, p = "
            f"{p_value:.1g}), and perhaps what was not recorded."
        )
    if rising > 0:
        warned.append(f"Demand rises with the price in {100 * rising:.2g} % of rows.")
    if not held.calibrated:
        warned.append(held.caution)
    return warned


def _dispersion(units: Floats, most: int, chance: Floats) -> list[str]:
    """Return a warning if units (n,) vary much more than binomial ones with the fitted means."""
    ratio = float(np.mean((units - most * chance) ** 2 / (most * chance * (1 - chance))))
    return [
        f"Units vary {ratio:.2g} times as much as the model's, which are binomial: large purchases "
        "are rarer here than in the log, so agents learn faster than they would there."
    ] * (ratio > _MAX_DISPERSION)


_DEFAULT_PRICES = 9  # number of prices by default, in equal steps
_EDGE_SHARE = 0.05
"""Share of the price range, at each end, that is left out by the default prices"""


@dataclass(eq=False, repr=False)
class PricingFromLog(TidalChoices):
    """Choose prices for customers from your log; a model of their demand is fitted once to it.

    Description:
        One row of the log is one offer to one customer, also when nothing was sold. A logit of
        sales on features, price and, with `interactions`, price times features is fitted once;
        customers are rows drawn with replacement, who buy with the probability of that model.
        Regret is measured under the model, not in the real world. `diagnostics` measures the fit,
        `print(problem)` explains it; a log that does not identify the effect of prices raises
        `InputError`. No diagnostic detects prices that followed demand for reasons that no column
        records. A certificate protects one simulated customer of one round, never a row of the log.
        See `docs/howto/shop.md`.

        With `person`, a column of customers' ids, customers come back, as in
        `dpbandit/ReturningPricing-v0`: each has her own level and price slope, drawn from a
        hierarchical logit that is fitted to the log, and features of one person of the log; regret
        is measured against her own best prices. The log counts as public: agents know the fitted
        population as a survey (`spec.visit.survey`), and a certificate protects a simulated person
        in all her visits, never a person of the log. A log in which people do not differ
        significantly raises `InputError`; logs of people who are alike pass in at most 1 % of
        cases.

    Action space:
        `Discrete(K)`: `env.unwrapped.spec.prices[action]`; nine prices by default.

    Observation space:
        `Box`, shape (1 + d,): (1, features) / sqrt(1 + d), of norm at most 1. Numbers are scaled
        from their bounds to [-1, 1] and clipped; levels but the first have a column of 0 or 1. With
        `person`, shape (2 + d,): the person's number, or -1 if nobody comes, is first.

    Rewards:
        In the `unit` of prices: (price - unit cost) x units sold, 0 or 1 without `units`.

    Arguments:
        * `frame`: a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet
          file. Required.
        * `price`, `sold`: names of columns: the price offered, and 1 if it was paid, else 0.
        * `features`: names of columns and their public bounds: `{"age": (18, 90), "shop": ("A",
          "B", "C")}`, or `{}`. Required: a bound computed from the log would be data that no
          certificate covers.
        * `price_range`: (low, high), public; every price of the log lies inside. Required.
        * `unit_cost`: cost of a unit to the seller, in the `unit` of prices, or a column of costs,
          which then is one of the `features` with a public range below all prices: who sets a
          price knows the cost. Required. `prices`: the actions; None: nine in equal steps from 5 %
          to 95 % of the price range. `unit`: name of the currency, for labels.
        * `units`, `at_most`: in place of `sold`, a column of units sold, 0 or more, and the public
          number to which they are clipped. The logit is then that of a unit, of `at_most` a
          customer, and customers buy binomial numbers of units.
        * `interactions`: True if the price slope depends on the features, else it is constant.
        * `ridge`: L2 penalty of all coefficients but the constant.
        * `clusters`: a column, such as the store and week, within which errors may be correlated.
        * `monotone`: `"clip"` makes demand fall with the price for everybody, by at least 0.05 in
          the logit per half price range; with None a log where demand rises in more than 10 % of
          rows raises `InputError`.
        * `sha256`: expected hash of the file `frame`; another file raises `InputError`.
        * `reading`: how the table is written: `{"sep": ";", "decimal": ",", "yes": ["ja"],
          "drop_missing": True}`, each optional; see `dpbandit.offline.tables`.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`.
        * `person`: a column of customers' ids; at least 30 people, 3 for each coefficient that all
          share, with a median of at least 5 rows each. `clusters`, `delay`, season, drift and shock
          cannot be combined with it; errors are clustered by person.
        * `people`, `visits`, `arrivals`, `empty`, with `person`: as in
          `dpbandit/ReturningPricing-v0`, without "loyal" arrivals.
    """

    frame: Any = None
    _: KW_ONLY
    price: str = "price"
    sold: str = "sold"
    features: Mapping[str, Sequence[Any]] | None = None
    price_range: Sequence[float] | None = None
    unit_cost: float | str | None = None
    prices: Sequence[float] | None = None
    units: str | None = None
    at_most: int | None = None
    unit: str = "dollars"
    interactions: bool = True
    ridge: float = NO_RIDGE
    clusters: str | None = None
    monotone: Literal["clip"] | None = None
    sha256: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    horizon: int = 20_000
    delay: int = 0
    person: str | None = None
    people: int = 500
    visits: int = 40
    arrivals: Arrivals = "robin"
    empty: float = 0.0

    def __post_init__(self) -> None:
        unit_of(self.unit)
        if self.units is not None and self.sold != type(self).sold:
            raise InputError(
                f"Expected units={abbrev(self.units)} in place of sold={abbrev(self.sold)}, not "
                "beside it."
            )
        self._most_units = at_most_units(self.units, self.at_most)
        prices = self._public_prices()
        self._check_person()
        _, _, grid, costs = prices
        self._margins = grid - costs[0]
        self._customers: Any = None
        fit = self._fit(*prices)
        if self.person is not None:  # the code of people is an optional folder
            self._customers = from_shelf("envs.contextual", "Customers", "person=")(self, fit)
            self.diagnostics, self._known = fit.diagnostics, fit.context
            self.spec: Any = self._customers.spec
            return
        self.diagnostics, self._known, self._chances = fit.diagnostics, fit.context, fit.chances
        facts: dict[str, Any] = {
            "dim": self._dim(),
            "horizon": self.horizon,
            "most_units": self._most_units,
            "delay": self.delay,
            "reward_unit": self.unit,
        }
        if isinstance(self.unit_cost, str):
            length = sqrt(self._known.shape[1]) * (sqrt(2) if self.clock else 1)
            self.spec = CostSpec.of(
                grid.tolist(), costs, feature=self._cost_at, length=length, **facts
            )
            self._margins = grid - self._costs
            return
        self.spec = PriceListSpec(
            n_actions=len(grid),
            prices=tuple(grid.tolist()),
            unit_cost=costs[0],
            reward_high=float(self._most_units * self._margins.max()),
            link="other",
            **facts,
        )

    def __repr__(self) -> str:
        return f"PricingFromLog: {self.diagnostics}"

    def _public_prices(self) -> tuple[float, float, Floats, tuple[float, float]]:
        """Check and return the price range (low, high), the actions' prices and the costs' range.

        Both ends of the costs' range are the unit cost if it is one number.
        """
        low, high = price_range_of(self.price_range)
        if isinstance(self.unit_cost, str):
            costs = cost_range(self.unit_cost, self.features, "features")
        else:
            cost = unit_cost_of(self.unit_cost)
            costs = (cost, cost)
        flag("interactions", self.interactions)
        if self.monotone is not None:
            one_of("monotone", self.monotone, ("clip",))
        margin = _EDGE_SHARE * (high - low)
        if self.prices is None:
            grid = np.linspace(low + margin, high - margin, _DEFAULT_PRICES)
        else:
            grid = vector("prices", self.prices, None)
        if not 2 <= len(grid) <= MOST_ACTIONS or len(set(grid.tolist())) < len(grid):
            raise InputError(f"Expected prices={abbrev(self.prices)} to be two or more, each once.")
        if not grid.min() > costs[1]:
            most = f"unit_cost={costs[1]:g}"
            if isinstance(self.unit_cost, str):
                most = f"{costs[1]:g}, the largest cost in {self.unit_cost!r}"
            todo = "state" if self.prices is None else "raise"
            raise InputError(
                f"Expected every price above {most}, got {grid.min():.4g}: {todo} prices=."
            )
        return low, high, grid, costs

    def _check_person(self) -> None:
        """Raise `InputError` for arguments that exclude `person`, or require it."""
        kind = type(self)
        alone = ("clusters", "delay", "season", "drift", "shock", "clock", "units")
        of_people = ("people", "visits", "arrivals", "empty")
        for name in of_people if self.person is None else alone:
            if getattr(self, name) != getattr(kind, name):
                raise InputError(
                    f"Expected person= with {name}={abbrev(getattr(self, name))}, the column of "
                    "customers' ids."
                    if self.person is None
                    else f"Expected no {name}= with person=, got {abbrev(getattr(self, name))}."
                )
        if self.person is not None and isinstance(self.unit_cost, str):
            raise InputError(
                f"Expected unit_cost={self.unit_cost!r} to be one number with person=: people who "
                "come back meet one list of margins."
            )
        if self.person is not None:
            one_of("arrivals", self.arrivals, ("exactly", "robin", "poisson"))
            known = self.features if isinstance(self.features, Mapping) else ()
            if self.person in (self.price, self.sold, *known):
                raise InputError(
                    f"Expected person={abbrev(self.person)} to be a column of its own, not the "
                    "price, the sale or a feature."
                )

    @property
    def segments(self) -> dict[str, Levels]:
        """Features with levels, by which results can be counted; none of people who come back."""
        return {} if self.person is not None else levels_in(self.features or {})

    @property
    def user_table(self) -> UserTable | None:  # type: ignore[override]
        return super().user_table if self._customers is None else None

    def _start(self, streams: Streams) -> None:
        if self._customers is None:
            super()._start(streams)
        else:
            self._customers.start(streams)

    def _users(self, count: int) -> Users:
        if self._customers is None:
            return super()._users(count)
        context, chance, yes = self._customers.take(count)
        return Users(context, self._margins * chance, self._margins * yes)

    def _fit(self, low: float, high: float, grid: Floats, costs: tuple[float, float]) -> Any:
        sold, m = self.units or self.sold, self._most_units
        answer = None if self.units else self.sold
        log = read(self, (sold, self.price), answer=answer, also=self.person)
        k = log.design.shape[1]
        penalty = ridge_of(self.ridge, 2 * k if self.interactions else k + 1)
        yes = enough_answers(log.table, sold, len(penalty), units=self.units is not None)
        if self.units is not None:
            units = counts(log.table, self.units)
            yes = np.minimum(units, m) / m
            if (clipped := int((units > m).sum())) > 0:
                share = f"{clipped} of {len(units)} rows ({100 * clipped / len(units):.2g} %)"
                note = f"{share} sold more than at_most={m} units and count as {m}."
                log = log._replace(notes=(*log.notes, note))
        self._costs = np.array(costs[0])
        if isinstance(self.unit_cost, str):
            self._cost_at = 1 + log.features.names.index(self.unit_cost)
            scaled = log.design[:, [self._cost_at]]
            self._costs = (costs[0] + costs[1]) / 2 + (costs[1] - costs[0]) / 2 * scaled
        offered = numbers(log.table, self.price)
        prices = Prices(offered, low, high, grid, self._costs, self.unit, m)
        settings = {"sold": sold, "clip": self.monotone == "clip"}
        fit: Any = fit_demand
        if self.person is not None:
            log = log._replace(groups=numbered(log.table, self.person, len(yes)))
            settings["person"] = self.person
            fit = from_shelf("envs.contextual", "fit_people", "person=")
        return fitted_once(
            lambda: fit(log, yes, prices, penalty, **settings),
            log.design,
            log.groups,
            yes,
            *prices,
            penalty,
            (log.features.names, log.features.outside, tuple(log.levels), *settings.values()),
            log.notes,
        )
