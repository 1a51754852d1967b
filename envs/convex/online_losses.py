"""Online convex optimisation with bandit or full feedback, and prices of several goods.

A `Scenario` makes adversaries, given by how their direction changes and by their noise.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from dpbandit.base import (
    MOST_DIM,
    MOST_ROUNDS,
    Floats,
    InputError,
    Streams,
    at_least,
    inside,
    norms,
    one_of,
    positive,
    vector,
    whole,
)
from dpbandit.domains import Box, Domain, domain_named
from dpbandit.envs.convex.problems import (
    Adaptive,
    Adversary,
    ConvexProblem,
    Corners,
    Course,
    Drifting,
    Mixture,
    Oblivious,
    OffsetGuesser,
    Switching,
    constantly,
    law,
    repeated,
    sphere,
)
from dpbandit.losses import (
    Absolute,
    Experts,
    Hinge,
    Kink,
    Linear,
    Logistic,
    Loss,
    OffsetQuadratic,
    Quadratic,
    Ramp,
    Revenue,
    Ridge,
    Squared,
    TiltedQuadratic,
)
from dpbandit.specs import ConvexSpec, Feedback

Kind: TypeAlias = Literal["iid", "fixed", "switching", "drift", "adaptive", "strongly-adaptive"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Factory of adversaries, called with a loss, an episode's streams and the horizon."""

    kind: Kind = "iid"
    gap: float = 0.5
    """share of each datum that follows the round's direction, in [0, 1]; the rest is noise"""
    direction: str | int | tuple[float, ...] = "first"
    """direction in round 1, projected on the domain's span, of norm 1; "first" or 1 is the first
    unit vector (its opposite for experts, so that the first is best), i = 1, ..., dim the i-th,
    "minus-first", "random" (one for each replica), or any vector"""
    size: float = 1.0
    """scale of the data, in (0, 1]; not for experts, offsets, and predictions except ramp"""
    switches: int = 4
    turns: float = 1.0

    def __post_init__(self) -> None:
        one_of("adversary", self.kind, get_args(Kind))
        inside("gap", self.gap, 0, 1, ends=True)
        inside("size", self.size, 0, 1, ends=True)
        whole("switches", self.switches, 0)
        at_least("turns", self.turns, 0)
        if isinstance(self.direction, str):
            one_of("direction", self.direction, ("first", "minus-first", "random"))

    def __call__(self, loss: Loss, streams: Streams, horizon: int) -> Adversary:
        """Return the adversary of one episode."""
        domain, R = loss.domain, len(streams)
        strongly = self.kind == "strongly-adaptive"
        if isinstance(loss, OffsetQuadratic) and self.kind != "iid" and self.kind != "fixed":
            if self.kind in ("switching", "drift"):
                raise InputError(
                    f"An offset has no direction: adversary={self.kind!r} is not for it."
                )
            return OffsetGuesser(loss, R, strongly=strongly)
        e = self._directions(loss, streams)
        gap = 1.0 if self.kind == "fixed" else self.gap
        users = law(loss, streams, gap=gap, size=self.size)
        if self.kind in ("adaptive", "strongly-adaptive"):
            return Adaptive(domain, e, users, strongly=strongly)
        if gap == 1 and isinstance(users, Mixture) and self.kind in ("iid", "fixed"):
            datum = users(e[None])[0]
            datum.flags.writeable = False  # agents get it without a copy
            return partial(repeated, datum)
        course: Course = partial(constantly, e)
        if self.kind == "switching":
            course = Switching(domain, e, streams, horizon, self.switches)
        elif self.kind == "drift":
            course = Drifting(domain, e, streams, horizon, self.turns)
        return Oblivious(course, users, R * int(np.prod(loss.datum_shape)))

    def _directions(self, loss: Loss, streams: Streams) -> Floats:
        """Return the direction of round 1 in each replica, (R, dim), of norm 1."""
        domain = loss.domain
        if isinstance(self.direction, str | Integral):
            if self.direction == "random":
                return sphere(domain, streams.world.normals("direction", domain.affine_dim)())
            number = 1 if isinstance(self.direction, str) else self.direction
            whole("direction", number, 1, domain.dim)
            against = (self.direction == "minus-first") != isinstance(loss, Experts)
            e = np.eye(domain.dim)[number - 1] * (-1.0 if against else 1.0)
        else:
            e = vector("direction", self.direction, domain.dim)
        seen = domain.coordinates(e)
        length = norms(seen)
        if not (np.isfinite(length).all() and length > 1e-12 * np.abs(e).max()):
            raise InputError(f"Expected direction={self.direction} to be seen by the domain.")
        return np.tile(domain.embedded(seen / length), (len(streams), 1))


LOSSES: dict[str, Callable[[Domain], Loss]] = {  # argument `loss` -> class
    "linear": Linear,
    "experts": Experts,
    "quadratic": Quadratic,
    "tilted-quadratic": TiltedQuadratic,
    "kink": Kink,
    "absolute": Absolute,
    "hinge": Hinge,
    "logistic": Logistic,
    "squared": Squared,
    "ridge": Ridge,
    "offset-quadratic": OffsetQuadratic,
    "ramp": Ramp,
}
_DATA_RADIUS = 0.7
"""Largest distance of the data of instance "cocop-ball" from the centre, in radii of the ball"""
INSTANCES: dict[str, dict[str, Any]] = {  # argument `instance` -> other arguments
    "p-lin": {"adversary": "fixed"},
    "p-quad": {"loss": "quadratic", "gap": 0.5},
    "p-kink": {"loss": "kink", "adversary": "fixed"},
    "p-tilt": {"loss": "tilted-quadratic", "adversary": "fixed", "direction": "minus-first"},
    "sqrt-instance": {"adversary": "fixed", "size": None},
    "hypersimplex-3-6": {
        "domain": "hypersimplex",
        "dim": 6,
        "rank": 3,
        "adversary": "fixed",
        "direction": (-1.0, -1.0, -1.0, 1.0, 1.0, 1.0),
    },
    "partition-matroid": {
        "domain": "partition-matroid:groups=3:items=4:take=2",
        "direction": (-1.0, -1.0, 1.0, 1.0) * 3,
    },
    "flows": {
        "domain": "flows:layers=2:width=3",
        "direction": tuple(-1.0 if edge in (0, 3, 12) else 0.0 for edge in range(15)),
    },
    "strongly-adaptive": {"loss": "offset-quadratic", "dim": 1, "adversary": "strongly-adaptive"},
    "cocop-ball": {"loss": "quadratic", "gap": 4 / 7, "size": _DATA_RADIUS},
    "cocol-simplex": {
        "loss": "quadratic",
        "domain": "simplex",
        "dim": 10,
        "adversary": Corners((0.5, 0.3, 0.2)),
    },
    "experts": {"loss": "experts", "domain": "simplex", "dim": 10, "gap": 0.2},
    "realizable-ramp": {"loss": "ramp", "gap": 1.0, "size": 0.5},
    "realizable-squared": {"loss": "squared", "adversary": "fixed"},
}


@dataclass(kw_only=True, eq=False)
class ConvexBandit(ConvexProblem):
    """Bandit convex optimisation: choose a point and observe only its loss.

    Description:
        In each round a user has a datum z. The agent, which does not know z, chooses a point x of a
        convex domain and suffers the loss f(x; z), f convex in x. The family f, the domain and its
        constants (Lipschitz constant L, strong convexity H, the range of values) are public:
        `spec.loss`. Regret is measured against the best fixed point in hindsight.

    Action space:
        `Box`, shape (N,), the smallest around the domain. `Problem.step` raises `InputError` for
        points outside the domain; the Gymnasium adapters project them onto it.

    Observation space:
        `Box`, shape (1,): 0. A bandit has no context.

    Rewards:
        -f(x; z), from minus the highest to minus the lowest value of f (`spec.loss.value_range`).

        ================  ==================================================  ==============  =
        loss              f(x; z), y = x - centre, R the outer radius         L               H
        ================  ==================================================  ==============  =
        linear            <a, y>, norm of a <= 1                              1               0
        experts           <c, x>, c in [0, 1]^N, simplex only                 sqrt(N) / 2     0
        quadratic         `1/2 |x - c|^2`, c in the domain                    D               1
        tilted-quadratic  `1/2 |y|^2 + <a, y>`, norm of a <= 2                R + 2           1
        kink              `|y| + 1/2 |y|^2`                                   1 + R           1
        absolute          `|<a, y> - b|`, norm of a and `|b|` <= 1            1               0
        squared           1/2 (<a, y> - b)^2, a and b as for absolute         R + 1           0
        ridge             `1/2 (<a, y> - b)^2 + 1/2 |y|^2`, a, b likewise     2 R + 1         1
        hinge             max(0, 1 - b <a, y>), b = +-1                       1               0
        logistic          log(1 + exp(-b <a, y>)), b = +-1                    1 / (1 + e^-R)  0
        offset-quadratic  `y_1 + 1/2 |y|^2 - offset s`, s = +-1               1 + R           1
        ramp              max(0, <a, y> - b) / (2 R), norm of a <= 1, b <= R  1 / (2 R)       0
        ================  ==================================================  ==============  =

    Starting state:
        The first round; random directions are drawn anew.

    Arguments:
        * `loss`: a name of the table, or a `dpbandit.losses.Loss`, which has its own domain. For
          the absolute, hinge, logistic, ramp and moving kink losses the best fixed point is found
          numerically over all stored data, which is slow beyond some 10,000 rounds.
        * `domain`: a name, followed by sizes that differ from the defaults:
          `ball:dim=5:radius=1`; `box` and `l1-ball`, likewise; `simplex:dim=5`, mixtures;
          `uniform-matroid:dim=5:rank=1` or `hypersimplex`, choices of `rank` of `dim` items;
          `independent-sets:dim=5:rank=1`, choices of at most `rank` items;
          `partition-matroid:groups=3:items=4:take=2`, `take` of the `items` of each group;
          `graphic-matroid:vertices=5` or `spanning-trees`, trees of the complete graph, or of
          `edges=[a-b,b-c,a-c]`; `base-polytope:marginals=[8,4,2,1]`, permutations of these numbers;
          `permutations:dim=5`, permutations of 5, ..., 1; `flows:layers=2:width=3`, paths from s to
          t through one of `width` nodes in each layer, or along `edges=[s-a,a-t,s-t]`;
          `spectrahedron:order=3`, projectors on a line. Points are convex combinations of these.
          `dim`, `radius` and `rank` may be arguments, too. Or a `dpbandit.domains.Domain`.
        * `adversary`: `"iid"`, one direction; `"fixed"`, also without noise; `"switching"` to a
          new direction `switches` times; `"drift"` around a circle `turns` times; `"adaptive"`
          towards the mean of all points played; `"strongly-adaptive"` to the point of the same
          round (a negative control, against which one-point bandit methods may have linear regret).
          Or a function of a loss, streams and the horizon, see `dpbandit.envs.convex.problems`.
        * `gap`, `direction`, `size`: data of linear losses are size (gap e + (1 - gap) v), e the
          round's direction and v uniform on the unit sphere of the domain's span; for quadratic and
          kink losses they are scaled to the domain or the tilt. In round 1 e is the first unit
          vector (`"first"`), its opposite (`"minus-first"`), the i-th unit vector (an integer i,
          from 1 to the dimension), `"random"`, or any vector. Experts' costs are 0 or 1, of mean
          1/2, or 1/2 - gap for the first (the i-th) expert; the share `gap` of an answer b follows
          e, the rest is noise. Ramp losses are 0 at y = size R e, and with `gap` < 1 also near it.
        * `instance`: one of the reference problems, in place of all of the above but `dim` and
          `radius`: `"p-lin"` <e_1, x>; `"p-quad"` quadratic with gap 0.5; `"p-kink"`; `"p-tilt"`
          `1/2 |x|^2 - 2 x_1`, on the unit ball; `"sqrt-instance"` <e_1, x> / (2 sqrt T);
          `"hypersimplex-3-6"` (-1, -1, -1, 1, 1, 1) / sqrt(6); `"partition-matroid"`, 2 of 4 items
          in each of 3 groups, half of them better, and `"flows"`, 9 paths through 2 layers of 3
          nodes, one of them faster, both with losses that are half noise; `"experts"` 10 experts,
          gap 0.2; `"realizable-squared"` squared losses that are all 0 at the same point, 0.9
          radius e_1; `"strongly-adaptive"` in one dimension, with offsets 3 T^(-1/3) (at most 3/2)
          that follow the sign of the agent's exploration; `"realizable-ramp"` max(0, <a, y>) / 2 on
          the unit ball, y = x - (1/2, 0, ..), a uniform on the sphere: no loss at y = 0;
          `"cocop-ball"` quadratic with c = 0.4 e_1 + 0.3 v on the unit ball, with the public
          constant L = 1.7; `"cocol-simplex"` quadratic on the simplex of R^10, c one of its first
          three corners, with probabilities 0.5, 0.3 and 0.2.
        * `horizon`: rounds. `delay`: rounds until a loss is observed; 0 before.
    """

    loss: str | Loss = "linear"
    domain: str | Domain = "ball"
    dim: int = 5
    radius: float = 1.0
    rank: int = 1
    adversary: str | Callable[[Loss, Streams, int], Adversary] = "iid"
    gap: float = 0.5
    direction: str | int | tuple[float, ...] = "first"
    size: float = 1.0
    switches: int = 4
    turns: float = 1.0
    instance: str | None = None
    horizon: int = 10_000
    delay: int = 0
    feedback: ClassVar[Feedback] = "value"

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, 1, MOST_ROUNDS)
        if self.instance is not None:
            self._follow(self.instance)
        whole("dim", self.dim, 1, MOST_DIM)
        positive("radius", self.radius)
        whole("rank", self.rank, 1, MOST_DIM)
        self.spec = ConvexSpec(
            loss=self._made_loss(), feedback=self.feedback, horizon=self.horizon, delay=self.delay
        )
        self._adversaries = self._made_adversary()
        self._start(Streams([0]))  # raises InputError now for settings that do not fit each other

    def _start(self, streams: Streams) -> Adversary:
        return self._adversaries(self.spec.loss, streams, self.horizon)

    def _follow(self, instance: str) -> None:
        """Apply an instance's settings; raise `InputError` for arguments that contradict them."""
        one_of("instance", instance, INSTANCES)
        settings = dict(INSTANCES[instance])
        if "size" in settings and settings["size"] is None:
            settings["size"] = 0.5 * self.horizon**-0.5
        free = {"instance", "horizon", "delay"} | ({"dim", "radius"} - settings.keys())
        for field in fields(ConvexBandit):
            value = getattr(self, field.name)
            usual: Any = field.default
            wanted = settings.get(field.name, usual)
            if field.name not in free and not np.array_equal(value, wanted):
                if not np.array_equal(value, usual):
                    raise InputError(
                        f"Expected {field.name}={value!r} without instance={instance!r}, "
                        "which has its own."
                    )
                setattr(self, field.name, settings[field.name])

    def _made_loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        one_of("loss", self.loss, LOSSES)
        domain = self._made_domain()
        if self.loss == "offset-quadratic":
            return OffsetQuadratic(domain, offset=3 * min(0.5, self.horizon ** (-1 / 3)))
        if self.instance == "cocop-ball":
            return Quadratic(domain, reach=_DATA_RADIUS * self.radius)
        if self.instance == "realizable-squared":
            return Squared(domain, 0.9 * self.radius)  # answers <a, 0.9 radius e_1>
        return LOSSES[self.loss](domain)

    def _made_domain(self) -> Domain:
        if isinstance(self.domain, Domain):
            return self.domain
        usual = {field.name: field.default for field in fields(ConvexBandit)}
        sizes = {name: getattr(self, name) for name in ("dim", "radius", "rank")}
        changed = {name: size for name, size in sizes.items() if size != usual[name]}
        return domain_named(self.domain, **changed)

    def _made_adversary(self) -> Callable[[Loss, Streams, int], Adversary]:
        scenario = Scenario(
            kind="iid" if callable(self.adversary) else self.adversary,  # type: ignore[arg-type]
            gap=self.gap,
            direction=self.direction,
            size=self.size,
            switches=self.switches,
            turns=self.turns,
        )
        return self.adversary if callable(self.adversary) else scenario


@dataclass(kw_only=True, eq=False)
class OnlineConvex(ConvexBandit):
    """Online convex optimisation with full information: choose a point, observe the loss function.

    Description:
        The problem of `dpbandit/ConvexBandit-v0`, but at the end of a round the agent observes the
        user's datum z, and so the whole loss function f(.; z), instead of its value.

    Action space:
        As in `dpbandit/ConvexBandit-v0`.

    Observation space:
        `Box`, shape of the datum: the datum that was observed last, zeros at the start.

    Rewards:
        As in `dpbandit/ConvexBandit-v0`.

    Starting state:
        As in `dpbandit/ConvexBandit-v0`.

    Arguments:
        As in `dpbandit/ConvexBandit-v0`.
    """

    feedback: ClassVar[Feedback] = "datum"


@dataclass(kw_only=True, eq=False)
class ConvexPricing(ConvexProblem):
    """Set the prices of several goods, customer by customer.

    Description:
        A customer buys q = a - B p units of the goods at prices p. Her demand a at price 0 is
        private; B is public: a dollar more for a good lowers its demand by `own_effect` units and
        raises that of each other good, a substitute, by `cross_effect`. B is symmetric and positive
        definite, so that profit is concave in the prices and its negative a convex loss
        (`dpbandit.losses.Revenue`) with public constants: strong convexity 2 lambda_min(B), and
        exact Lipschitz constant and range. All customers are synthetic.

        With the defaults (3 goods at 1 to 2 dollars, unit cost 0.40) the best fixed prices are
        about 1.63, 1.68 and 1.73 dollars and earn 3.92 a round; the list price, 1.50, earns 3.84,
        and uniformly random prices 3.59.

    Action space:
        `Box`, shape (goods,): dollars above or below the list price, which is the middle of
        [low, high]: from -(high - low) / 2 to (high - low) / 2.

    Observation space:
        `Box`, shape (1,): 0. With feedback `"datum"` shape (goods,): the demand a that was observed
        last, zeros at the start.

    Rewards:
        Dollars of profit, <p - unit cost, q>, which is minus the loss.

    Arguments:
        * `goods`, from 1 to 12. `low`, `high`: the range of every price. `unit_cost`: below `low`.
        * `demand`: units of the first good that the average customer buys at price 0; the last
          good's are larger by the factor 1 + `variety`, the others' are evenly spaced.
        * `spread`: customers' demands a lie within mean (1 +- spread). `common`: the share of the
          deviation that all goods have in common, the rest is independent; both are uniform.
        * `own_effect`, `cross_effect` >= 0: units per dollar. Needs own_effect > (goods - 1)
          cross_effect, and demand that stays positive at all prices for all customers.
        * `feedback`: the agent observes the profit (`"value"`) or a (`"datum"`).
        * `retention`: retention period, in customers: a customer's data are protected until that
          many more have come. None: for ever. It only sets `spec.retention`, which the agents
          `wdp-cocop` and `wdp-cocol` use if window=None, and they reject a shorter window; all
          other agents protect for ever, or not at all.
        * `horizon`: rounds. `delay`: rounds until a profit (or a) is observed; 0 before.
    """

    goods: int = 3
    low: float = 1.0
    high: float = 2.0
    unit_cost: float = 0.4
    demand: float = 2.25
    variety: float = 0.1
    spread: float = 0.2
    common: float = 0.5
    own_effect: float = 1.0
    cross_effect: float = 0.1
    feedback: Literal["value", "datum"] = "value"
    retention: int | None = None
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        whole("goods", self.goods, 1, 12)
        one_of("feedback", self.feedback, ("value", "datum"))
        for name in ("demand", "own_effect"):
            positive(name, getattr(self, name))
        for name in ("unit_cost", "cross_effect", "low"):
            at_least(name, getattr(self, name), 0)
        inside("variety", self.variety, 0, 1000, ends=True)
        positive("high", self.high)
        if not self.low < self.high:
            raise InputError(f"Expected high={self.high!r} to be a number above low={self.low!r}.")
        inside("common", self.common, 0, 1, ends=True)
        N = self.goods
        B = (self.own_effect + self.cross_effect) * np.eye(N) - self.cross_effect
        self._demand = self.demand * np.linspace(1, 1 + float(self.variety), N)
        loss = Revenue(
            Box(N, (self.high - self.low) / 2),
            list_prices=((self.low + self.high) / 2,) * N,
            effects=tuple(map(tuple, B.tolist())),
            demand=tuple(self._demand.tolist()),
            spread=self.spread,
            unit_costs=(float(self.unit_cost),) * N,
        )
        self.spec = ConvexSpec(
            loss=loss,
            feedback=self.feedback,
            horizon=self.horizon,
            delay=self.delay,
            reward_unit="dollars",
            retention=self.retention,
        )

    def _start(self, streams: Streams) -> Adversary:
        R, N = len(streams), self.goods
        customers = _Customers(streams, self._demand, self.spread, self.common)
        return Oblivious(partial(constantly, np.zeros((R, N))), customers, R * (N + 1))


class _Customers:
    """Law of demands mean_i (1 + spread (common w_0 + (1 - common) w_i)), w uniform on [-1, 1]."""

    def __init__(self, streams: Streams, mean: Floats, spread: float, common: float) -> None:
        self._mean, self._spread, self._common = mean, spread, common
        self._uniforms = streams.uniforms("customers", len(mean) + 1)

    def __call__(self, directions: Floats) -> Floats:
        w = 2 * self._uniforms.take(len(directions)) - 1
        away = self._common * w[..., :1] + (1 - self._common) * w[..., 1:]
        return self._mean * (1 + self._spread * away)
