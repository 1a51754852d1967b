"""Projection-free bandit descent: one-point estimates in batches, one step for each batch::

    rounds    1 .. b | b+1 .. 2b |   ...   | .. T          K = ceil(T / b) batches
    plays     y_1 + zeta Q u     | y_R + zeta Q u          y_1 = y_2 = c0
    learns    shat_1             | shat_R = shat_{R-1} + sum of b estimates, released
    meanwhile                      y_{R+1} = nearest point of C' to c0 - eta Q shat_{R-1}

R counts batches, u is uniform on a sphere that Q maps into the domain's span, zeta the radius of
exploration, C' the shrunken domain, c0 its centre, eta the step size, shat a released sum. A step
is computed while the next batch is played, so the last two batches reach no action, and
max(K - 2, 0) sums are released, or K - 1 if play waits for the step.
"""

from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from math import ceil, inf, isqrt, log, sqrt
from typing import Annotated, Literal, cast

import numpy as np

from dpbandit.agent import Agent, Count, Positive, started
from dpbandit.agents.convex.one_point import (
    Directions,
    Exploration,
    Noise,
    Offset,
    Sums,
    estimates_of,
    minimiser,
    with_values,
)
from dpbandit.base import Floats, InputError, Ints, Streams, inside, noise_target
from dpbandit.domains.projections import frank_wolfe
from dpbandit.losses.loss import Loss
from dpbandit.privacy import Parallel
from dpbandit.privacy.batches import OnePointEstimates
from dpbandit.privacy.spends import Spend, different
from dpbandit.specs import ConvexSpec, Spec

_MAX_TUNED_SHRINK = 0.5
"""Largest share by which default parameters shrink the domain."""


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """Public parameters of a run over `horizon` rounds."""

    loss: Loss
    horizon: int
    """number of rounds"""
    noise: Noise
    batch: int
    """number of rounds of a batch"""
    zeta: float
    eta: float
    offset: float | None = None
    stale: bool = True
    exact: bool = True
    """True for exact projections; False for Frank-Wolfe with at most `batch` oracle calls each"""
    tolerance: float = 1.0
    descend: bool = True

    @property
    def batches(self) -> int:
        """Number of batches."""
        return ceil(self.horizon / self.batch)

    @property
    def leaves(self) -> int:
        """Number of batches whose sums can reach an action."""
        return max(self.batches - (2 if self.stale else 1), 0)

    @property
    def exploration(self) -> Exploration:
        """Sphere of exploration and the shrunken domain."""
        return Exploration(self.loss.domain, self.zeta)

    @property
    def estimates(self) -> OnePointEstimates:
        """Statistic of one-point estimates that is summed."""
        return estimates_of(self.loss, self.zeta, self.offset)

    @property
    def spend(self) -> Spend:
        mechanisms = Streams([0])
        return self.noise.sums(
            self.estimates, mechanisms, leaves=self.leaves, batch=self.batch
        ).spend

    @property
    def distance(self) -> float:
        """Largest error of a projection, as a distance; 0 if projections are exact."""
        return 0.0 if self.exact else 2 * self.exploration.diameter / sqrt(self.batch + 2)

    @property
    def gap(self) -> float:
        """Frank-Wolfe gap at which a projection ends, `tolerance` x half the squared distance."""
        return self.tolerance * self.distance**2 / 2

    def regret_bound(self, *, adaptive: bool = False) -> float:
        """Return a bound on the expected regret against oblivious or adaptive losses, the sum of

        T zeta L (2 + R/r)                       exploring, smoothing, shrinking
        R^2/(2 eta) + (eta/2) T (G^2 + b L^2)    follow the regularised leader
        T L (eta (kappa + noise) + e_cg)         stale, noisy and inexact steps

        for batches of b rounds, step size eta, exploration zeta, Lipschitz constant L, outer and
        inner radius R and r, norm G of an estimate, e_cg = `distance` and kappa = sqrt(b G^2 + b^2
        L^2); if losses adapt to past actions, kappa is sqrt(b) G + b L, and R sqrt(T) G is added.
        """
        T, b, L, eta = self.horizon, self.batch, self.loss.lipschitz, self.eta
        if L == 0:
            return 0.0
        R = self.loss.domain.outer_radius
        G = self.noise.length(self.estimates)
        kappa = sqrt(b) * G + b * L if adaptive else sqrt(b * G**2 + b**2 * L**2)
        lag = (kappa if self.stale else 0.0) + self.noise.spread(self.estimates, self.leaves)
        leader = R**2 / (2 * eta) + eta / 2 * T * (G**2 + b * L**2)
        extra = R * sqrt(T) * G if adaptive else 0.0
        return self._exploring + leader + T * L * (eta * lag + self.distance) + extra

    @property
    def _exploring(self) -> float:
        domain = self.loss.domain
        ratio = domain.outer_radius / domain.inner_radius
        return self.horizon * self.zeta * self.loss.lipschitz * (2 + ratio)

    @property
    def tuned_eta(self) -> float:
        """Step size with the least regret bound at this radius of exploration."""
        return self.loss.domain.outer_radius / sqrt(2 * self._growth)

    @property
    def tuned_bound(self) -> float:
        """Regret bound at the step size `tuned_eta`, with exact projections."""
        return self._exploring + self.loss.domain.outer_radius * sqrt(2 * self._growth)

    @property
    def _growth(self) -> float:
        """Coefficient of the step size in the regret bound."""
        T, b, L = self.horizon, self.batch, self.loss.lipschitz
        G = self.noise.length(self.estimates)
        lag = sqrt(b) * G + b * L if self.stale else 0.0
        spread = self.noise.spread(self.estimates, self.leaves)
        return T / 2 * (G**2 + b * L**2) + T * L * (lag + spread)


class ProjectionFree(Agent[ConvexSpec]):
    """Base class of batched descent; a subclass chooses the noise (`noise_over`).

    With `anytime` epochs of T0, 2 T0, 4 T0, ... rounds begin anew, each on its own random
    streams. All epochs together cost as much as the most expensive epoch within the horizon: a user
    is in one epoch, and the others depend on her through releases alone (parallel composition).
    """

    plays = ConvexSpec
    parameters: Literal["paper", "tuned", "halved"] = "paper"
    """radius zeta and step size eta; "paper" has the paper's values, "tuned" the least regret
    bound, "halved" half the paper's zeta and twice its eta"""
    projection: Literal["auto", "exact", "frank-wolfe"] = "auto"
    """method of projections; "auto" is exact if the domain allows it, else Frank-Wolfe"""
    tolerance: Annotated[float, lambda name, x: inside(name, x, 1e-12, 1, ends=True)] = 1.0
    """Frank-Wolfe stops at this share in (0, 1] of the gap that the regret bound needs, or after as
    many calls of the linear oracle as a batch has rounds"""
    stale: bool = True
    """True if a step is computed while the next batch is played; False waits for the step"""
    sign: Literal["corrected", "printed"] = "corrected"
    """sign of a step; "printed", as in the paper, ASCENDS, and is there only to show the erratum"""
    batch: Count | None = None
    """rounds of a batch; if None, ceil(sqrt(T))"""
    zeta: Positive | None = None
    """radius of exploration, below the domain's inner radius"""
    eta: Positive | None = None
    """step size, a factor of the sum of estimates"""
    offset: Offset | None = None
    """public number subtracted from values; if None, 0 if it is in their range, else its middle"""
    anytime: bool = False
    """True to play without the horizon, in epochs that double, each of which starts anew"""
    first_epoch: Count = 16
    """rounds of the first epoch of `anytime` play"""
    run, directions = started(BatchPlan), started(Directions)
    sums = cast(Sums, None)

    def noise_over(self, loss: Loss, horizon: int) -> Noise:
        """Return the noise of estimates over `horizon` rounds."""
        return Noise(law="none")

    def plan(self, spec: Spec, horizon: int | None = None) -> BatchPlan:
        """Return the public parameters of a run over `horizon` rounds, by default the problem's."""
        spec = with_values(self, spec)
        T, loss, domain = horizon or spec.horizon, spec.loss, spec.loss.domain
        if self.projection == "exact" and not domain.has_projection:
            raise InputError(f"Expected projection='auto': {domain} has no exact projection.")
        k, L, D, r = domain.affine_dim, loss.lipschitz, domain.diameter, domain.inner_radius
        draft = partial(
            BatchPlan,
            loss=loss,
            horizon=T,
            noise=self.noise_over(loss, T),
            batch=self.batch or isqrt(T - 1) + 1,
            offset=self.offset,
            stale=self.stale,
            exact=domain.has_projection and self.projection != "frank-wolfe",
            tolerance=self.tolerance,
            descend=self.sign == "corrected",
        )
        if self.parameters == "tuned" and L > 0:
            zeta = self.zeta or minimiser(
                lambda z: draft(zeta=z, eta=0).tuned_bound, _MAX_TUNED_SHRINK * r
            )
            return draft(zeta=zeta, eta=self.eta or draft(zeta=zeta, eta=0).tuned_eta)
        paper_eta = D / (T**0.75 * sqrt(k) * L) if L else 0.0  # constant losses: stay
        zeta = self.zeta or min(D * sqrt(k) / T**0.25, _MAX_TUNED_SHRINK * r)
        if self.parameters == "halved":
            zeta, paper_eta = self.zeta or zeta / 2, 2 * paper_eta
        return draft(zeta=zeta, eta=self.eta or paper_eta)

    def start(self) -> None:
        spec = with_values(self, self.spec)
        self.epoch, self.length, self.covered = 0, inf, None
        self.oracle_calls: Ints = np.zeros(self.R, np.int64)
        """number of calls of the linear oracle so far, (R,); 0 with exact projections"""
        if not self.anytime:
            self.begin_run(self.plan(spec), self.streams)
            self.ledger = self.run.noise.ledger(self.sums.spend)
            return
        lengths = (self.first_epoch << epoch for epoch in count())
        within = takewhile(lambda length: length - self.first_epoch < spec.horizon, lengths)
        self.covered = Parallel(different(self.plan(spec, length).spend for length in within))
        self.begin_epoch()
        self.ledger = self.run.noise.ledger(self.covered)

    def begin_run(self, plan: BatchPlan, streams: Streams) -> None:
        """Start the rounds of a `BatchPlan` at the centre, with new sums and directions."""
        self.run, self.round = plan, 0
        self.sums = plan.noise.sums(plan.estimates, streams, leaves=plan.leaves, batch=plan.batch)
        self.directions = plan.exploration.directions(streams)
        self.y = np.tile(plan.loss.domain.centre, (self.R, 1))
        self.latest: Floats | None = None  # shat_{R-1}

    def begin_epoch(self) -> None:
        """Start the next epoch, with parameters and random streams of its own."""
        self.length = self.first_epoch << self.epoch
        self.begin_run(self.plan(self.spec, self.length), self.streams.child(f"epoch {self.epoch}"))
        self.epoch += 1

    def act(self, context: Floats) -> Floats:
        return self.y + self.directions.step

    def update(self, context: Floats, action: Floats, feedback: Floats) -> None:
        run, total = self.run, None
        if self.covered and self.round == 0:
            self.check_covered(self.covered)
        if self.round < run.leaves * run.batch:
            total = self.sums(0.0 - feedback, self.directions.u)
        self.directions.advance()
        self.round += 1
        if self.round % run.batch == 0 and self.round <= (run.batches - 1) * run.batch:
            self.step(self.latest if run.stale else total)
            self.latest = total
        if self.round == self.length:
            self.begin_epoch()

    def step(self, total: Floats | None) -> None:
        """Move to the point of the shrunken domain nearest to centre - step size x `total`."""
        if total is None:
            return
        run, domain = self.run, self.run.loss.domain
        eta = run.eta if run.descend else -run.eta
        q = domain.centre - eta * domain.embedded(total)
        if run.exact:
            self.y = run.exploration.nearest(q, self.y)
            return
        shrink, gap, budget = run.exploration.xi, run.gap, run.batch
        found = frank_wolfe(domain, q, self.y, shrink=shrink, tolerance=gap, budget=budget)
        self.y, self.oracle_calls = found.point, self.oracle_calls + found.calls

    def check_covered(self, covered: Parallel) -> None:
        """Raise `InputError` if the epoch that begins costs more than the ledger states."""
        spend = self.sums.spend
        if not self.run.noise.private or spend in covered.parts:
            return
        costs = [(spend.pure, covered.pure)]  # pure epsilon: deltas hardly differ if it is large
        costs += [(spend.delta(e), covered.delta(e)) for e in (0.0, 0.1, 1.0, 10.0)]
        if any(cost > promise * (1 + 1e-6) for cost, promise in costs):
            raise InputError(
                f"Epoch {self.epoch - 1} ({spend.note}) costs more than promised: make the "
                "agent for a longer horizon."
            )


class GarberKretzu(ProjectionFree):
    """Exact sums of one-point gradients, with one Frank-Wolfe projection per batch.

    After Garber and Kretzu, "Improved regret bounds for projection-free bandit convex
    optimization", AISTATS 2020: the three steps of `PrivateBandit` without noise. Expected regret
    O(T^(3/4) sqrt(k) L D), for k dimensions, Lipschitz constant L and diameter D, with at most T
    calls of the linear oracle.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        Radius, step size and batches are as in `PrivateBandit`, which differs in the noise alone.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), horizon=10_000)
    >>> bound = GarberKretzu().plan(spec).regret_bound
    >>> bool(bound() < bound(adaptive=True))
    True
    """


class PrivateBandit(ProjectionFree):
    """Noisy tree sums of one-point gradients, with one Frank-Wolfe projection per batch.

    Ene, Nguyen and Vladu, "Projection-free bandit optimization with privacy guarantees", AAAI
    2021, Algorithm 1. With k the dimension of the affine hull, C' the domain shrunk by
    zeta/r towards its centre c0, r its inner radius, b = ceil(sqrt(T)) and K = ceil(T/b) batches::

        y_1 = y_2 = c0
        for R = 1..K:
          1. b times: draw u on the unit sphere, play x = y_R + zeta u, see the value f(x);
             g_R += (k/zeta) (clip(f(x)) - offset) u                      through the mechanism
          2. release shat_R = g_1 + ... + g_R + noise of the tree         R <= m = max(K-2, 0)
          3. during batch R: y_{R+1} = nearest point of C' to c0 - eta shat_{R-1}, at most b
             steps of Frank-Wolfe from y_R, or exactly where the domain has a projection

        zeta = min(D sqrt(k) / T^(1/4), r/2),   eta = D / (T^(3/4) sqrt(k) L),   D diameter

    Guarantee:
        epsilon-DP (laplace, k-norm, local) or (epsilon, delta)-DP (gaussian) for the whole sequence
        of points when one round's loss is replaced, if later losses depend on points alone. Given
        the directions, a user's value enters one estimate, which moves by at most W k / zeta (W the
        range of values), in one leaf and so in at most bit_length(m) nodes; `local` adds the noise
        to the value itself. With delta > 0 trees of laplace and k-norm noise are calibrated to
        (epsilon, delta) by their privacy loss distribution. The last two batches are never
        released. All other steps, projections and stopping included, are post-processing.

    **Expected regret** (certified; oblivious losses, y as above) is O(T^(3/4) sqrt(k) L D) plus
    O(T^(1/2) k W h^1.5 / epsilon), h nodes of a user; `plan(spec).regret_bound()` has constants.
    No one-point method survives losses that are chosen after the point is seen.

    Differs from the paper:
        1. The paper's last step ascends: the sign of shat is corrected (`sign`).
        2. "certified" noise has the exact count of nodes and the sensitivity of one value; "paper"
           has the noise of Lemmas 7 and 10, and the accountant certifies its true epsilon beside
           the claim: if zeta is at its cap r/2, the paper's noise may be too small.
        3. The domain is shrunk, so that no point outside is played; a variant without shrinking
           would need values outside the domain, so there is none.
        4. T need not be a square.
        5. Precision D / sqrt(b) is a distance: Frank-Wolfe stops at a gap of 2 D'^2 / (b + 2).
        6. k-norm, local noise, tuned and halved parameters are additions. A smaller zeta shrinks
           the domain less: for linear losses most regret, T zeta L R / r, is from the part cut off.
        7. `anytime` restarts do not multiply the cost by log T, because epochs see disjoint users.

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
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, else 0. If delta > 0, trees have the
    least noise whose privacy loss distribution meets the target; local noise has delta = 0"""
    noise: Literal["gaussian", "laplace", "k-norm", "local"] = "gaussian"
    """distribution of the noise"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""

    def check(self) -> None:
        if self.calibration == "paper" and self.noise not in ("laplace", "gaussian"):
            raise InputError(
                f"Expected noise={self.noise!r} to be laplace or gaussian with calibration='paper'."
            )
        noise_target(self)

    def noise_over(self, loss: Loss, horizon: int) -> Noise:
        delta, printed = self.delta or 0.0, None
        if self.calibration == "paper" and self.epsilon < inf:
            scale = printed_laplace if self.noise == "laplace" else printed_gaussian
            k, L = loss.domain.affine_dim, loss.lipschitz
            printed = scale(horizon, k, L, self.epsilon, delta)
        return Noise(law=self.noise, epsilon=self.epsilon, delta=delta, printed=printed)


def printed_laplace(T: int, n: int, L: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the Laplace scale of Lemma 7, log read as ln, for n dimensions and Lipschitz bound L.

    >>> round(printed_laplace(10_000, 5, 1.0, 1.0), 1)
    4605.2
    """
    return sqrt(T) * n * L * log(T) / epsilon


def printed_gaussian(T: int, n: int, L: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of Gaussian noise of Lemma 10, see `printed_laplace`.

    >>> f"{printed_gaussian(10_000, 5, 1.0, 1.0, 1e-6):.4g}"
    '2.135e+05'
    """
    union = log((n + T) / delta)
    spread = union + sqrt((1 + sqrt(T) / n) * union)
    return T**0.25 * sqrt(n) * L * log(T) * log(T / delta) / epsilon * spread
