"""Generalised linear models fitted by DP-SGD over shuffled batches, as a program has it."""

from collections.abc import Callable

import numpy as np

from dpbandit.agents.contextual.printed_descent import Descent
from dpbandit.agents.contextual.refits import Refits
from dpbandit.base import Floats, Streams
from dpbandit.privacy import GaussianSpend
from dpbandit.specs import Link

_CLIP, _RATE, _RIDGE = 0.2, 10.0, 2e-5


class DescentRefits(Refits):
    """A fit is a call of DP-SGD from theta / 2, of the size that `calls` has for n rows::

        g      the mean of a batch's gradients, each clipped to 0.2, + N(0, (0.2 sigma / b)^2 I)
        theta  <- theta - 10 / sqrt(step) (g + 2e-5 theta)

    over all batches of shuffled rows, in every epoch. The mean of theta at the ends of the epochs
    after the first `burn_in` comes out.

    Guarantee:
        mu-GDP for the `mu` of the spend, sqrt(most) times that of the dearest call: in an epoch a
        row is in one batch, whose mean it moves by at most 0.4 over its length (`Descent.mu`).
    """

    def __init__(
        self,
        link: Link,
        streams: Streams,
        calls: Callable[[int], Descent],
        *,
        mu: float,
        longest: int,
        dim: int,
        uses: int,
        most: int,
    ) -> None:
        spend = GaussianSpend(mu, f"{most} calls of DP-SGD")
        super().__init__(link, spend, shape=(len(streams), uses, dim), most=most, clip=_CLIP)
        self._calls = calls
        self._noise = np.array(streams.normals("descent noise", most, longest, dim).take(1)[0])
        self._orders = np.array(streams.uniforms("orders of rows", most).take(1)[0])

    def _fit(self, i: int, x: Floats, y: Floats, theta: Floats, *public: Floats) -> Floats:
        n, fit = len(x), int(self._fits[i])
        call = self._calls(n)
        luck = np.random.default_rng(int(self._orders[i, fit] * 2**53))
        noise = iter(_CLIP * call.sigma / call.batch * self._noise[i, fit])
        theta, ends, order = theta / 2, [], np.arange(n)
        step = 0
        for _ in range(call.epochs):
            if call.batch < n:
                luck.shuffle(order)
            for first in range(0, call.steps * call.batch, call.batch):
                step += 1
                rows = order[first : first + call.batch]
                mean = self._gradients(x[rows], y[rows], theta).mean(axis=0)
                theta = theta - _RATE / step**0.5 * (mean + next(noise) + _RIDGE * theta)
            ends.append(theta)
        return np.mean(ends[call.burn_in :], axis=0)
