"""Agents for people who return: a person's own memory and a model of the population.

`Personal` plays and remembers visits; `Population` is a posterior of people's common parameter.
"""

from collections.abc import Callable
from functools import cache
from math import ceil, hypot, inf, sqrt
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import betainc, betaln, ndtr

from dpbandit.agent import Agent, Count, Least0, Positive, started
from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    clip_norm,
    clip_range,
    gaussian_target,
    inside,
    norms,
    pick,
)
from dpbandit.privacy import Ledger, SignedDirections, ledger_of, mu_of, no_privacy
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.privacy.notion import OWN_DATA, Notion, Trust
from dpbandit.privacy.person_sums import Counted, PersonSum
from dpbandit.specs import link_of
from dpbandit.specs.people import ReturningSpec

Growth: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)]


class Personal(Agent[ReturningSpec]):
    """Base class of agents that play the arm with the best posterior mean for the current person.

    Person i has theta_i ~ N(m_0, W + tastes^2 I/d) and rewards r = origin + x . theta_i + N(0,
    noise^2), for features x; origin is the link's value at 0, which is 0, or 1/2 for clicks.
    N(m_0, W) is the law of the population's parameter, updated at releases. A person's memory has
    the exact sums of xx' and (r - origin) x over her visits. Ties are broken at random.
    """

    plays = ReturningSpec
    tastes, noise, memory = 0.5, 0.5, True
    memories = started(PersonalMemory)

    def start_learner(self) -> None:
        """Set up empty memories and the prior N(0, I/d) of the population's parameter."""
        visit, R = self.spec.arms, self.R
        d = visit.dim
        self.origin = float(link_of(visit.link).mean(np.zeros(())))  # mean reward of a row of zeros
        self.uniforms = self.streams.uniforms("ties", visit.n_actions)
        if self.memory:
            self.memories = PersonalMemory(R, people=self.spec.people, shape=(d + 1, d))
        self.set_population(np.zeros((R, d)), np.broadcast_to(np.eye(d) / d, (R, d, d)))

    def set_population(self, mean: Floats, covariance: Floats) -> None:
        """Set the law N(mean (R, d), covariance (R, d, d)) of the population's parameter."""
        d = self.spec.arms.dim
        self.mean: Floats = mean
        self.precision: Floats = np.linalg.inv(covariance + self.tastes**2 * np.eye(d) / d)

    def act(self, context: Floats) -> Ints:
        scores = np.matvec(self.rows(context), self.expected(self.spec.person(context)))
        ties = scores >= scores.max(axis=1, keepdims=True)
        return np.where(ties, 1 + self.uniforms(), 0.0).argmax(axis=1)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        person, x = self.spec.person(context), pick(self.rows(context), action)
        r = clip_range(feedback, self.spec.reward_low, self.spec.reward_high)
        if self.memory:
            outer = x[:, :, None] * x[:, None, :]
            score = (r - self.origin)[:, None] * x
            self.memories.add(person, np.concatenate([outer, score[:, None]], axis=1))
        self.learn(person, x, r)

    def learn(self, person: Ints, row: Floats, reward: Floats) -> None:
        """Update the population from persons (R,), their arms' features (R, d), rewards (R,)."""

    def rows(self, context: Floats) -> Floats:
        """Return the features of all arms, clipped to the public norm, (R, K, d)."""
        return clip_norm(self.spec.visit_context(context), self.spec.arms.context_norm)

    def expected(self, person: Ints) -> Floats:
        """Return the posterior mean of the persons' parameters, (R, d)."""
        if not self.memory:
            return self.mean
        sums, P, variance = self.memories.of(person), self.precision, self.noise**2
        moment = np.matvec(P, self.mean) + sums[:, -1] / variance
        return np.linalg.solve(P + sums[:, :-1] / variance, moment[..., None])[..., 0]


class MemoryAlone(Personal):
    """Serve each person from her own visits and a public prior alone: epsilon 0.

    It is a baseline between random play and agents with releases: Bayes' rule on her own visits,
    for rewards x . theta + N(0, noise^2) with features x and theta ~ N(0, (1 + tastes^2) I/d);
    clicks are counted from 1/2.

    Guarantee:
        0-joint DP for a person, however often she comes: there is no mechanism, hence no data of
        hers reaches other persons (`PersonalMemory`).

    >>> from dpbandit import certify
    >>> certify(MemoryAlone(), "ReturningUsers", accountants=False).epsilon
    0.0
    """

    tastes: Least0 = 0.5
    """standard deviation of tastes between people, assumed by the prior"""
    noise: Positive = 0.5
    """assumed standard deviation of rewards, > 0"""

    def start(self) -> None:
        self.ledger = Ledger((), OWN_DATA.of_person(self.spec.visits))
        self.start_learner()


class MixedEffects(Personal):
    """Bayesian model of people who differ: `PersonalFADE` with exact sums in place of private ones.

    At the ends of batches that grow by a tenth, over all visits so far::

        A = (sum of xx' + d noise^2 I)^-1,    m_0 = A (sum of r x),
        theta_0 ~ N(m_0, A (noise^2 + tastes^2 / d)),   theta_i ~ theta_0 + N(0, tastes^2 I/d)

    x are features of the played arms; rewards r are counted from their mean at x = 0, which is 0,
    or 1/2 for clicks. With `pooled` all persons are served by m_0.

    Guarantee:
        None: exact data of all people reach everybody's actions.
    """

    pooled: bool = False
    """True to play the population's parameter for everybody"""
    tastes: Least0 = 0.5
    """standard deviation of tastes around the population's, assumed by the prior"""
    noise: Positive = 0.5
    """assumed standard deviation of rewards, > 0"""
    first_batch: Count = 100
    """number of rounds of uniform play at the start"""
    growth: Growth = 0.1
    """each batch is 1 + growth times as long as the batch before it"""

    def start(self) -> None:
        T, d, R, self.memory = self.spec.horizon, self.spec.arms.dim, self.R, not self.pooled
        self.ledger = no_privacy("exact sums of everybody")
        self.start_learner()
        first = max(1, min(self.first_batch, T // 10))
        self.ends = frozenset(growing_batches(T, first=first, growth=self.growth))
        self.gram: Floats = np.broadcast_to(d * self.noise**2 * np.eye(d), (R, d, d)).copy()
        self.moment: Floats = np.zeros((R, d))
        self.round = 0

    def learn(self, person: Ints, row: Floats, reward: Floats) -> None:
        # Add the visit to the sums; refit the population when a batch ends
        x = row * (person >= 0)[:, None]
        self.gram += x[:, :, None] * x[:, None, :]
        self.moment += (reward - self.origin)[:, None] * x
        self.round += 1
        if self.round in self.ends:
            A, spread = np.linalg.inv(self.gram), self.noise**2 + self.tastes**2 / x.shape[1]
            self.set_population(np.matvec(A, self.moment), A * spread)


class Directions(NamedTuple):
    """Moments of t = <x, p>, x the nearest to unit vector p among several uniform unit vectors."""

    along: float
    """second moment of t, E[t^2]"""
    kappa: float
    """signal of a reward's sign, E[t sign(r)] / E[t^2] for rewards r = t + s N(0, 1)"""


def directions(dim: int, best_of: int, spread: float) -> Directions:
    """Compute `Directions` by quadrature; `spread` is the standard deviation s of rewards around t.

    >>> round(directions(10, 1, 0.5).along, 10)
    0.1
    """
    from scipy.integrate import quad  # not before: slow to import

    if dim == 1:  # rows are 1 or -1
        return Directions(1.0, 2 * float(ndtr(1 / spread)) - 1)
    a = (dim - 1) / 2
    log_scale = betaln(0.5, a)

    def density(t: float) -> float:
        below = 0.5 + 0.5 * np.sign(t) * betainc(0.5, a, t * t)
        height = np.exp((a - 1) * np.log1p(-t * t) - log_scale)
        return float(best_of * below ** (best_of - 1) * height)

    def mean(f: Callable[[float], float]) -> float:
        value, _ = quad(lambda t: f(t) * density(t), -1, 1, limit=200)
        return float(value)

    along = mean(lambda t: t * t)
    signed = mean(lambda t: t * (2 * float(ndtr(t / spread)) - 1))
    return Directions(along, signed / along)


class Population:
    """Posterior of the population's theta_0, from noisy sums of signed directions sign(reward) x::

        prior N(0, I/d);  release b = sum of n_b signed directions + N(0, sigma^2 I)
        its mean  ~ n_b kappa_b E_b[xx'] theta_0
        w_b = n_b / (sigma^2 + n_b / d),   M = sum_b w_b n_b kappa_b E_b[xx']
        estimate = M^-1 sum_b w_b release_b,   C = M^-2 sum_b w_b^2 (sigma^2 + n_b / d)
        W = (d I + C^-1)^-1,               m_0 = W C^-1 estimate

    E_b[xx'] is I/d in batch 1, which is played at random; later x is the best of K rows for m_0.
    kappa_b is `Directions.kappa`. If each person sends one direction for all visits so far, kappa_b
    E_b[xx'] = `gains[b]` I, see `gain_of`. n_b is the expected number, never a count. The model
    assumes rows uniform on the sphere and `|theta_0|` = 1; else estimates are worse, but private.
    """

    def __init__(
        self,
        replicas: int,
        dim: int,
        arms: int,
        *,
        counts: list[float],
        stddev: float,
        spread: float,
        gains: list[float] | None = None,
    ) -> None:
        self._counts, self._variance, self._d = counts, stddev**2, dim
        first, later = directions(dim, 1, spread), directions(dim, arms, spread)
        self._laws = [first] + [later] * (len(counts) - 1)
        if gains is not None:
            self._laws = [Directions(1 / dim, gain * dim) for gain in gains]
        self._batch = 0
        self._moved = np.zeros((replicas, dim, dim))
        """matrix M of the class docstring, (R, d, d)"""
        self._released_sum, self._error = np.zeros((replicas, dim)), 0.0
        self.mean: Floats = np.zeros((replicas, dim))
        """mean of the posterior, (R, d)"""
        self.covariance: Floats = np.broadcast_to(np.eye(dim) / dim, (replicas, dim, dim)).copy()
        """covariance of the posterior, (R, d, d)"""

    def learn(self, release: Floats) -> None:
        """Update the posterior with the release (R, d) of the next batch."""
        n, d, identity = self._counts[self._batch], self._d, np.eye(self._d)
        law = self._laws[self._batch]
        p = self.mean / np.maximum(norms(self.mean), np.finfo(float).tiny)
        across = (1 - law.along) / max(d - 1, 1)
        second = across * identity + (law.along - across) * p[:, :, None] * p[:, None, :]
        if self._batch == 0:
            second = np.broadcast_to(identity / d, second.shape)
        variance = self._variance + n / d
        weight = n / variance if n else 0.0
        self._moved = self._moved + weight * n * law.kappa * second
        self._released_sum = self._released_sum + weight * release
        self._error += weight**2 * variance
        self._batch += 1
        if not self._error:
            return
        information = self._moved @ self._moved / self._error  # C^-1
        hat = np.linalg.solve(self._moved, self._released_sum[..., None])
        self.covariance = np.linalg.inv(d * identity + information)
        self.mean = (self.covariance @ information @ hat)[..., 0]


@cache
def gain_of(visits: int, dim: int, *, noise: float, tastes: float) -> float:
    """Return E <u, theta_0>, where u is the direction of a person's ridge estimate from her visits.

    It is simulated with a fixed seed for up to 4,000 people, with a population's parameter theta_0
    of norm 1 and features uniform on the sphere.

    >>> gain_of(1, 10, noise=0.5, tastes=0.5) < gain_of(3, 10, noise=0.5, tastes=0.5) < 0.4
    True
    >>> 0 < gain_of(2, 200, noise=0.5, tastes=0.5) < 0.02
    True
    """
    people = min(4_000, max(100, 1_000_000 // (dim * max(dim, visits))))
    coins = np.random.default_rng(0)
    rows = coins.standard_normal((people, visits, dim))
    rows /= norms(rows)
    signal, taste_part = rows[..., 0], np.matvec(rows, coins.standard_normal((people, dim)))
    residual = tastes / sqrt(dim) * taste_part + noise * coins.standard_normal((people, visits))
    gram = rows.swapaxes(1, 2) @ rows
    # Antithetic residuals, +- the same numbers: their linear effect cancels in the mean
    with_residuals = np.stack([signal + residual, signal - residual])
    u = _shrunk(gram, np.vecmat(with_residuals, rows), noise=noise, tastes=tastes)
    return float((u / norms(u))[..., 0].mean())


def _shrunk(gram: Floats, moment: Floats, *, noise: float, tastes: float) -> Floats:
    """Return the posterior mean (..., d) of theta, given a person's sums of xx' and r x.

    Rewards are r = <x, theta> + N(0, noise^2), and the prior of theta is N(0, (1 + tastes^2) I/d).
    """
    d = moment.shape[-1]
    ridge = noise**2 * d / (1 + tastes**2) * np.eye(d)
    return np.asarray(np.linalg.solve(gram + ridge, moment[..., None])[..., 0])


def expected_counts(
    ends: tuple[int, ...], *, counted: str, people: int, horizon: int, robin: bool
) -> list[float]:
    """Return the expected number of counted visits in every batch.

    Each of N people has T / N slots, which fall into a batch of n slots with probability n / T;
    with `robin` people come in turn. `counted` is as in `PersonalFADE`.

    >>> expected_counts((10, 30), counted="visits", people=5, horizon=100, robin=False)
    [10.0, 20.0]
    >>> expected_counts((10, 30), counted="first", people=20, horizon=100, robin=True)
    [10.0, 10.0]
    """
    N, T, k, found, begin = people, horizon, horizon / people, [], 0
    for end in ends:
        n = end - begin
        if counted == "visits":
            found.append(float(n))
        elif robin:
            found.append(float(max(0, min(end, N) - begin) if counted == "first" else min(n, N)))
        elif counted == "first":
            found.append(N * ((1 - begin / T) ** k - (1 - end / T) ** k))
        else:
            found.append(N * (1 - (1 - n / T) ** k))
        begin = end
    return found


_MIN_VISITS_FOR_LATEST = 10
"""Number of visits of a person from which estimates from all beat estimates from first visits."""
_MEMORY_DOUBLINGS = 9
"""Number of doublings of visits, to 512, at which `gain_of` is computed; more visits add little."""


def expected_memories(
    ends: tuple[int, ...],
    *,
    people: int,
    horizon: int,
    robin: bool,
    dim: int,
    noise: float,
    tastes: float,
) -> tuple[list[float], list[float]]:
    """Return the expected people by the end of each batch, and their estimates' mean `gain_of`.

    >>> world = {"people": 10, "horizon": 100, "robin": True, "noise": 0.5, "tastes": 0.5}
    >>> counts, gains = expected_memories((5, 20), dim=10, **world)
    >>> counts, gains == [gain_of(visits, 10, noise=0.5, tastes=0.5) for visits in (1, 2)]
    ([5.0, 10.0], True)
    """
    most = ceil(horizon / people)
    visits = np.arange(1, most + 1)
    some = 2 ** np.arange(min(most.bit_length(), _MEMORY_DOUBLINGS) + 1)
    known = [gain_of(int(v), dim, noise=noise, tastes=tastes) for v in some]
    more = np.diff(np.interp(np.log(visits), np.log(some), known), prepend=0.0)
    counts, gains = [], []
    for end in ends:
        came = np.clip(end / people - visits + 1, 0, 1)  # P(at least `visits` visits)
        if not robin:
            came = betainc(visits, most - visits + 1, end / (people * most))
        counts.append(people * float(came[0]))
        gains.append(float(more @ came / came[0]))
    return counts, gains


class PersonalFADE(Personal):
    """Learn the population from private sums, and each person exactly from her own visits.

    A design of this project. Batches of a public clock, of n, 2 n, 4 n, ... slots::

        in a slot    the person plays argmax_a X_a . (her posterior mean), X_a features of arm a
                     counted="latest": the direction of the ridge estimate from her memory replaces
                     her earlier direction in a sum
                     counted="first": sign(r) X_a / |X_a| of her first visit ("batch": in the
                     batch) enters a sum, r counted from the middle of the rewards' range
                     all her visits enter her own memory: exact sums of xx' and r x, r minus its
                     mean at x = 0 (clicks minus 1/2), x the features of the played arm
        at its end   the sum is released once, with N(0, (2 S / mu)^2 I), S as below
                     theta_0 ~ N(m_0, W) from all releases; her prior is N(m_0, W + tastes^2 I/d)

    No Gram matrix is released: with few people its noise exceeds its signal. "latest" has more
    signal in a direction, which summarises several visits, but every person is in all releases
    after her first visit, at a cost of sqrt(releases).

    Guarantee:
        (epsilon, delta)-joint DP for a PERSON under continual observation, in the contexts, actions
        and rewards of all her visits, and in their times; exactly mu-GDP. The releases are mu-GDP
        for a person (`PersonSum`): a release has one vector of hers, of norm at most 1 whatever her
        data, and S^2 is the number of releases that have one: all with counted="latest", one with
        "first", min(v, releases) with "batch" and v visits. Her other data lie in her own memory,
        which reaches no action but hers (`PersonalMemory`). Weights and counts use public slots,
        never the number of visits. The last batch is never released. With trust="aggregated" the
        guarantee is for all that the server sees: her device chooses, remembers her, and sends one
        vector a slot (a batch, with "latest") into sums that hide it (`PersonSum`). Devices of
        absent people send, too, else the noise is too small and reveals their number: a slot
        without a sender counts as one whose device is not honest. Senders are visible, so slots
        must not move.

    **Limits.** Directions from few visits are biased towards the features that were played.
    Features should be roughly uniform on a sphere, and rewards informative in sign about the middle
    of their range; `tastes` and `noise` are public assumptions. A person is counted twice, in m_0
    and in her memory; her weight in m_0 is about 1/N for N people.

    >>> from dpbandit import certify
    >>> proof = certify(PersonalFADE(epsilon=1.0), "ReturningUsers", accountants=False)
    >>> round(proof.mu, 5), proof.ledger.brief
    (0.26805, 'person, 20 rounds')
    """

    epsilon: float = 1.0
    """target, for a person, > 0; inf plays without noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    counted: Counted | None = None
    """visits that enter the sums, see the class; "visits" takes all, at group privacy; if None,
    "latest" with `memory` if a person's cap of visits and T / N are at least 10, else "first" """
    trust: Literal["central", "aggregated"] = "central"
    """trust model; the server sees all data, or with "aggregated" only sums of batches"""
    honest: float = 1.0
    """fraction in (0, 1] of slots (of people, if "latest") whose device adds its noise and does not
    fail, empty slots included; below 1 only with "aggregated" """
    memory: bool = True
    """True if sums of her own visits serve each person; False plays the population's estimate"""
    first_batch: Count | None = None
    """slots of uniform play; if None, 8 sqrt(d) / mu, from 100 to a tenth of the horizon"""
    growth: Growth = 1.0
    """each batch is 1 + growth times as long as the batch before it"""
    tastes: Least0 = 0.5
    """standard deviation of a person's taste around the population's, N(0, tastes^2 I/d)"""
    noise: Positive = 0.5
    """assumed standard deviation of rewards, > 0"""
    sums, population = started(PersonSum), started(Population)

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        Trust(self.trust, self.honest)
        if self.counted == "latest" and not self.memory:
            raise InputError("Expected counted='latest' with a memory, of which it is a summary.")

    def start(self) -> None:
        spec, T, d = self.spec, self.spec.horizon, self.spec.arms.dim
        mu = inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)
        usual = int(np.clip(8 * sqrt(d) / mu, 100, max(100, T / 10)))
        first = max(1, min(self.first_batch or usual, T // 10))
        ends = growing_batches(T, first=first, growth=self.growth)
        middle = (spec.reward_low + spec.reward_high) / 2
        often = min(spec.visits.cap, T // spec.people) >= _MIN_VISITS_FOR_LATEST
        counted = self.counted or ("latest" if self.memory and often else "first")
        self.sums = PersonSum(
            SignedDirections(n_actions=1, dim=d, centre=middle),
            self.streams,
            people=spec.people,
            visits=spec.visits,
            counted=counted,
            ends=ends,
            horizon=T,
            epsilon=self.epsilon,
            delta=self.delta,
            honest=self.honest,
        )
        robin = spec.visits.separation == spec.people
        gains: list[float] | None = None
        if counted == "latest":
            counts, gains = expected_memories(
                ends,
                people=spec.people,
                horizon=T,
                robin=robin,
                dim=d,
                noise=self.noise,
                tastes=self.tastes,
            )
        else:
            counts = expected_counts(
                ends, counted=counted, people=spec.people, horizon=T, robin=robin
            )
        self.population = Population(
            self.R,
            d,
            spec.arms.n_actions,
            counts=counts,
            stddev=self.sums.stddev,
            spread=hypot(self.noise, self.tastes / sqrt(d)),
            gains=gains,
        )
        self.start_learner()
        notion = Notion(trust=Trust(self.trust, self.honest))
        of: Literal["people", "slots"] = "people" if self.sums.replaces else "slots"
        notion = notion.of_person(spec.visits, of=of)
        self.ledger = ledger_of(self.epsilon, self.sums.spend, notion=notion)

    def learn(self, person: Ints, row: Floats, reward: Floats) -> None:
        # Add her visit, or the estimate from her memory; update the population at a release
        if self.sums.replaces:
            row, reward = self.estimate_of(person), np.full(self.R, self.spec.reward_high)
        release = self.sums(person, row, np.zeros(self.R, np.int64), reward)
        if release is not None:
            self.population.learn(release[:, 0])
            self.set_population(self.population.mean, self.population.covariance)

    def estimate_of(self, person: Ints) -> Floats:
        """Return the ridge estimates of the persons' parameters from their memories, (R, d)."""
        sums = self.memories.of(person)
        return _shrunk(sums[:, :-1], sums[:, -1], noise=self.noise, tastes=self.tastes)
