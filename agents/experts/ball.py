"""Sparse-vector experts whose experts are the points of a grid or of a ball.

Let L be the Lipschitz constant of losses in units of their range: in T rounds a point within r of
the best point loses at most L r T more. A smaller r needs more experts, with a larger r the best
expert is worse. Here L r T equals the margin by which an expert may lose more than the best before
a redraw. Asi, Feldman, Koren and Talwar (ICML 2023, section 4) print r = 1 / (L T).
"""

from math import ceil, inf, log, pi, sqrt
from sys import float_info
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np

from dpbandit.agent import Delta, Epsilon, Inside01, Least0, Points, Positive, started
from dpbandit.agents.experts.calibration import SparseVectorPlan, best_plan, certified_plan
from dpbandit.agents.experts.sampling import HitAndRun, Sampler, UnitLosses, exact_sampler
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base import AnyArray, Floats, InputError, Ints, Streams, at_least, positive
from dpbandit.domains import Ball
from dpbandit.losses.loss import Loss
from dpbandit.privacy import (
    BoundedRangeSpend,
    BudgetExceededError,
    Ledger,
    Mechanism,
    SegmentAboveThreshold,
    no_privacy,
)
from dpbandit.privacy.choices import distinct
from dpbandit.privacy.premises import ALL_FACTS, SUMMED, Fact
from dpbandit.specs import ConvexSpec, ExpertsSpec

_SEARCH_CS = (2.0, 4.0)
"""Tried c in the search for `reach`; the threshold is L* + c/eta. The final choice tries more."""
_REACH_STEPS = 8  # largest number of iterations of `balanced`
_MAX_NET_POINTS = 20_000  # approximate limit of points in a net
_QUERY_POINTS = 16  # number of public points at which `query` evaluates a loss
_SEED_RANGE = 2.0**53  # seeds of generators are whole numbers below this
Reach: TypeAlias = Annotated[float, lambda name, value: at_least(name, value, 1e-100)]


def net(ball: Ball, spacing: float) -> Floats:
    """Return a square grid's points in the ball, (M, N); if N = 1, both ends are in the grid.

    >>> len(net(Ball(1), 0.002)), len(net(Ball(2), 0.02))
    (1001, 7845)
    """
    R = ball.outer_radius
    sides = ceil(R / spacing - 1e-9) if ball.dim == 1 else int(R / spacing + 1e-9)
    line = np.arange(-sides, sides + 1)
    if ball.dim == 1:
        return line[:, None] * (R / max(sides, 1))
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    points = spacing * grid
    return np.asarray(points[np.linalg.norm(points, axis=1) <= R * (1 + 1e-12)])


def spacing_of(reach: float, dim: int) -> float:
    """Return the largest spacing of a grid with a grid point within `reach` of every ball point.

    It is 2 x reach on a line, and reach / sqrt(2) on a disc, where points near the edge have their
    nearest grid point one spacing further inside.
    """
    return 2 * reach if dim == 1 else reach / sqrt(2)


def size_of(radius: float, reach: float, dim: int) -> int:
    """Return the approximate size of a net that has a point within `reach` of every ball point."""
    ratio = radius / spacing_of(reach, dim)
    return ceil(2 * ratio + 1) if dim == 1 else ceil(pi * ratio**2 + 1)


def inverse_mass(ball: Ball, reach: float) -> int:
    """Return 1 / gamma, rounded up; a share >= gamma of the ball is within `reach` of any point.

    1 / gamma = (2 R / r)^N, for radius R, r = `reach` and N dimensions: a ball of radius r/2 fits
    at r/2 from any point towards the centre. Raises `InputError` if the number overflows a float.
    """
    sides = 2 * ball.outer_radius / reach
    if ball.dim * log(sides) > log(float_info.max):
        raise InputError(
            f"Expected fewer than {float_info.max:.2g} experts, got ({sides:.3g})^{ball.dim}: "
            "choose fewer dimensions or a larger reach."
        )
    return max(1, ceil(sides**ball.dim * (1 - 1e-12)))


class PointsAsExperts(Points):
    """Base class of agents whose experts are points, at least one of them near the best point."""

    epsilon: Epsilon = 1.0
    """target, > 0; inf plays without privacy"""
    delta: Delta = 0.0
    """target, in [0, 1)"""
    best_loss = 0.0
    beta = cast("float | None", None)

    def flat(self) -> bool:
        return False

    def count(self, spec: ConvexSpec, reach: float) -> int:
        """Return the number of experts, one in `reach` of any point; 1 / gamma for densities."""
        raise NotImplementedError

    def balanced(self, spec: ConvexSpec, smallest: float, largest: float) -> float:
        """Return the reach r in [smallest, largest] with L r T nearest to the test's margin."""
        T, reach, margin = spec.horizon, largest, 1.0
        target = {"epsilon": self.epsilon, "delta": self.delta, "failure": self.beta or 1 / T}
        for _ in range(_REACH_STEPS):
            if self.epsilon < inf:
                margin = certified_plan(self.count(spec, reach), T, cs=_SEARCH_CS, **target).margin
            drift = UnitLosses(spec.loss).slope * T
            before, reach = reach, min(largest, max(smallest, margin / drift))
            if abs(reach - before) <= 0.05 * before:
                break
        return reach

    def worst(self, spec: ConvexSpec, reach: float) -> float:
        """Return a bound on the total loss of any point within `reach` of the best point."""
        return self.best_loss + UnitLosses(spec.loss).slope * spec.horizon * reach

    def planned(self, spec: ConvexSpec, reach: float, experts: int) -> SparseVectorPlan:
        """Return the number of draws, rate, margin and noise for a number of experts."""
        return best_plan(
            experts,
            spec.horizon,
            epsilon=self.epsilon,
            delta=self.delta,
            failure=self.beta or 1 / spec.horizon,
            best_loss=self.worst(spec, reach),
        )


class NetExperts(PointsAsExperts):
    """Sparse-vector experts on a grid of a line or a disc, for data with a point of small loss.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023, section 4: experts are the points of a net::

        1. the M points in the ball of a grid of the given spacing are experts, with losses
           (f(x; z_t) - low) / (high - low), in [0, 1]
        2. Algorithm 1 plays these experts (`SparseVectorExperts`, certified), with its bound L* on
           the best loss raised by L r T, L the Lipschitz constant: the net has a point within r of
           the best point

    Guarantee:
        (epsilon, delta)-DP of all points played, for every datum, as for `SparseVectorExperts`.
        Data are moved into the public set first. The net, L* and the losses' range are public.

    **Regret** of mean at most (high - low) x `plan(spec)`'s bound, for oblivious losses and a point
    that loses at most `best_loss`; of order N^2 log^2(T) / epsilon in N dimensions with delta = 0.
    A round costs M evaluations of the loss, which is affordable for N <= 2.

    Differs from the paper:
        1. r makes L r T about as large as the margin of a segment; the paper prints 1 / (L T).
        2. The paper's "radius D" is read as the radius. Losses are scaled by their public range.

    >>> from dpbandit import certify
    >>> from dpbandit.losses import Ramp
    >>> spec = ConvexSpec(loss=Ramp(Ball(1)), feedback="datum", horizon=10_000)
    >>> round(certify(NetExperts(epsilon=1.0), spec).epsilon, 6)
    1.0
    """

    # every round is passed on unchanged, with the losses of all points
    hands_on = ALL_FACTS

    best_loss: Least0 = 0.0
    """public bound L* on the best point's total loss, in units of the range of losses"""
    spacing: Positive | None = None
    """spacing of the grid; if None, it balances the grid's error against the test's margin, with at
    most some 20,000 points"""
    net_loss: Least0 | None = None
    """public bound on the total loss of the grid's best point; if None, from `best_loss`"""
    beta: Inside01 | None = None
    """failure probability for which threshold and number of draws are chosen; if None, 1/T"""
    player = started(PlannedSegments)

    def fit(self) -> None:
        if not isinstance(self.domain, Ball) or self.domain.dim > 2:
            raise InputError(
                f"NetExperts plays balls of dimension 1 or 2, got {self.domain}: choose another "
                "agent or environment."
            )

    def count(self, spec: ConvexSpec, reach: float) -> int:
        return size_of(spec.loss.domain.outer_radius, reach, spec.loss.domain.dim)

    def reach(self, spec: ConvexSpec) -> float:
        """Return the largest distance of a ball point from a net of at most about 20,000 points."""
        R, N = spec.loss.domain.outer_radius, spec.loss.domain.dim
        if self.spacing is not None:
            return self.spacing / spacing_of(1.0, N)
        return self.balanced(
            spec, R / _MAX_NET_POINTS if N == 1 else R * sqrt(2 * pi / _MAX_NET_POINTS), R
        )

    def begin(self) -> None:
        # Run Algorithm 1 with the points of the net as experts
        spec, ball, reach = self.spec, cast(Ball, self.domain), self.reach(self.spec)
        self.net = net(ball, self.spacing or spacing_of(reach, ball.dim))
        best = self.worst(spec, reach) if self.net_loss is None else self.net_loss
        plan = self.planned(spec, reach, len(self.net))
        experts = ExpertsSpec(n_actions=len(self.net), horizon=spec.horizon, delay=spec.delay)
        self.player = PlannedSegments(plan=plan, best_loss=best).make(experts, self.streams)
        self.ledger, self.losses = self.player.ledger, UnitLosses(self.loss)

    def act(self, context: Floats) -> Floats:
        return self.net[self.player.expert]

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        data = self.loss.admissible(distinct(feedback))
        losses = self.losses.each(self.net, data[:, None])  # (1, M) where all replicas share data
        everyone = np.broadcast_to(losses, (self.R, len(self.net)))
        self.player.update(context, self.player.expert, everyone)


class BallDraws(Mechanism):
    """Points of a ball with density prop. to exp(-eta max(S, floor) / 2), S the sum of all losses::

        call(data (R, *datum_shape), drawing (R,) bool) -> points (R, N), NaN unless drawing

    A loss is divided by its public range, after the datum was moved into the loss's public set. A
    draw has a generator of its own, seeded by two uniforms of the replica's stream, because exact
    samplers take a varying number of random numbers. `drawing` marks the replicas that draw, and
    must be a function of releases.

    Guarantee:
        If the sampler is exact, each draw has bounded range eta for replacing one round, because it
        moves S by at most 1 everywhere, -eta max(S, floor) / 2 by at most eta / 2 either way, and
        the normaliser by a constant (McSherry and Talwar, FOCS 2007).

    Args:
        loss, sampler: the loss family with a public range; the sampler with the sums of losses.
        streams, name: the random streams of the replicas, and the name of the mechanism.
        eta, floor: bounded range of one draw; points with S below the floor are equally likely.
        uses, draws: number of calls, and largest number of points drawn in a replica.
    """

    # "A loss is divided by its public range, after the datum was moved into the loss's public set."
    needs = SUMMED | {Fact.LOSS}
    controls = (1,)

    order = inf
    """order of the norm of `sensitivity`; inf takes the largest change of a loss over all points"""
    sensitivity = 1.0

    def __init__(
        self,
        loss: Loss,
        sampler: Sampler,
        streams: Streams,
        name: str,
        *,
        eta: float,
        floor: float,
        uses: int,
        draws: int,
    ) -> None:
        self.spend = BoundedRangeSpend.alike(f"{name}: {draws} draws from a ball", eta, draws)
        self.uses, self.draws = uses, draws
        self._loss, self._sampler = loss, sampler
        self._rate, self._floor = eta / 2, floor
        self._uniforms = streams.uniforms(name, 2)
        self._drawn = np.zeros(len(streams), dtype=np.int64)
        self._probes = np.array(
            [loss.domain.sampler(Streams([0]), "p")() for _ in range(_QUERY_POINTS)]
        )

    def query(self, *datum: AnyArray) -> Floats:
        # The round's losses at 16 public points, (R, 16), stand for the loss function
        data = self._loss.admitted(datum[0], len(self._drawn))
        return UnitLosses(self._loss).each(self._probes[:, 0], data[:, None])

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the datum moved into the loss's public set, for `dpbandit.testing`."""
        return self._loss.admissible(datum[0]), *datum[1:]

    def _release(self, *datum: AnyArray) -> Any:
        self._sampler.add(self._loss.admitted(datum[0], len(self._drawn)))
        drawing, seeds = np.flatnonzero(datum[1]), (self._uniforms() * _SEED_RANGE).astype(np.int64)
        points = np.full((len(self._drawn), self._loss.domain.dim), np.nan)
        if len(drawing) and self._drawn[drawing].max() >= self.draws:
            raise BudgetExceededError(f"{self.spend.note}: a replica asks for more draws.")
        for r in drawing:
            rng = np.random.Generator(np.random.SFC64(seeds[r].tolist()))
            points[r] = self._sampler.draw(int(r), self._rate, self._floor, rng)
        self._drawn[drawing] += 1
        return points


class BallExperts(PointsAsExperts):
    """Sparse-vector experts on all points of a ball, some of which have a small total loss.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in
    the realizable regime", ICML 2023: Algorithm 1 with the uniform law of a ball as its base
    measure. It replaces their Algorithm 5, whose test fails (`PotentialExperts`)::

        x uniform; for t = 1..T:
          1. play x, see the datum z_t; losses count as (f - low) / (high - low), in [0, 1]
          2. test whether x lost more than L* + L r T + margin since it was drawn
          3. if so, K times: x from the density prop. to exp(-eta max(S_t, L* + L r T) / 2), S_t the
             total loss

        losses in N dimensions                  sampler                          law
        absolute, hinge, linear, ramp, N = 1    inverse distribution function    exact
        linear, any N                           adaptive rejection               exact
        any other, N <= 3                       rejection in cells               exact
        any, calibration="heuristic"            hit-and-run                      not

    L* is `best_loss`, r = `reach`, L the Lipschitz constant. K and margin are those of 1 / gamma
    experts, with gamma = (r / 2R)^N for radius R: in the proof the mass within r of the best point
    replaces the best expert's weight.

    Guarantee:
        If draws are exact: (epsilon, delta)-DP of all points played, for replacing one datum, as
        for `SparseVectorExperts`: a datum moves -eta max(S, .) / 2 by at most eta / 2 everywhere.
        "heuristic" certifies nothing (epsilon = inf): a finite walk only approaches its law.

    **Regret** of mean at most (high - low) x `plan(spec)`'s bound, for oblivious losses and a point
    that loses at most `best_loss`; of order N^2 log^2(T) / epsilon in N dimensions with delta = 0.

    Samplers store all data, except for linear losses. As rejection trials are not capped, the time
    of a draw may reveal data.

    Differs from the paper:
        1. The test is of the segment's loss, not of the potential.
        2. r makes L r T about as large as the margin.
        3. gamma has r / 2R, not r / R, as less of the ball is near a point at its edge; and the
           power N, not -N.
        4. Log-concave sampling in polynomial time is not used: its error would cost privacy.

    >>> from dpbandit import certify
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), feedback="datum", horizon=10_000)
    >>> round(certify(BallExperts(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> certify(BallExperts(calibration="heuristic"), spec).epsilon
    inf
    """

    epsilon: Epsilon = 1.0
    """target, > 0, finite"""
    calibration: Literal["certified", "heuristic"] = "certified"
    """"heuristic" uses random walks in place of exact draws, and certifies nothing"""
    best_loss: Least0 = 0.0
    """public bound L* on the best point's total loss, in units of the range of losses"""
    reach: Reach | None = None
    """distance at which points count as good as the best; if None, balanced with a test's margin"""
    beta: Inside01 | None = None
    """failure probability for which threshold and number of draws are chosen; if None, 1/T"""
    tests, draws = started(SegmentAboveThreshold), started(BallDraws)

    def check(self) -> None:
        positive("epsilon", self.epsilon)

    def fit(self) -> None:
        if not isinstance(self.domain, Ball):
            raise InputError(
                f"BallExperts plays balls, got {self.domain}: choose another agent or environment."
            )
        self.kind = exact_sampler(self.loss) if self.calibration == "certified" else HitAndRun
        if self.kind is None:
            raise InputError(
                f"{type(self.loss).__name__} has no exact sampler in {self.domain.dim} dimensions: "
                "choose another agent or environment, or calibration='heuristic', which "
                "certifies nothing."
            )

    def count(self, spec: ConvexSpec, reach: float) -> int:
        return inverse_mass(cast(Ball, spec.loss.domain), reach)

    def plan(self, spec: ConvexSpec) -> tuple[float, SparseVectorPlan]:
        """Return a bound on the total loss of points near the best one, and public parameters."""
        reach = self.reach or self.balanced(spec, 0.0, spec.loss.domain.outer_radius)
        return self.worst(spec, reach), self.planned(spec, reach, self.count(spec, reach))

    def begin(self) -> None:
        best, plan = self.plan(self.spec)
        self.losses = UnitLosses(self.loss)
        self.left: Ints = np.full(self.R, plan.draws)
        self.threshold = np.full(self.R, best + plan.margin)
        self.tests = SegmentAboveThreshold(
            self.streams,
            "tests",
            epsilon=plan.threshold_epsilon,
            query_epsilon=plan.test_epsilon,
            noise=plan.noise,
            uses=self.spec.horizon,
        )
        self.draws = BallDraws(
            self.loss,
            cast(type[Sampler], self.kind)(self.loss, self.R),
            self.streams,
            "draws",
            eta=plan.eta,
            floor=best,
            uses=self.spec.horizon,
            draws=plan.draws,
        )
        self.ledger = no_privacy("approximate sampling: points drawn by a walk of finite length")
        if self.calibration == "certified":
            self.ledger = Ledger((self.tests.spend, self.draws.spend))
        self.point = self.domain.sampler(self.streams, "first point")()

    def act(self, context: Floats) -> Floats:
        return self.point.copy()

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        # Take steps 2 and 3 with a datum, `(R, *datum_shape)`
        suffered = self.losses.each(self.point, self.loss.admissible(feedback))
        drawing = np.asarray(self.tests(suffered, self.threshold)) & (self.left > 0)
        points = np.asarray(self.draws(feedback, drawing))
        self.point = np.where(drawing[:, None], points, self.point)
        self.left = self.left - drawing
