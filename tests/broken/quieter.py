"""A plugin for pytest (`-p tests.broken.quieter`): all noise is a fifth smaller than it says.

Coins come up more rarely, and points of a ball are drawn as if privacy cost two thirds of it.
"""

import numpy as np

from dpbandit.agents.experts.ball import BallDraws
from dpbandit.base.random_streams import Draws
from dpbandit.privacy.noise import Shaped

_fill, _take, _made = Draws.fill, Shaped.take, BallDraws.__init__


def fill(self, block):
    _fill(self, block)
    law = self._laws[0][1]
    if law == "binomial":
        block[...] = np.round(0.8 * block + 0.2 * self._parameters[0] / 2)
    block[...] = {"standard_normal": 0.8 * block, "random": block**1.3}.get(law, block)


def made(self, *args, **named):
    _made(self, *args, **named)
    self._rate *= 1.5


Draws.fill, BallDraws.__init__ = fill, made
Shaped.take = lambda self, count: 0.8 * _take(self, count)
