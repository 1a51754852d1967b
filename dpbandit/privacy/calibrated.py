"""Running sums with the least noise that meets a privacy target.

A running sum has a factorisation, which combines independent noises to the noise of each release,
and a law of these noises. `noise_multiplier` is the scale of one of them divided by the
sensitivity: standard deviation by L2 sensitivity, Laplace scale by L1, K-norm scale by L2. Noise
changes the eigenvalues of a Gram matrix; `Spectrum` bounds by how much.

**Second moments with the noise of Shariff and Sheffet**: the paper's constants, Wishart nodes.
Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018, for n
releases of Gram matrices of dimension D, contexts `|x| <= C`, rewards `|r| <= B`, L^2 = C^2 + B^2,
and failure probability alpha. The spectrum is of the noise plus a multiple of I::

    m = 1 + ceil(log2 n)                                          levels of the tree
    s = 4 sqrt(m) L^2 ln(4/delta) / epsilon                       Gaussian node, off the diagonal
    Upsilon = s sqrt(2m) (4 sqrt(D) + 2 ln(2T/alpha))             spectrum in [Upsilon, 3 Upsilon]
    k = D + 1 + ceil(224 m ln(8m/delta) ln(2/delta) / epsilon^2)  Wishart node, W(L^2 I, k)
    Upsilon = 4 sqrt(mk) L^2 (sqrt(D) + sqrt(2 ln(8T/alpha)))     spectrum in [Upsilon, 2 Upsilon]

The proofs behind s and k compose loosely; the ledger has the certified cost of the noise.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf, log, log2, prod, sqrt
from typing import Literal, NamedTuple

from dpbandit.base import InputError, Streams, gaussian_target, one_of, privacy_target
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.factors import Window
from dpbandit.privacy.ledger import least_noise
from dpbandit.privacy.mechanism import Statistic, moving
from dpbandit.privacy.moments import SecondMoments
from dpbandit.privacy.noise import Gaussian, KNorm, Laplace, Wishart
from dpbandit.privacy.prefix_sums import (
    LAWS,
    Exact,
    Factorisation,
    NodeLaw,
    NoiseLaw,
    PrefixSum,
    Tree,
    leaves,
    mu_after,
)
from dpbandit.privacy.pure import KNormSpend, LaplaceSpend
from dpbandit.privacy.spends import Expiring, GaussianSpend, Spend
from dpbandit.privacy.wishart import WishartSpend, least_degrees, paper_degrees


@dataclass(frozen=True)
class PrefixSlots:
    """Release plan of prefix sums, with `leaves` releases, one after every `every` rounds."""

    factorisation: Factorisation
    leaves: int
    every: int
    moving: float = 2.0
    """cost of moving a user to another time slot, divided by the cost of replacing her, 1 to 2"""
    order: Literal[1, 2] = 2
    """order of the norm in which the costs of noises add up, 1 for pure DP and 2 for Gaussians"""

    def person_norm(self, cap: int, separation: int) -> float:
        return _prefix(self.factorisation, self.leaves, self.every, cap, separation)

    def early_norm(self, age: int) -> float:
        return self._norm_of_first(1 + age // self.every)

    def past_norm(self, rounds: int) -> float:
        return self._norm_of_first(rounds // self.every)

    def _norm_of_first(self, releases: int) -> float:
        if not releases:
            return 0.0
        if self.order == 2:
            return self.factorisation.early_norm(self.leaves, releases)
        return prod(self.factorisation.noises(self.leaves, releases))


@cache
def _prefix(
    factorisation: Factorisation, leaves: int, every: int, cap: int, separation: int
) -> float:
    return factorisation.person_norm(leaves, every, cap, separation)


class Target(NamedTuple):
    """Privacy target of all releases of a running sum, with horizon and release interval."""

    epsilon: float
    """privacy parameter > 0; inf adds no noise"""
    delta: float
    horizon: int
    """T, the number of rounds"""
    refresh_every: int
    """number of rounds from one release to the next"""


class Spectrum(NamedTuple):
    """Bound on the eigenvalues of noise in a Gram matrix, and the multiple of I that offsets it.

    If entries off the diagonal have standard deviation s, the noise has norm at most Gamma =
    `gram_factor` s with high probability; `shift_factor` Gamma I is added to the matrix.
    """

    gram_factor: float
    shift_factor: float = 2.0
    stddev: float | None = None
    """standard deviation of noise in units of the statistic; None for that of the latest release"""


def law_named(word: str) -> NoiseLaw:
    """Return the noise law named `word`; "gamma" is another name of "k-norm"."""
    one_of("noise", word, (*LAWS, "gamma"))
    law: NoiseLaw = "k-norm" if word == "gamma" else word  # type: ignore[assignment]
    return law


def least_multiplier(
    factorisation: Factorisation,
    *,
    horizon: int,
    refresh_every: int,
    epsilon: float,
    delta: float,
    law: NoiseLaw = "gaussian",
    dim: int = 1,
) -> float:
    """Return the least `noise_multiplier` for which all releases are (epsilon, delta)-DP.

    It is exact for Gaussian noise. Other laws are certified by the sum of their epsilons if delta
    = 0, else by their privacy-loss distribution. `dim` is the number of coordinates of a K-norm.

    >>> from dpbandit.privacy.prefix_sums import Tree
    >>> round(least_multiplier(Tree(), horizon=10_001, refresh_every=1, epsilon=1, delta=1e-4), 2)
    11.92
    """
    m = leaves(horizon, refresh_every)
    _check(factorisation, law)
    if law == "gaussian":
        gaussian_target(epsilon, delta)
        return factorisation.column_norm(m) / mu_of(epsilon, delta)
    privacy_target(epsilon, delta)
    moved, count = factorisation.noises(m)
    if not count or epsilon == inf:
        return 0.0
    if delta == 0:
        return moved * count / epsilon * (1 + 1e-12)
    return moved * _least_pure_multiplier(law, count, dim, epsilon, delta)


@cache
def _least_pure_multiplier(
    law: NoiseLaw, count: int, dim: int, epsilon: float, delta: float
) -> float:
    def spend(x: float) -> Spend:
        return _spend(law, x, (1.0, count), dim, "")

    return least_noise(spend, epsilon=epsilon, delta=delta)


def noisy_prefix_sum(
    factorisation: Factorisation,
    statistic: Statistic,
    streams: Streams,
    *,
    horizon: int,
    refresh_every: int,
    noise_multiplier: float,
    law: NoiseLaw = "gaussian",
) -> PrefixSum:
    """Return a running sum of `statistic` with noise of the given factorisation and law.

    The spend of a `Window` is `Expiring`, so its ledger needs a notion that protects a window of
    rounds. The L1 sensitivity is `statistic.l1_sensitivity` if there is one, else the L2
    sensitivity times the root of the number of coordinates.
    """
    _check(factorisation, law)
    m, shape = leaves(horizon, refresh_every), statistic.shape
    size = prod(shape)
    note = f"{factorisation.word} sum, {m} {law} releases"
    scale = noise_multiplier * statistic.sensitivity
    spend: Spend
    drawn: NodeLaw = Gaussian(scale)
    if law == "gaussian":
        mu = mu_after(factorisation.column_norm(m), noise_multiplier)
        slots = PrefixSlots(factorisation, m, refresh_every, moving(statistic))
        spend = GaussianSpend(mu, note.replace("gaussian", "Gaussian"), slots)
    else:
        spend = _spend(law, noise_multiplier, factorisation.noises(m), size, note)
        spend = replace(spend, slots=PrefixSlots(factorisation, m, refresh_every, order=1))
        l1 = getattr(statistic, "l1_sensitivity", statistic.sensitivity * sqrt(size))
        drawn = Laplace(noise_multiplier * l1) if law == "laplace" else KNorm(scale)
    if isinstance(factorisation, Window):
        spend = Expiring(spend, factorisation.window * refresh_every)
    noise = factorisation.start(drawn, streams, shape, m)
    return PrefixSum(statistic, noise, spend, horizon=horizon, refresh_every=refresh_every)


def exact_prefix_sum(statistic: Statistic, *, horizon: int, refresh_every: int) -> PrefixSum:
    """Return a running sum without noise, of infinite cost."""
    m = leaves(horizon, refresh_every)
    spend = GaussianSpend(inf if m else 0.0, f"exact sum, {m} releases")
    return PrefixSum(statistic, Exact(), spend, horizon=horizon, refresh_every=refresh_every)


def certified_sum(
    factorisation: Factorisation,
    statistic: Statistic,
    streams: Streams,
    target: Target,
    *,
    law: NoiseLaw = "gaussian",
) -> PrefixSum:
    """Return a running sum with the least noise of the given law that meets the target.

    Guarantee:
        All releases are (epsilon, delta)-DP for replacing one user. Gaussian releases are mu-GDP
        for the largest mu that meets the target, the column norm of the factorisation divided by
        the noise multiplier. For other laws see `least_multiplier`.
    """
    multiplier = least_multiplier(
        factorisation,
        horizon=target.horizon,
        refresh_every=target.refresh_every,
        epsilon=target.epsilon,
        delta=target.delta,
        law=law,
        dim=prod(statistic.shape),
    )
    return noisy_prefix_sum(
        factorisation,
        statistic,
        streams,
        horizon=target.horizon,
        refresh_every=target.refresh_every,
        noise_multiplier=multiplier,
        law=law,
    )


def tail_bound(
    dim: int,
    horizon: int,
    *,
    failure: float,
    shift_factor: float = 2.0,
    trace_variance: float = 1.0,
) -> Spectrum:
    """Return the bound s (2 sqrt(D) + 2 sqrt(v ln(2T/failure))) on the norm of Gaussian noise N.

    N (D, D) has standard deviation s off the diagonal, and x' N x has variance 2 s^2 v for unit x:
    v = 1, or 1 - (1 - `trace_variance`) / D where the noise is smaller along the identity.
    """
    v = 1 - (1 - trace_variance) / dim
    tail = log(2 * horizon / failure)
    return Spectrum(2 * sqrt(dim) + 2 * sqrt(v * tail), shift_factor)


def _spend(
    law: NoiseLaw, noise_multiplier: float, noises: tuple[float, int], dim: int, note: str
) -> LaplaceSpend | KNormSpend:
    moved, count = noises
    ratio = moved / noise_multiplier if noise_multiplier else inf
    if law == "laplace":
        return LaplaceSpend(ratio, count=count, note=note)
    return KNormSpend(dim, ratio, count=count, note=note)


def _check(factorisation: Factorisation, law: NoiseLaw) -> None:
    one_of("law", law, LAWS)
    if law not in factorisation.laws:
        raise InputError(
            f"Expected law={law!r} to be {' or '.join(factorisation.laws)} for {factorisation!r}."
        )


@dataclass(frozen=True)
class ShariffSheffet:
    """Gaussian and Wishart noise of Shariff and Sheffet (2018), for one statistic and target.

    `printed` uses the constants of the paper (module docstring); else the noise is the least that
    is certified to meet the target, and the noise's eigenvalues are bounded by `tail_bound`.
    """

    statistic: SecondMoments
    target: Target
    noise: Literal["gaussian", "wishart"]
    printed: bool = True

    @property
    def levels(self) -> int:
        """Number of levels of the tree."""
        releases = ceil(self.target.horizon / self.target.refresh_every)
        return 1 + ceil(log2(max(1, releases)))

    @property
    def nodes(self) -> int:
        """Largest number of tree nodes that one user enters, at most `levels`."""
        return leaves(self.target.horizon, self.target.refresh_every).bit_length()

    @property
    def degrees(self) -> float:
        """Number of degrees of freedom of Wishart noise."""
        epsilon, delta, dim = self.target.epsilon, self.target.delta, self.statistic.block_dim + 1
        if self.printed:
            return paper_degrees(epsilon, delta, dim=dim, levels=self.levels)
        return least_degrees(epsilon, delta, dim=dim, nodes=self.nodes)

    @property
    def stddev(self) -> float:
        # Noise of a node in units of the statistic, on every coordinate; 0 without privacy
        if self.target.epsilon == inf:
            return 0.0
        L2 = self.statistic.context_bound**2 + self.statistic.reward_bound**2
        if self.noise == "gaussian" and not self.printed:
            return least_multiplier(Tree(), **self.target._asdict()) * self.statistic.sensitivity
        if self.noise == "wishart":
            s = L2 * sqrt(self.degrees)
        else:
            s = 4 * sqrt(self.levels) * L2 * log(4 / self.target.delta) / self.target.epsilon
        return sqrt(2) * s / self.statistic.context_bound**2

    def sums(self, streams: Streams) -> PrefixSum:
        """Return the mechanism of running sums of the statistic with tree noise."""
        T, every = self.target.horizon, self.target.refresh_every
        if self.noise == "gaussian" or self.target.epsilon == inf:
            return noisy_prefix_sum(
                Tree(),
                self.statistic,
                streams,
                horizon=T,
                refresh_every=every,
                noise_multiplier=self.stddev / self.statistic.sensitivity,
            )
        note = f"tree sum, {leaves(T, every)} Wishart releases, k = {self.degrees:g}"
        spend = WishartSpend(self.degrees, self.statistic.block_dim + 1, self.nodes, note)
        node = Wishart(self.degrees, self.statistic).sampler(streams, "tree noise")
        noise = Tree().of(node, stddev=self.stddev)
        return PrefixSum(self.statistic, noise, spend, horizon=T, refresh_every=every)

    def spectrum(self, failure: float) -> Spectrum:
        """Return bounds on eigenvalues of the noise that hold with probability 1 - `failure`."""
        D, tail = self.statistic.block_dim, log(2 * self.target.horizon / failure)
        if not self.printed:
            return tail_bound(D, self.target.horizon, failure=failure)
        largest = sqrt(self.levels) * self.stddev
        if self.noise == "gaussian":  # Gamma = Upsilon
            return Spectrum(sqrt(2) * (4 * sqrt(D) + 2 * tail), 2.0, largest)
        half = 2 * (sqrt(D) + sqrt(2 * (tail + log(4))))  # Gamma = Upsilon / 2
        return Spectrum(half, 3.0, largest)
