"""LinUCB: optimism for linear bandits, without privacy."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.optimism import (
    Alpha,
    BatchedUCB,
    Bonus,
    bonus_of,
    check_optimism,
    theory_radius,
)
from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, at_least, one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.privacy.statistics.moments import SecondMoments
from dpbandit.privacy.sums.calibrate import exact_prefix_sum
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class LinUCB:
    """Play argmax x . theta_a + 2 sigma alpha sqrt(x' V_a^-1 x), ridge regressions for the arms.

    Li, Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article
    recommendation", WWW 2010, Algorithm 1 (disjoint arms); with an environment whose arms share
    one parameter, the shared model of Chu, Li, Reyzin and Schapire, AISTATS 2011. The radius
    `alpha="theory"` is that of Abbasi-Yadkori, Pal and Szepesvari, NeurIPS 2011, Theorem 2 (OFUL).

    sigma is `reward_noise`, by default half the public range of rewards, with which every reward is
    sub-Gaussian. So alpha counts in ranges of the reward, as that of Li et al. does, whose rewards
    are clicks, and with rewards in dollars or in cents the same arms are played.

    Code:
        The bound is `LinUCBAgent.scores`, V and theta are `OnlineRidge.learn` (ridge.py); with
        `refresh_every` they are `BatchedUCB` (optimism.py) and `Ridge.refit`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. Ties go to the lowest arm.
        2. `refresh_every=k` refits only every k rounds, on data clipped to the public bounds, and
           lets disjoint arms take turns in the first batch: DP-UCB without the noise.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"LinUCB": LinUCB()}, horizon=500, replicas=4,
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["LinUCB"] < mean["Uniform"] / 2)
    True
    """

    alpha: Alpha = 1.0
    """width in ranges of the reward (2 sigma), 0 is greedy, or "theory" """
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""
    refresh_every: int | None = None
    """if None, rank-one updates every round; if k, refits every k rounds"""
    arms: Literal["disjoint", "joint"] = "disjoint"
    """joint is the same model as one regression of dimension K d; needs `refresh_every`"""
    reward_noise: float | None = None
    """sigma, the sub-Gaussian parameter of rewards; if None, half their range"""
    parameter_norm: float | None = None
    """bound on `|theta_a|` for the theory radius; if None, the largest that the public bounds
    allow"""
    failure: float = 0.05
    """probability with which the theory radius may fail"""

    def __post_init__(self) -> None:
        check_optimism(self)
        if self.alpha != "theory":
            at_least("alpha", self.alpha, 0)
        one_of("arms", self.arms, ("disjoint", "joint"))
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)
        elif self.arms == "joint":
            raise InputError(
                "Expected refresh_every=None to be a number of rounds for arms='joint'."
            )

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        bonus = bonus_of(self, spec)
        if self.refresh_every is None:
            return LinUCBAgent(bonus, spec, len(streams))
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else self.arms,
            context_bound=spec.context_norm,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
        )
        every = self.refresh_every
        sums = exact_prefix_sum(statistic, horizon=spec.horizon, refresh_every=every)
        ledger = no_privacy("exact ridge regressions")
        return BatchedUCB(spec, len(streams), sums, statistic, bonus, ledger)


class LinUCBAgent:
    """See `LinUCB`: a rank-one update every round."""

    def __init__(self, bonus: Bonus, spec: ContextualSpec, replicas: int) -> None:
        self.ledger = no_privacy("exact ridge regressions")
        self._bonus, self._spec, self._round = bonus, spec, 0
        self._ridge = OnlineRidge(spec, replicas, regularization=bonus.regularization)

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Upper confidence bounds of the mean rewards, (R, K)."""
        width = np.sqrt(self._ridge.variances(context))
        return self._ridge.means(context) + self._radius() * width

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One rank-one step."""
        self._round += 1
        self._ridge.learn(context, action, feedback)

    def _radius(self) -> float:
        bonus = self._bonus
        if bonus.alpha != "theory":
            return 2 * bonus.alpha * bonus.reward_noise
        return theory_radius(
            self._round,
            self._spec.dim,
            reward_noise=bonus.reward_noise,
            parameter_norm=bonus.parameter_norm,
            context_norm=self._spec.context_norm,
            failure=bonus.failure,
            spectrum=(bonus.regularization, bonus.regularization),
        )
