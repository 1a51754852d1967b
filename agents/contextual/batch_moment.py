"""BatchMoment: one signed direction of each user, released once."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from dpbandit.agents.contextual.moments import MomentPlayer
from dpbandit.agents.contextual.shrinkage import SHRINKAGES
from dpbandit.base import InputError, Streams, gaussian_target, inside, one_of, whole
from dpbandit.privacy import SignedDirections, certified_fading_sum, ledger_of
from dpbandit.privacy.residuals import Layout
from dpbandit.specs import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class BatchMoment:
    """Play greedily on sums of `sign(reward) x / |x|`, each user released in one batch only.

    A design of this project, for arms with their own parameters and
    contexts that are symmetric about 0 and roughly isotropic::

        batches [1, T0], (T0, 2 T0], (2 T0, 4 T0], ...
        in round t    g_t = sign(r_t - centre) x_t / |x_t|      (+ for arm 0, - for arm 1 if K = 2)
        at their end  release sum g_t + N(0, sigma^2 I)
        play          argmax_a x . theta_a, theta from the weighted and thresholded releases;
                      the first batch, and ties, uniformly at random

    Code:
        `MomentPlayer.act` (moments.py) plays, `MomentPlayer.update` weighs the releases,
        `soft_threshold` (shrinkage.py) makes them sparse.

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round: she is in one release, which she
        moves by at most 2 (`SignedDirections`), so the whole run is mu-GDP with mu = 2 / sigma,
        whatever the horizon; contexts and rewards enter nowhere else, and weights, thresholds and
        batches are public. The last batch is never released.

    Defaults were found on the reference problem P1 (two and five arms, several epsilons).

    **Limits.** Rewards must be informative in sign about their centre (the middle of the public
    range), contexts centred; for K > 2 selection bias is not corrected (FADE does).

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000, reward_low=-1.2, reward_high=1.2)
    >>> round(certify(BatchMoment(epsilon=1.0, delta=1e-4), spec).mu, 4)
    0.3139
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    first_batch: int | None = None
    """rounds of uniform play, T0; if None, 500 / epsilon for two arms, else twice that, from 200
    to 2000 (twice that), at most a fifth of T"""
    blocks: Layout | None = None
    """if None, the difference of two arms, else a block for each arm"""
    shrinkage: Literal["none", "soft-threshold", "empirical-bayes"] = "soft-threshold"
    """how noise is taken out of what is released"""
    centre: float | None = None
    """rewards are compared with it; if None, the middle of the public range"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("shrinkage", self.shrinkage, SHRINKAGES)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        if self.blocks is not None:
            one_of("blocks", self.blocks, ("difference", "blocks"))
        if self.centre is not None:
            inside("centre", self.centre, -inf, inf, ends=False)

    def make(self, spec: BanditSpec, streams: Streams) -> MomentPlayer:
        """A running agent; raises `InputError` for anything but arms with their own parameters."""
        spec = fits(self, spec, ContextualSpec)
        if spec.shared:
            raise InputError(
                "BatchMoment plays arms with their own parameters, got one shared by all: choose "
                "another agent or environment, such as fade."
            )
        T, K = spec.horizon, spec.n_actions
        arms = 1 if K == 2 else 2
        default = arms * int(min(max(500 / self.epsilon, 200), 2000))
        first = max(1, min(default, T // 5)) if self.first_batch is None else self.first_batch
        statistic = SignedDirections(
            n_actions=K,
            dim=spec.dim,
            layout=self.blocks or ("difference" if K == 2 else "blocks"),
            centre=(spec.reward_low + spec.reward_high) / 2 if self.centre is None else self.centre,
        )
        sums = certified_fading_sum(
            statistic,
            streams,
            ends=doubling_batches(T, first),
            horizon=T,
            fade=0.0,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        return MomentPlayer(
            sums,
            statistic,
            streams,
            ledger_of(self.epsilon, sums.spend),
            shrink=SHRINKAGES[self.shrinkage],
            debias=False,
        )


def doubling_batches(horizon: int, first: int) -> tuple[int, ...]:
    """Ends first, 2 first, 4 first, ... before the horizon.

    >>> doubling_batches(10_000, 500)
    (500, 1000, 2000, 4000, 8000)
    """
    ends, end = [], first
    while end < horizon:
        ends.append(end)
        end *= 2
    return tuple(ends)
