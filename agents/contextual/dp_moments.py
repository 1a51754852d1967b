"""DP-Moments: greedy play on privately released sums of r x, without a regression."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.batched import Batched, BatchedSettings
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import Ledger, ledger_of
from dpbandit.privacy.statistics.moments import Moments
from dpbandit.privacy.sums.certified_sums import certified_sum
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.privacy.sums.processes import process_named
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class DPMoments(BatchedSettings):
    """DP-UCB without its Gram matrices: the whole budget goes to the moments.

    A design of this project, for noise that drowns a regression: where it needs a shift far above
    G, V^-1 is nearly a multiple of I, and G was paid for in vain (see `DPUCB`)::

        for t = 1..T:
          1. play argmax_a  x . u_a                            from released u only
          2. clip x and r;  u_a += r x                         through one prefix sum

    Code:
        Step 1 is `Batched.act` (batched.py) with `BatchedMoments.scores`, step 2 `Batched.update`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round: step 1
        reads the current user's context and writes nothing; step 2 is the only use of (x, r), of L2
        sensitivity 2 moment_clip (see `Moments`), and all releases together are mu-GDP with the mu
        of the target. No regret bound, and a bias where contexts are far from isotropic or arms are
        played unequally often.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)
    >>> round(certify(DPMoments(epsilon=1.0, delta=1e-5), spec).epsilon, 6)
    1.0
    """

    prefix_sums: Literal["tree", "blt"] = "blt"
    """the mechanism that releases running sums"""
    arms: Literal["disjoint", "joint"] = "disjoint"
    """one model for each arm, or one of all arms' features in a row"""
    moment_clip: float | None = None
    """norm r x is clipped to, on top of the clips of r and x"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("prefix_sums", self.prefix_sums, ("tree", "blt"))
        one_of("arms", self.arms, ("disjoint", "joint"))
        if self.moment_clip is not None:
            positive("moment_clip", self.moment_clip)

    def for_demand(self) -> "DPMoments":
        """Raises `InputError`: scores in no unit are no chances of a sale."""
        raise InputError("Expected an agent that scores arms by chances of a sale, not by moments.")

    def make(self, spec: BanditSpec, streams: Streams) -> "BatchedMoments":
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        statistic, process = self._statistic(spec), process_named(self.prefix_sums)
        sums = certified_sum(process, statistic, streams, self.target(spec))
        return BatchedMoments(spec, len(streams), sums, ledger_of(self.epsilon, sums.spend))

    def _statistic(self, spec: ContextualSpec) -> Moments:
        return Moments(**self.facts(spec, self.arms), moment_clip=self.moment_clip)


class BatchedMoments(Batched):
    """Plays argmax x . u_a on the released `Moments` u.

    Where contexts are isotropic, u_a is proportional to the regression parameter in expectation,
    with one factor for all arms that are played equally often: the order of the scores means
    something, their size does not.
    """

    def __init__(
        self, spec: ContextualSpec, replicas: int, sums: PrefixSum, ledger: Ledger
    ) -> None:
        super().__init__(spec, replicas, sums, ledger)
        self._u: Floats = np.zeros((replicas, 1 if spec.shared else spec.n_actions, spec.dim))

    def scores(self, context: Floats) -> Floats:
        """x . u_a, (R, K), in reward times squared length of a context, summed over rounds."""
        if self._spec.shared:
            return np.matvec(context, self._u[:, 0])
        return np.matvec(self._u, context)

    def _learn(self, release: Floats) -> None:
        self._u = release.reshape(self._u.shape)
