"""Lasso Bandit: sparse parameters, forced samples and two lasso estimates."""

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from dpbandit.base import Floats, Ints, Streams, clip_norm, clip_range, pick, positive, rows, whole
from dpbandit.privacy import no_privacy
from dpbandit.specs import BanditSpec, ContextualSpec, fits

_GROWTH = 0.05
"""Fits come when the rounds have grown by this share."""


@dataclass(frozen=True, kw_only=True)
class LassoBandit:
    """Greedy on lasso estimates, with forced samples of every arm in a doubling pattern.

    Bastani and Bayati, "Online decision making with high-dimensional covariates", Operations
    Research 2020 (Lasso Bandit). In its letters, for t = 1, 2, ...::

        1. if t is in T_i, play arm i:  T_i = {(2^n - 1) K q + j : n >= 0, q (i-1) < j <= q i}
        2. else let K^ be the arms within h/2 of the best one by beta(T_i, lambda_1), fitted to the
           forced samples, and play the best of K^ by beta(S_i, lambda_2t), fitted to all samples
        3. lambda_2t = lambda_20 sqrt((log t + log d) / t)

    beta(S, lambda) minimises `|Y - X beta|^2 / |S| + lambda |beta|_1`.

    Code:
        Steps 1 and 2 are `LassoBanditAgent.act`, step 3 is its `update`; beta(S, lambda) is
        `Lasso.fit`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. h, lambda_1 and lambda_20 are shares of the public range of rewards, and features count
           in units of their root mean square, so that one default serves all units.
        2. Fits are warm-started, on sums, and come when t has grown by 5 % or every `refresh_every`
           rounds, not every round.
        3. A parameter shared by all arms is one lasso on all rounds.
        4. Ties go to the lowest arm.

    The defaults were chosen on 30 features, 3 arms and 4 nonzero coefficients of both signs, 3,000
    rounds: penalties from 0.03 to 0.08 did about as well, h below half of the range did worse.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"Lasso": LassoBandit()}, horizon=500,
    ...                   replicas=4, env_kwargs={"parameters": "sparse", "dim": 20},
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["Lasso"] < mean["Uniform"] / 2)
    True
    """

    forced: int = 1
    """q, the forced samples of an arm in a row"""
    margin: float = 1.0
    """h, as a share of the range of rewards"""
    forced_penalty: float = 0.05
    """lambda_1, as a share of the range of rewards"""
    penalty: float = 0.05
    """lambda_20, as a share of the range of rewards"""
    refresh_every: int | None = None
    """rounds from one fit to the next; if None, when t has grown by 5 %"""

    def __post_init__(self) -> None:
        whole("forced", self.forced, 1)
        for name in ("margin", "forced_penalty", "penalty"):
            positive(name, getattr(self, name))
        if self.refresh_every is not None:
            whole("refresh_every", self.refresh_every, 1)

    def make(self, spec: BanditSpec, streams: Streams) -> "LassoBanditAgent":
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return LassoBanditAgent(self, fits(self, spec, ContextualSpec), len(streams))


class LassoBanditAgent:
    """See `LassoBandit`."""

    def __init__(self, config: LassoBandit, spec: ContextualSpec, replicas: int) -> None:
        self.ledger = no_privacy("exact lasso regressions")
        self._config, self._spec, self._replicas = config, spec, replicas
        self._range = spec.reward_high - spec.reward_low
        self._from_forced, self._from_all = Lasso(spec, replicas), Lasso(spec, replicas)
        self._round, self._next_fit = 0, 1

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        arm = forced_arm(self._round, self._spec.n_actions, self._config.forced)
        if arm is not None:
            return np.full(self._replicas, arm)
        first = self._from_forced.means(context)
        slack = self._config.margin * self._range / 2
        kept = first >= first.max(axis=1, keepdims=True) - slack
        best: Ints = np.where(kept, self.scores(context), -np.inf).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Rewards predicted from all samples, (R, K)."""
        return self._from_all.means(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Keep the row; fit when it is time."""
        spec, config = self._spec, self._config
        x = clip_norm(context, spec.context_norm)
        r = clip_range(feedback, spec.reward_low, spec.reward_high)
        self._from_all.add(x, action, r)
        chosen_at = max(0, self._round - spec.delay)  # what the clock showed to `act`
        if forced_arm(chosen_at, spec.n_actions, config.forced) is not None:
            self._from_forced.add(x, action, r)
        self._round = t = self._round + 1
        if t >= self._next_fit:
            self._next_fit = t + (config.refresh_every or ceil(_GROWTH * t))
            decay = sqrt((log(t) + log(spec.dim)) / t)
            self._from_forced.fit(config.forced_penalty * self._range)
            self._from_all.fit(config.penalty * self._range * decay)


def forced_arm(rounds: int, n_actions: int, forced: int) -> int | None:
    """The arm to force after so many rounds, i.e. at t = rounds + 1; None: none.

    Laps of K q rounds: number 2^n - 1 is forced, from 0 on, so lap + 1 is a power of two.

    >>> [forced_arm(t, 2, 1) for t in range(8)]
    [0, 1, 0, 1, None, None, 0, 1]
    """
    lap, place = divmod(rounds, n_actions * forced)
    return place // forced if (lap + 1) & lap == 0 else None


class Lasso:
    """Lasso regression for each arm, refitted from sums now and then.

    Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 1996, by the coordinate
    descent on sums ("covariance updates") of Friedman, Hastie and Tibshirani, "Regularization paths
    for generalized linear models via coordinate descent", Journal of Statistical Software 2010::

        theta minimises |y - X theta|^2 / n + penalty sum_j size_j |theta_j|, for every arm

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
    """The theta of each of B regressions minimising `|y - X theta|^2 / 2 + threshold . |theta|`.

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
