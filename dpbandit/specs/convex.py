"""Specs of online convex problems, of streams of users' data, and of expert advice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import gymnasium as gym
import numpy as np

from dpbandit.base import MOST_ACTIONS, Bools, Floats, Streams, one_of, reals, whole
from dpbandit.domains import Domain, nearest
from dpbandit.losses.decisions import Linear
from dpbandit.losses.loss import Loss
from dpbandit.privacy.notion import ALL_ACTIONS, Covered
from dpbandit.specs.protocols import BOUND_SLACK, Bound, Numbered, Spec, datum_of, finite_array

Feedback: TypeAlias = Literal["value", "datum"]


@dataclass(frozen=True, kw_only=True)
class ConvexSpec(Spec):
    """Convex problem: a point x of a domain each round, with loss f(x; z) of a user's datum z.

    The action is a point (R, N); the reward is -f(x; z). With feedback "value" an agent observes
    the reward alone (a bandit; the context is a constant 0 of shape (R, 1)); with feedback "datum"
    it observes z (f is public), and the context is the datum of the previous round.
    """

    loss: Loss
    feedback: Feedback = "value"
    reward_low: float = field(init=False)
    reward_high: float = field(init=False)
    reward_unit: str = "loss"
    retention: int | None = None
    """number of rounds for which a user's datum is to be protected; None for all rounds"""
    in_hindsight: ClassVar[bool] = True
    covers: ClassVar[frozenset[Covered]] = ALL_ACTIONS
    """actions that privacy covers, which are all, as a point is chosen before its datum is seen"""
    kind: ClassVar[str] = "a convex problem"
    nouns: ClassVar[tuple[str, str]] = ("rounds", "point")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("feedback", self.feedback, ("value", "datum"))
        if self.retention is not None:
            whole("retention", self.retention, 1)
            object.__setattr__(self, "retention", int(self.retention))
        low, high = self.loss.value_range
        object.__setattr__(self, "reward_low", -high)
        object.__setattr__(self, "reward_high", -low)

    @property
    def measured_as(self) -> str:
        if self.feedback == "datum":
            return "points by datum"
        return "points by value" if isinstance(self.loss, Linear) else "curved points by value"

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (1,) if self.datum_shape is None else self.datum_shape

    @property
    def domain(self) -> Domain:
        return self.loss.domain

    @property
    def datum_shape(self) -> tuple[int, ...] | None:
        return self.loss.datum_shape if self.feedback == "datum" else None

    @property
    def default_action(self) -> Floats:
        return self.loss.domain.centre

    def validate(self, action: Any, replicas: int) -> Floats:
        # Points (R, N) of finite numbers; whether they are in the domain the problem checks
        return finite_array("actions", action, (replicas, self.loss.domain.dim))

    def uniform(self, streams: Streams) -> Callable[[], Floats]:
        return self.loss.domain.sampler(streams, "exploration")

    def action_space(self) -> gym.Space[Any]:
        axes, lowest = np.eye(self.loss.domain.dim), self.loss.domain.lowest
        return gym.spaces.Box(lowest(axes).diagonal(), lowest(-axes).diagonal(), dtype=np.float64)

    def observation_space(self) -> gym.Space[Any]:
        bound = 1.0 if self.datum_shape is None else self.loss.datum_bound
        return gym.spaces.Box(-bound, bound, self.context_shape, np.float64)

    def bounds(self) -> list[Bound]:
        loss = self.loss
        if self.datum_shape is None:
            return super().bounds()

        def distances(data: Floats) -> Floats:
            flat = data.reshape(-1, *loss.datum_shape)
            away = np.abs(loss.admissible(flat) - flat)
            return away.reshape(*data.shape[:2], -1).max(axis=-1)

        words = "data", f"off what is admissible for {loss}", "scale or clip them"
        most = BOUND_SLACK * loss.datum_bound
        return [*super().bounds(), Bound(datum_of, loss.datum_shape, distances, 0.0, most, *words)]

    def repaired(self, action: Any, mask: Bools | None = None) -> Any:
        # Points of the box moved into the domain; the problem refuses what is none
        try:
            points = reals(action)
        except ValueError:
            return action
        domain = self.loss.domain
        fits = points.ndim == 2 and points.shape[1] == domain.dim and np.isfinite(points).all()
        if not fits:
            return action
        centres = np.broadcast_to(domain.centre, points.shape)
        return nearest(domain, points, centres).point


@dataclass(frozen=True, kw_only=True)
class StreamSpec(ConvexSpec):
    """Stochastic convex optimisation: data are independent draws from one law P.

    The feedback is the datum z. The comparator is the best point for the law, not for the users who
    happened to come: a round's regret is f(theta; z) - f(best; z), with loss f and the played point
    theta; its mean is the excess risk of theta.
    """

    feedback: Feedback = "datum"
    in_hindsight: ClassVar[bool] = False
    kind: ClassVar[str] = "a stream of data"
    measured_as = "streams"


@dataclass(frozen=True, kw_only=True)
class ExpertsSpec(Numbered, Spec):
    """Prediction with expert advice: losses of all experts, in [0, 1], are observed.

    The action is an expert (R,), the reward minus the expert's loss. A round's datum is the vector
    (R, d) of all d experts' losses, which the agent observes in place of the reward; the context is
    the previous round's datum, 0 in round 1. Regret refers to the best expert in hindsight.
    """

    n_actions: int
    """number d of experts"""
    reward_low: float = field(init=False, default=-1.0)
    reward_high: float = field(init=False, default=0.0)
    reward_unit: str = "loss"
    in_hindsight: ClassVar[bool] = True
    covers: ClassVar[frozenset[Covered]] = ALL_ACTIONS
    """actions that privacy covers, which are all, as an expert is chosen before losses are seen"""
    kind: ClassVar[str] = "advice of experts"
    nouns: ClassVar[tuple[str, str]] = ("rounds", "expert")
    measured_as = "experts"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n_actions", self.n_actions, 1, MOST_ACTIONS)

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (self.n_actions,)

    @property
    def datum_shape(self) -> tuple[int, ...]:
        return (self.n_actions,)

    @property
    def matrix_entries(self) -> int:
        return self.n_actions

    def observation_space(self) -> gym.Space[Any]:
        return gym.spaces.Box(0.0, 1.0, self.context_shape, np.float64)

    def bounds(self) -> list[Bound]:
        def farthest(losses: Floats) -> Floats:
            low, high = losses.min(axis=-1), losses.max(axis=-1)
            return np.where(high - 1 > -low, high, low)

        low, high = -BOUND_SLACK, 1 + BOUND_SLACK
        words = "losses", "outside [0, 1]", "scale or clip them"
        return [*super().bounds(), Bound(datum_of, self.datum_shape, farthest, low, high, *words)]
