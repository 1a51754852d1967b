"""Rewards that are told some rounds later."""

from collections import deque

import numpy as np

from dpbandit.base.arrays import Floats


class Delay:
    """Hands out rewards `rounds` later, and 0 before there are any."""

    def __init__(self, rounds: int, replicas: int) -> None:
        self._queue: deque[Floats] = deque(np.zeros((rounds, replicas)))

    def __call__(self, reward: Floats) -> Floats:
        """The reward of this round in, that of `rounds` ago out."""
        self._queue.append(reward)
        return self._queue.popleft()
