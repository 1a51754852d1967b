"""LocalMD: noisy mirror descent in phases, each in a smaller ball around the last one's end."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.agents.convex.leaders import Resting
from dpbandit.agents.streams.blocks import Block, BlockPlayer, centre_of
from dpbandit.agents.streams.sampled_descent import SampledMechanism
from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import gaussian_target, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.domains import nearest
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import Regression
from dpbandit.privacy.accounting.subsampling import SampledGaussianSpend, largest_ratio
from dpbandit.specs.convex import with_feedback
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class LocalMD:
    """Localised noisy mirror descent in l_p geometry, 1 < p <= 2.

    Asi, Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in l_1
    geometry", ICML 2021, Algorithms 5 and 6, as compared with by Han et al. (see `DPTOFW`)::

        theta_0 = the centre of C; for i = 1, 2, ..: the next n_i = T / 2^i users, epsilon_i, delta
          1. x_0 = theta_{i-1},  h(x) = |x - x_0|_p^2 / (2 (p - 1)),  b = batch,  m = (n_i / b)^2
          2. for s = 1..m: g = mean gradient at x_{s-1} of b of the n_i users, drawn at random
             without replacement, + N(0, sigma_i^2 I);
             grad h(y) = grad h(x_{s-1}) - eta_i g,  x_s = y moved into C and |x - x_0|_p <= rho_i
          3. theta_i = mean of x_1..x_m

        eta_i = eta / 16^i,  eta = scale (D / L) min(1 / sqrt((p-1) T),
                                             epsilon / sqrt(d ln(1/delta) (1 + ln d)))
        rho_i = 2 L eta_i n_i (p - 1),   b = max(sqrt(n_i / ln d), sqrt(d / epsilon_i))

        calibration   epsilon_i        sigma_i
        paper         epsilon / 2^i    100 L sqrt(d^(1 - 2/q) ln(1/delta)) / (b epsilon_i)
        certified     epsilon          least that meets the target, by `SampledGaussianSpend`

    Regressions on l_p balls with 1 < p <= 2 have that p; with p = 1 it is 1 + 1/ln d, with L times
    d^(1/q) <= e; p > 2 and all other losses are Euclidean. Phases with b > n_i are left out: the
    last few, and all of them where epsilon is small.

    Code:
        Played by `BlockPlayer` (blocks.py). A phase is a `MirrorBlock` with its `MirrorMechanism`:
        step 2 is `SampledMechanism._answer` (sampled_descent.py) with `MirrorMechanism._step` and
        the gradient `slope` (leaders.py).

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum. Given x_{s-1}, the mean of a
        batch that she is in moves by 2 L_2 / b, L_2 the Euclidean Lipschitz constant of admissible
        data on C, and sampling hides whether she is; m steps compose exactly, for all iterates at
        once. A user is in one phase (parallel composition): each may cost all of epsilon. That
        points stay in C is all that step 2's geometry has to do with privacy.

    Differs from the paper:
        1. Exact composition, and no epsilon / 2^i for disjoint users, if certified.
        2. Step 2 moves y to C by the Euclidean projection and then shrinks it towards x_0, in place
           of a Bregman projection on both at once, a convex program in each step.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.streams import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(5, 1.5, 2.0)), horizon=100)
    >>> bool(certify(LocalMD(), spec, accountants=False).epsilon <= 1)
    True
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    scale: float | None = None
    """of eta; if None, the paper's 1, and 16 if certified, so that phase 1 steps by eta"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("calibration", self.calibration, ("certified", "paper"))
        if self.scale is not None:
            positive("scale", self.scale)

    def make(self, spec: Spec, streams: Streams) -> BlockPlayer | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_feedback(self, spec, "datum")
        loss, T, geometry = spec.loss, spec.horizon, geometry_of(spec.loss)
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, len(streams))
        d, p = loss.domain.affine_dim, geometry.p
        scale = self.scale or (1.0 if self.calibration == "paper" else 16.0)
        rate = 1 / sqrt((p - 1) * T)
        if self.epsilon < inf:
            rate = min(rate, self.epsilon / sqrt(d * log(1 / self.delta) * (1 + log(d))))
        eta = scale * geometry.diameter / geometry.lipschitz * rate
        phases = (self.phase(loss, T >> i, i, eta / 16**i) for i in range(1, T.bit_length()))
        blocks = tuple(phase for phase in phases if phase.batch <= phase.users)
        return BlockPlayer(blocks, streams, centre_of(loss, len(streams)))

    def phase(self, loss: Loss, users: int, number: int, eta: float) -> "MirrorBlock":
        """The numbers of phase i = `number` with steps eta_i = `eta`."""
        d, paper = loss.domain.affine_dim, self.calibration == "paper"
        epsilon = self.epsilon / 2**number if paper else self.epsilon
        b = int(max(1.0, sqrt(users / log(max(d, 2))), sqrt(d / epsilon)))
        m = max(1, int((users / b) ** 2))
        p, L, _ = geometry_of(loss)
        if self.epsilon == inf:
            sigma = 0.0
        elif paper:
            spread = sqrt(d ** (2 / p - 1) * log(1 / self.delta))  # 1 - 2/q = 2/p - 1
            sigma = 100 * L * spread / (b * epsilon)
        else:
            rate = min(1.0, b / users)
            ratio = largest_ratio(rate=rate, count=m, epsilon=epsilon, delta=self.delta)
            sigma = 2 * loss.lipschitz / (b * ratio)
        return MirrorBlock(
            loss=loss,
            users=users,
            batch=b,
            steps=m,
            sigma=sigma,
            eta=eta,
            radius=2 * L * eta * users * (p - 1),
        )


class Geometry(NamedTuple):
    """Points in l_p, gradients in l_q."""

    p: float
    lipschitz: float
    diameter: float


def geometry_of(loss: Loss) -> Geometry:
    """See `LocalMD`."""
    domain = loss.domain
    if not isinstance(loss, Regression) or loss.domain.p >= 2:
        return Geometry(2.0, loss.lipschitz, domain.diameter)
    p, L = loss.domain.p, loss.dual_lipschitz
    if p == 1:
        p = 1 + min(1.0, 1 / log(max(domain.dim, 2)))
        L *= domain.dim ** (1 - 1 / p)
    return Geometry(p, L, 2 * loss.domain.radius)


@dataclass(frozen=True, kw_only=True)
class MirrorBlock(Block):
    """A phase of n = `users`."""

    batch: int
    """b"""
    steps: int
    """m"""
    sigma: float
    eta: float
    radius: float
    """rho"""

    @property
    def spend(self) -> SampledGaussianSpend:
        """What all steps of the phase cost."""
        b, sigma = self.batch, self.sigma
        ratio = 2 * self.loss.lipschitz / (b * sigma) if sigma else inf
        note = f"{self.steps} noisy gradients of {b} of {self.users} users each"
        return SampledGaussianSpend(ratio, b / self.users, self.steps, note)

    def open(self, streams: Streams, start: Floats) -> "MirrorMechanism":
        """The mechanism of this block, from the released point `start`, (R, N)."""
        return MirrorMechanism(self, streams, start)


class MirrorMechanism(SampledMechanism):
    """Inside: the data of the phase, and the iterates."""

    def __init__(self, block: MirrorBlock, streams: Streams, start: Floats) -> None:
        super().__init__(
            block, streams, start, batch=block.batch, steps=block.steps, sigma=block.sigma
        )
        self._p, self._eta, self._radius = geometry_of(block.loss).p, block.eta, block.radius

    def _step(self, w: Floats, g: Floats) -> Floats:
        domain, p = self._loss.domain, self._p
        q = p / (p - 1)
        dual = _mirrored(domain.coordinates(w - self._start), p) / (p - 1)
        y = (p - 1) * _mirrored(dual - self._eta * domain.coordinates(g), q)
        x = nearest(domain, self._start + domain.embedded(y), w).point
        away = x - self._start
        length = norms(domain.coordinates(away), p)
        return self._start + away * (self._radius / np.maximum(length, self._radius))


def _mirrored(y: Floats, order: float) -> Floats:
    """The gradient of `|y|_order^2 / 2`: `|y|^(2 - order) sign(y_j) |y_j|^(order - 1)`."""
    length = norms(y, order)
    share = np.abs(y) / np.where(length > 0, length, 1.0)
    return length * np.sign(y) * share ** (order - 1)
