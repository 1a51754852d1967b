"""DP-UCB: optimism from privately released second moments."""

from dataclasses import dataclass
from math import ceil, inf, log, log2, sqrt
from typing import Literal

from dpbandit.inputs import BadInput, at_least, gaussian_target, inside, one_of, positive, whole
from dpbandit.optimism import Alpha, BatchedUCB, Bonus
from dpbandit.privacy.calibrate import Kind, least_multiplier, noisy_prefix_sum
from dpbandit.privacy.ledger import Ledger, no_privacy
from dpbandit.privacy.noise import Wishart
from dpbandit.privacy.prefix_sums import PrefixSum, TreeNoise, leaves
from dpbandit.privacy.statistics import SecondMoments
from dpbandit.privacy.wishart import WishartSpend, least_degrees, paper_degrees
from dpbandit.protocols import BanditSpec, ContextualSpec, fits
from dpbandit.streams import Streams


@dataclass(frozen=True, kw_only=True)
class DPUCB:
    """LinUCB on Gram matrices and moments that are released as noisy running sums.

    Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018.

        for t = 1..T:
          1. V = G + shift I,  theta = V^-1 u                 from released G, u only
          2. play argmax_a  x . theta_a + alpha sqrt(x' V_a^-1 x)
          3. clip x and r;  G += x x',  u += r x              through one prefix sum

    Guarantee. (epsilon, delta)-joint DP under continual observation for replacing one user's
    round, with the epsilon of the certificate: step 2 reads the current user's context and writes
    nothing; step 3 is the only use of (x, r), of L2 sensitivity sqrt(4.5) in unit scale (see
    `SecondMoments`), and all releases together are mu-GDP (Gaussian) or bounded by an exact loss
    law (Wishart, see `dpbandit.privacy.wishart`). Everybody else's action is post-processing.

    Fields left None follow the calibration:

        field           "paper", as printed                    "certified"
        noise scale     4 sqrt(m) L^2 ln(4/delta) / epsilon    least with certificate <= claim
        arms            joint, one block of dimension K d      disjoint, K blocks
        prefix_sums     tree                                   blt (tree for Wishart)
        alpha           theory                                 1.0
        refresh_every   1                                      ceil(horizon / 100)

    Differs from the paper ("certified"; "paper" keeps 1-5 as printed). (1) Exact Gaussian
    composition replaces basic composition of a loose tail bound: 13.8 times less noise at T = 10^4,
    epsilon 1, delta 1e-4, equal clips and units. (2)
    Disjoint arms get their own blocks, fed a one-hot row, so each ticks every round. (3) BLT in
    place of the tree. (4) Releases every `refresh_every` rounds. (5) The shift is twice a tail
    bound of this release's noise. In both: (6) x, r and optionally r x are clipped, whatever the
    environment sends; (7) a tree node that no prefix uses is never drawn; (8) the shift is at
    least `regularization`, so that epsilon = inf is LinUCB; (9) disjoint arms take turns until
    the first release; (10) Wishart noise is centred, and its printed constants could be checked
    against the specification only, not against the paper.

    >>> from dpbandit import certify
    >>> from dpbandit.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)
    >>> round(certify(DPUCB(epsilon=1.0, delta=1e-5), spec).epsilon, 6)
    1.0
    >>> round(certify(DPUCB(epsilon=1.0, delta=1e-5, calibration="paper"), spec).epsilon, 3)
    0.055
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    calibration: Literal["certified", "paper"] = "certified"
    noise: Literal["gaussian", "wishart"] = "gaussian"
    prefix_sums: Kind | None = None
    arms: Literal["disjoint", "joint"] | None = None
    alpha: Alpha | None = None
    """width multiplier, 0 is greedy, or "theory" """
    refresh_every: int | None = None
    """rounds from one release to the next"""
    context_clip: float | None = None
    """Euclidean norm contexts are clipped to; None: the environment's public bound"""
    moment_clip: float | None = None
    """norm r x is clipped to, on top of the clips of r and x"""
    moment_weight: float = 1.0
    """share of the budget of the moment against the Gram matrix, equal units at 1"""
    regularization: float = 1.0
    reward_noise: float | None = None
    """sub-Gaussian parameter for the theory radius; None: half the reward range"""
    parameter_norm: float = 1.0
    """bound on |theta_a| for the theory radius"""
    failure: float = 0.05
    """probability with which tail bounds may fail (utility only, never privacy)"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("calibration", self.calibration, ("certified", "paper"))
        one_of("noise", self.noise, ("gaussian", "wishart"))
        if self.prefix_sums is not None:
            one_of("prefix_sums", self.prefix_sums, ("tree", "blt"))
        if self.arms is not None:
            one_of("arms", self.arms, ("disjoint", "joint"))
        if self.alpha is not None and self.alpha != "theory":
            at_least("alpha", self.alpha, 0)
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)
        if self.reward_noise is not None:
            at_least("reward_noise", self.reward_noise, 0)
        inside("failure", self.failure, 0, 1, ends=False)
        for name in ("context_clip", "moment_clip"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        for name in ("moment_weight", "regularization", "parameter_norm"):
            positive(name, getattr(self, name))
        if self.prefix_sums == "blt" and (self.noise == "wishart" or self.calibration == "paper"):
            raise BadInput("Expected prefix_sums='blt' only with certified Gaussian noise.")
        plain = self.noise == "gaussian" and self.calibration == "certified"
        if self.moment_clip is not None and not plain:
            raise BadInput(
                f"Expected moment_clip={self.moment_clip} only with certified Gaussian noise."
            )

    def make(self, spec: BanditSpec, streams: Streams) -> BatchedUCB:
        """A running agent; raises `BadInput` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        paper, every = self.calibration == "paper", self._every(spec)
        statistic = self._statistic(spec)
        sums = self._sums(spec, statistic, streams)
        D, tail = statistic.block_dim, log(2 * spec.horizon / self.failure)
        gram_factor, shift_factor, stddev = 2 * sqrt(D) + 2 * sqrt(tail), 2.0, None
        if paper:
            levels = _levels(spec.horizon, every)
            stddev = sqrt(levels) * self._node_stddev(spec, statistic)
            if self.noise == "gaussian":  # Upsilon = s sqrt(2m) (4 sqrt(D) + 2 ln(2n / alpha))
                gram_factor = sqrt(2) * (4 * sqrt(D) + 2 * tail)
            else:  # half of Upsilon = 4 sqrt(mk) L^2 (sqrt(D) + sqrt(2 ln(8n / alpha)))
                gram_factor = 2 * (sqrt(D) + sqrt(2 * (tail + log(4))))
                shift_factor = 3.0  # spectrum in [Upsilon, 2 Upsilon]
        half_range = (spec.reward_high - spec.reward_low) / 2
        default_alpha: Alpha = "theory" if paper else 1.0
        bonus = Bonus(
            alpha=default_alpha if self.alpha is None else self.alpha,
            regularization=self.regularization,
            reward_noise=half_range if self.reward_noise is None else self.reward_noise,
            parameter_norm=self.parameter_norm,
            failure=self.failure,
            gram_factor=gram_factor,
            shift_factor=shift_factor,
            stddev=stddev,
        )
        private = self.epsilon < inf
        ledger = Ledger((sums.spend,)) if private else no_privacy("sums without noise")
        return BatchedUCB(spec, len(streams), sums, statistic, bonus, ledger)

    def _every(self, spec: ContextualSpec) -> int:
        default = 1 if self.calibration == "paper" else ceil(spec.horizon / 100)
        return default if self.refresh_every is None else self.refresh_every

    def _statistic(self, spec: ContextualSpec) -> SecondMoments:
        default = "joint" if self.calibration == "paper" else "disjoint"
        layout = "shared" if spec.shared else self.arms or default
        C = min(spec.context_norm, self.context_clip or inf)  # more than the bound is only noise
        weight = self.moment_weight
        if self.calibration == "paper" or self.noise == "wishart":
            # one symmetric matrix over rows (x, r): noise beside r x as off the Gram's diagonal
            weight = sqrt(2) * spec.reward_bound / C
        return SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout=layout,
            context_bound=C,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            moment_clip=self.moment_clip,
            moment_weight=weight,
        )

    def _node_stddev(self, spec: ContextualSpec, statistic: SecondMoments) -> float:
        """Noise a node (or z) in the units of `statistic`, on every coordinate."""
        L2 = statistic.context_bound**2 + statistic.reward_bound**2
        if self.noise == "wishart":
            s = L2 * sqrt(self._degrees(spec, statistic))
        elif self.calibration == "paper":
            m = _levels(spec.horizon, self._every(spec))
            s = 4 * sqrt(m) * L2 * log(4 / self.delta) / self.epsilon if self.epsilon < inf else 0.0
        else:
            return statistic.sensitivity * least_multiplier(
                self._kind(),
                horizon=spec.horizon,
                refresh_every=self._every(spec),
                epsilon=self.epsilon,
                delta=self.delta,
            )
        return sqrt(2) * s / statistic.context_bound**2

    def _degrees(self, spec: ContextualSpec, statistic: SecondMoments) -> float:
        dim, every = statistic.block_dim + 1, self._every(spec)
        if self.calibration == "paper":
            levels = _levels(spec.horizon, every)
            return paper_degrees(self.epsilon, self.delta, dim=dim, levels=levels)
        nodes = leaves(spec.horizon, every).bit_length()
        return least_degrees(self.epsilon, self.delta, dim=dim, nodes=nodes)

    def _kind(self) -> Kind:
        default: Kind = "tree" if self.calibration == "paper" or self.noise == "wishart" else "blt"
        return self.prefix_sums or default

    def _sums(self, spec: ContextualSpec, statistic: SecondMoments, streams: Streams) -> PrefixSum:
        every, stddev = self._every(spec), self._node_stddev(spec, statistic)
        if self.noise == "gaussian" or self.epsilon == inf:
            return noisy_prefix_sum(
                self._kind(),
                statistic,
                streams,
                horizon=spec.horizon,
                refresh_every=every,
                noise_multiplier=0.0 if self.epsilon == inf else stddev / statistic.sensitivity,
            )
        m, degrees = leaves(spec.horizon, every), self._degrees(spec, statistic)
        spend = WishartSpend(
            degrees,
            statistic.block_dim + 1,
            m.bit_length(),
            f"tree sum, {m} Wishart releases, k = {degrees:g}",
        )
        noise = TreeNoise(Wishart(degrees, statistic).sampler(streams, "tree noise"), stddev=stddev)
        return PrefixSum(statistic, noise, spend, horizon=spec.horizon, refresh_every=every)


def _levels(horizon: int, every: int) -> int:
    """m as printed: 1 + ceil(log2 n), n the number of releases."""
    return 1 + ceil(log2(max(1, ceil(horizon / every))))
