"""MixedEffects: the population and the person, both exact, without privacy."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.people.personal_player import PersonalPlayer
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, flag, inside, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.privacy.sums.fading import growing_batches
from dpbandit.specs.protocols import fits
from dpbandit.specs.returning import ReturningSpec


@dataclass(frozen=True, kw_only=True)
class MixedEffects:
    """Bayes' rule for people who differ: what `PersonalFADE` would be with exact sums of everybody.

    At the ends of batches that grow by a tenth, over all visits so far::

        A = (sum of xx' + d noise^2 I)^-1,    m_0 = A (sum of r x),
        theta_0 ~ N(m_0, A (noise^2 + tastes^2 / d)),   her prior: that + tastes^2 I/d

    r is measured from what a row of zeros earns, 0, or 1/2 where rewards are clicks. With `pooled`
    everybody is served by m_0, one parameter for all.

    Code:
        `MixedEffectsPlayer.update` (mixed_effects.py), `PersonalPlayer` (personal_player.py).

    Guarantee:
        None: exact data of all people reach everybody's actions.
    """

    pooled: bool = False
    """play the population's parameter for everybody"""
    tastes: float = 0.5
    """how far people are believed to be from the population"""
    noise: float = 0.5
    """standard deviation that rewards are believed to have, > 0"""
    first_batch: int = 100
    """slots of uniform play"""
    growth: float = 0.1
    """each batch is 1 + growth times as long as the one before"""

    def __post_init__(self) -> None:
        flag("pooled", self.pooled)
        at_least("tastes", self.tastes, 0)
        positive("noise", self.noise)
        whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)

    def make(self, spec: ReturningSpec, streams: Streams) -> "MixedEffectsPlayer":
        """A running agent; raises `InputError` for anything but people who return to rows."""
        return MixedEffectsPlayer(self, fits(self, spec, ReturningSpec), streams)


class MixedEffectsPlayer:
    """Exact sums of everybody, looked at when a batch ends."""

    ledger = no_privacy("exact sums of everybody")

    def __init__(self, config: MixedEffects, spec: ReturningSpec, streams: Streams) -> None:
        d, R = spec.arms.dim, len(streams)
        self._player = PersonalPlayer(
            spec, streams, tastes=config.tastes, noise=config.noise, remembers=not config.pooled
        )
        T = spec.horizon
        first = max(1, min(config.first_batch, T // 10))
        self._ends = frozenset(growing_batches(T, first=first, growth=config.growth))
        self._gram = np.broadcast_to(d * config.noise**2 * np.eye(d), (R, d, d)).copy()
        self._moment = np.zeros((R, d))
        self._spread = config.noise**2 + config.tastes**2 / d
        self._round = 0

    def act(self, context: Floats) -> Ints:
        """Arms (R,) for whoever has come."""
        return self._player.play(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Her visit enters everything."""
        person, x, r = self._player.remember(context, action, feedback)
        x = x * (person >= 0)[:, None]
        self._gram += x[:, :, None] * x[:, None, :]
        self._moment += (r - self._player.origin)[:, None] * x
        self._round += 1
        if self._round in self._ends:
            A = np.linalg.inv(self._gram)
            self._player.believe(np.matvec(A, self._moment), A * self._spread)
