"""Shariff and Sheffet's private LinUCB: with Gaussian or Wishart noise, as printed or certified."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from dpbandit.agents.contextual.batched import BatchedSettings
from dpbandit.agents.contextual.optimism import Alpha, BatchedUCB, bonus_of, check_optimism
from dpbandit.base.inputs import one_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.statistics.moments import SecondMoments
from dpbandit.privacy.sums.shariff_sheffet import ShariffSheffet
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class ShariffSheffetUCB(BatchedSettings):
    """LinUCB on noisy running sums from a tree, with the noise of the paper.

    Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018::

        for t = 1..T:
          1. V = G + shift I,  theta = V^-1 u                 from released G, u only
          2. play argmax_a  x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x)
          3. clip x and r;  G += x x',  u += r x              through one tree sum

    sigma is `reward_noise`, by default half the public range of rewards, see `LinUCB`. `DPUCB` goes
    on from here.

    Fields left None follow the calibration::

        field           "paper", as printed       "certified"
        noise scale     see `ShariffSheffet`      least with certificate <= claim
        arms            joint, dimension K d      disjoint, K blocks
        alpha           theory                    1
        refresh_every   1                         ceil(horizon / 100)

    Code:
        Step 1 is `BatchedUCB._learn` (optimism.py) with `Ridge.refit` (ridge.py), step 2
        `Batched.act` (batched.py) with `BatchedUCB.scores`, step 3 `Batched.update`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: step 2 reads the current user's context and writes nothing;
        step 3 is the only use of (x, r), and all releases together are mu-GDP (Gaussian) or bounded
        by an exact loss law (Wishart, see `dpbandit.privacy.accounting.wishart`).

    Differs from the paper:
        1. x and r are clipped, whatever the environment sends.
        2. a tree node that no prefix uses is never drawn.
        3. the shift is at least `regularization`, so that without privacy it is LinUCB.
        4. disjoint arms take turns until the first release.
        5. Wishart noise is centred, and its printed constants could not be checked against the
           paper.
        6. "certified": the least noise for the claim.
        7. disjoint arms get their own blocks.
        8. releases every ceil(T / 100) rounds.
        9. the shift is twice a tail bound of this release's noise.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=10_000)
    >>> round(certify(ShariffSheffetUCB(epsilon=1.0, calibration="paper"), spec).epsilon, 3)
    0.055
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    noise: Literal["gaussian", "wishart"] = "gaussian"
    """its law"""
    arms: Literal["disjoint", "joint"] | None = None
    """one model for each arm, or one of all in a row; None is "joint" if as printed"""
    alpha: Alpha | None = None
    """width in ranges of the reward (2 sigma), 0 is greedy, or "theory" """
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""
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
        one_of("noise", self.noise, ("gaussian", "wishart"))
        if self.arms is not None:
            one_of("arms", self.arms, ("disjoint", "joint"))
        check_optimism(self)

    def make(self, spec: BanditSpec, streams: Streams) -> BatchedUCB:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec, paper = fits(self, spec, ContextualSpec), self.calibration == "paper"
        facts = self.facts(spec, self.arms or ("joint" if paper else "disjoint"))
        # one symmetric matrix over rows (x, r): noise beside r x as off the Gram's diagonal
        weight = sqrt(2) * spec.reward_bound / facts["context_bound"]
        statistic = SecondMoments(**facts, moment_weight=weight)
        target = self.target(spec, usual=1 if paper else None)
        proposal = ShariffSheffet(statistic, target, self.noise, printed=paper)
        sums, spectrum = proposal.sums(streams), proposal.spectrum(self.failure)
        bonus = bonus_of(self, spec, alpha="theory" if paper else 1.0, spectrum=spectrum)
        ledger = ledger_of(self.epsilon, sums.spend)
        return BatchedUCB(spec, len(streams), sums, statistic, bonus, ledger)
