"""Prices for customers who come back, from each person's posterior with the population as prior."""

from typing import Literal

import numpy as np
from scipy.special import expit, ndtri

from dpbandit.agent import Agent, Count, started
from dpbandit.agents.people.personal import Growth, expected_counts
from dpbandit.base import Floats, InputError, Ints, clip_norm, clip_range, gaussian_target, whole
from dpbandit.privacy import ClippedVectors, Ledger, ledger_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.notion import OWN_DATA, Notion
from dpbandit.privacy.person_sums import PersonSum
from dpbandit.specs.people import NOBODY, ReturningSpec
from dpbandit.specs.rivals import TastesSpec

_MAX_PARTICLES = 1 << 14  # largest number of points of a posterior
_MAX_LOG_ODDS = 700.0  # of a sale that can be multiplied; exp(-700) is above 0
_SAME_STEP = 1e-12  # largest difference of equal steps from price to price, relative to prices
_MIN_STRETCH, _MAX_STRETCH = 0.1, 4.0
"""Smallest and largest factor by which one step may scale the covariance of the population."""


class PersonalPricing(Agent[ReturningSpec]):
    """Price by a posterior of each customer's own tastes; the population is a prior for all.

    A design of this project. Customer i has coefficients theta_i ~ N(m, C) (`TastesSpec`), C =
    L L'. With fixed points z_1, .., z_M spread like N(0, I)::

        in a slot    w_j ~ product over her visits of P(her answer | theta_i = m + L z_j)
                     her price k has the largest margin_k sum_j w_j P(sale at k | m + L z_j)
                     her first visit of the batch enters the sum of her score, clipped to norm 1,
                     sum_j w_j (z_j, (z_j z_j' - I) / 2)
        at its end   the sum is released with noise, once; divided by the expected number of people
                     it is (a, (A - I) / 2), shrunk towards 0 (James and Stein); a step of
                     expectation maximisation is m <- m + L a,   C <- L (A - a a') L'

    `population` names the source of the prior: "survey" is the problem's public survey, "guess" a
    prior without a survey, and "learned" starts at the guess and takes the steps above; "learned"
    at epsilon inf is the counterpart without privacy.

    Guarantee:
        "learned" is (epsilon, delta)-joint DP for a PERSON under continual observation, in the
        contexts, prices and purchases of all her visits, and in their times; exactly mu-GDP. Scores
        enter `PersonSum`, one for a person in a batch, whatever her data. Her other data are in her
        own memory, which reaches only her own prices (`PersonalMemory`). The last batch is never
        released. "survey" and "guess" have no mechanism and are 0-joint DP: no data of hers reach
        other persons. Visits beyond the cap are not remembered.

    >>> from dpbandit import certify
    >>> proof = certify(PersonalPricing(epsilon=1.0), "ReturningPricing", accountants=False)
    >>> round(proof.mu, 5), proof.ledger.brief
    (0.26805, 'person, 40 rounds')
    >>> certify(
    ...     PersonalPricing(population="survey"), "ReturningPricing", accountants=False
    ... ).epsilon
    0.0
    """

    plays = ReturningSpec
    epsilon: float = 1.0
    """target, for a person, > 0, with population="learned"; inf plays without noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    population: Literal["learned", "survey", "guess"] = "learned"
    """source of the prior of a person"""
    memory: bool = True
    """True if a person's own visits change her prices; False prices by the population alone"""
    particles: Count = 256
    """number of points of a posterior, at most 16,384"""
    first_batch: Count | None = None
    """slots of the first batch; if None, the number of people, at most a tenth of the horizon"""
    growth: Growth = 0.5
    """each batch is 1 + growth times as long as the batch before it"""
    sums, beliefs, history = started(PersonSum), started(PersonalMemory), started(PersonalMemory)
    visit = started(TastesSpec)

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        whole("particles", self.particles, 2, _MAX_PARTICLES)

    def start(self) -> None:
        from scipy.stats import qmc  # here: slow to import

        spec, R = self.spec, self.R
        if not isinstance(spec.visit, TastesSpec):
            raise InputError(
                f"Expected prices that people answer by tastes of their own (TastesSpec), got a "
                f"{type(spec.visit).__name__}: choose personal-fade or PerPerson(agent)."
            )
        self.visit = spec.visit
        prior = self.visit.survey if self.population == "survey" else self.visit.guess
        D, M = len(prior.mean), self.particles
        self.points: Floats = ndtri(qmc.Sobol(D, scramble=False).fast_forward(1).random(M))
        self.upper = np.triu_indices(D)
        products = (self.points[:, :, None] * self.points[:, None] - np.eye(D))[:, *self.upper]
        self.weights = np.where(self.upper[0] == self.upper[1], 1.0, 2**0.5) / 2
        self.scores: Floats = np.hstack([self.points, products * self.weights])  # (M, S)
        self.mean: Floats = np.tile(prior.mean, (R, 1))
        self.root: Floats = np.tile(np.linalg.cholesky(prior.matrix), (R, 1, 1))
        self.batch = 0
        self.spread()
        self.beliefs = PersonalMemory(R, people=spec.people, shape=(M + 2,))
        """a person's log likelihood of every point, number of visits, and batch of these points"""
        if self.population == "learned":
            self.release_scores()
        else:
            self.ledger = Ledger((), OWN_DATA.of_person(spec.visits))

    def release_scores(self) -> None:
        """Set up the released sums of scores and their ledger."""
        spec, T = self.spec, self.spec.horizon
        self.history = PersonalMemory(
            self.R, people=spec.people, shape=(spec.visits.cap, self.visit.dim + 1)
        )
        """context of every visit of a person, and 1 + the price's index, negative without a sale"""
        first = max(1, min(self.first_batch or spec.people, T // 10))
        ends = growing_batches(T, first=first, growth=self.growth)
        self.sums = PersonSum(
            ClippedVectors(self.scores.shape[1]),
            self.streams,
            people=spec.people,
            visits=spec.visits,
            counted="batch",
            ends=ends,
            horizon=T,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        robin = spec.visits.separation == spec.people
        self.counts = expected_counts(
            ends, counted="batch", people=spec.people, horizon=T, robin=robin
        )
        self.ledger = ledger_of(
            self.epsilon,
            self.sums.spend,
            notion=Notion(unit=spec.visits),
            without="exact scores of everybody",
        )

    def spread(self) -> None:
        """Compute the coefficients of all M points for the current population, (R, M, D)."""
        self.theta: Floats = self.mean[:, None] + self.points @ self.root.transpose(0, 2, 1)
        self.held = self.visit.held(self.theta)

    def act(self, context: Floats) -> Ints:
        x = clip_norm(self.spec.visit_context(context), self.visit.context_norm)
        likely: Floats = np.zeros((self.R, self.particles))
        if self.memory:
            likely = self.remembered(self.spec.person(context))[:, :-2]
        ahead, slope = self.visit.leads(self.held, self.visit.seen(x))
        sales = self.sales(relative_weights(likely), ahead, slope)
        return np.asarray((self.visit.margins * sales).argmax(axis=1))

    def sales(self, weights: Floats, ahead: Floats, slope: Floats) -> Floats:
        """Return sums (R, K) over M points of weights (R, M) x P(sale at each of K prices).

        `ahead` and `slope` (R, M) are those of the method `leads` of the spec of a visit. Odds at a
        price are those at the price below times a ratio, which is computed once for equal steps.
        """
        prices = np.array(self.visit.prices)
        order = np.argsort(prices)
        rises = np.diff(prices[order], prepend=prices[order[0]])
        lowest = ahead + slope * prices[order[0]]
        terms, sums, step = np.empty_like(weights), np.empty((len(prices), len(weights))), 0.0
        with np.errstate(over="ignore"):  # infinite odds against a sale are a probability of 0
            against = np.exp(-np.minimum(lowest, _MAX_LOG_ODDS))
            for k, rise in zip(order.tolist(), rises.tolist(), strict=True):
                if abs(rise - step) > _SAME_STEP * prices[k]:
                    step, ratio = rise, np.exp(-rise * slope)
                if rise:
                    against *= ratio
                np.reciprocal(np.add(against, 1.0, out=terms), out=terms)
                sums[k] = np.vecdot(weights, terms)
        for r in np.flatnonzero((lowest > _MAX_LOG_ODDS).any(axis=1)):  # odds that round to 0
            sums[:, r] = expit(prices[:, None] * slope[r] + ahead[r]) @ weights[r]
        return sums.T

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        person = self.spec.person(context)
        x = clip_norm(self.spec.visit_context(context), self.visit.context_norm)
        sold = clip_range(feedback, self.spec.reward_low, self.spec.reward_high) > 0
        visit = np.column_stack([x, np.where(sold, 1.0, -1.0) * (1 + action)])
        before, belief = self.remembered(person), self.beliefs.of(person)
        times = before[:, -2].astype(np.int64)
        new = times < self.spec.visits.cap
        after = before.copy()
        after[:, :-2] += self.log_chances(self.held, visit[:, None])[:, 0] * new[:, None]
        after[:, -2] += new
        self.beliefs.add(person, after - belief)
        if self.population != "learned":
            return
        self.history.add(np.where(new, person, NOBODY), visit, times)
        weights = relative_weights(after[:, :-2])
        score = (weights[:, None] @ self.scores)[:, 0] / weights.sum(axis=1, keepdims=True)
        release = self.sums(person, score)
        if release is not None:
            self.learn(release)

    def remembered(self, person: Ints) -> Floats:
        """Return `beliefs` (R, M + 2), log weights of M points, visits and batch, up to date."""
        belief = self.beliefs.of(person)
        moved = (belief[:, -1] != self.batch) & (person >= 0)
        belief[moved, -1] = self.batch
        old = np.flatnonzero(moved & (belief[:, -2] > 0))
        if len(old):
            visits = self.history.of(person)[old, : int(belief[old, -2].max())]
            belief[old, :-2] = self.log_chances(self.held[old], visits).sum(axis=1)
        return belief

    def log_chances(self, held: Floats, visits: Floats) -> Floats:
        """Return log likelihoods (n, k, M) of M points at k visits (n, k, dim + 1) of n persons.

        `held` are statistics of the points, from `visit.held`. Empty visits give 0.
        """
        did = visits[..., -1:]  # (n, k, 1)
        price = np.array(self.visit.prices)[np.maximum(np.abs(did), 1).astype(np.int64) - 1]
        ahead, slope = self.visit.leads(held[:, None], self.visit.seen(visits[..., :-1]))
        z = np.sign(did) * (ahead + slope * price)
        tail = np.abs(z)
        np.exp(np.negative(tail, out=tail), out=tail)
        tail += 1.0  # np.log1p takes twice the time, for digits that the difference loses
        return np.where(did == 0, 0.0, np.minimum(z, 0.0) - np.log(tail, out=tail))

    def learn(self, release: Floats) -> None:
        """Take one step of expectation maximisation with the released sum of scores of a batch."""
        D, count = self.mean.shape[1], self.counts[self.batch]
        self.batch += 1
        if not count:
            return
        noise = release.shape[1] * self.sums.stddev**2
        sure = 1 - noise / np.maximum((release**2).sum(axis=1), max(noise, 1e-300))
        estimate = sure[:, None] * release / count
        a, A = estimate[:, :D], np.zeros((self.R, D, D))
        A[:, *self.upper] = estimate[:, D:] / self.weights
        A = np.eye(D) + A + np.triu(A, 1).transpose(0, 2, 1) - a[:, :, None] * a[:, None]
        e, U = np.linalg.eigh(A)
        stretch = (U * np.sqrt(e.clip(_MIN_STRETCH, _MAX_STRETCH))[:, None]) @ U.transpose(0, 2, 1)
        self.mean = self.mean + np.matvec(self.root, a)
        self.root = self.root @ stretch
        self.spread()


def relative_weights(likely: Floats) -> Floats:
    """Return weights (R, M), the largest of each row 1, from their logarithms."""
    apart = likely - likely.max(axis=1, keepdims=True)
    return np.exp(apart, out=apart)
