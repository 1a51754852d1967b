"""The maximum-likelihood fit of a multinomial logit, refitted as users come, not private."""

from math import ceil

import numpy as np
import numpy.typing as npt

from dpbandit.agents.choice.offers import offer_of
from dpbandit.base.arrays import Floats, Ints
from dpbandit.losses.multinomial import chances, weights
from dpbandit.specs.choice import AssortmentSpec

_MORE = 1.1
"""Data grow by a tenth between two fits."""
_STEPS = 3
"""Newton steps of a fit, from the one before."""
_AT_ONCE = 1 << 18
"""Numbers of rows looked at together. Part of the arithmetic: never derived from R."""


class MNLRefits:
    """theta (R, D) with ridge `regularization`, and the Hessian H (R, D, D) there.

    Args:
        spec: of the problem.
        replicas: R.
        regularization: the ridge, > 0.
        first: users before the first fit.
    """

    def __init__(
        self, spec: AssortmentSpec, replicas: int, *, regularization: float, first: int
    ) -> None:
        self._spec, self._ridge, self._due = spec, regularization, first
        D = spec.row_dim
        self._past: list[tuple[Floats, Ints, Floats]] = []
        self.fitted = False
        self.theta = np.zeros((replicas, D))
        self.root = np.tile(np.eye(D) / np.sqrt(regularization), (replicas, 1, 1))
        """L^-1 of H = L L', so that |x|_{H^-1} = |L^-1 x|"""

    def learn(self, context: Floats, action: Ints, choice: Floats) -> None:
        """One more round; a new fit when it is due."""
        self._past.append((np.array(context), np.array(action), np.array(choice)))
        if len(self._past) < self._due:
            return
        self._due, self.fitted = ceil(_MORE * self._due), True
        for _ in range(_STEPS):
            self._newton()
        _, H = self._derivatives()
        self.root = np.linalg.inv(np.linalg.cholesky(H))

    def _newton(self) -> None:
        score, H = self._derivatives()
        self.theta = self.theta + np.linalg.solve(H, score[..., None])[..., 0]

    def _derivatives(self) -> tuple[Floats, Floats]:
        """The gradient of the likelihood and minus its Hessian, with the ridge."""
        R, D = self.theta.shape
        score, H = -self._ridge * self.theta, np.tile(self._ridge * np.eye(D), (R, 1, 1))
        S = self._spec.at_most
        rounds = max(1, _AT_ONCE // (S * D))
        for first in range(0, len(self._past), rounds):
            parts = zip(*self._past[first : first + rounds], strict=True)
            context, action, choice = (np.stack(part, axis=1) for part in parts)  # (R, n, ...)
            for r in range(R):
                gradient, information = _derivatives_of(
                    self._spec, self.theta[r], context[r], action[r], choice[r]
                )
                score[r] += gradient
                H[r] += information
        return score, H


def _derivatives_of(
    spec: AssortmentSpec,
    theta: Floats,
    context: Floats,
    action: Ints,
    choice: npt.NDArray[np.floating],
) -> tuple[Floats, Floats]:
    """Of n users of one replica, summed: (D,) and (D, D)."""
    x, there, bought = offer_of(spec, context, action, choice)  # (n, S, D), (n, S), (n,)
    p = chances(weights(x @ theta), there)
    xbar = np.vecmat(p, x)
    hers = 1.0 * (bought[:, None] == np.arange(spec.at_most))
    flat = x.reshape(-1, x.shape[-1])
    information = flat.T @ (flat * p.reshape(-1, 1)) - xbar.T @ xbar
    return (np.vecmat(hers, x) - xbar).sum(axis=0), information
