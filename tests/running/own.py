"""Agents and problems of somebody's own, right ones and wrong ones."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.protocols import ContextualSpec


@dataclass(frozen=True, kw_only=True)
class Mine:
    """Always the same arm."""

    arm: int = 0

    def make(self, spec, streams):
        return Running(self.arm, len(streams))


class Running:
    def __init__(self, arm, replicas):
        self.ledger, self._arm, self._R = no_privacy("an exercise"), arm, replicas

    def act(self, context):
        return np.full(self._R, self._arm)

    def update(self, context, action, reward):
        pass


@dataclass(frozen=True, kw_only=True)
class WithoutDefault(Mine):
    path: str


@dataclass(frozen=True, kw_only=True)
class ForTypeCheckers(Mine):
    """One of its annotations is nothing at run time."""

    law: "Law | None" = None  # noqa: F821


class NoDataclass:
    def make(self, spec, streams):
        return Running(0, len(streams))


class NoConfig:
    """Of nothing."""


@dataclass
class Shop(ContextualProblem):
    """Two arms, half of whose users are glad."""

    horizon: int = 10

    def __post_init__(self):
        self.spec = ContextualSpec(n_actions=2, dim=2, horizon=self.horizon)

    def _start(self, streams: Streams):
        self._R, self._luck = len(streams), streams.uniforms("luck", 2)

    def _users(self, count):
        halves = np.full((count, self._R, 2), 0.5)
        return Users(halves, halves, 1.0 * (self._luck.take(count) < 0.5))


@dataclass(kw_only=True)
class ShopOfPath(Shop):
    path: str


def agent(**parts):
    """A config whose running agent has other methods; `make` is the config's own."""
    kind = type("Odd", (Running,), {key: part for key, part in parts.items() if key != "make"})
    make = parts.get("make", lambda self, spec, streams: kind(0, len(streams)))
    return dataclass(frozen=True)(type("Own", (), {"make": make}))()


def shop(**parts):
    """A class of problems with other methods."""
    return type("Kiosk", (Shop,), parts)
