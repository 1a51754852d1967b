"""Base classes of agents that learn from fading sums of a bounded statistic."""

from copy import copy
from dataclasses import dataclass, fields, replace
from math import ceil, inf, sqrt
from typing import Annotated, Any, Literal, Self, TypeVar, final

import numpy as np

from dpbandit.agent import Arms, Count, PrivateAgent, started
from dpbandit.base import MOST_ROUNDS, Bools, Floats, InputError, Ints, Streams, inside, rows
from dpbandit.privacy import FadingSum, Ledger, Notion, Statistic, Trust, ledger_of, mu_of
from dpbandit.privacy.fading import (
    AggregatedSum,
    growing_batches,
    least_fading_multiplier,
    released_ends,
)
from dpbandit.privacy.spends import Spend
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, Prior, posterior

BanditSpecT = TypeVar("BanditSpecT", bound=BanditSpec)

_LEVEL_BATCHES, _LEVEL_ROUNDS, _MIN_LEVEL_ROUNDS = 3, 15, 10
"""Number of short batches for the level of rewards, rounds of each times mu, and least rounds"""
_MIN_ANYTIME_GROWTH = 0.01
"""Smallest growth of batches without a horizon, so that the list of their ends is short"""
MAX_COORDINATES = 1000
"""Largest number of parameters, K d, of a model whose posterior has a (K d, K d) matrix"""
GOLDEN_STEP = 0.6180339887498949
"""Golden ratio minus 1, whose multiples modulo 1 are spread evenly over [0, 1)"""
MIN_DIRECTIONS = 4
"""Smallest number of features for `FadeCentred`; with fewer, most contexts may equal their mean"""
_MIN_ROUNDS_PER_ARM = 20
"""Rounds per arm, divided by d^2, below which `FadeCentred` is preferred, whatever epsilon"""
_WIDENINGS = 4.0 ** np.arange(25)
"""Candidate factors by which a public prior's covariance is multiplied if its mean fits badly"""


@dataclass(frozen=True, kw_only=True)
class FadingReleases:
    """Settings of an (epsilon, delta)-DP sum of bounded statistics, discounted from batch to batch.

    Guarantee:
        The guarantee of `certified_fading_sum`, or with trust="aggregated" of `AggregatedSum`.
    """

    epsilon: float
    delta: float
    first_batch: int | None
    growth: float
    fade: float
    trust: Literal["central", "aggregated"] = "central"
    """trust model, "central" (a server sees exact sums) or "aggregated" (nobody does; fade is 0)"""
    honest: float = 1.0
    """fraction of devices that add their noise and do not drop out, in (0, 1]"""
    longest: int | None = None
    """largest number of rounds of a batch; None is no limit"""

    @classmethod
    def of(cls, agent: Any, **overrides: Any) -> Self:
        """Return the settings that `agent` has under the same names, replaced by `overrides`."""
        names = (one.name for one in fields(cls) if hasattr(agent, one.name))
        return cls(**{name: getattr(agent, name) for name in names} | overrides)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all releases together, infinite without noise."""
        return inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)

    def first(self, spec: BanditSpec, units: float, least: float = 30.0) -> int:
        """Return the rounds of uniform play, 2 `units` / mu, from `least` to at most T / 10."""
        if self.first_batch is not None:
            return self.first_batch
        return max(1, min(ceil(max(least, 2 * units / self.mu)), spec.horizon // 10))

    def sums(
        self,
        statistic: Statistic,
        spec: BanditSpec,
        streams: Streams,
        first: int,
        level_ends: tuple[int, ...] = (),
    ) -> FadingSum:
        """Return the mechanism, whose first batch after `level_ends` has `first` rounds."""
        ends = self.ends(spec, first, level_ends)
        batches: dict[str, Any] = {"ends": ends, "horizon": spec.horizon}
        if self.trust == "aggregated":
            target: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
            return AggregatedSum(statistic, streams, honest=self.honest, **batches, **target)
        multiplier = self.noise_multiplier(len(released_ends(ends, spec.horizon)))
        return FadingSum(statistic, streams, fade=self.fade, noise_multiplier=multiplier, **batches)

    def noise_multiplier(self, releases: int) -> float:
        """Return the least stddev / sensitivity of noise for `releases` releases by a server."""
        return least_fading_multiplier(releases, self.fade, epsilon=self.epsilon, delta=self.delta)

    def ends(
        self, spec: BanditSpec, first: int, level_ends: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the last round of each batch, beginning with those in `level_ends`."""
        start = level_ends[-1] if level_ends else 0
        later = growing_batches(
            max(1, spec.horizon - start), first=first, growth=self.growth, longest=self.longest
        )
        return (*level_ends, *(start + end for end in later))

    def level_ends(self, spec: BanditSpec) -> tuple[int, ...]:
        """Return the last rounds of three short batches in which the level of rewards is learned.

        Each is long enough for noise of about a tenth of the range, but has at most T / 50 rounds.
        """
        longest = min(spec.horizon // 50, self.first_batch or spec.horizon)
        length = max(1, min(ceil(max(_MIN_LEVEL_ROUNDS, _LEVEL_ROUNDS / self.mu)), longest))
        return tuple(length * (k + 1) for k in range(_LEVEL_BATCHES))

    def ledger(self, spend: Spend) -> Ledger:
        """Return the privacy ledger for the `spend` of the sums, alone or with other mechanisms."""
        return ledger_of(self.epsilon, spend, notion=Notion(trust=Trust(self.trust, self.honest)))


class Fading(PrivateAgent[ContextualSpec], Arms):
    """Base class of agents that learn from sums of a bounded statistic in which old batches fade::

        in round t             v_t, a bounded statistic of (x_t, a_t, r_t) and of earlier releases
        at the end of batch k  E_k = fade E_{k-1} + its sum of v_t;  release E_k + N(0, sigma^2 I)
        play                   a policy that depends on all releases so far

    A subclass defines the statistic and calls `sum_up` in `begin`. The first batch is played
    uniformly at random; each further one is longer by the factor 1 + `growth`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: v_t moves by at most the `sensitivity` of the statistic, for all contexts,
        actions and rewards, and at every released reference point. A user of batch b appears in
        release k >= b with weight fade^(k - b), these weights have norm at most
        1 / sqrt(1 - fade^2), and each release has fresh Gaussian noise (`FadingSum`); the action
        played is a function of releases, public coins and the user's own context.
    """

    first_batch: Count | None = None
    """rounds of uniform play; if None, it grows with the noise, to at most a tenth of T"""
    growth: Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)] = 0.1
    """growth of batches; each has (1 + growth) times the rounds of the one before"""
    fade: Annotated[float, lambda name, value: inside(name, value, 0, 0.999, ends=True)] = 0.7
    """factor of a user's weight from one release to the next, in [0, 0.999]"""
    anytime: bool = False
    """True for play that ignores the horizon; no default depends on it, and play may last longer"""
    sums = started(FadingSum)

    def check(self) -> None:
        super().check()
        if self.anytime and self.growth < _MIN_ANYTIME_GROWTH:
            raise InputError(
                f"Expected growth={self.growth} >= {_MIN_ANYTIME_GROWTH} with anytime=True: "
                "batches that grow need no horizon."
            )

    def target(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that the released sums may spend."""
        return self.epsilon, self.delta

    def plan(self) -> FadingReleases:
        """Return the settings of the fading sum."""
        epsilon, delta = self.target()
        return FadingReleases.of(self, epsilon=epsilon, delta=delta)

    @final
    def start(self) -> None:
        if self.anytime:
            self.spec = replace(self.spec, horizon=MOST_ROUNDS)
        self.releases = self.plan()
        self.begin()

    def begin(self) -> None:
        """Call `sum_up` and initialise the model (defined by subclasses)."""
        raise NotImplementedError

    def sum_up(self, statistic: Statistic, first: int, level_ends: tuple[int, ...] = ()) -> None:
        """Set `sums`, the mechanism, whose first batch has `first` rounds, and its `ledger`."""
        self.sums = self.releases.sums(statistic, self.spec, self.streams, first, level_ends)
        self.ledger = self.releases.ledger(self.sums.spend)

    @property
    def rounds_to_release(self) -> int:
        return self.sums.rounds_to_release


class OnDevices(Fading):
    """Base class of fading agents that can run on devices, with no trusted server, if fade is 0.

    Guarantee:
        With trust="aggregated" the guarantee of `Fading` holds for all that the server sees, noisy
        sums of batches (`AggregatedSum`): releases are broadcast, a user's own device chooses the
        action, computes the statistic of her round and sends it with a share of the noise.
    """

    trust: Literal["central", "aggregated"] = "central"
    """trust in the server; with "aggregated", which needs fade=0, it sees noisy sums of batches"""
    honest: float = 1.0
    """fraction of devices that add noise and stay online, in (0, 1]; only with "aggregated" """

    def check(self) -> None:
        super().check()
        Trust(self.trust, self.honest)
        if self.trust == "aggregated" and self.fade != 0:
            raise InputError(
                f"Expected fade={self.fade!r} to be 0 with trust='aggregated': nobody keeps exact "
                "sums there."
            )


class NoPrior:
    """Flat prior of a parameter, which adds nothing to a likelihood."""

    informed = False

    @property
    def precision(self) -> Floats | float:
        """Precision matrix of the prior of n parameters, (R, n, n); 0 if it is flat."""
        return 0.0

    @property
    def weighted_mean(self) -> Floats | float:
        """Precision matrix times mean of the prior of n parameters, (R, n); 0 if it is flat."""
        return 0.0

    def mode(self, precision: Floats) -> Floats:
        """Return the most probable n parameters before any release, (R, n), given `precision`."""
        weighted = np.asarray(self.weighted_mean)[..., None]
        return np.asarray(np.linalg.solve(precision, weighted)[..., 0])

    def of_replicas(self, replicas: slice | Bools) -> "NoPrior":
        """Return the prior for the replicas selected by a slice or mask."""
        return self

    def widen(self, b: Floats, precision: Floats) -> None:
        """Widen the prior to fit the likelihood exp(b . theta - theta' precision theta / 2)."""

    def gradient(self, theta: Floats) -> Floats | float:
        """Return the gradient of the prior's log density at theta, (R, n)."""
        return 0.0

    def loss(self, theta: Floats) -> Floats | float:
        """Return minus twice the prior's log density at theta, up to a constant, (R,)."""
        return 0.0


class PublicPrior(NoPrior):
    """Normal prior N(m, tau S) of a parameter; tau >= 1 is fitted, and is large if m is wrong.

    Given a likelihood exp(b . theta - theta' L theta / 2), tau is the one of 1, 4, 16, ... with the
    largest likelihood integrated over the prior (empirical Bayes). With S = C C', g = C'(b - L m)
    and the eigenvalues l and eigenvectors U of C' L C it maximises::

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

    def of_replicas(self, replicas: slice | Bools) -> "PublicPrior":
        # tau of a slice is a view: `widen` of the slice widens this prior, too
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
        evidence = (g**2 / (seen + 1 / _WIDENINGS) - np.log1p(_WIDENINGS * seen)).sum(axis=1)
        self.tau[:] = _WIDENINGS[evidence.argmax(axis=1)]


class WarmStarted(Fading):
    """Base class of fading agents that may start from a public prior of their parameter."""

    prior: Prior | str | None = None
    """prior from another study or an old log, a `dpbandit.Prior` or the path of a saved one; its
    privacy cost is part of the target"""
    known = started(NoPrior)
    _theta = _precision = started(np.ndarray)

    def check(self) -> None:
        super().check()
        if self.prior is not None:
            object.__setattr__(self, "prior", Prior.of(self.prior))

    def target(self) -> tuple[float, float]:
        # the prior's cost is part of the target: the sums may spend the rest
        whole = super().target()
        return self.prior.left_of(*whole) if isinstance(self.prior, Prior) else whole

    def start_from(self, size: int, meaning: str) -> None:
        """Set `known`, the prior of `size` parameters, and add its privacy cost to `ledger`."""
        self.known = NoPrior()
        if isinstance(self.prior, Prior):
            self.known = PublicPrior(self.prior, self.R, size, meaning=meaning)
            self.ledger = self.prior.ledger(self.ledger)

    def learned(self, replica: int = 0) -> Prior:
        """Return the posterior of a replica's parameters as a prior for another study."""
        return posterior(self._theta[replica], self._precision[replica])


def check_layout(agent: Fading, *, shared: bool) -> None:
    """Raise `InputError` unless arms share one parameter if `shared`, else have one each."""
    if agent.spec.shared is not shared:
        found, needed = "one parameter for all arms", "a parameter for each arm"
        if shared:
            found, needed = needed, found
        raise InputError(
            f"{type(agent).__name__} plays problems with {needed}, got {found}: choose another "
            "agent, such as fade."
        )


def check_coordinates(agent: Fading) -> None:
    """Raise `InputError` if K d exceeds `MAX_COORDINATES`."""
    K, d = agent.spec.n_actions, agent.spec.dim
    if K * d > MAX_COORDINATES:
        raise InputError(
            f"{type(agent).__name__} plays at most {MAX_COORDINATES:,} coordinates, got "
            f"{K} arms x {d} features = {K * d:,}: choose fade, fade-moments or fewer features."
        )


def trust_after(rounds: int) -> float:
    """Return the weight of the model's prediction after `rounds`, which is 1/2 after 100."""
    return rounds / (rounds + 100)


def coded_likelihood(
    design: Floats, offset: Floats, scores: Floats, gram: Floats
) -> tuple[Floats, Floats]:
    """Return b (R, K, d) and L (R, K, d, K, d) of a release's likelihood exp(b . x - x' L x / 2).

    Scores (R, K, d) at parameters x are design x - offset + noise, noise of covariance gram^-1.
    """
    b = np.vecmat(gram @ (scores + offset), design)
    pairs = design[:, :, None].swapaxes(-1, -2) @ design[:, None]  # (R, K, K, d, d)
    return b, (gram[:, :, None, None] * pairs).transpose(0, 1, 3, 2, 4)


def spec_after(spec: BanditSpecT, first: int) -> BanditSpecT:
    """Return the spec of a problem without its first `first` rounds; at least one round is left."""
    rounds = max(1, spec.horizon - first)
    return replace(spec, horizon=rounds, delay=min(spec.delay, rounds))


def link_fixes_middle(spec: ContextualSpec) -> bool:
    """Return True if the link puts the mean reward at x . theta = 0 in the middle of the range."""
    if spec.link not in LINKS:
        return False
    middle = (spec.reward_low + spec.reward_high) / 2
    return abs(float(LINKS[spec.link].mean(np.zeros(1))[0]) - middle) < 1e-6 * spec.half_range


def few_features(spec: ContextualSpec, mu: float, times: float = 1.0) -> bool:
    """Return True if a Gram matrix of T / 10 rounds has eigenvalues above `times` its noise.

    Noise is that of privacy or of sampling, whichever is larger; sampling needs d^2 users per arm.
    """
    eigenvalue = spec.horizon / (10 * spec.n_actions * spec.dim)
    return eigenvalue > times * max(gram_noise(spec, mu), spec.dim)


def gram_noise(spec: ContextualSpec, mu: float) -> float:
    """Return the spectral norm of the privacy noise in a Gram matrix."""
    return 2 * sqrt(2 * spec.dim) / mu


def crowded(spec: ContextualSpec, mu: float) -> bool:
    """Return True if features suffice for a centre, and users not for the level of rewards."""
    K, d = spec.n_actions, spec.dim
    few_rounds = spec.horizon < _MIN_ROUNDS_PER_ARM * K * d**2
    return d >= MIN_DIRECTIONS and (few_rounds or not few_features(spec, mu))


def in_force(ends: Ints, delay: int, count: int) -> Ints:
    """Return the number of releases before each of `count` rounds spread over a batch, (m, count).

    The m batches end with the rounds `ends`; rewards arrive `delay` rounds late.

    >>> in_force(np.array([2, 6]), 1, 4)
    array([[0, 0, 0, 0],
           [0, 1, 1, 1]])
    """
    lengths = np.diff(ends, prepend=0)
    passed = np.floor((rows(count) + 0.5) / count * lengths[:, None])
    rounds = 1 + ends[:, None] - lengths[:, None] + passed
    return np.searchsorted(ends + delay, rounds)
