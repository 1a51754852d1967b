"""MemoryAlone: nobody learns from anybody else, which costs no privacy at all."""

from dataclasses import dataclass

from dpbandit.agents.people.personal_player import PersonalPlayer
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import OWN_DATA, Ledger
from dpbandit.specs.protocols import fits
from dpbandit.specs.returning import ReturningSpec


@dataclass(frozen=True, kw_only=True)
class MemoryAlone:
    """Serve every person by her own exact memory and a public prior: epsilon = 0.

    The baseline between random play and anything that is released: Bayes' rule for rewards
    x . theta + noise N(0, 1), theta ~ N(0, (1 + tastes^2) I/d), on her own visits; clicks are
    measured from 1/2.

    Code:
        `PersonalPlayer` (personal_player.py) plays and remembers.

    Guarantee:
        0-joint DP for a person, however often she comes: no mechanism, hence nothing of hers
        reaches anybody else (`PersonalMemory`).

    >>> from dpbandit import certify
    >>> certify(MemoryAlone(), "ReturningUsers", accountants=False).epsilon
    0.0
    """

    tastes: float = 0.5
    """how far people are believed to be from each other"""
    noise: float = 0.5
    """standard deviation that rewards are believed to have, > 0"""

    def __post_init__(self) -> None:
        at_least("tastes", self.tastes, 0)
        positive("noise", self.noise)

    def make(self, spec: ReturningSpec, streams: Streams) -> "MemoryAlonePlayer":
        """A running agent; raises `InputError` for anything but people who return to rows."""
        return MemoryAlonePlayer(self, fits(self, spec, ReturningSpec), streams)


class MemoryAlonePlayer:
    """A player whose population is never told anything."""

    def __init__(self, config: MemoryAlone, spec: ReturningSpec, streams: Streams) -> None:
        self._player = PersonalPlayer(
            spec, streams, tastes=config.tastes, noise=config.noise, remembers=True
        )
        self.ledger = Ledger((), OWN_DATA)

    def act(self, context: Floats) -> Ints:
        """Arms (R,) for whoever has come."""
        return self._player.play(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Her visit enters her memory."""
        self._player.remember(context, action, feedback)
