"""NoisyFTRL: exponential weights of sums of losses that are released with noise."""

from dataclasses import dataclass

from dpbandit.agents.experts.weighted_majority import WeightedMajority, hedge_rate
from dpbandit.base.inputs import gaussian_target, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.statistics.moments import ClippedEntries
from dpbandit.privacy.sums.calibrated import Target, certified_sum
from dpbandit.privacy.sums.prefix_sums import Tree
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class NoisyFTRL:
    """Hedge on noisy sums: the leader regularised by entropy, told everybody's losses.

    After Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017,
    with their entropic regulariser and Gaussian noise of a binary tree::

        S~ = 0; for t = 1..T:
          1. follow expert i with probability proportional to exp(-eta S~_i)
          2. S~ <- l_1 + .. + l_t + N_t,  N the Gaussian noise of a tree on R^d

    Code:
        Step 1 is `WeightedMajority.act` (weighted_majority.py), which draws by `drawn` (draws.py);
        step 2 is `WeightedMajority.update`.

    Guarantee:
        (epsilon, delta)-DP of all releases S~ and all actions, for replacing one round's losses:
        they lie in [0, 1]^d, so that a sum moves by at most sqrt(d) in L2, and enter at most
        bit_length(T - 1) nodes; mu-GDP with the mu of (epsilon, delta), exactly.

    **Regret** is of order sqrt(T ln d) + sigma sqrt(ln(T) ln(d)), sigma = sqrt(d ln T) / mu the
    noise of a node: the price of privacy grows with the square root of d, where selections
    (`exponential-mechanism`, `shrinking-dartboard`, sparse vectors) pay its logarithm.

    Memory: O(R d log T).

    Differs from the paper:
        1. Noise is calibrated to the exact count of nodes, by Gaussian differential privacy.
        2. An expert is drawn where it plays a distribution.

    >>> from dpbandit import certify
    >>> proof = certify(NoisyFTRL(epsilon=1.0), ExpertsSpec(n_actions=10, horizon=1000))
    >>> round(proof.epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf is Hedge"""
    delta: float = 1e-6
    """target, in (0, 1)"""
    rate: float | None = None
    """eta; if None, sqrt(8 ln d / T), as without noise"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.rate is not None:
            positive("rate", self.rate)

    def make(self, spec: Spec, streams: Streams) -> WeightedMajority:
        """A running agent; raises `InputError` for anything but experts."""
        spec = fits(self, spec, ExpertsSpec)
        d, T = spec.n_actions, spec.horizon
        target = Target(self.epsilon, self.delta, T, refresh_every=1)
        sums = certified_sum(Tree(), ClippedEntries(d), streams, target)
        return WeightedMajority(
            spec,
            streams,
            sums=sums,
            rate=hedge_rate(d, T) if self.rate is None else self.rate,
            ledger=ledger_of(self.epsilon, sums.spend),
        )
