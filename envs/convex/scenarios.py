"""Adversaries by name: which course the losses take, and how much of it is noise."""

from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypeAlias, get_args

import numpy as np

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import InputError, at_least, inside, one_of, vector, whole
from dpbandit.base.random_streams import Streams
from dpbandit.envs.convex.adversaries import (
    Adaptive,
    Adversary,
    Constant,
    Course,
    Drifting,
    Oblivious,
    OffsetGuesser,
    Repeated,
    Switching,
)
from dpbandit.envs.convex.user_laws import Mixture, law, sphere
from dpbandit.losses.linear import Experts
from dpbandit.losses.loss import Loss
from dpbandit.losses.quadratic import OffsetQuadratic

Kind: TypeAlias = Literal["iid", "fixed", "switching", "drift", "adaptive", "strongly-adaptive"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A recipe for adversaries; call it with a loss, an episode's streams and the horizon."""

    kind: Kind = "iid"
    gap: float = 0.5
    """the part of a datum that follows the direction, in [0, 1]; the rest is noise"""
    direction: str | int | tuple[float, ...] = "first"
    """e_1; "first" or 1 for the first unit vector (with experts, against it, so that the first is
    best), i = 1, ..., N for the i-th, "minus-first", "random" for one of each replica's own, or any
    vector; projected on V and normalised"""
    size: float = 1.0
    """scales the data, in (0, 1]; not for experts, predictions and offsets"""
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
        """One episode's adversary."""
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
            return Repeated(users(e[None])[0])
        course: Course = Constant(e)
        if self.kind == "switching":
            course = Switching(domain, e, streams, horizon, self.switches)
        elif self.kind == "drift":
            course = Drifting(domain, e, streams, horizon, self.turns)
        return Oblivious(course, users, R * int(np.prod(loss.datum_shape)))

    def _directions(self, loss: Loss, streams: Streams) -> Floats:
        """e_1, (R, N)."""
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
