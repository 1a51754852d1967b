"""Second moments with the noise of Shariff and Sheffet: printed constants, Wishart nodes.

Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018, for n
releases of blocks of dimension D, rows `|(x, r)| <= L` with L^2 = C^2 + B^2, failure alpha::

    m = 1 + ceil(log2 n)                                          levels of the tree
    s = 4 sqrt(m) L^2 ln(4/delta) / epsilon                       Gaussian node, off the diagonal
    Upsilon = s sqrt(2m) (4 sqrt(D) + 2 ln(2T/alpha))             spectrum in [Upsilon, 3 Upsilon]
    k = D + 1 + ceil(224 m ln(8m/delta) ln(2/delta) / epsilon^2)  Wishart node, W(L^2 I, k)
    Upsilon = 4 sqrt(mk) L^2 (sqrt(D) + sqrt(2 ln(8T/alpha)))     spectrum in [Upsilon, 2 Upsilon]

The proofs behind s and k compose loosely; what the noise really costs is in the ledger.
"""

from dataclasses import dataclass
from math import ceil, inf, log, log2, sqrt
from typing import Literal

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.moments import SecondMoments
from dpbandit.privacy.noise.samplers import Wishart
from dpbandit.privacy.sums.calibrated import (
    Spectrum,
    Target,
    least_multiplier,
    noisy_prefix_sum,
    tail_bound,
)
from dpbandit.privacy.sums.prefix_sums import PrefixSum, Tree, leaves
from dpbandit.privacy.wishart import WishartSpend, least_degrees, paper_degrees


@dataclass(frozen=True)
class ShariffSheffet:
    """The two noises of the paper, for one statistic and one target.

    `printed` takes s, k and Upsilon as in the module; else they are the least whose certificate
    meets the target, and the spectrum is that of `tail_bound`.
    """

    statistic: SecondMoments
    target: Target
    noise: Literal["gaussian", "wishart"]
    printed: bool = True

    @property
    def levels(self) -> int:
        """m."""
        releases = ceil(self.target.horizon / self.target.refresh_every)
        return 1 + ceil(log2(max(1, releases)))

    @property
    def nodes(self) -> int:
        """How many nodes one user is in, at most m."""
        return leaves(self.target.horizon, self.target.refresh_every).bit_length()

    @property
    def degrees(self) -> float:
        """k."""
        epsilon, delta, dim = self.target.epsilon, self.target.delta, self.statistic.block_dim + 1
        if self.printed:
            return paper_degrees(epsilon, delta, dim=dim, levels=self.levels)
        return least_degrees(epsilon, delta, dim=dim, nodes=self.nodes)

    @property
    def stddev(self) -> float:
        """Noise of a node in units of the statistic, on every coordinate; 0 without privacy."""
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
        """The running sums, noised by a tree."""
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
        """Where the noisy eigenvalues are, with probability 1 - `failure`."""
        D, tail = self.statistic.block_dim, log(2 * self.target.horizon / failure)
        if not self.printed:
            return tail_bound(D, self.target, failure=failure)
        largest = sqrt(self.levels) * self.stddev
        if self.noise == "gaussian":  # Gamma = Upsilon
            return Spectrum(sqrt(2) * (4 * sqrt(D) + 2 * tail), 2.0, largest)
        half = 2 * (sqrt(D) + sqrt(2 * (tail + log(4))))  # Gamma = Upsilon / 2
        return Spectrum(half, 3.0, largest)
