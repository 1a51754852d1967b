"""Binary tree experts: a few experts at a time, the best of them by noisy counters."""

from dataclasses import dataclass
from math import ceil, expm1, inf, log, log1p, log2, sqrt
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.agents.experts.segments import OnlyExpert
from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import (
    at_least,
    inside,
    noise_target,
    one_of,
    positive,
    shaped,
    whole,
)
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import Ledger, no_privacy
from dpbandit.privacy.accounting.zcdp import rho_of
from dpbandit.privacy.choices.remaining import RemainingTopK
from dpbandit.privacy.sums.restarting_trees import NodeLaw, RestartingTrees
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import Spec, fits

_DOWN, _UP = 1 - 1e-12, 1 + 1e-12


class TreePlan(NamedTuple):
    """The public numbers of a run."""

    size: int
    """B"""
    phases: int
    """N"""
    picks: int
    """experts that are ever drawn by their losses, (N - 1) B at most"""
    eta: float
    """the range of one pick"""
    scale: float
    """of a node's noise, standard deviation or Laplace scale"""
    threshold: float
    """tau"""
    bound: float
    """on the loss, with probability 1 - beta; parameters="certified" only"""


@dataclass(frozen=True, kw_only=True)
class BinaryTreeExperts:
    """Sets of B experts, one after the other; within a set, the leader of noisy counters.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, Algorithm 4, reconstructed from a sketch::

        A = all d experts, C = B of them, uniformly; for t = 1..T:
          1. play the x in C with the least counter c_x, see all losses l_t in [0, 1]^d
          2. c_x = losses of x since C was drawn + tree noise, for all x in C
          3. if min c_x > tau, in one of the first N - 1 phases, and A \\ C is not empty:
             A <- A \\ C, then C = B of A without replacement, weights exp(-eta max(S_t, L*) / 2)

        certified   a = -ln(1 - (1 - e^(-c/2)) / 2), N = ceil(ln d / a) + 1, B = ceil(log2(4 N/b)),
                    tau = L* + c/eta + err, err what no counter is off by with probability 1 - b/2
        small       B = 4, tau = 2 sigma sqrt(log2 T), sigma the noise of a node

    Where fewer than B are left all of them are taken.

    Code:
        Step 1 is `BinaryTrees.act`, steps 2 and 3 are `BinaryTrees.update`.

    Guarantee:
        (epsilon, delta)-DP of all experts played, for replacing one round's losses: a round is in
        one phase's trees (`RestartingTrees`, B h numbers, h = bit_length(T - 1)) and in all (N - 1)
        B picks (`RemainingTopK`, bounded range eta each), the first set being uniform. Each half of
        the budget is spent on one of them: epsilon at delta = 0, else zCDP converted by CKS. Sums
        of unlike losses have no Gaussian DP: the ledger composes them.

    **Regret** ("certified"; oblivious losses, an expert who loses at most L*): at most N B (tau +
    err + 1) with probability 1 - b, because a phase ends only if all B picks are bad: probability
    2^-B while the potential falls by less than a. Hopeless: 10^6 at d = 256, T = 10^4, epsilon = 1.
    "small" has no bound: noise ends phases whose set holds the best expert, who never
    comes back. A baseline.

    Differs from the paper:
        1. Only a sketch is printed: sets, phases, counters and all constants are our
           reconstruction, with a proof of ours, and there is no calibration="paper".
        2. "small" is an addition.

    >>> from dpbandit import certify
    >>> spec = ExpertsSpec(n_actions=16, horizon=1000)
    >>> certify(BinaryTreeExperts(epsilon=1.0), spec).holds
    True
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with Laplace noise"""
    noise: NodeLaw = "gaussian"
    """its law"""
    parameters: Literal["certified", "small"] = "certified"
    """sizes for which the bound on the loss is proved, or small ones"""
    size: int | None = None
    """B"""
    threshold: float | None = None
    """tau"""
    phases: int | None = None
    """N"""
    best_loss: float = 0.0
    """L*, a public bound on the total loss of the best expert"""
    c: float = 4.0
    """an expert is bad who loses c/eta more than L*"""
    beta: float | None = None
    """failure probability b; if None, 1/T"""

    def __post_init__(self) -> None:
        one_of("noise", self.noise, ("gaussian", "laplace"))
        one_of("parameters", self.parameters, ("certified", "small"))
        noise_target(self)
        for name in ("size", "phases"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        if self.threshold is not None:
            at_least("threshold", self.threshold, 0)
        at_least("best_loss", self.best_loss, 0)
        positive("c", self.c)
        if self.beta is not None:
            inside("beta", self.beta, 0, 1, ends=False)

    def make(self, spec: Spec, streams: Streams) -> "BinaryTrees | OnlyExpert":
        """A running agent; raises `InputError` for anything but experts."""
        spec = fits(self, spec, ExpertsSpec)
        if spec.n_actions == 1:
            return OnlyExpert(len(streams))
        return BinaryTrees(spec, streams, self.plan(spec), self.noise, self.best_loss)

    def plan(self, spec: ExpertsSpec) -> TreePlan:
        """B, N, eta, the noise and tau for a problem."""
        d, T = spec.n_actions, spec.horizon
        failure, h = self.beta or 1 / T, RestartingTrees.nodes(T)
        drop = -log1p(expm1(-self.c / 2) / 2)
        N = self.phases or ceil(log(d) / drop) + 1
        B = self.size or (4 if self.parameters == "small" else ceil(log2(4 * N / failure)))
        B = min(B, d)
        N = min(N, ceil(d / B))
        picks = min((N - 1) * B, d - B)
        eta, scale = self._budget(picks, B * h)
        level = log(2 * T * B * N / failure)
        if self.noise == "gaussian":
            error = scale * sqrt(2 * h * level)
        else:  # Chan, Shi and Song 2011, Lemma 2.8
            error = scale * sqrt(8 * level * max(h, level))
        tau, bound = self.best_loss + self.c / eta + error, inf
        if self.parameters == "small":
            stddev = scale * (1.0 if self.noise == "gaussian" else sqrt(2))
            tau = 2 * stddev * sqrt(log2(T))
        elif self.size is self.threshold is self.phases is None:
            bound = N * B * (tau + error + 1)
        return TreePlan(
            B, N, picks, eta, scale, tau if self.threshold is None else self.threshold, bound
        )

    def _budget(self, picks: int, numbers: int) -> tuple[float, float]:
        """eta of each pick, and the scale of the noise in `numbers` numbers."""
        if self.epsilon == inf:
            return inf, 0.0
        half = 0.5 if picks else 1.0
        if not self.delta:
            spent = half * self.epsilon
            return spent / max(picks, 1) * _DOWN, numbers / spent * _UP
        if self.noise == "gaussian" and not picks:
            return inf, sqrt(numbers) / mu_of(self.epsilon, self.delta) * _UP
        rho = half * rho_of(self.epsilon, self.delta)
        return sqrt(8 * rho / max(picks, 1)) * _DOWN, sqrt(numbers / (2 * rho)) * _UP


class BinaryTrees:
    """The running agent: remembers sets, counters and whom it has had, all released."""

    def __init__(
        self, spec: ExpertsSpec, streams: Streams, plan: TreePlan, noise: NodeLaw, best_loss: float
    ) -> None:
        R, d, T, B = len(streams), spec.n_actions, spec.horizon, plan.size
        self._plan = plan
        self._trees = RestartingTrees(
            streams, "counters", width=B, law=noise, scale=plan.scale, horizon=T
        )
        self._picks = RemainingTopK(
            d,
            streams,
            "sets",
            k=B,
            epsilon=plan.eta,
            draws=plan.phases - 1,
            uses=T,
            most=plan.picks,
            floor=best_loss,
        )
        spends = (self._picks.spend, self._trees.spend) if plan.picks else (self._trees.spend,)
        self.ledger = Ledger(spends)
        if plan.scale == 0 and T > 1:
            self.ledger = no_privacy("exact counters and sums of losses")
        order = streams.uniforms("first set", d)().argsort(axis=1)
        self._set: Ints = order[:, :B]
        self._taken = np.zeros((R, d), dtype=bool)
        self._counters = np.zeros((R, B))
        self._phase = np.zeros(R, dtype=np.int64)
        self._begins = np.zeros(R, dtype=bool)
        self._take(np.ones(R, dtype=bool))

    def act(self, context: Floats) -> Ints:
        """The expert with the least counter, (R,)."""
        best = self._counters.argmin(axis=1)
        chosen: Ints = self._set[rows(len(best)), best]
        return chosen

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from all losses of a round, (R, d)."""
        shaped("losses", feedback, self._taken.shape)
        sums = self._trees(feedback, self._set, self._begins)
        if sums is None:
            return
        self._counters = np.where(self._set < 0, np.inf, sums)
        over = self._counters.min(axis=1) > self._plan.threshold
        left = (self._phase < self._plan.phases - 1) & ~self._taken.all(axis=1)
        self._begins = over & left
        chosen = np.asarray(self._picks(feedback, self._begins, self._taken))
        new = self._begins[:, None]
        self._set = np.where(new, chosen, self._set)
        self._counters = np.where(new, np.where(chosen < 0, np.inf, 0.0), self._counters)
        self._phase = self._phase + self._begins
        self._take(self._begins)

    def _take(self, whose: Ints) -> None:
        """Nobody of a set comes back."""
        taken = self._taken.copy()
        r, b = np.nonzero((self._set >= 0) & whose[:, None])
        taken[r, self._set[r, b]] = True
        self._taken = taken
