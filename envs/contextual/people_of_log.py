"""Customers who come back to a shop, simulated by a fit to a log with a column of person ids."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import fdtrc, ndtri

from dpbandit.base import Floats, InputError, Ints, Streams, rows
from dpbandit.envs.arrivals import Visitors
from dpbandit.envs.contextual.logs import CHOSEN, FUNCTION, Log
from dpbandit.envs.contextual.pricing_from_log import (
    FLATTEST,
    Prices,
    PricingDiagnostics,
    fit_demand,
)
from dpbandit.envs.contextual.problems import row_of
from dpbandit.envs.contextual.tastes import Offers, check_people, fit_tastes, refuse_alike
from dpbandit.specs import Prior
from dpbandit.specs.people import NOBODY
from dpbandit.specs.rivals import OwnLogitSpec


class PeopleOfLog(NamedTuple):
    """A log of people who come back, with the population of tastes fitted to it."""

    context: Floats
    """Contexts of the log, (n, 1 + d), sorted so that a person's rows are contiguous"""
    starts: Ints
    """Index of each of N people's first row, then the number of rows, (N + 1,)"""
    visit: OwnLogitSpec
    """Spec of one visit; its `survey` is the fitted population"""
    diagnostics: PricingDiagnostics

    def drawn(self, theta: Floats, person: Ints, uniforms: Floats) -> tuple[Floats, Floats]:
        """Draw one row of the log for each visit; return its context and P(sale) at each price.

        `theta` (..., D) are visitors' coefficients, `person` (...) people of the log, whose rows
        are drawn.
        """
        first = self.starts[person]
        context = self.context[
            first + (uniforms * (self.starts[person + 1] - first)).astype(np.int64)
        ]
        return context, self.visit.sales(theta[..., None, :], self.visit.seen(context))[..., 0, :]


_GUESSED_LEVEL_SD, _GUESSED_FEATURE_SD = 2.0, (1.0, 0.5)
"""Prior stddevs, without a survey, of people's levels and features' effects on level and slope"""
_POPULATION_POINTS = 4095
"""Number of quasi-random people over whom the diagnostics average margins"""


def fit_people(
    log: Log, yes: Floats, prices: Prices, penalty: Floats, *, sold: str, clip: bool, person: str
) -> PeopleOfLog:
    """Fit the law of people's tastes, starting from `fit_demand`; ids are `log.groups`.

    Raises:
        InputError: the log does not identify the effect of prices, or that people differ.
    """
    groups: Any = log.groups
    count = np.bincount(groups)
    n, N, k = len(yes), len(count), log.design.shape[1]
    share = check_people(person, count, prices.logged, groups, len(penalty))
    found = fit_demand(log, yes, prices, penalty, sold=sold, clip=clip).diagnostics
    if share > FUNCTION:
        raise InputError(
            f"Expected prices that differ between visits of a person, got R2 = {share:.5f} of the "
            f"price on {person!r}: what a price does cannot be told from who was asked."
        )
    G = log.design[:, : len(penalty) - k]
    offers = Offers.of(log.design, G, prices.scaled(prices.logged), yes, groups)
    start = np.zeros(len(penalty))
    start[:k] = [*found.coefficients.values()][:k]
    start[k] = np.log(max(-found.slope * prices.half, -FLATTEST))
    ridge = np.where(np.arange(len(penalty)) == k, 0.0, penalty)
    tastes = fit_tastes(offers, start, ridge)
    refuse_alike(person, tastes)
    guess = np.repeat(_GUESSED_FEATURE_SD, [k, len(penalty) - k])
    guess[[0, k]] = _GUESSED_LEVEL_SD, 1.0
    visit = OwnLogitSpec(
        n_actions=len(prices.grid),
        dim=k,
        horizon=1,
        prices=tuple(prices.grid.tolist()),
        unit_cost=float(prices.cost),
        reward_high=float(prices.grid.max() - prices.cost),
        link="other",
        reward_unit=prices.unit,
        price_range=(prices.low, prices.high),
        survey=tastes.law,
        guess=Prior(np.zeros(len(penalty)), guess**2),
    )
    context = log.features.context[np.argsort(groups, kind="stable")]
    people = PeopleOfLog(context, offers.starts, visit, found)
    chances = _population_chances(people)
    margins = visit.margins * chances
    warned = [*found.cautions]
    p_value = float(fdtrc(N - 1, n - N, share / (N - 1) / ((1 - share) / (n - N))))
    if p_value < CHOSEN:
        warned.append(
            f"Prices were not randomised: they differ between people (R2 = {share:.3f}, p = "
            f"{p_value:.1g}), and may have followed their tastes."
        )
    means = zip(prices.grid, chances.mean(axis=0), margins.mean(axis=0), strict=True)
    return people._replace(
        diagnostics=replace(
            found,
            curve=tuple((float(p), float(s), float(m)) for p, s, m in means),
            oracle=float(margins.max(axis=1).mean()),
            cautions=tuple(warned),
            tastes=tastes,
        )
    )


def _population_chances(people: PeopleOfLog) -> Floats:
    """Return P(sale) at each price for a quasi-random sample of the population, (4095, K)."""
    from scipy.stats import qmc  # not before: slow to import

    law = people.visit.survey
    D = len(law.mean)
    uniforms = qmc.Sobol(D + 2, scramble=False).fast_forward(1).random(_POPULATION_POINTS)
    theta = np.array(law.mean) + ndtri(uniforms[:, :D]) @ np.linalg.cholesky(law.matrix).T
    return people.drawn(theta, row_of(uniforms[:, D], len(people.starts) - 1), uniforms[:, D + 1])[
        1
    ]


class Customers:
    """Returning customers of a shop, with random tastes and the features of people of the log."""

    def __init__(self, shop: Any, log: PeopleOfLog) -> None:
        self._log, self._people, self._visitors = log, shop.people, Visitors(shop)
        self.spec = self._visitors.spec(log.visit)

    def start(self, streams: Streams) -> None:
        """Start an episode: draw everybody's tastes and features, and the order of visits."""
        self._visitors.start(streams)
        self._rows, self._uniforms = streams.uniforms("customers"), streams.uniforms("purchases")
        law, N = self._log.visit.survey, self._people
        normals = streams.world.normals("tastes", N, len(law.mean))()
        self.theta = np.array(law.mean) + normals @ np.linalg.cholesky(law.matrix).T
        """coefficients of all customers, (R, people, coefficients)"""
        uniforms = streams.world.uniforms("people", N)()
        # the person of the log whose features each customer has, (R, N)
        self._log_person = row_of(uniforms, len(self._log.starts) - 1)

    def take(self, count: int) -> tuple[Floats, Floats, Floats]:
        """Draw `count` rounds; return contexts, P(sale) at each price, and True where she buys."""
        person = np.stack([self._visitors.next() for _ in range(count)])  # (n, R)
        here = (person != NOBODY)[..., None]
        r, i = rows(person.shape[1]), np.maximum(person, 0)
        drawn = self._log.drawn(self.theta[r, i], self._log_person[r, i], self._rows.take(count))
        context, chance = (part * here for part in drawn)
        yes = self._uniforms.take(count)[..., None] < chance
        return np.concatenate([person[..., None], context], axis=-1), chance, yes
