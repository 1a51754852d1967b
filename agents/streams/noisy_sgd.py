"""NoisySGD: many noisy gradient steps, each on one user drawn at random."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Literal

from dpbandit.agents.convex.leaders import Resting
from dpbandit.agents.streams.blocks import Block, BlockPlayer, Refit, block_lengths, centre_of
from dpbandit.agents.streams.sampled_descent import SampledMechanism
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import (
    MOST_ROUNDS,
    gaussian_target,
    one_of,
    positive,
    printed_target,
    whole,
)
from dpbandit.base.random_streams import Streams
from dpbandit.domains import nearest
from dpbandit.losses.loss import Loss
from dpbandit.privacy.accounting.subsampling import SampledGaussianSpend, largest_ratio
from dpbandit.specs.convex import with_feedback
from dpbandit.specs.protocols import Spec

_PASSES = 10
"""Steps a user, unless said otherwise."""


@dataclass(frozen=True, kw_only=True)
class NoisySGD:
    """Projected descent over the data of a block, again and again.

    Bassily, Feldman, Guzman and Talwar, "Stability of stochastic gradient descent on nonsmooth
    convex losses", NeurIPS 2020, Algorithm 2, on blocks of n users::

        w_0 = the point released last, or the centre of C; for t = 1..m:
          1. one user of the block at random, with replacement: g = grad f(w_{t-1}; z)
          2. w_t = nearest point of C to  w_{t-1} - eta (g + N(0, sigma^2 I))
        release the mean of w_1..w_m

        calibration   m               eta                                      sigma
        paper         n^2             R / (L sqrt(m) max(sqrt(n),              sqrt(8 ln(1/delta))
                                      sqrt(k ln(1/delta)) / epsilon))          L / epsilon
        certified     min(10 n, n^2)  R / sqrt(m (L^2 (1 + m/n [+ sqrt m])     least that meets
                                      + k sigma^2))                            the target

    Cost: m steps at the end of a block, of 20 to 40 microseconds for one replica: the printed
    n^2 are 10^8, an hour, at n = 10^4; `steps` caps them, and sigma is certified for the steps
    made. [+ sqrt m] for losses that are not smooth.

    Code:
        Played by `BlockPlayer` (blocks.py). Step 1 is `SampledMechanism._answer`
        (sampled_descent.py) with the gradient `slope` (leaders.py), step 2 `SGDMechanism._step`.

    Guarantee:
        (epsilon, delta)-DP of all released points for replacing one datum. In one step she is drawn
        with probability 1/n, and then the gradient moves by at most 2 L, both being of admissible
        data at a point of C; `SampledGaussianSpend` composes m of these exactly, for all iterates
        at once. Blocks are disjoint (parallel composition). The same accountant says what the
        printed noise buys.

    Differs from the paper:
        1. Exact composition.
        2. m and eta, if certified.
        3. blocks.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.streams import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=100)
    >>> bool(certify(NoisySGD(), spec, accountants=False).epsilon <= 1)
    True
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    steps: int | Literal["auto", "paper"] | None = None
    """m; auto is min(10 n, n^2), paper n^2, None what the calibration says"""
    scale: float = 1.0
    """of eta"""
    beyond_validity: bool = False
    """(paper) run at epsilon > 3 too; the certificate tells what that is worth"""
    refit: Refit = "doubling"
    """once is one block of all T users, whose point comes after the last round"""
    first: int = 16
    """users of the first block, if doubling"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("calibration", self.calibration, ("certified", "paper"))
        if isinstance(self.steps, str):
            one_of("steps", self.steps, ("auto", "paper"))
        elif self.steps is not None:
            whole("steps", self.steps, 1, MOST_ROUNDS)
        positive("scale", self.scale)
        printed_target(self.epsilon, self.calibration, beyond_validity=self.beyond_validity)
        block_lengths(1, self.refit, self.first)

    def make(self, spec: Spec, streams: Streams) -> BlockPlayer | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_feedback(self, spec, "datum")
        loss = spec.loss
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, len(streams))
        lengths = block_lengths(spec.horizon, self.refit, self.first)
        blocks = tuple(self.block(loss, n) for n in lengths)
        return BlockPlayer(blocks, streams, centre_of(loss, len(streams)))

    def block(self, loss: Loss, users: int) -> "SampledBlock":
        """The numbers of a block of n = `users`."""
        m, sigma = self._steps(users), self._sigma(loss, users)
        L, k, R = loss.lipschitz, loss.domain.affine_dim, loss.domain.outer_radius
        if self.calibration == "paper":
            private = self.epsilon < inf
            noise = sqrt(k * log(1 / self.delta)) / self.epsilon if private else 0.0
            slowness = L * sqrt(m) * max(sqrt(users), noise)
        else:
            visits = m / users if loss.smoothness < inf else m / users + sqrt(m)
            slowness = sqrt(m * (L**2 * (1 + visits) + k * sigma**2))
        eta = self.scale * R / slowness
        return SampledBlock(loss=loss, users=users, steps=m, sigma=sigma, eta=eta)

    def _steps(self, users: int) -> int:
        wanted = self.steps or ("auto" if self.calibration == "certified" else "paper")
        if isinstance(wanted, int):
            return wanted
        return users**2 if wanted == "paper" else min(_PASSES * users, users**2)

    def _sigma(self, loss: Loss, users: int) -> float:
        if self.epsilon == inf:
            return 0.0
        if self.calibration == "paper":
            return loss.lipschitz * sqrt(8 * log(1 / self.delta)) / self.epsilon
        m = self._steps(users)
        ratio = largest_ratio(rate=1 / users, count=m, epsilon=self.epsilon, delta=self.delta)
        return 2 * loss.lipschitz / ratio


@dataclass(frozen=True, kw_only=True)
class SampledBlock(Block):
    """A block of n = `users`."""

    steps: int
    """m"""
    sigma: float
    eta: float

    @property
    def spend(self) -> SampledGaussianSpend:
        """What all steps of the block cost."""
        ratio = 2 * self.loss.lipschitz / self.sigma if self.sigma else inf
        note = f"{self.steps} noisy gradients of one of {self.users} users each"
        return SampledGaussianSpend(ratio, 1 / self.users, self.steps, note)

    def open(self, streams: Streams, start: Floats) -> "SGDMechanism":
        """The mechanism of this block, from the released point `start`, (R, N)."""
        return SGDMechanism(self, streams, start)


class SGDMechanism(SampledMechanism):
    """Inside: the data of the block, and the iterates."""

    def __init__(self, block: SampledBlock, streams: Streams, start: Floats) -> None:
        super().__init__(block, streams, start, batch=1, steps=block.steps, sigma=block.sigma)
        self._eta = block.eta

    def _step(self, w: Floats, g: Floats) -> Floats:
        return nearest(self._loss.domain, w - self._eta * g, w).point
