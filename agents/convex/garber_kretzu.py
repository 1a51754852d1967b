"""Garber-Kretzu: bandit convex optimisation without projections, and without privacy."""

from dataclasses import dataclass

from dpbandit.agents.convex.one_point import Noise
from dpbandit.agents.convex.projection_free import BatchSettings
from dpbandit.losses.loss import Loss


@dataclass(frozen=True, kw_only=True)
class GarberKretzu(BatchSettings):
    """Batches of one-point gradients and one Frank-Wolfe projection a batch, exact sums.

    After Garber and Kretzu, "Improved regret bounds for projection-free bandit convex
    optimization", AISTATS 2020, in the form that PrivateBandit makes private: its three steps
    without noise. Expected regret O(T^(3/4) sqrt(k) L D) with at most T calls of the linear oracle.

    Code:
        Its three steps are played by `BatchedDescent` (batched_descent.py) with `Directions.step`
        and `Exploration.nearest` (one_point.py); see `PrivateBandit` for which is which.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        zeta, eta and the batches are those of PrivateBandit, so that the two differ in the noise
        alone.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), horizon=10_000)
    >>> bound = GarberKretzu().plan(spec).regret_bound
    >>> bool(bound() < bound(adaptive=True))
    True
    """

    def noise_over(self, loss: Loss, horizon: int) -> Noise:
        """No noise."""
        return Noise(law="none")
