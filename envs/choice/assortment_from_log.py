"""Assortments of a shop, simulated by a choice model that is fitted once to a log of its visits."""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    at_least,
    vector,
)
from dpbandit.envs.choice.assortments import ChoiceProblem, Crowd, ListedSales, SetSearch
from dpbandit.envs.contextual.logs import (
    WHO_IS_PROTECTED,
    Log,
    check_slope,
    check_within,
    fitted_once,
    price_range_of,
    read,
    unit_cost_of,
)
from dpbandit.envs.contextual.problems import row_of
from dpbandit.offline.columns import (
    Levels,
    answers,
    as_long,
    column,
    column_with_gaps,
    doubles,
    first_odd,
    is_missing,
    levels_in,
    one_kind,
    unit_of,
)
from dpbandit.specs.choice import PricedAssortmentSpec

_NEWTON_STEPS = 100  # largest number of steps of each fit
_NEWTON_TOLERANCE = 1e-10  # Newton's method stops when no coordinate of a step is larger
_MAX_COEFFICIENT = 25.0
"""Largest constant or coefficient; beyond it rows count as separated, without a finite fit"""
_FOLDS, _SEED = 5, 20_221  # of the cross-validation
_MAX_SCALE_ERRORS = 3.0
"""Largest distance of the calibration factor from 1 without a warning, in standard errors"""

ONE_SLOPE = (  # printed with the diagnostics, as an assumption of the model
    "One multinomial logit: a price costs every customer and product the same utility, and "
    "customers of a product that is not offered choose the others in proportion (independence of "
    "irrelevant alternatives). A log does not record why a price was set or a product was shown."
)


class Visits(NamedTuple):
    """Visits of a log as arrays for n visits and N products: features, prices and choices."""

    design: Floats
    """1 and k - 1 features of each customer, (n, k)"""
    price: Floats
    """Price of each product, scaled to [-1, 1]; 0 where it was not offered, (n, N)"""
    offered: Bools
    """True where a product was offered, (n, N)"""
    choice: Ints
    """Index of the product that was bought, N for none, (n,)"""

    def of(self, rows: Bools) -> "Visits":
        """Return the visits where the mask `rows` (n,) is True."""
        return Visits(self.design[rows], self.price[rows], self.offered[rows], self.choice[rows])


class ChoiceFit(NamedTuple):
    """The coefficients of a multinomial logit."""

    tastes: Floats
    """Coefficients of 1 and the features in the utility of each of N products, (N, k)"""
    slope: float
    """Coefficient of the price, scaled to [-1, 1], in every utility"""

    def utilities(self, visits: Visits) -> Floats:
        """Return utilities of products, -inf if not offered, and of buying none, 0: (n, N + 1)."""
        found = visits.design @ self.tastes.T + self.slope * visits.price
        none = np.zeros((len(found), 1))
        return np.hstack([np.where(visits.offered, found, -np.inf), none])


@dataclass(frozen=True, kw_only=True)
class ChoiceDiagnostics:
    """Diagnostics of a model of choices; exact functions of the log, so not private."""

    visits: int
    bought: Mapping[str, int]
    """number of purchases of each product, "none" last"""
    offered: Mapping[str, int]
    """number of visits in which each product was offered"""
    slope: float
    """slope of utility per unit of price"""
    unit: str
    """unit of prices, such as "dollars\""""
    z: float
    """slope divided by its standard error, by a sandwich covariance of rows or of clusters"""
    log_likelihood: float
    """mean log-likelihood of a held-out visit"""
    constant: float
    """mean log-likelihood of a held-out visit under a logit without features and prices"""
    calibration: float
    """best-fitting factor of all held-out utilities; 1 if they are calibrated"""
    calibration_error: float
    cautions: tuple[str, ...]

    def __str__(self) -> str:
        shares = [
            f"    {name}: shown {self.offered.get(name, self.visits)}, taken {count}"
            for name, count in self.bought.items()
        ]
        return "\n".join(
            [
                WHO_IS_PROTECTED,
                ONE_SLOPE,
                f"{self.visits} visits; slope {self.slope:.3f} (prices in {self.unit}), "
                f"z {self.z:.2f}",
                f"held-out log-likelihood {self.log_likelihood:.4f} a visit (without features and "
                f"prices: {self.constant:.4f}), calibration {self.calibration:.3f} +- "
                f"{self.calibration_error:.3f}",
                *(f"Caution: {caution}" for caution in self.cautions),
                *shares,
            ]
        )


def fit_choice(visits: Visits, ridge: float) -> ChoiceFit:
    """Maximise mean log-likelihood - ridge |b|^2 / 2, b the coefficients except constants."""
    b, penalty, x = _start(visits, ridge)
    value = _objective(visits, x, penalty, b)
    for _ in range(_NEWTON_STEPS):
        gradient, information, _ = _derivatives(visits, x, penalty, b)
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        while (new := _objective(visits, x, penalty, b + step)) < value - 1e-14:
            step = step / 2
        b, value = b + step, new
        if np.abs(step).max() < _NEWTON_TOLERANCE or np.abs(b).max() > 4 * _MAX_COEFFICIENT:
            break
    return _unpacked(visits, b)


def price_z(visits: Visits, fit: ChoiceFit, ridge: float, groups: Ints | None) -> float:
    """Return the price slope divided by its sandwich standard error, by rows or `groups` (n,)."""
    _, penalty, x = _start(visits, ridge)
    b = np.append(fit.tastes.ravel(), fit.slope)
    _, information, scores = _derivatives(visits, x, penalty, b)
    if groups is not None:
        sums = np.zeros((groups.max() + 1, scores.shape[1]))
        np.add.at(sums, groups, scores)
        scores = sums
    bread = np.linalg.pinv(information)[-1] / len(visits.choice)
    return float(fit.slope / np.linalg.norm(scores @ bread))


def check_fit(fit: ChoiceFit, z: float, names: tuple[str, ...]) -> None:
    """Raise `InputError` if no finite fit exists or the price slope is not significantly < 0."""
    worst = np.abs(fit.tastes).max(axis=1)
    if worst.max() > _MAX_COEFFICIENT:
        raise InputError(
            f"Expected {names[int(worst.argmax())]!r} not to be determined by features "
            "(separation): no model can be fitted, leave a feature out, or the product."
        )
    check_slope(fit.slope, z)


class Calibration(NamedTuple):
    """Held-out likelihood and calibration by 5-fold cross-validation."""

    log_likelihood: float
    constant: float
    scale: float
    error: float

    @property
    def caution(self) -> str:
        """Warning that utilities are not calibrated; empty if they are."""
        if abs(self.scale - 1) <= _MAX_SCALE_ERRORS * self.error:
            return ""
        return (
            f"The held-out calibration {self.scale:.3f} +- {self.error:.3f} is more than three "
            "standard errors from 1."
        )


def hold_out(visits: Visits, ridge: float, groups: Ints | None) -> Calibration:
    """Cross-validate in five folds with a fixed seed; rows of one group (n,) are in one fold."""
    n = len(visits.choice)
    groups = np.arange(n) if groups is None else groups
    count = int(groups.max()) + 1
    fold = (np.random.default_rng(_SEED).permutation(count) % min(_FOLDS, count))[groups]
    utilities = np.empty((n, visits.offered.shape[1] + 1))
    plain = utilities.copy()
    flat = visits._replace(design=np.ones((n, 1)), price=np.zeros(visits.price.shape))
    for k in range(fold.max() + 1):
        out = fold == k
        utilities[out] = fit_choice(visits.of(~out), ridge).utilities(visits.of(out))
        plain[out] = fit_choice(flat.of(~out), ridge).utilities(flat.of(out))
    scale, rows = 1.0, np.arange(n)
    for _ in range(_NEWTON_STEPS):
        p = np.exp(log_softmax(np.where(np.isinf(utilities), -np.inf, scale * utilities), axis=1))
        u = np.where(p > 0, utilities, 0.0)
        score = u[rows, visits.choice] - (p * u).sum(axis=1)
        information = float(((p * u**2).sum(axis=1) - (p * u).sum(axis=1) ** 2).sum())
        step = score.sum() / information
        scale += step
        if abs(step) < _NEWTON_TOLERANCE:
            break
    by_group = np.bincount(groups, weights=score)
    return Calibration(
        log_likelihood=float(log_softmax(utilities, axis=1)[rows, visits.choice].mean()),
        constant=float(log_softmax(plain, axis=1)[rows, visits.choice].mean()),
        scale=float(scale),
        error=float(np.sqrt(np.square(by_group).sum()) / information),
    )


def _start(visits: Visits, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Return D zero coefficients (the slope last), their penalties, and design (n, products, D)."""
    n, N = visits.offered.shape
    k = visits.design.shape[1]
    penalty = np.append(np.tile(np.where(np.arange(k) == 0, 0.0, ridge), N), ridge)
    x = np.zeros((n, N, N * k + 1))
    for j in range(N):
        x[:, j, j * k : (j + 1) * k] = visits.design
    x[..., -1] = visits.price
    return np.zeros(N * k + 1), penalty, x


def _unpacked(visits: Visits, b: Floats) -> ChoiceFit:
    return ChoiceFit(b[:-1].reshape(-1, visits.design.shape[1]), float(b[-1]))


def _log_chances(visits: Visits, b: Floats) -> Floats:
    return np.asarray(log_softmax(_unpacked(visits, b).utilities(visits), axis=1))


def _objective(visits: Visits, x: Floats, penalty: Floats, b: Floats) -> float:
    chosen = _log_chances(visits, b)[np.arange(len(x)), visits.choice]
    return float(chosen.mean() - (penalty * b * b).sum() / 2)


def _derivatives(
    visits: Visits, x: Floats, penalty: Floats, b: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the objective's gradient (D,), information (D, D), and scores of visits (n, D)."""
    p = np.exp(_log_chances(visits, b))[:, :-1]
    taken = 1.0 * (np.arange(p.shape[1]) == visits.choice[:, None])
    mean = np.vecmat(p, x)
    scores = np.vecmat(taken, x) - mean
    flat, n = x.reshape(-1, x.shape[-1]), len(x)
    information = (flat * p.reshape(-1, 1)).T @ flat / n - mean.T @ mean / n
    return scores.mean(axis=0) - penalty * b, information + np.diag(penalty), scores


_DEFAULT_PRICES = 5  # number of prices by default, in equal steps over the range
_LEAST_VISITS = 200  # smallest number of rows of a log
_MIN_CHOICES_PER_COEFFICIENT = 5
"""Smallest number of visits in which a product is bought, per coefficient of its utility; the same
for visits in which nothing is bought"""
_NONE = "none"  # the name of buying nothing


class _Fitted:
    """A frozen model of choices with its diagnostics."""

    def __init__(self, fit: ChoiceFit, diagnostics: ChoiceDiagnostics) -> None:
        self.fit, self.diagnostics = fit, diagnostics


@dataclass(eq=False, repr=False)
class AssortmentFromLog(ChoiceProblem):
    """Offer sets of your products at prices; a model of choices is fitted once to your log.

    Description:
        One row of the log is one visit, whether or not something was bought: the price of every
        product that was shown, empty where it was not, and the product bought. A multinomial logit,
        with coefficients of the features for each product and one price slope, is fitted once;
        customers are rows drawn with replacement, who choose by this logit. Regret is measured
        under the model, not in the real world. `diagnostics` measures the fit, and `print(problem)`
        explains it. A certificate protects one simulated customer of one round, never a row of the
        log. See `docs/howto/shop.md`.

    Action space:
        `MultiDiscrete`: for each product 0 if it is not offered, else the number of its price, from
        1 on; 1 to `at_most` products are offered. Samples of the space are such sets.

    Observation space:
        `Box`, shape (1 + d,): (1, features) / sqrt(1 + d), of norm at most 1. Numbers are scaled
        from their bounds to [-1, 1] and clipped; levels but the first have a column of 0 or 1.

    Rewards:
        In the `unit` of prices: price - unit cost of the product she buys, 0 if none.
        `info["choice"]` is the product's index, the number of products for none.

    Arguments:
        * `frame`: a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet
          file. Required.
        * `products`: `{"cola": "price_cola", ...}`, each product and the column of its price, empty
          where it was not shown. Required. `bought`: the column of choices: the name of a product,
          or "none" or empty.
        * `visit`, `product`, `price`: columns of a table with one row for each product shown: the
          visit it belongs to, the product's name and its price. Then `products` lists the names,
          and `bought` is 1 in the row of the product that was bought, else 0.
        * `features`: names of columns and their public bounds, or `{}`. Required.
        * `price_range`: (low, high), public; every price of the log lies inside. Required.
        * `unit_cost`: cost of a sale to the seller, in the `unit` of prices, one for all or one for
          each product. Required. `prices`: prices to choose from; None: five in equal steps over
          the range. `unit`: name of the currency, for labels.
        * `at_most`: products that can be offered at a time; all by default.
        * `ridge`: L2 penalty of all coefficients but the constants.
        * `clusters`: a column, such as the week, within which errors may be correlated.
        * `sha256`: expected hash of the file `frame`; another file raises `InputError`.
        * `reading`: how the table is written: `{"sep": ";", "decimal": ",", "yes": ["ja"],
          "drop_missing": True}`, each optional; see `dpbandit.offline.tables`.
        * `horizon`: rounds. `delay`: rounds until a choice is seen; until then the agent observes
          product 0 and a reward of 0.
    """

    frame: Any = None
    _: KW_ONLY
    products: Mapping[str, str] | Sequence[str] | None = None
    bought: str = "bought"
    visit: str | None = None
    product: str = "product"
    price: str = "price"
    features: Mapping[str, Sequence[Any]] | None = None
    price_range: Sequence[float] | None = None
    unit_cost: float | Mapping[str, float] | None = None
    prices: Sequence[float] | None = None
    unit: str = "dollars"
    at_most: int | None = None
    ridge: float = 1e-6
    clusters: str | None = None
    sha256: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        unit_of(self.unit)
        names, in_rows = self._names(), self.visit is not None
        low, high, grid = self._price_list()
        log = read(
            self,
            (self.bought,),
            answer=self.bought if in_rows else None,
            also=(self.visit, self.product, self.price) if in_rows else (),
            visit=self.visit,
            filled=self._by_visit if in_rows else self._with_none,
        )
        visits = self._visits(log, names, low, high)
        at_least("ridge", self.ridge, 0)
        ridge, groups = float(self.ridge), log.groups
        found = fitted_once(
            lambda: _fitted(visits, ridge, log, names, (high - low) / 2, self.unit),
            *visits,
            groups,
            (names, ridge, low, high, self.unit, log.features.names, log.features.outside),
            log.notes,
        )
        self.diagnostics, self._known = found.diagnostics, log.features.context
        self._appeal = visits.design @ found.fit.tastes.T  # (n, N)
        self.spec = PricedAssortmentSpec(
            n_products=len(names),
            at_most=len(names) if self.at_most is None else self.at_most,
            dim=self._known.shape[1],
            shared=False,
            horizon=self.horizon,
            prices=tuple(grid.tolist()),
            unit_costs=self._costs(names),
            delay=self.delay,
            reward_unit=self.unit,
        )
        lost = -found.fit.slope * ((grid - low) / ((high - low) / 2) - 1)
        self._listed = ListedSales(self.spec.margin_table, lost, self.spec.at_most)
        self._best = self._listed.best(self._appeal)

    def __repr__(self) -> str:
        return f"AssortmentFromLog: {self.diagnostics}"

    @property
    def segments(self) -> dict[str, Levels]:
        """Features with levels, by which results can be counted."""
        return levels_in(self.features or {})

    def _names(self) -> tuple[str, ...]:
        if self.visit is not None:
            if isinstance(self.products, str | Mapping) or not self.products:
                raise InputError(
                    f"Expected products={abbrev(self.products)} to list the names of all products, "
                    "as visit= names the column of visits."
                )
        elif (self.product, self.price) != ("product", "price"):
            raise InputError(
                f"Expected visit= with product={abbrev(self.product)} and price="
                f"{abbrev(self.price)}, columns of a table with one row for each product shown."
            )
        elif not isinstance(self.products, Mapping) or len(self.products) < 1:
            raise InputError(
                "Expected products=, each with the column of its price, such as "
                f"{{'cola': 'price_cola'}}, got {abbrev(self.products)}."
            )
        names = tuple(map(_product_name, self.products or ()))
        if len(set(names)) < len(names) or _NONE in names:
            raise InputError(
                f"Expected products={abbrev(self.products)} to have different names, none of them "
                f"{_NONE!r}."
            )
        return names

    def _price_list(self) -> tuple[float, float, Floats]:
        low, high = price_range_of(self.price_range)
        if self.prices is None:
            return low, high, np.linspace(low, high, _DEFAULT_PRICES)
        return low, high, vector("prices", self.prices, None)

    def _costs(self, names: tuple[str, ...]) -> tuple[float, ...]:
        if not isinstance(self.unit_cost, Mapping):
            return (unit_cost_of(self.unit_cost),) * len(names)
        costs = {_product_name(name): cost for name, cost in self.unit_cost.items()}
        if set(costs) != set(names):
            raise InputError(
                f"Expected unit_cost={abbrev(self.unit_cost)} to have a cost for each of {names}."
            )
        return tuple(unit_cost_of(costs[name]) for name in names)

    def _with_none(self, table: Any) -> Any:
        """Return the table with "none" in place of empty entries of the column `bought`."""
        if words := self.reading.get("yes"):
            raise InputError(
                f"Expected no yes={abbrev(words)} (--yes) where column {self.bought!r} holds names "
                "of products."
            )
        listed = column_with_gaps(table, self.bought)
        one_kind(f"column {self.bought!r}", [entry for entry in listed if not _is_empty(entry)])
        names = [_NONE if _is_empty(entry) else _product_name(entry) for entry in listed]
        return ChainMap({self.bought: names}, table)

    def _by_visit(self, table: Any) -> Any:
        """Return a table of one row for each visit from one of one row for each product shown."""
        import pandas as pd  # not before: slow to import

        visit = str(self.visit)
        n = len(column(table, visit))
        layout = [visit, self.product, self.price, self.bought]
        shared = [*(self.features or ()), *filter(None, [self.clusters])]
        if twice := sorted({*layout, *self._names()} & {*shared}):
            raise InputError(f"Expected features and clusters without {twice[0]!r}.")
        columns = {name: as_long(column(table, name), n, name) for name in layout + shared}
        rows = pd.DataFrame({name: np.asarray(entries) for name, entries in columns.items()})
        rows[self.product] = list(map(_product_name, rows[self.product]))
        rows[self.bought] = answers(table, self.bought)
        if unknown := sorted({*rows[self.product]} - {*self._names()}):
            raise InputError(
                f"Expected column {self.product!r} to hold only products={abbrev(self.products)}, "
                f"got {unknown[0]!r}."
            )
        of_visit = rows.groupby(visit, sort=False)
        for name in shared:
            if (of_visit[name].nunique() > 1).any():
                raise InputError(f"Expected one {name!r} in all rows of a visit, got several.")
        counts = of_visit[self.product].value_counts().groupby(level=0).max()
        for name, most in ((self.bought, of_visit[self.bought].sum()), (self.product, counts)):
            if (most > 1).any():
                raise InputError(
                    f"Expected at most one row of a visit for each product and one purchase, got "
                    f"more in column {name!r} in visit {most.idxmax()}."
                )
        taken = rows[rows[self.bought] == 1].set_index(visit)[self.product]
        wide = rows.pivot(index=visit, columns=self.product, values=self.price)
        wide = wide.reindex(index=pd.unique(rows[visit]), columns=list(self._names()))
        wide = wide.join(of_visit[shared].first()) if shared else wide
        return wide.assign(**{self.bought: taken.reindex(wide.index).fillna(_NONE)})

    def _visits(self, log: Log, names: tuple[str, ...], low: float, high: float) -> Visits:
        n, columns = len(log.design), names
        if isinstance(self.products, Mapping):
            columns = tuple(self.products.values())
        prices = np.stack([_prices(log.table, column, n) for column in columns], axis=1)
        offered = np.isfinite(prices)
        outside = offered & ((prices < low) | (prices > high))
        check_within(prices, outside, low, high)
        choice = _choices(log.table, self.bought, names)
        taken = choice < len(names)
        chosen_row = np.minimum(choice, len(names) - 1)
        choice_offered = offered[np.arange(len(choice)), chosen_row]
        if (taken & ~choice_offered).any():
            row = int(np.flatnonzero(taken & ~choice_offered)[0])
            raise InputError(
                f"Expected {self.bought!r} to be a product that was shown, row {row} bought "
                f"{names[chosen_row[row]]!r}, which has no price there."
            )
        scaled = np.where(offered, (prices - low) / ((high - low) / 2) - 1, 0.0)
        return Visits(log.design, scaled, offered, choice)

    def _start(self, streams: Streams) -> None:
        self._who = streams.uniforms("customers")

    def _users(self, count: int) -> Crowd:
        row = row_of(self._who.take(count), len(self._known))
        return Crowd(self._known[row], self._appeal[row], self._best[row])

    def _sales(self, taste: Floats, action: AnyArray) -> tuple[Floats, Floats]:
        return self._listed.sales(taste, action)

    def _search(self, replicas: int) -> SetSearch:
        return self._listed.search(replicas)


def _fitted(
    visits: Visits, ridge: float, log: Log, names: tuple[str, ...], half: float, unit: str
) -> _Fitted:
    n, N = visits.offered.shape
    counts = np.bincount(visits.choice, minlength=N + 1)
    _refuse_few(visits, counts, names)
    fit = fit_choice(visits, ridge)
    z = price_z(visits, fit, ridge, log.groups)
    check_fit(fit, z, names)
    held = hold_out(visits, ridge, log.groups)
    lone = _lone_levels(visits, log.levels, names, ridge)
    warned = [*log.cautions(), *lone, *filter(None, [held.caution])]
    return _Fitted(
        fit,
        ChoiceDiagnostics(
            visits=n,
            bought=dict(zip([*names, "none"], counts.tolist(), strict=True)),
            offered=dict(zip(names, visits.offered.sum(axis=0).tolist(), strict=True)),
            slope=fit.slope / half,
            unit=unit,
            z=z,
            log_likelihood=held.log_likelihood,
            constant=held.constant,
            calibration=held.scale,
            calibration_error=held.error,
            cautions=tuple(warned),
        ),
    )


def _lone_levels(
    visits: Visits, levels: Mapping[str, Any], names: tuple[str, ...], ridge: float
) -> Iterator[str]:
    """Yield warnings of products that no customer with a feature's level bought (separation)."""
    for words, mask in levels.items():
        taken = set(visits.choice[mask].tolist())
        offered = [*visits.offered[mask].any(axis=0).tolist(), True]
        never = [
            name
            for k, name in enumerate([*names, "none"])
            if mask.any() and offered[k] and k not in taken
        ]
        if never:
            yield (
                f"Nobody took {' or '.join(map(repr, never))} in the {int(mask.sum())} rows where "
                f"{words} (separation), so what is fitted there is ridge={ridge:g}, not the log."
            )


def _refuse_few(visits: Visits, counts: AnyArray, names: tuple[str, ...]) -> None:
    n, k = visits.design.shape
    if n < _LEAST_VISITS:
        raise InputError(f"Expected at least {_LEAST_VISITS} rows, got {n}.")
    prices = visits.price[visits.offered]
    if len(prices) == 0 or np.ptp(prices) == 0:
        raise InputError(
            "Expected more than one price in the log: it has no information on other prices."
        )
    needed = _MIN_CHOICES_PER_COEFFICIENT * k
    for name, count in zip([*names, "none"], counts.tolist(), strict=True):
        if count < needed:
            raise InputError(
                f"Expected {name!r} to be taken in at least {needed} visits, "
                f"{_MIN_CHOICES_PER_COEFFICIENT} for each of {k} coefficients, got {count}: "
                "leave out features, or the product."
            )


def _prices(table: Any, name: Any, n: int) -> Floats:
    """Read a column of n prices, NaN where it is empty."""
    entries = column_with_gaps(table, name)
    listed = [np.nan if _is_empty(entry) else entry for entry in entries]
    try:
        values = doubles(listed)
    except ValueError:
        values = np.empty(())
    if values.ndim != 1:
        raise InputError(
            f"Expected column {name!r} to hold prices, empty where the product was not "
            f"shown, got {abbrev(first_odd(listed))}."
        )
    if len(values) != n:
        raise InputError(f"Expected column {name!r} to hold one entry for each of {n} rows.")
    if np.isinf(values).any():
        raise InputError(f"Expected column {name!r} to hold finite prices, got an infinite one.")
    return values


def _choices(table: Any, name: str, names: tuple[str, ...]) -> Ints:
    places = {product: j for j, product in enumerate([*names, _NONE])}
    for entry in table[name]:
        if entry not in places:
            raise InputError(
                f"Expected {name!r} to be one of {abbrev(list(names))}, or none, got "
                f"{abbrev(entry)}."
            )
    return np.array([places[entry] for entry in table[name]], np.int64)


def _is_empty(entry: Any) -> bool:
    return is_missing(entry) or (isinstance(entry, str) and not entry.strip())


def _product_name(name: Any) -> str:
    """Return a product's name as text; 2.0 (in a column with empty entries) becomes "2"."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
