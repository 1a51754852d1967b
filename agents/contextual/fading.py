"""Base of agents that learn from fading sums of a bounded statistic: batches, ledger, priors."""

from copy import copy
from dataclasses import dataclass, fields, replace
from math import ceil, inf, sqrt
from typing import Annotated, Any, Literal, Self, TypeVar, final

import numpy as np

from dpbandit.agent import Arms, Count, PrivateAgent, started
from dpbandit.base import MOST_ROUNDS, Bools, Floats, InputError, Ints, Streams, inside, rows
from dpbandit.privacy import (
    FadingSum,
    Ledger,
    Notion,
    Statistic,
    Trust,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.fading import (
    AggregatedSum,
    growing_batches,
    least_fading_multiplier,
    released_ends,
)
from dpbandit.privacy.spends import Spend
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, Prior, posterior

BanditSpecT = TypeVar("BanditSpecT", bound=BanditSpec)

_LOOKS, _LOOK, _SHORTEST_LOOK = 3, 15, 10
_MIN_ANYTIME_GROWTH = 0.01
"""Growth of batches without a horizon, at least, so that their ends can be written down"""
MAX_COORDINATES = 1000
"""Coordinates K d of models whose posterior has a matrix of their square"""
_WIDER = 4.0 ** np.arange(25)
"""tau, by how much a covariance may have to be multiplied."""


@dataclass(frozen=True, kw_only=True)
class FadingReleases:
    """Settings of a fading sum that is (epsilon, delta)-DP, whatever it sums.

    Guarantee:
        That of `certified_fading_sum`, or of `AggregatedSum`.
    """

    epsilon: float
    delta: float
    first_batch: int | None
    growth: float
    fade: float
    trust: Literal["central", "aggregated"] = "central"
    """with "aggregated" a batch is in one release, fade 0"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay"""
    longest: int | None = None
    """rounds of a batch, at most"""

    @classmethod
    def of(cls, agent: Any, **own: Any) -> Self:
        """Take settings from an agent that has some by these names, and others from `own`."""
        names = (one.name for one in fields(cls))
        return cls(**{name: getattr(agent, name) for name in names if hasattr(agent, name)} | own)

    @property
    def mu(self) -> float:
        """Of all releases together."""
        return inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)

    def first(self, spec: BanditSpec, units: float, least: float = 30.0) -> int:
        """Rounds of uniform play: `units` in units of the noise, at least `least`, at most T/10."""
        if self.first_batch is not None:
            return self.first_batch
        return max(1, min(ceil(max(least, 2 * units / self.mu)), spec.horizon // 10))

    def sums(
        self,
        statistic: Statistic,
        spec: BanditSpec,
        streams: Streams,
        first: int,
        looks: tuple[int, ...] = (),
    ) -> FadingSum:
        """The mechanism, with a first batch of that length."""
        ends = self.ends(spec, first, looks)
        batches: dict[str, Any] = {"ends": ends, "horizon": spec.horizon}
        if self.trust == "aggregated":
            target: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
            return AggregatedSum(statistic, streams, honest=self.honest, **batches, **target)
        multiplier = self.noise_multiplier(len(released_ends(ends, spec.horizon)))
        return FadingSum(statistic, streams, fade=self.fade, noise_multiplier=multiplier, **batches)

    def noise_multiplier(self, releases: int) -> float:
        """Least noise of so many releases over the sensitivity, for a trusted server."""
        return least_fading_multiplier(releases, self.fade, epsilon=self.epsilon, delta=self.delta)

    def ends(self, spec: BanditSpec, first: int, looks: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The last round of each batch, `looks` before all others."""
        start = looks[-1] if looks else 0
        later = growing_batches(
            max(1, spec.horizon - start), first=first, growth=self.growth, longest=self.longest
        )
        return (*looks, *(start + end for end in later))

    def looks(self, spec: BanditSpec) -> tuple[int, ...]:
        """Ends of three short batches before the first, in which the level of rewards is learned.

        In each of them noise is a tenth of the range or less, but T / 50 is the longest, and a
        first batch that was asked for.
        """
        longest = min(spec.horizon // 50, self.first_batch or spec.horizon)
        length = max(1, min(ceil(max(_SHORTEST_LOOK, _LOOK / self.mu)), longest))
        return tuple(length * (k + 1) for k in range(_LOOKS))

    def ledger(self, spend: Spend) -> Ledger:
        """What the sums, or a mechanism with them in it, cost."""
        return ledger_of(self.epsilon, spend, notion=Notion(trust=Trust(self.trust, self.honest)))


class Fading(PrivateAgent[ContextualSpec], Arms):
    """Base class: in each batch every user adds a bounded statistic to a sum in which users fade::

        in round t             v_t, a bounded statistic of (x_t, a_t, r_t) and of earlier releases
        at the end of batch k  E_k = fade E_{k-1} + sum of v_t;  release E_k + N(0, sigma^2 I)
        play                   by all releases so far, until the next one

    A subclass makes the statistic and calls `sum_up` in `begin`. The first batch is played
    uniformly at random, each further one is longer by `growth`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: v moves by at most the `sensitivity` of the statistic, whatever is fed and
        at every released reference point. A user of batch b appears in release k >= b with weight
        fade^(k - b), weights of norm at most 1 / sqrt(1 - fade^2), all that with fresh Gaussian
        noise (`FadingSum`); what an agent plays is a function of releases, public coins and the
        user's own context.
    """

    first_batch: Count | None = None
    """rounds of uniform play; if None, about as many as the noise asks for, at most a tenth of T"""
    growth: Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)] = 0.1
    """by how much each batch is longer than the one before"""
    fade: Annotated[float, lambda name, value: inside(name, value, 0, 0.999, ends=True)] = 0.7
    """weight of a user in the next release, in [0, 0.999]"""
    anytime: bool = False
    """play without the horizon; no default depends on it, and rounds beyond it are played on"""
    sums = started(FadingSum)

    def check(self) -> None:
        super().check()
        if self.anytime and self.growth < _MIN_ANYTIME_GROWTH:
            raise InputError(
                f"Expected growth={self.growth} >= {_MIN_ANYTIME_GROWTH} with anytime=True: "
                "batches that grow need no horizon."
            )

    def target(self) -> tuple[float, float]:
        """Return what users of the sums may be promised, (epsilon, delta)."""
        return self.epsilon, self.delta

    def plan(self) -> FadingReleases:
        """Return what these settings say of releases."""
        epsilon, delta = self.target()
        return FadingReleases.of(self, epsilon=epsilon, delta=delta)

    @final
    def start(self) -> None:
        if self.anytime:
            self.spec = replace(self.spec, horizon=MOST_ROUNDS)
        self.releases = self.plan()
        self.begin()

    def begin(self) -> None:
        """Call `sum_up`, and set up what is learned from releases."""
        raise NotImplementedError

    def sum_up(self, statistic: Statistic, first: int, looks: tuple[int, ...] = ()) -> None:
        """Make `sums` and `ledger`, with a first batch of that length."""
        self.sums = self.releases.sums(statistic, self.spec, self.streams, first, looks)
        self.ledger = self.releases.ledger(self.sums.spend)

    @property
    def rounds_to_release(self) -> int:
        return self.sums.rounds_to_release


class OnDevices(Fading):
    """Base class of those that need no trusted server where users do not fade.

    Guarantee:
        With trust="aggregated" that of `Fading` is true of all that the server sees, noisy sums of
        batches (`AggregatedSum`): releases are broadcast, a user's own device plays, compares her
        answer with the prediction and sends v with its share of the noise.
    """

    trust: Literal["central", "aggregated"] = "central"
    """who sees what; with "aggregated", which needs fade=0, the server sees sums of batches"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay, in (0, 1]; "aggregated" """

    def check(self) -> None:
        super().check()
        Trust(self.trust, self.honest)
        if self.trust == "aggregated" and self.fade != 0:
            raise InputError(
                f"Expected fade={self.fade!r} to be 0 with trust='aggregated': nobody keeps exact "
                "sums there."
            )


class NoPrior:
    """Nothing is known: adds nothing to a likelihood."""

    informed = False

    @property
    def precision(self) -> Floats | float:
        """(R, n, n), or 0."""
        return 0.0

    @property
    def weighted_mean(self) -> Floats | float:
        """The precision times the mean, (R, n), or 0."""
        return 0.0

    def mode(self, precision: Floats) -> Floats:
        """The most probable parameter before any release, (R, n), given its precision."""
        weighted = np.asarray(self.weighted_mean)[..., None]
        return np.asarray(np.linalg.solve(precision, weighted)[..., 0])

    def one(self, replicas: slice | Bools) -> "NoPrior":
        """That of some replicas."""
        return self

    def widen(self, b: Floats, precision: Floats) -> None:
        """Nothing to widen."""

    def gradient(self, theta: Floats) -> Floats | float:
        """Of the log density at theta, (R, n)."""
        return 0.0

    def loss(self, theta: Floats) -> Floats | float:
        """Minus twice the log density, up to a constant, (R,)."""
        return 0.0


class PublicPrior(NoPrior):
    """N(m, tau S) of a parameter, tau >= 1 chosen by releases: a wrong prior is let go.

    Given a likelihood exp(b . theta - theta' L theta / 2), tau is that of 1, 4, 16, ... for which
    the likelihood, integrated over the prior, is largest: with S = C C', g = C'(b - L m) and the
    eigenvalues l and eigenvectors U of C' L C, that of the largest::

        sum_i  (U' g)_i^2 / (l_i + 1 / tau) - log(1 + tau l_i).
    """

    informed = True

    def __init__(self, prior: Prior, replicas: int, size: int, *, meaning: str) -> None:
        if len(prior.mean) != size:
            raise InputError(f"Expected prior={prior} to be of {size} numbers, {meaning}.")
        covariance = prior.matrix
        self.mean: Floats = np.array(prior.mean)
        self._root = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(self._root)
        self._precision: Floats = inverse.T @ inverse
        self.tau: Floats = np.ones(replicas)

    @property
    def precision(self) -> Floats:
        return np.asarray(self._precision / self.tau[:, None, None])

    @property
    def weighted_mean(self) -> Floats:
        return np.asarray(self._precision @ self.mean / self.tau[:, None])

    def one(self, replicas: slice | Bools) -> "PublicPrior":
        # That of some replicas: what is learned of its width is learned here, too
        some = copy(self)
        some.tau = self.tau[replicas]
        return some

    def gradient(self, theta: Floats) -> Floats:
        return np.asarray(np.vecmat(self.mean - theta, self._precision) / self.tau[:, None])

    def loss(self, theta: Floats) -> Floats:
        return np.asarray(np.vecdot(self.gradient(theta), self.mean - theta))

    def widen(self, b: Floats, precision: Floats) -> None:
        root = self._root
        eigenvalues, U = np.linalg.eigh(root.T @ precision @ root)
        seen = np.maximum(eigenvalues, 0.0)[..., None]  # (R, n, 1)
        g = np.vecmat(np.vecmat(b - precision @ self.mean, root), U)[..., None]
        evidence = (g**2 / (seen + 1 / _WIDER) - np.log1p(_WIDER * seen)).sum(axis=1)
        self.tau[:] = _WIDER[evidence.argmax(axis=1)]


class WarmStarted(Fading):
    """Base class of those that may start from a public prior of their parameter."""

    prior: Prior | str | None = None
    """of another study or an old log, a `dpbandit.Prior` or the path of one that was saved; what it
    cost is part of the target"""
    known = started(NoPrior)
    _theta = _precision = started(np.ndarray)

    def check(self) -> None:
        super().check()
        if self.prior is not None:
            object.__setattr__(self, "prior", Prior.of(self.prior))

    def target(self) -> tuple[float, float]:
        # What is left by the prior, whose cost is part of the target
        whole = super().target()
        return self.prior.left_of(*whole) if isinstance(self.prior, Prior) else whole

    def start_from(self, size: int, meaning: str) -> None:
        """Set `known`, the prior of a parameter of `size` numbers, and add its cost to `ledger`."""
        self.known = NoPrior()
        if isinstance(self.prior, Prior):
            self.known = PublicPrior(self.prior, self.R, size, meaning=meaning)
            self.ledger = self.prior.ledger(self.ledger)

    def learned(self, replica: int = 0) -> Prior:
        """Return the posterior of a replica's parameters as a prior for another study."""
        return posterior(self._theta[replica], self._precision[replica])


def check_layout(agent: Fading, *, shared: bool) -> None:
    """Raise `InputError` unless arms share one parameter, or have their own, as an agent needs."""
    if agent.spec.shared is not shared:
        found, needed = "one parameter for all arms", "a parameter for each arm"
        if shared:
            found, needed = needed, found
        raise InputError(
            f"{type(agent).__name__} plays problems with {needed}, got {found}: choose another "
            "agent, such as fade."
        )


def check_coordinates(agent: Fading) -> None:
    """Raise `InputError` where a posterior of all K d coordinates would be too large to hold."""
    K, d = agent.spec.n_actions, agent.spec.dim
    if K * d > MAX_COORDINATES:
        raise InputError(
            f"{type(agent).__name__} plays at most {MAX_COORDINATES:,} coordinates, got "
            f"{K} arms x {d} features = {K * d:,}: choose fade, fade-moments or fewer features."
        )


def trust_after(rounds: int) -> float:
    """Share of a prediction that is believed after so many rounds: by half after 100."""
    return rounds / (rounds + 100)


def coded_likelihood(
    design: Floats, offset: Floats, scores: Floats, gram: Floats
) -> tuple[Floats, Floats]:
    """b (R, K, d) and L (R, K, d, K, d) of a release of scores: design truth - offset + noise.

    The noise has covariance inverse to `gram` between the K arms; a design is (R, K, d, d).
    """
    b = np.vecmat(gram @ (scores + offset), design)
    pairs = design[:, :, None].swapaxes(-1, -2) @ design[:, None]  # (R, K, K, d, d)
    return b, (gram[:, :, None, None] * pairs).transpose(0, 1, 3, 2, 4)


def spec_after(spec: BanditSpecT, first: int) -> BanditSpecT:
    """Return the problem of those who come after `first` users; of one round at least."""
    rounds = max(1, spec.horizon - first)
    return replace(spec, horizon=rounds, delay=min(spec.delay, rounds))


def link_fixes_middle(spec: ContextualSpec) -> bool:
    """Whether the link says that rewards at x . theta = 0 lie in the middle of their range."""
    if spec.link not in LINKS:
        return False
    middle = (spec.reward_low + spec.reward_high) / 2
    return abs(float(LINKS[spec.link].mean(np.zeros(1))[0]) - middle) < 1e-6 * spec.half_range


def few_features(spec: ContextualSpec, mu: float, times: float = 1.0) -> bool:
    """Whether a Gram matrix pays: a tenth of the run shows eigenvalues above its noise.

    Budget alone does not choose it: with fewer than d^2 users of an arm chance hides as much as
    noise did, and moments gain from the budget too.
    """
    eigenvalue = spec.horizon / (10 * spec.n_actions * spec.dim)
    noise = 2 * sqrt(2 * spec.dim) / mu
    return eigenvalue > times * max(noise, spec.dim)


def in_force(ends: Ints, delay: int, count: int) -> Ints:
    """After how many releases actions were chosen, for `count` rounds all over each batch.

    Batches end with the answers of rounds `ends`, which arrive `delay` rounds late: (m, count).

    >>> in_force(np.array([2, 6]), 1, 4)
    array([[0, 0, 0, 0],
           [0, 1, 1, 1]])
    """
    lengths = np.diff(ends, prepend=0)
    passed = np.floor((rows(count) + 0.5) / count * lengths[:, None])
    rounds = 1 + ends[:, None] - lengths[:, None] + passed
    return np.searchsorted(ends + delay, rounds)
