"""Mechanisms that refit generalised linear models to all users so far."""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base import Floats, clip_norm, clip_range
from dpbandit.privacy import BudgetExceededError, GaussianSpend, Mechanism
from dpbandit.specs import Link


class Refits(Mechanism):
    """Keeps all rows (x, y), clipped to `|x| <= 1` and y in [0, 1], and fits models to them.

    A call takes the row of a round, (R, D) and (R,); who is `due` for a fit, (R,); the released
    parameter theta to start from, (R, D); and what else is public about the fit. It returns the new
    parameters, or None where nobody is due. A replica has at most `most` fits, which `spend` pays.

    Steps are made at private iterates or at released ones. Either way `query` is what the round
    adds to the first step: its gradient (zeta(x . theta) - y) x, clipped to half the `sensitivity`.
    """

    def __init__(
        self,
        link: Link,
        spend: GaussianSpend,
        *,
        shape: tuple[int, int, int],
        most: int,
        clip: float,
    ) -> None:
        R, self.uses, D = shape
        self.spend, self.sensitivity = spend, 2 * clip
        self._link, self._most, self._clip = link, most, clip
        self._x, self._y = np.empty((R, self.uses, D)), np.empty((R, self.uses))
        self._fits = np.zeros(R, np.int64)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped gradient of the row at theta, (R, D)."""
        x, y, _, theta = datum[:4]
        return self._gradients(*_clipped(x, y), theta)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        x, y, due, theta, *public = datum
        n = self._used
        self._x[:, n - 1], self._y[:, n - 1] = _clipped(x, y)
        if not due.any():
            return None
        if self._fits[due].max() >= self._most:
            raise BudgetExceededError(f"{self.spend.note}: more than {self._most} fits.")
        fitted = np.array(theta)
        for i in np.flatnonzero(due).tolist():
            fitted[i] = self._fit(
                i, self._x[i, :n], self._y[i, :n], theta[i], *(p[i] for p in public)
            )
        self._fits[due] += 1
        return fitted

    def _gradients(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """(n, D), (n,), (D,) or (n, D) -> (n, D), each clipped."""
        residual = self._link.mean(np.vecdot(x, theta)) - y
        return clip_norm(residual[:, None] * x, self._clip)

    @abstractmethod
    def _fit(self, i: int, x: Floats, y: Floats, theta: Floats, *public: Floats) -> Floats:
        """The parameter (D,) of replica `i`, from rows (n, D), (n,) and from `theta`."""


def _clipped(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return clip_norm(x, 1.0), clip_range(y, 0.0, 1.0)


class NewtonRefits(Refits):
    """A fit is `steps` noisy Newton steps on all rows, with a public preconditioner P (D, D)::

        theta <- theta - (P + s sqrt(D)/S I)^-1 (sum of (zeta(x . theta) - y) x + N(0, s^2 I)),

    then `|theta| <= S`. s is the least noise for the `spend`.

    Guarantee:
        mu-GDP, however rows, parameters and P depend on what was released: each of at most `most`
        times `steps` sums is released with noise s, and a row moves it by at most 2. So mu = 2
        sqrt(most steps) / s (adaptive composition).
    """

    def __init__(
        self,
        link: Link,
        noise: Floats,
        *,
        mu: float,
        uses: int,
        norm: float,
    ) -> None:
        R, most, steps, D = noise.shape
        note = f"{most} Gaussian refits of {steps} steps"
        super().__init__(link, GaussianSpend(mu, note), shape=(R, uses, D), most=most, clip=1.0)
        self._noise, self._steps, self._norm = noise, steps, norm
        self.stddev = self.sensitivity * (most * steps) ** 0.5 / mu

    def _fit(self, i: int, x: Floats, y: Floats, theta: Floats, *public: Floats) -> Floats:
        (P,) = public
        D = len(theta)
        P = P + self.stddev * D**0.5 / self._norm * np.eye(D)
        for z in self._noise[i, self._fits[i]]:
            gradient = self._gradients(x, y, theta).sum(axis=0) + self.stddev * z
            theta = clip_norm(theta - np.linalg.solve(P, gradient), self._norm)
        return theta
