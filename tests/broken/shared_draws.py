"""Streams that give all rows of a draw the numbers of the first one."""

from dpbandit.base.random_streams import Draws

_honest = Draws.fill


def one_for_all(self, block):
    """For `Draws.fill`: along the first axis of a draw's shape all numbers are equal."""
    _honest(self, block)
    if self.shape:
        block[...] = block[:, :, :1]
