"""The centre of the domain: the baseline that curved losses have to beat."""

from dataclasses import dataclass

from dpbandit.agents.convex.leaders import Resting
from dpbandit.base.random_streams import Streams
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class Centre:
    """The domain's centre, every round.

    Where losses are curved it beats uniformly random points by far: Jensen's inequality.

    Code:
        Played by `Resting` (leaders.py).

    Guarantee:
        Epsilon 0: no user's data is looked at.

    >>> import numpy as np
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(2)), horizon=100)
    >>> Centre().make(spec, Streams([0])).act(np.zeros((1, 1)))
    array([[0., 0.]])
    """

    def make(self, spec: Spec, streams: Streams) -> Resting:
        """A running agent; raises `InputError` for anything but convex losses."""
        return Resting(fits(self, spec, ConvexSpec).loss.domain, len(streams))
