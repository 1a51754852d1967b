"""Linear bandits with sparse parameters: private hard thresholding in episodes, and the lasso."""

from math import ceil, inf, log, sqrt
from typing import Annotated, Literal

import numpy as np

from dpbandit.agent import Arms, Count, Inside01, Positive, PrivateAgent
from dpbandit.base import (
    MOST_ROUNDS,
    Floats,
    Ints,
    clip_norm,
    clip_range,
    pick,
    predictions,
    rows,
    whole,
)
from dpbandit.privacy import ledger_of, no_privacy
from dpbandit.privacy.peeling import (
    NoisyHardThresholding,
    Peeling,
    SparseRows,
    least_peeling,
    printed_peeling,
)
from dpbandit.specs import ContextualSpec

_REFIT_GROWTH = 0.05
"""Relative growth of the number of rounds from one fit of the lasso to the next"""


class FLIPHAT(PrivateAgent[ContextualSpec], Arms):
    """Play greedily on sparse estimates, each learned from the previous episode alone.

    Chakraborty, Roy and Basu, "FLIPHAT: joint differential privacy for high dimensional sparse
    linear bandits", arXiv 2405.14038, 2024: ForgetfuL Iterative Private HArd Thresholding::

        episodes l = 0, 1, ... of lengths N_l = 2^l first_episode:
          1. in the first, arms take turns;  later, play argmax_a  x . beta_a
          2. at its end, beta from its N_l rounds alone, by `NoisyHardThresholding`:
             beta = 0;  M times:  a gradient step of least squares, rewards clipped,
                                  select s coordinates by private peeling,
                                  project onto an l_1 ball
          3. discard the rounds

    Peeling selects the largest coordinates of a vector and releases their values, all with noise.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: a user is in one episode, so that the whole run costs as
        much as one episode, M peelings of s selections and s values. Step 1 reads the current
        user's context and writes nothing. The last episode is not used.

    Fields left None follow the calibration::

        field           "paper"                              "certified"
        peeling         Laplace, (epsilon / M, delta / M)    Gumbel selection, Gaussian values,
                        each, the scale below                least noise that meets the claim
        arms            joint, K s of K d coordinates        each arm, s of d coordinates
        iterations M    ceil(ln(n + 1)), longest episode n   2
        first_episode   1                                    ceil(horizon / 31), four estimates
        residual_clip   B + X radius, no effect              B / 10

    for rewards up to B and contexts with entries up to X. The Laplace scale of "paper" is
    2 lam sqrt(3 s ln(M / delta)) M / epsilon, lam the largest change of a coordinate of the peeled
    vector by one user. These constants were *not checked against the paper's text*; the scale, its
    split over M, the doubling from 1 and M growing with ln n are in the authors' public code.

    Differs from the paper:
        1. lam is (2 step_size / n) X (B + X radius), by the clipping bounds; the public code has 4
           X times less, (step_size / n) (B + X radius) with a gradient of twice the size.
        2. M is equal in all episodes, so that all have the same cost.
        3. Contexts are clipped by the agent.
        4. Every arm has its own ball.
        5. Disjoint arms are played through the joint feature map, with the row x in block a; the
           paper's arms share one parameter.
        6. Points 6 to 10 apply to "certified" only. Composition is exact.
        7. All coordinates are selected at once with Gumbel noise; values are Gaussian.
        8. Every arm is peeled by itself: a user moves one arm by lam, or two by lam/2, and the cost
           is that of s selections instead of K s.
        9. Residuals are clipped, which matters most, because noise is in proportion to their bound.
        10. The first episode is longer.

    Defaults were tuned on four other problems than the reference cases: K = 2 to 5, d = 30 to 60,
    3 or 5 non-zero coordinates of Gaussian or equal magnitude, noise 0.1 or 0.2; contexts uniform
    on a sphere or in a box, or autoregressive; epsilon 1, 10 and infinity.

    Memory: R x n x d numbers, for the n rounds of the longest episode that is used.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FLIPHAT(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    >>> round(certify(FLIPHAT(epsilon=1.0, delta=1e-4, calibration="paper"), spec).epsilon, 2)
    0.17
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise that meets the claim, "paper" the paper's noise"""
    sparsity: Count = 5
    """number s of coordinates selected per arm, or d if that is smaller"""
    iterations: Annotated[int, lambda name, value: whole(name, value, 1, 10_000)] | None = None
    """number M of gradient steps of an estimate, each with a release; if None, see the table"""
    first_episode: Annotated[int, lambda name, value: whole(name, value, 1, MOST_ROUNDS)] | None = (
        None
    )
    """rounds until the first estimate; if None, by the table above"""
    step_size: Positive = 0.5
    """step size, in units of 1 / (the loss's curvature if features share the norm bound equally)"""
    residual_clip: Positive | None = None
    """bound to which `|reward - prediction|` is clipped in a gradient; if None, see the table"""
    context_clip: Positive | None = None
    """Euclidean norm to which contexts are clipped; if None, the environment's public bound"""
    radius: Positive | None = None
    """radius of an arm's l_1 ball; if None, the largest of s coordinates that predict within +-B"""
    pick_share: Inside01 = 0.5
    """share of the zCDP budget for selecting coordinates; the rest is for values ("certified")"""
    turns_first = inf

    def start(self) -> None:
        spec, paper, episodes = self.spec, self.calibration == "paper", self.episodes()
        s, blocks = min(self.sparsity, spec.dim), 1 if spec.shared else spec.n_actions
        growth = {1: float(s), 2: sqrt(s), inf: 1.0}[spec.context_order]
        B, X = spec.reward_bound, spec.context_bound
        radius = self.radius or growth * B / X  # of a beta with |x . beta| <= B for all contexts
        M = self.iterations or (ceil(log(max(episodes, default=1) + 1)) if paper else 2)
        picks = s * blocks if paper else s
        peeling: Peeling
        if paper:
            peeling = printed_peeling(self.epsilon, self.delta, picks=picks, repeats=M)
        else:
            peeling = least_peeling(
                self.epsilon, self.delta, picks=picks, repeats=M, share=self.pick_share
            )
        users = SparseRows(
            blocks=blocks,
            dim=spec.dim,
            entry_bound=X,
            norm_bound=min(spec.context_norm, self.context_clip or inf),
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            residual_clip=self.residual_clip or (B + X * radius if paper else B / 10),
        )
        self.estimates = NoisyHardThresholding(
            users,
            peeling,
            self.streams,
            episodes=episodes,
            uses=spec.horizon,
            sparsity=picks,
            joint=paper,
            iterations=M,
            step_size=self.step_size * blocks * spec.dim / spec.context_norm**2,
            radius=radius,
        )
        parts = self.estimates.spend.parts
        self.ledger = ledger_of(self.epsilon, *parts, without="peeling without noise")
        self.beta: Floats = np.zeros((self.R, blocks, spec.dim))  # until the first episode ends

    def episodes(self) -> tuple[int, ...]:
        """Return the lengths of all episodes but the last, whose estimate would not be played."""
        default = 1 if self.calibration == "paper" else ceil(self.spec.horizon / 31)
        length, lengths = self.first_episode or default, list[int]()
        while sum(lengths) + length < self.spec.horizon - self.spec.delay:
            lengths.append(length)
            length *= 2
        return tuple(lengths)

    def scores(self, context: Floats) -> Floats:
        return predictions(context, self.beta, shared=context.ndim == 3)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        release = self.estimates(context, action, feedback)
        if release is not None:
            self.beta, self.turns_first = release, 0.0


class LassoBandit(Arms):
    """Play greedily on lasso estimates, with forced samples of arms on a doubling schedule.

    Bastani and Bayati, "Online decision making with high-dimensional covariates", Operations
    Research 2020 (Lasso Bandit). T_i holds the forced rounds of arm i, S_i all rounds of arm i, q
    = `forced` and h = `margin`; in round t = 1, 2, ...::

        1. if t is in T_i, play arm i:  T_i = {(2^n - 1) K q + j : n >= 0, q (i-1) < j <= q i}
        2. else let K^ be the arms within h/2 of the best arm by beta(T_i, lambda_1), fitted to
           forced samples, and play the best of K^ by beta(S_i, lambda_2t), fitted to all samples
        3. lambda_2t = lambda_20 sqrt((log t + log d) / t)

    beta(S, lambda) minimises `|Y - X beta|^2 / |S| + lambda |beta|_1`, X and Y the data of S.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. h, lambda_1 and lambda_20 are shares of the public range of rewards, and features are
           divided by their root mean square, so that one default suits all units.
        2. Fits are warm-started, and made when t has grown by 5 % or every `refresh_every` rounds.
        3. A parameter shared by all arms is one lasso on all rounds.
        4. Ties go to the lowest arm.

    The defaults were tuned on 30 features, 3 arms and 4 nonzero coefficients of both signs, 3,000
    rounds: penalties from 0.03 to 0.08 did about as well, h below half of the range did worse.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"Lasso": LassoBandit()}, horizon=300,
    ...                   replicas=2, env_kwargs={"parameters": "sparse", "dim": 20},
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["Lasso"] < mean["Uniform"] / 2)
    True
    """

    forced: Count = 1
    """number q of consecutive forced samples of an arm"""
    margin: Positive = 1.0
    """margin h; candidate arms are within h / 2 of the best, as a share of the range of rewards"""
    forced_penalty: Positive = 0.05
    """penalty lambda_1 of fits to forced samples, as a share of the range of rewards"""
    penalty: Positive = 0.05
    """penalty lambda_20 of fits to all samples, as a share of the range of rewards"""
    refresh_every: Count | None = None
    """rounds from one fit to the next; if None, 5 % of the rounds so far"""

    def start(self) -> None:
        self.ledger = no_privacy("exact lasso regressions")
        self.range = self.spec.reward_high - self.spec.reward_low
        self.from_forced, self.from_all = Lasso(self.spec, self.R), Lasso(self.spec, self.R)
        self.next_fit = 1

    def act(self, context: Floats) -> Ints:
        arm = forced_arm(self.round, self.spec.n_actions, self.forced)
        if arm is not None:
            return np.full(self.R, arm)
        first = self.from_forced.means(context)
        candidates = first >= first.max(axis=1, keepdims=True) - self.margin * self.range / 2
        return np.where(candidates, self.scores(context), -inf).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        return self.from_all.means(context)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        spec, t = self.spec, self.round
        x = clip_norm(context, spec.context_norm)
        r = clip_range(feedback, spec.reward_low, spec.reward_high)
        self.from_all.add(x, action, r)
        chosen_at = max(0, t - 1 - spec.delay)  # value of `round` when `act` chose this action
        if forced_arm(chosen_at, spec.n_actions, self.forced) is not None:
            self.from_forced.add(x, action, r)
        if t >= self.next_fit:
            self.next_fit = t + (self.refresh_every or ceil(_REFIT_GROWTH * t))
            decay = sqrt((log(t) + log(spec.dim)) / t)
            forced, usual = self.forced_penalty * self.range, self.penalty * self.range * decay
            refit((self.from_forced, forced), (self.from_all, usual))


def forced_arm(rounds: int, n_actions: int, forced: int) -> int | None:
    """Return the arm that is forced in the round after `rounds` rounds, or None.

    Rounds are divided into laps of `n_actions` x `forced` rounds, counted from 0; in laps 0, 1, 3,
    7, ..., 2^n - 1 every arm in turn is forced for `forced` rounds.

    >>> [forced_arm(t, 2, 1) for t in range(8)]
    [0, 1, 0, 1, None, None, 0, 1]
    """
    lap, place = divmod(rounds, n_actions * forced)
    return place // forced if (lap + 1) & lap == 0 else None


class Lasso:
    """Lasso regression for each arm, refitted to sums of all rows on request.

    Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 1996, by the coordinate
    descent on sums ("covariance updates") of Friedman, Hastie and Tibshirani, "Regularization paths
    for generalized linear models via coordinate descent", Journal of Statistical Software 2010::

        theta minimises |y - X theta|^2 / n + penalty sum_j size_j |theta_j|, for every arm

    X and y are the rows and rewards of the arm, n their number, size_j the root mean square of
    feature j, so the penalty is in units of the reward for every scale of the features. `theta` is
    (R, K, d), or (R, 1, d) for a shared parameter. Rows are stored until a fit adds them to sums.
    """

    def __init__(self, spec: ContextualSpec, replicas: int) -> None:
        R, d, self._shared = replicas, spec.dim, spec.shared
        G = 1 if spec.shared else spec.n_actions
        self.theta: Floats = np.zeros((R, G, d))
        self._gram, self._moment = np.zeros((R, G, d, d)), np.zeros((R, G, d))
        self._count = np.zeros((R, G, 1))
        self._waiting: list[tuple[Floats, Ints, Floats]] = []

    def means(self, context: Floats) -> Floats:
        """Return the predicted rewards of all arms, (R, K)."""
        return predictions(context, self.theta, shared=context.ndim == 3)

    def add(self, context: Floats, action: Ints, reward: Floats) -> None:
        """Store a round's row and reward for the next fit."""
        x = pick(context, action) if self._shared else context
        self._waiting.append((x.copy(), action.copy(), reward.copy()))

    def lasso_problem(self, penalty: float) -> tuple[Floats, ...]:
        """Return the arguments of `lasso` for all arms and replicas, started from the last fit."""
        if self._waiting:
            self._absorb()
        R, G, _ = self.theta.shape
        size = np.sqrt(np.diagonal(self._gram, axis1=2, axis2=3) * self._count)  # n size_j
        sums = self._gram, self._moment, penalty / 2 * size, self.theta
        return tuple(array.reshape(R * G, *array.shape[2:]) for array in sums)

    def _absorb(self) -> None:
        X, action, y = (np.stack(part, axis=1) for part in zip(*self._waiting, strict=True))
        self._waiting.clear()
        for g in range(self.theta.shape[1]):
            mine = np.ones(action.shape) if self._shared else 1.0 * (action == g)  # (R, n)
            weighted = (X * mine[..., None]).swapaxes(1, 2)  # (R, d, n)
            self._gram[:, g] += weighted @ X
            self._moment[:, g] += np.matvec(weighted, y)
            self._count[:, g, 0] += mine.sum(axis=1)


def refit(*penalised: tuple[Lasso, float]) -> None:
    """Refit all arms of several `Lasso` objects, each with its penalty, in one call of `lasso`."""
    problems = [one.lasso_problem(penalty) for one, penalty in penalised]
    theta = np.split(lasso(*map(np.concatenate, zip(*problems, strict=True))), len(problems))
    for (one, _), fitted in zip(penalised, theta, strict=True):
        one.theta = fitted.reshape(one.theta.shape)


def lasso(
    gram: Floats,
    moment: Floats,
    threshold: Floats,
    start: Floats,
    *,
    tolerance: float = 1e-4,
    sweeps: int = 100,
) -> Floats:
    """Return argmin of `|y - X theta|^2 / 2 + threshold . |theta|` for B regressions, (B, d).

    A sweep minimises over one coordinate after the other, in all B regressions at once. A
    regression stops after a sweep that moves no coordinate by more than `tolerance` times its
    largest one, so that results do not depend on the other regressions. A feature that is always 0
    (0 on the diagonal) gets 0.

    Args:
        gram: X'X, (B, d, d).
        moment: X'y, (B, d).
        threshold: at least 0, (B, d).
        start: first iterate, (B, d); the solution of a similar problem saves sweeps.
        tolerance: relative step at which a regression stops.
        sweeps: largest number of sweeps; only designs with fewer rows than features need all.

    >>> lasso(np.eye(2)[None], np.array([[3.0, 0.5]]), np.ones((1, 2)), np.zeros((1, 2)))
    array([[2., 0.]])
    """
    size = np.diagonal(gram, axis1=1, axis2=2)
    unit = np.divide(1.0, size, out=np.zeros_like(start), where=size > 0)
    # all sums are divided by the diagonal; regressions are the last axis, contiguous in memory
    bound = np.where(size > 0, threshold * unit, np.inf).T.copy()
    gap = ((moment - np.matvec(gram, start)) * unit).T.copy()  # X'(y - X theta)
    columns = np.ascontiguousarray((gram * unit[..., None]).transpose(2, 1, 0))
    theta, live = start.T.copy(), rows(len(start))
    result = theta.copy()
    for _ in range(sweeps):
        old = theta.copy()
        for g, x, most, column in zip(gap, theta, bound, columns, strict=True):
            pull = g + x
            new = pull - np.minimum(np.maximum(pull, -most), most)
            gap -= column * (new - x)
            x[:] = new
        result[:, live] = theta
        moved = np.abs(theta - old).max(axis=0) > tolerance * np.abs(theta).max(axis=0)
        if not moved.any():
            break
        if not moved.all():
            live, *left = (a.compress(moved, axis=-1) for a in (live, theta, gap, bound, columns))
            theta, gap, bound, columns = left
    return np.ascontiguousarray(result.T)
