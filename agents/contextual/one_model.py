"""One generalised linear model for all arms, with rows of norm 1 and rewards in [0, 1]."""

import numpy as np

from dpbandit.base import Floats, InputError
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, Link, fits


class OneModel:
    """Rewards as shares of their range, with mean zeta(x . theta) for the arm's row x, `|x| <= 1`.

    The link is the environment's, or logistic, which is 1/2 at 0, where it is no law of clicks.
    """

    def __init__(self, config: object, spec: BanditSpec) -> None:
        self.spec = fits(config, spec, ContextualSpec)
        if not self.spec.shared:
            raise InputError(
                f"{type(config).__name__} plays arms that share a parameter, got arms with their "
                "own: choose another agent or environment, such as fade."
            )
        self.link: Link = LINKS["probit" if self.spec.link == "probit" else "logistic"]

    def rows(self, context: Floats) -> Floats:
        """(R, K, d), scaled."""
        return context / self.spec.context_norm

    def share(self, reward: Floats) -> Floats:
        """Where rewards lie in their public range: 0 at its lower end, 1 at its upper."""
        low, high = self.spec.reward_low, self.spec.reward_high
        return (np.asarray(reward, np.float64) - low) / (high - low)

    def reward(self, predictor: Floats) -> Floats:
        """Mean rewards of linear predictors."""
        low, high = self.spec.reward_low, self.spec.reward_high
        return low + (high - low) * self.link.mean(predictor)
