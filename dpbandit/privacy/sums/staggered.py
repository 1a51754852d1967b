"""Correlated noise of processes that start one after the other, then go on side by side."""

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.sums.prefix_sums import BLTNoise


class StaggeredNoise:
    """K processes of `BLTNoise`: each takes its first `turns` steps alone, then all together.

    A call is one step of whoever is due, and returns N_i of each process's own step i, (R, K, d).
    One that rests keeps its noise; before its first step that is 0. So a prefix sum of K rows, of
    which those that rest stay as they are, is K prefix sums, each as noisy as its own number of
    steps wants: with n steps each, a user who is in one of the rows moves C x by at most
    `BLTNoise.column_norm(n)` times the sensitivity.
    """

    def __init__(
        self, streams: Streams, name: str, shape: tuple[int, int], *, stddev: float, turns: int
    ) -> None:
        K, d = shape
        alone, self._together = streams.normals(f"{name} alone", d), streams.normals(name, K, d)
        self._parts = [BLTNoise(alone, stddev=stddev) for _ in range(K)]
        self._joined: BLTNoise | None = None
        self._turns, self._step, self.stddev = turns, 0, 0.0
        self._now: Floats = np.zeros((len(streams), K, d))

    @property
    def begun(self) -> int:
        """How many of the processes have taken a step."""
        return -(-self._step // self._turns)

    def __call__(self) -> Floats:
        """The latest N of all processes, (R, K, d)."""
        turn = self._step // self._turns
        if turn < len(self._parts):
            self._step += 1
            due = self._parts[turn]
            self._now = self._now.copy()
            self._now[:, turn] = due()
        else:
            if self._joined is None:
                self._joined = BLTNoise.side_by_side(self._parts, self._together)
            due = self._joined
            self._now = due()
        self.stddev = due.stddev
        return self._now
