"""GLM-UCB: optimism for generalised linear bandits, without privacy."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.contextual.glm import OnlineGLM
from dpbandit.base import Floats, Ints, Streams, at_least, one_of, positive
from dpbandit.privacy import no_privacy
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, LinkName, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class GLMUCB:
    """Play argmax zeta(x . theta_a + alpha sqrt(x' H_a^-1 x)), zeta the link.

    Li, Lu and Zhou, "Provably optimal algorithms for generalized linear contextual bandits", ICML
    2017 (UCB-GLM)::

        1. play the arm with the largest upper confidence bound, in units of the reward
        2. add its row to the quasi-likelihood regression of the arm; H_a += zeta'(x . theta_a) x x'

    Code:
        Step 1 is `GLMUCBAgent.act` with `Ridge.variances` (linear.py), step 2 `OnlineGLM.learn`
        (glm.py).

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. The regression is online (`dpbandit.agents.contextual.glm`) in place of a maximum
           likelihood fit to all rows every round: O(d^2) a round and no rows kept; for the identity
           link the two are the same, for the logistic the fits differ by a fraction of a posterior
           standard deviation. Online Newton steps in this place: Zhang, Yang, Jin, Xiao and Zhou,
           "Online stochastic linear optimization under one-bit feedback", ICML 2016.
        2. H weights rows by their slope, the paper's V = sum x x' does not and pays for the
           smallest slope in alpha.
        3. `regularization` in place of rounds at random until V is invertible.
        4. One regression for each disjoint arm, where the environment has it so.

    The width hardly matters from 0.1 to 2 on logistic problems of 4 arms and 8 features (the arms'
    bonuses nearly cancel); the weak prior does where arms differ by little.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"GLMUCB": GLMUCB()}, horizon=1000, replicas=4,
    ...                   env_kwargs={"link": "logistic", "signal": 8.0}, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["GLMUCB"] < mean["Uniform"] / 2)
    True
    """

    alpha: float = 1.0
    """width on the linear predictor, 0 is greedy; with the identity link in ranges of the reward"""
    regularization: float = 0.1
    """precision of the prior N(0, I / regularization)"""
    link: LinkName | None = None
    """if None, that of the environment, logistic sales for a list of prices, else the identity"""

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 0)
        positive("regularization", self.regularization)
        if self.link is not None:
            one_of("link", self.link, LINKS)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return GLMUCBAgent(self, fits(self, spec, ContextualSpec), len(streams))


class GLMUCBAgent:
    """See `GLMUCB`."""

    def __init__(self, config: GLMUCB, spec: ContextualSpec, replicas: int) -> None:
        self.ledger = no_privacy("exact generalised linear regressions")
        self._glm = OnlineGLM(
            spec, replicas, link=config.link, regularization=config.regularization
        )
        self._alpha = config.alpha * self._glm.spread

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Upper confidence bounds of the mean rewards, (R, K)."""
        width = np.sqrt(self._glm.variances(context))
        return self._glm.rewards(self._glm.means(context) + self._alpha * width)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One row of the regression of the arm played."""
        self._glm.learn(context, action, feedback)
