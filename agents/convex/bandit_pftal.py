"""BanditPFTAL: the private approximate leader, told values alone."""

from dataclasses import dataclass
from math import log2
from typing import Literal

from dpbandit.agents.convex.leaders import Resting
from dpbandit.agents.convex.one_point import CALIBRATIONS, NOISES, Noise
from dpbandit.agents.convex.value_leaders import ValueLeader, ValueSettings
from dpbandit.base.inputs import InputError, noise_target, one_of
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class BanditPFTAL(ValueSettings):
    """Follow the approximate leader on noisy running sums of one-point gradient estimates.

    Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in
    full-information and bandit settings", NIPS 2013, Sections 3.1 and 3.2::

        w_1 = c0, the centre; C' = c0 + (1 - beta/r) (C - c0); for t = 1..T:
          1. draw u_t on the unit sphere of V, play x_t = w_t + beta u_t, see y_t = f_t(x_t)
          2. q_t = (k / beta) (clip(y_t) - offset) u_t
          3. v_t = q_1 + ... + q_t + noise                      through one tree sum
          4. w_{t+1} = nearest point of C' to  mean(w_1..w_t) - v_t / (H t)

    Losses without curvature are regularised: c0 in place of the mean. The lengths beta and H are
    those of `ValueSettings`.

    Code:
        Step 1 is `ValueLeader.act` (value_leaders.py) with `Directions.step` (one_point.py), steps
        2 and 3 are `ValueLeader.update`, step 4 `Leader.follow` (leaders.py).

    Guarantee:
        epsilon-DP (k-norm, laplace, local) or (epsilon, delta)-DP (gaussian) of all points for
        replacing one round's loss, later losses being chosen from earlier points alone. Given the
        directions, which depend on no data, y_t moves one estimate by at most W k / beta in L2, W
        the range of values, and it lies in at most h = bit_length(T-1) nodes of the tree: K-norm
        scale W k h / (beta epsilon), Laplace sqrt(k) times that, Gaussian W k sqrt(h) / (beta mu).
        Local noise is Laplace(W / epsilon) on the value itself.

    **Expected regret** for losses fixed in advance, with G = k M / beta and d_t =
    `min(D, |B_{t-1}| / (H (t-1)))`, B_t the noise in v_t: at most::

        T beta L (2 + R/r) + sum of E[ L d_t + (G + H d_t)^2 / (2 H t) ],

    which is O~(k T^(2/3)) + O~(k T^(1/3) / epsilon) with the printed beta: privacy costs a lower
    order. Losses that look at earlier points add R sqrt(T) G. Those that see x_t before they
    answer are beyond every one-point method: they know u_t.

    Differs from the paper:
        calibration="paper" keeps 1.

        1. The printed K-norm scale k M log2(T) / (beta epsilon) protects `|y| <= M` against 0;
           replaced values move by W = 2 M if signed.
        2. The paper states its regret against strongly adaptive adversaries; that is false, see
           above.
        3. beta is capped at r/2, without which points would leave C, and has no unit of length as
           printed.
        4. A mean of leaders w_s, not of the points x_s played, enters step 4.
        5. `tuned`, Laplace, Gaussian and local noise, and the regularised form are additions.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), horizon=1024)
    >>> round(certify(BanditPFTAL(epsilon=1.0), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target of Gaussian noise, in (0, 1); if None, 1e-6 with it, and 0 with the others, which meet
    epsilon at delta = 0"""
    noise: Literal["k-norm", "laplace", "gaussian", "local"] = "k-norm"
    """its law"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("noise", self.noise, NOISES)
        one_of("calibration", self.calibration, CALIBRATIONS)
        noise_target(self)
        if self.calibration == "paper" and self.noise != "k-norm":
            raise InputError(
                f"Expected noise={self.noise!r} to be k-norm with calibration='paper'."
            )

    def make(self, spec: Spec, streams: Streams) -> ValueLeader | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their values."""
        paper = log2(spec.horizon) / self.epsilon if self.calibration == "paper" else None
        return self.start(spec, streams, self._target(), printed=paper)

    def _target(self) -> Noise:
        delta = 0.0 if self.delta is None else self.delta
        return Noise(law=self.noise, epsilon=self.epsilon, delta=delta)
