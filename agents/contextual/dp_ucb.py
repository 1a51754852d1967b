"""DP-UCB: optimism from privately released second moments."""

from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import Literal

from dpbandit.agents.contextual.batched import BatchedMoments
from dpbandit.agents.contextual.optimism import Alpha, BatchedUCB, bonus_of, check_optimism
from dpbandit.base.inputs import InputError, gaussian_target, one_of, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import Ledger, no_privacy
from dpbandit.privacy.statistics.moments import Moments, SecondMoments
from dpbandit.privacy.sums.certified_sums import Target, certified_sum, tail_bound
from dpbandit.privacy.sums.processes import process_named
from dpbandit.privacy.sums.shariff_sheffet import ShariffSheffet
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, ScoringAgent, fits

_DEMAND_ALPHA, _DEMAND_SHIFT = 0.0, 0.05
"""Defaults with a model of demand and certified Gaussian noise."""


@dataclass(frozen=True, kw_only=True)
class DPUCB:
    """LinUCB on Gram matrices and moments that are released as noisy running sums.

    Shariff and Sheffet, "Differentially private contextual linear bandits", NeurIPS 2018.

        for t = 1..T:
          1. V = G + shift I,  theta = V^-1 u                 from released G, u only
          2. play argmax_a  x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x)
          3. clip x and r;  G += x x',  u += r x              through one prefix sum

    sigma is `reward_noise`, by default half the public range of rewards, see `LinUCB`.

    With statistics="moment" no G is released: step 2 is argmax_a x . u_a, and the whole budget
    goes to u. Where noise needs a shift far above G, V^-1 is nearly a multiple of I anyway.

    Behind `Priced` all prices share one regression, of a sale, and certified Gaussian noise has
    other defaults: alpha 0, because random prices explore already, and shift 0.05. They were chosen
    on synthetic price lists (12 prices; the logit of a sale a + b u + c v - s price, random a to s
    and contexts (1, u, v) / sqrt(3); 40 lists, 20,000 rounds): there, for
    epsilon from 0.2 to 5, regret was within a standard error of the least for shifts from 0.02 to
    0.05, and 1.9 to 2.7 times as large at 2; alpha 0 was compared with 1 at epsilon 1 alone. No
    certificate covers such a choice.

    **Code.** Step 1 is `BatchedUCB._learn` (optimism.py) with `Ridge.refit` (ridge.py), step 2
    `Batched.act` (batched.py) with `BatchedUCB.scores`, step 3 `Batched.update`.

    Guarantee. (epsilon, delta)-joint DP under continual observation for replacing one user's
    round, with the epsilon of the certificate: step 2 reads the current user's context and writes
    nothing; step 3 is the only use of (x, r), of L2 sensitivity sqrt(4.5) in unit scale (see
    `SecondMoments`; 2 moment_clip in `Moments`), and all releases together are mu-GDP (Gaussian)
    or bounded by an exact loss law (Wishart, see `dpbandit.privacy.accounting.wishart`). Everybody
    else's action is post-processing.

    Fields left None follow calibration and statistics:

        field           "paper", as printed       "certified"                    "moment"
        noise scale     see ShariffSheffet        least with certificate <= claim
        arms            joint, dimension K d      disjoint, K blocks             disjoint
        prefix_sums     tree                      blt (tree for Wishart)         blt
        alpha           theory                    1.0                            0
        refresh_every   1                         ceil(horizon / 100)

    Differs from the paper ("certified"; "paper" keeps 1-5 as printed). (1) Exact Gaussian
    composition replaces basic composition of a loose tail bound: 13.8 times less noise at T = 10^4,
    epsilon 1, delta 1e-4, equal clips and units. (2) Disjoint arms get their own blocks, fed a
    one-hot row, so each ticks every round. (3) BLT in place of the tree. (4) Releases every
    `refresh_every` rounds. (5) The shift is twice a tail bound of this release's noise. In both:
    (6) x, r and optionally r x are clipped, whatever the environment sends; (7) a tree node that no
    prefix uses is never drawn; (8) the shift is at least `regularization`, so that epsilon = inf
    is LinUCB; (9) disjoint arms take turns until the first release; (10) Wishart noise is centred,
    and its printed constants could not be checked against the
    paper. Moments alone (11) are not in the paper: no regression, no optimism, no regret bound,
    and a bias where contexts are far from isotropic or arms are played unequally often.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
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
    statistics: Literal["gram", "moment"] = "gram"
    """what is released: Gram matrices with moments, or moments alone"""
    calibration: Literal["certified", "paper"] = "certified"
    noise: Literal["gaussian", "wishart"] = "gaussian"
    prefix_sums: Literal["tree", "blt"] | None = None
    arms: Literal["disjoint", "joint"] | None = None
    alpha: Alpha | None = None
    """width in ranges of the reward (2 sigma), 0 is greedy, or "theory", which needs a shift above
    1"""
    refresh_every: int | None = None
    """rounds from one release to the next"""
    context_clip: float | None = None
    """Euclidean norm contexts are clipped to; None: the environment's public bound"""
    moment_clip: float | None = None
    """norm r x is clipped to, on top of the clips of r and x"""
    moment_weight: float = 1.0
    """share of the budget of the moment against the Gram matrix, equal units at 1"""
    regularization: float = 1.0
    shift: float | None = None
    """how many tail bounds of its noise are added to V (utility only, never privacy), > 0; None: 2,
    printed Wishart 3. Theta shrinks less with less; below 1 the noise may win, V be indefinite"""
    reward_noise: float | None = None
    """sigma, the sub-Gaussian parameter of rewards; None: half their range"""
    parameter_norm: float | None = None
    """bound on |theta_a| for the theory radius; None: the largest that the public bounds allow"""
    failure: float = 0.05
    """probability with which tail bounds may fail (utility only, never privacy)"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("statistics", self.statistics, ("gram", "moment"))
        one_of("calibration", self.calibration, ("certified", "paper"))
        one_of("noise", self.noise, ("gaussian", "wishart"))
        if self.prefix_sums is not None:
            one_of("prefix_sums", self.prefix_sums, ("tree", "blt"))
        if self.arms is not None:
            one_of("arms", self.arms, ("disjoint", "joint"))
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)
        for name in ("context_clip", "moment_clip"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        positive("moment_weight", self.moment_weight)
        check_optimism(self)
        if self.shift is not None:
            positive("shift", self.shift)
        for name, other in (
            ("prefix_sums", "tree"),
            ("moment_clip", None),
            ("statistics", "gram"),
            ("shift", 2),
        ):
            value = getattr(self, name)
            if value not in (None, other) and not self._plain:
                raise InputError(f"Expected {name}={value!r} only with certified Gaussian noise.")
        for name, only in (("alpha", 0), ("shift", None)):
            value = getattr(self, name)
            if self.statistics == "moment" and value not in (None, only):
                raise InputError(
                    f"Expected {name}={value!r} to be {only!r} for moments without a Gram matrix."
                )
        if self.alpha == "theory" and self.shift is not None and self.shift <= 1:
            raise InputError(
                f"Expected shift={self.shift!r} > 1 with alpha='theory': V has to stay above 0."
            )

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        paper, statistic = self.calibration == "paper", self._statistic(spec)
        every = self.refresh_every or (1 if paper else ceil(spec.horizon / 100))
        target = Target(self.epsilon, self.delta, spec.horizon, every)
        if isinstance(statistic, Moments) or self._plain:
            process = process_named(self.prefix_sums or "blt")
            sums = certified_sum(process, statistic, streams, target)
            spectrum = tail_bound(
                statistic.block_dim,
                target,
                failure=self.failure,
                shift_factor=self.shift or 2.0,
            )
        else:
            proposal = ShariffSheffet(statistic, target, self.noise, printed=paper)
            sums, spectrum = proposal.sums(streams), proposal.spectrum(self.failure)
        private = self.epsilon < inf
        ledger = Ledger((sums.spend,)) if private else no_privacy("sums without noise")
        if isinstance(statistic, Moments):
            return BatchedMoments(spec, len(streams), sums, ledger)
        bonus = bonus_of(self, spec, alpha="theory" if paper else 1.0, spectrum=spectrum)
        return BatchedUCB(spec, len(streams), sums, statistic, bonus, ledger)

    def for_demand(self) -> "DPUCB":
        """What is not told, as a model of demand has it; paper, Wishart, theory: as for arms."""
        if self.statistics == "moment":
            raise InputError("Expected an agent whose scores are chances of a sale, not moments.")
        if not self._plain or self.alpha == "theory":
            return self
        return replace(
            self,
            alpha=_DEMAND_ALPHA if self.alpha is None else self.alpha,
            shift=_DEMAND_SHIFT if self.shift is None else self.shift,
        )

    @property
    def _plain(self) -> bool:
        return self.noise == "gaussian" and self.calibration == "certified"

    def _statistic(self, spec: ContextualSpec) -> SecondMoments | Moments:
        C = min(spec.context_norm, self.context_clip or inf)  # more than the bound is only noise
        default = "joint" if self.calibration == "paper" else "disjoint"
        moments = Moments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else self.arms or default,
            context_bound=C,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            moment_clip=self.moment_clip,
        )
        if self.statistics == "moment":
            return moments
        # else one symmetric matrix over rows (x, r): noise beside r x as off the Gram's diagonal
        weight = self.moment_weight if self._plain else sqrt(2) * spec.reward_bound / C
        return SecondMoments(**vars(moments), moment_weight=weight)
