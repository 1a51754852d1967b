"""DP-UCB: optimism from privately released second moments."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal

from dpbandit.agents.contextual.batched import BatchedSettings
from dpbandit.agents.contextual.optimism import Alpha, BatchedUCB, bonus_of, check_optimism
from dpbandit.agents.contextual.printed_elsewhere import PrintedElsewhere
from dpbandit.agents.contextual.shariff_sheffet_ucb import ShariffSheffetUCB
from dpbandit.base.inputs import InputError, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.statistics.moments import SecondMoments
from dpbandit.privacy.sums.certified_sums import certified_sum, tail_bound
from dpbandit.privacy.sums.processes import process_named
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits

_DEMAND_ALPHA, _DEMAND_SHIFT = 0.0, 0.05
"""Defaults for a model of demand."""


@dataclass(frozen=True, kw_only=True)
class DPUCB(PrintedElsewhere, BatchedSettings):
    """LinUCB on Gram matrices and moments that are released as noisy running sums.

    After Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018,
    whose algorithm as printed is `ShariffSheffetUCB`, which `calibration="paper"` makes::

        for t = 1..T:
          1. V = G + shift I,  theta = V^-1 u                 from released G, u only
          2. play argmax_a  x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x)
          3. clip x and r;  G += x x',  u += r x              through one prefix sum

    sigma is `reward_noise`, by default half the public range of rewards, see `LinUCB`. Where noise
    needs a shift far above G, V^-1 is nearly a multiple of I: `DPMoments` releases no G.

    Behind `Priced` all prices share one regression, of a sale, with other defaults: alpha 0,
    because random prices explore already, and shift 0.05. They were chosen on synthetic price lists
    (12 prices; the logit of a sale a + b u + c v - s price, random a to s and contexts (1, u, v) /
    sqrt(3); 40 lists, 20,000 rounds): there, for epsilon from 0.2 to 5, regret was within a
    standard error of the least for shifts from 0.02 to 0.05, and 1.9 to 2.7 times as large at 2;
    alpha 0 was compared with 1 at epsilon 1 alone. No certificate covers such a choice.

    Code:
        Step 1 is `BatchedUCB._learn` (optimism.py) with `Ridge.refit` (ridge.py), step 2
        `Batched.act` (batched.py) with `BatchedUCB.scores`, step 3 `Batched.update`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: step 2 reads the current user's context and writes nothing;
        step 3 is the only use of (x, r), of L2 sensitivity sqrt(4.5) in unit scale (see
        `SecondMoments`), and all releases together are mu-GDP. Everybody else's action is
        post-processing.

    Differs from the paper:
        1. Exact Gaussian composition replaces basic composition of a loose tail bound: 13.8 times
           less noise at T = 10^4, epsilon 1, delta 1e-4, equal clips and units.
        2. Disjoint arms get their own blocks, fed a one-hot row, so each ticks every round.
        3. BLT in place of the tree.
        4. Releases every `refresh_every` rounds.
        5. The shift is twice a tail bound of this release's noise, and at least `regularization`,
           so that epsilon = inf is LinUCB.
        6. x, r and optionally r x are clipped, whatever the environment sends.
        7. disjoint arms take turns until the first release.
        8. the width is 1, not the theory's.
        9. noise in the trace of a lone block is smaller for nothing (`PreciseTrace`), and the shift
           with it.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)
    >>> round(certify(DPUCB(epsilon=1.0, delta=1e-5), spec).epsilon, 6)
    1.0
    """

    printed: ClassVar[type] = ShariffSheffetUCB
    prefix_sums: Literal["tree", "blt"] = "blt"
    """the mechanism that releases running sums"""
    arms: Literal["disjoint", "joint"] = "disjoint"
    """one model for each arm, or one of all arms' features in a row"""
    alpha: Alpha | None = None
    """width in ranges of the reward (2 sigma), 0 is greedy, or "theory", which needs a shift above
    1; None: 1, 0 for a model of demand"""
    moment_clip: float | None = None
    """norm r x is clipped to, on top of the clips of r and x"""
    moment_weight: float = 1.0
    """share of the budget of the moment against the Gram matrix, equal units at 1"""
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""
    shift: float | None = None
    """how many tail bounds of its noise are added to V (utility only, never privacy), > 0; if None,
    2, 0.05 for a model of demand. Theta shrinks less with less; below 1 the noise may win, V be
    indefinite"""
    reward_noise: float | None = None
    """sigma, the sub-Gaussian parameter of rewards; if None, half their range"""
    parameter_norm: float | None = None
    """bound on `|theta_a|` for the theory radius; if None, the largest that the public bounds
    allow"""
    failure: float = 0.05
    """probability with which tail bounds may fail (utility only, never privacy)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calibration", self.calibration, ("certified", "paper"))
        one_of("prefix_sums", self.prefix_sums, ("tree", "blt"))
        one_of("arms", self.arms, ("disjoint", "joint"))
        for name in ("moment_clip", "moment_weight", "shift"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        check_optimism(self)
        if self.alpha == "theory" and self.shift is not None and self.shift <= 1:
            raise InputError(
                f"Expected shift={self.shift!r} > 1 with alpha='theory': V has to stay above 0."
            )

    def for_demand(self) -> "DPUCB":
        """What is not told, as a model of demand has it; with the theory's width as for arms."""
        if self.alpha == "theory":
            return self
        return replace(
            self,
            alpha=_DEMAND_ALPHA if self.alpha is None else self.alpha,
            shift=_DEMAND_SHIFT if self.shift is None else self.shift,
        )

    def make(self, spec: BanditSpec, streams: Streams) -> BatchedUCB:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        statistic, target = self._statistic(spec), self.target(spec)
        sums = certified_sum(process_named(self.prefix_sums), statistic, streams, target)
        factor = 2.0 if self.shift is None else self.shift
        spectrum = tail_bound(
            statistic.block_dim,
            target,
            failure=self.failure,
            shift_factor=factor,
            trace_variance=statistic.trace_variance,
        )
        bonus, ledger = bonus_of(self, spec, spectrum=spectrum), ledger_of(self.epsilon, sums.spend)
        return BatchedUCB(spec, len(streams), sums, statistic, bonus, ledger)

    def _statistic(self, spec: ContextualSpec) -> SecondMoments:
        facts = self.facts(spec, self.arms)
        one_block = facts["layout"] != "disjoint"  # of several it is worth nothing
        free = self.moment_clip is None and self.epsilon < inf  # without noise it would only round
        return SecondMoments(
            **facts,
            moment_clip=self.moment_clip,
            moment_weight=self.moment_weight,
            precise_trace=one_block and free,
        )
