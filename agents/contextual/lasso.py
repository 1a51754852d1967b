"""Lasso regression for each arm, refitted from sums now and then.

Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 1996, by the coordinate
descent on sums ("covariance updates") of Friedman, Hastie and Tibshirani, "Regularization paths for
generalized linear models via coordinate descent", Journal of Statistical Software 2010.
"""

import numpy as np

from dpbandit.base.arrays import Floats, Ints, pick, rows
from dpbandit.specs.protocols import ContextualSpec


class Lasso:
    """theta minimises |y - X theta|^2 / n + penalty sum_j size_j |theta_j|, for every arm.

    size_j is the root mean square of feature j over the n rows of the arm, so the penalty is in
    units of the reward whatever the features' scale. Shapes: theta (R, G, d), where G is K disjoint
    arms or 1 shared parameter; rows wait in a list and join X'X and X'y at the next fit.
    """

    def __init__(self, spec: ContextualSpec, replicas: int) -> None:
        R, d, self._shared = replicas, spec.dim, spec.shared
        G = 1 if spec.shared else spec.n_actions
        self.theta: Floats = np.zeros((R, G, d))
        self._gram, self._moment = np.zeros((R, G, d, d)), np.zeros((R, G, d))
        self._count = np.zeros((R, G, 1))
        self._waiting: list[tuple[Floats, Ints, Floats]] = []

    def means(self, context: Floats) -> Floats:
        """Predicted rewards, (R, K)."""
        if self._shared:
            return np.matvec(context, self.theta[:, 0])
        return np.matvec(self.theta, context)

    def add(self, context: Floats, action: Ints, reward: Floats) -> None:
        """One more row, seen from the next fit on."""
        x = pick(context, action) if self._shared else context
        self._waiting.append((x.copy(), action.copy(), reward.copy()))

    def fit(self, penalty: float) -> None:
        """Refit all arms, from where they were."""
        if self._waiting:
            self._absorb()
        R, G, d = self.theta.shape
        size = np.sqrt(np.diagonal(self._gram, axis1=2, axis2=3) * self._count)  # n size_j
        threshold = (penalty / 2 * size).reshape(R * G, d)
        gram, moment = self._gram.reshape(R * G, d, d), self._moment.reshape(R * G, d)
        self.theta = lasso(gram, moment, threshold, self.theta.reshape(R * G, d)).reshape(R, G, d)

    def _absorb(self) -> None:
        X, action, y = (np.stack(part, axis=1) for part in zip(*self._waiting, strict=True))
        self._waiting.clear()
        for g in range(self.theta.shape[1]):
            mine = np.ones(action.shape) if self._shared else 1.0 * (action == g)  # (R, n)
            own = (X * mine[..., None]).swapaxes(1, 2)  # (R, d, n)
            self._gram[:, g] += own @ X
            self._moment[:, g] += np.matvec(own, y)
            self._count[:, g, 0] += mine.sum(axis=1)


def lasso(
    gram: Floats,
    moment: Floats,
    threshold: Floats,
    start: Floats,
    *,
    tolerance: float = 1e-4,
    sweeps: int = 100,
) -> Floats:
    """The theta of each of B regressions that minimises |y - X theta|^2 / 2 + threshold . |theta|.

    A sweep minimises over one coordinate after the other, all B at once. A regression rests once a
    sweep moves none of its coordinates by more than `tolerance` times its largest one, so which
    others run beside it changes nothing. A feature never seen (0 on the diagonal) gets 0.

    Args:
        gram: X'X, (B, d, d).
        moment: X'y, (B, d).
        threshold: at least 0, (B, d).
        start: (B, d); a solution of nearly the same problem saves sweeps.
        tolerance: when a regression rests, relative.
        sweeps: at most so many; only designs with fewer rows than features need them.

    >>> lasso(np.eye(2)[None], np.array([[3.0, 0.5]]), np.ones((1, 2)), np.zeros((1, 2)))
    array([[2., 0.]])
    """
    theta, live = start.copy(), rows(len(start))
    for _ in range(sweeps):
        old = theta[live]
        theta[live] = new = _sweep(gram, moment, threshold, old)
        moved = np.abs(new - old).max(axis=1) > tolerance * np.abs(new).max(axis=1)
        if not moved.any():
            break
        if not moved.all():
            live = live[moved]
            gram, moment, threshold = gram[moved], moment[moved], threshold[moved]
    return theta


def _sweep(gram: Floats, moment: Floats, threshold: Floats, theta: Floats) -> Floats:
    """One pass over the coordinates."""
    theta, size = theta.copy(), np.diagonal(gram, axis1=1, axis2=2)
    gap = moment - np.matvec(gram, theta)  # X'(y - X theta), kept up to date
    inverse = np.divide(1.0, size, out=np.zeros_like(theta), where=size > 0)
    for j in range(theta.shape[1]):
        pull = gap[:, j] + size[:, j] * theta[:, j]
        soft = pull - np.clip(pull, -threshold[:, j], threshold[:, j])
        step = soft * inverse[:, j] - theta[:, j]
        theta[:, j] += step
        gap -= gram[:, j] * step[:, None]
    return theta
