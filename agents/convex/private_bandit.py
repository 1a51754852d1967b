"""PrivateBandit: bandit convex optimisation without projections, values private in a tree."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Literal

from dpbandit.agents.convex.one_point import CALIBRATIONS, NOISES, Noise
from dpbandit.agents.convex.projection_free import BatchSettings
from dpbandit.base.inputs import InputError, noise_target, one_of
from dpbandit.losses.loss import Loss


@dataclass(frozen=True, kw_only=True)
class PrivateBandit(BatchSettings):
    """One-point gradients in batches, summed by a noisy tree, one Frank-Wolfe projection a batch.

    Ene, Nguyen and Vladu, "Projection-free bandit optimization with privacy guarantees", AAAI
    2021, Algorithm 1. With k the dimension of the affine hull, C' the domain shrunk
    by 1 - zeta/r towards its centre c0, b = ceil(sqrt(T)) and K = ceil(T/b) batches::

        y_1 = y_2 = c0
        for R = 1..K:
          1. b times: draw u on the unit sphere of V, play x = y_R + zeta u, see the value f(x);
             g_R += (k/zeta) (clip(f(x)) - offset) u                      through the mechanism
          2. release shat_R = g_1 + ... + g_R + noise of the tree         R <= m = max(K-2, 0)
          3. during batch R: y_{R+1} = nearest point of C' to c0 - eta shat_{R-1}, at most b
             steps of Frank-Wolfe from y_R, or exactly where the domain has a projection

        zeta = min(D sqrt(k) / T^(1/4), r/2),   eta = D / (T^(3/4) sqrt(k) L)

    Code:
        Step 1 is `BatchedDescent.act` (batched_descent.py) with `Directions.step` (one_point.py),
        step 2 `BatchedDescent.update`, step 3 `BatchedDescent._step` with `Exploration.nearest`.

    Guarantee:
        epsilon-DP (laplace, k-norm, local) or (epsilon, delta)-DP (gaussian) for the whole sequence
        of points when one round's loss is replaced, the losses of later rounds being chosen from
        points alone. Given the directions, her value enters one estimate, which moves by at most W
        k / zeta (W the range of values), in one leaf and so in at most bit_length(m) nodes; `local`
        adds the noise to the value itself. With delta > 0 trees of laplace and k-norm noise are
        calibrated to (epsilon, delta) by their loss distribution. The last two batches are never
        released. The rest, projections and stopping included, is post-processing.

    **Expected regret** (certified; oblivious losses, y as above) is O(T^(3/4) sqrt(k) L D) plus
    O(T^(1/2) k W h^1.5 / epsilon), a lower order; `plan(spec).regret_bound()` has all constants.
    No one-point method survives losses that are chosen after the point is seen.

    Differs from the paper:
        1. Its last step ascends: the sign of shat is corrected (`sign`).
        2. "certified" noise has the exact count of nodes and the sensitivity of one value; "paper"
           is literal (Lemmas 7 and 10), and the certificate beside the claim is the accountant's:
           where the cap r/2 binds, the printed noise may be too small.
        3. The domain is shrunk, so that no point outside it is played and no loss asked there;
           without shrinking such points are needed, hence there is no such variant.
        4. T need not be a square.
        5. Precision D / sqrt(b) is a distance: Frank-Wolfe stops at a gap of 2 D'^2 / (b + 2).
        6. k-norm, local noise and tuned parameters are additions.
        7. `anytime` restarts cost no factor log T: epochs see disjoint users.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), horizon=10_000)
    >>> plan = PrivateBandit(noise="k-norm").plan(spec)
    >>> plan.batch, plan.leaves, round(plan.zeta, 6)
    (100, 98, 0.447214)
    >>> from dpbandit import certify
    >>> round(certify(PrivateBandit(epsilon=1.0), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others. Above 0 trees have
    the least noise whose loss distribution meets it; local noise meets epsilon at delta = 0
    always"""
    noise: Literal["gaussian", "laplace", "k-norm", "local"] = "gaussian"
    """its law"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calibration", self.calibration, CALIBRATIONS)
        one_of("noise", self.noise, NOISES)
        if self.calibration == "paper" and self.noise not in ("laplace", "gaussian"):
            raise InputError(
                f"Expected noise={self.noise!r} to be laplace or gaussian with calibration='paper'."
            )
        noise_target(self)

    def noise_over(self, loss: Loss, horizon: int) -> Noise:
        """The noise of nodes, or of values."""
        printed = None
        if self.calibration == "paper" and self.epsilon < inf:
            scale = printed_laplace if self.noise == "laplace" else printed_gaussian
            k, L = loss.domain.affine_dim, loss.lipschitz
            printed = scale(horizon, k, L, self.epsilon, self._delta)
        return Noise(law=self.noise, epsilon=self.epsilon, delta=self._delta, printed=printed)

    @property
    def _delta(self) -> float:
        return 0.0 if self.delta is None else self.delta


def printed_laplace(T: int, n: int, L: float, epsilon: float, delta: float = 0.0) -> float:
    """Lemma 7: the scale of Laplace noise, T^(1/2) n L ln T / epsilon; base e is our reading.

    >>> round(printed_laplace(10_000, 5, 1.0, 1.0), 1)
    4605.2
    """
    return sqrt(T) * n * L * log(T) / epsilon


def printed_gaussian(T: int, n: int, L: float, epsilon: float, delta: float) -> float:
    """Lemma 10: the standard deviation of Gaussian noise.

    >>> f"{printed_gaussian(10_000, 5, 1.0, 1.0, 1e-6):.4g}"
    '2.135e+05'
    """
    union = log((n + T) / delta)
    spread = union + sqrt((1 + sqrt(T) / n) * union)
    return T**0.25 * sqrt(n) * L * log(T) * log(T / delta) / epsilon * spread
