"""Agents that release one Gram matrix and one moment per epoch, whose ends are public.

AdaC-OFUL and AdaPrivate-TS fit one regression to all releases, batched elimination one to each.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, log, log2, sqrt
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from dpbandit.agent import Arms, Count, Inside01, Least0, Positive, PrivateAgent, started
from dpbandit.base import Floats, InputError, Ints, clip_norm, clip_range, pick, predictions
from dpbandit.privacy import (
    BudgetExceededError,
    FadingSum,
    GaussianSpend,
    Mechanism,
    SecondMoments,
    certified_fading_sum,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.premises import SUMMED, Fact
from dpbandit.specs import ContextualSpec

_LEAST_EIGENVALUE = 0.3
"""Floor on eigenvalues of a regularised Gram matrix, in units of its noise's spectral norm"""
_DESIGN_STEPS = 3
"""Number of multiplicative updates from the uniform design towards the G-optimal one"""


@dataclass(frozen=True)
class Regression:
    """Ridge regressions, one per arm or one for all, by eigenvectors of their Gram matrices."""

    theta: Floats
    """estimated parameters, (R, K, d), or (R, 1, d) if arms share one"""
    U: Floats
    """eigenvectors of the regularised Gram matrices, (R, K, d, d), or (R, 1, d, d)"""
    eigenvalues: Floats
    """eigenvalues of the regularised Gram matrices, (R, K, d), or (R, 1, d)"""
    noise: float
    """standard deviation of the noise in the moment, the sum of r x"""

    def means(self, context: Floats) -> Floats:
        """Return the predicted rewards x . theta_a of all arms, (R, K)."""
        return predictions(context, self.theta, shared=context.ndim == 3)

    def widths(self, context: Floats) -> Floats:
        """Return sqrt(x' A_a^-1 x) of all arms, A_a the regularised Gram matrix, (R, K)."""
        return _lengths(context, self._half)

    def inverse_lengths(self, context: Floats) -> Floats:
        """Return `|A_a^-1 x|` of all arms, A_a the regularised Gram matrix, (R, K)."""
        return _lengths(context, self._whole)

    @cached_property
    def _half(self) -> Floats:
        return _joined(self.U / np.sqrt(self.eigenvalues)[..., None, :])

    @cached_property
    def _whole(self) -> Floats:
        return _joined(self.U / self.eigenvalues[..., None, :])

    @classmethod
    def of(cls, gram: Floats, moment: Floats, *, ridge: float, least: float, noise: float) -> Self:
        """Fit to Gram matrices plus ridge I, whose eigenvalues are raised to at least `least`."""
        eigenvalues, U = np.linalg.eigh(gram)
        positive = np.maximum(eigenvalues + ridge, least)
        return cls(np.matvec(U, np.vecmat(moment, U) / positive), U, positive, noise)


def _joined(blocks: Floats) -> Floats:
    """Join the matrices of K arms (or of one) side by side, (R, K, d, d) -> (R, d, K d)."""
    return blocks.swapaxes(1, 2).reshape(len(blocks), blocks.shape[-1], -1)


def _lengths(context: Floats, root: Floats) -> Floats:
    """Return `|M_a' x_a|` of arms, (R, K), for matrices M_a joined in `root`, (R, d, K d)."""
    if context.ndim == 3:
        moved = context @ root
    else:
        moved = np.vecmat(context, root).reshape(len(context), -1, context.shape[1])
    return np.sqrt(np.vecdot(moved, moved))


class Epochs(PrivateAgent[ContextualSpec], Arms):
    """Base class of agents that learn from one release per epoch; the first epoch is random play.

    The middle of the public range is subtracted from rewards.

    Guarantee:
        A user is in one release. She moves its Gram matrix, and its moment of weight sqrt(2), by at
        most 2 sqrt(2) together, or 3 with a moment clip (`SecondMoments`): by parallel composition
        (`FadingSum` with fade 0) the run is mu-GDP with the whole mu for each release, whose
        moment has noise of stddev 2 / mu, or 3 / (sqrt(2) mu). The ends of epochs are public.
        Actions of all other users are post-processing.
    """

    first_epoch: Count | None = None
    """rounds of uniform play; if None, it grows with the noise, to at most a tenth of T"""
    context_clip: Positive | None = None
    """Euclidean norm to which contexts are clipped; if None, the environment's public bound"""
    moment_clip: Positive | None = None
    """norm to which r x is clipped, after r (minus the middle of its range) and x are clipped"""
    sums = started(FadingSum)
    statistic = started(SecondMoments)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of each release, and of the run, as no user is in two releases."""
        return inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)

    @property
    def middle(self) -> float:
        """Middle of the public range of rewards."""
        return (self.spec.reward_low + self.spec.reward_high) / 2

    def ends(self) -> tuple[int, ...]:
        """Return the last rounds of epochs, each twice as long as the one before."""
        spec = self.spec
        blocks = 1 if spec.shared else spec.n_actions
        usual = ceil(max(30.0, 8 * sqrt(spec.dim) * blocks / self.mu))
        first = self.first_epoch or max(1, min(usual, spec.horizon // 10))
        return growing_batches(spec.horizon, first=first, growth=1.0)

    def start(self) -> None:
        spec = self.spec
        self.statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=min(spec.context_norm, self.context_clip or inf),
            reward_low=-spec.half_range,
            reward_high=spec.half_range,
            moment_clip=self.moment_clip,
            moment_weight=sqrt(2),
        )
        self.sums = certified_fading_sum(
            self.statistic,
            self.streams,
            ends=self.ends(),
            horizon=spec.horizon,
            fade=0.0,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend)
        self.uniforms = self.streams.uniforms("exploration")
        self.releases = 0
        # standard deviations in one release: of Gram entries off the diagonal, and of moments
        self.gram_noise = self.statistic.context_bound**2 * self.sums.stddev / sqrt(2)
        self.moment_noise = self.statistic.moment_bound * self.sums.stddev / sqrt(2)

    def act(self, context: Floats) -> Ints:
        uniforms = self.uniforms()
        if not self.releases:
            return (uniforms * self.spec.n_actions).astype(np.int64)
        return self.choose(context, uniforms)

    def choose(self, context: Floats, uniforms: Floats) -> Ints:
        """Return arms (R,) to play after the first epoch, by random numbers `uniforms`, (R,)."""
        return self.scores(context).argmax(axis=1)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        release = self.sums(context, action, np.asarray(feedback, np.float64) - self.middle)
        if release is not None:
            self.releases += 1
            self.refit(*self.statistic.unpack(release))

    def refit(self, gram: Floats, moment: Floats) -> None:
        """Learn from an epoch's released Gram matrices, (R, K, d, d), and moments, (R, K, d)."""
        raise NotImplementedError

    def regression_of(self, gram: Floats, moment: Floats, releases: int = 1) -> Regression:
        """Fit the sum of `releases` releases; the ridge is at least Gamma (`OneRegression`)."""
        user = self.statistic.context_bound**2 / self.spec.dim
        Gamma = 2 * sqrt(self.spec.dim * releases) * self.gram_noise
        return Regression.of(
            gram,
            moment,
            ridge=max(Gamma, user),
            least=max(_LEAST_EIGENVALUE * Gamma, user),
            noise=sqrt(releases) * self.moment_noise,
        )


class EpisodeMoments(Mechanism):
    """Mechanism that releases each episode's sum of r x once, and returns the total so far.

    A call takes a round's rows x, (R, d), rewards r, (R,), and a mask `ends` of the replicas whose
    episode ends with this round, (R,). It returns the sum of all releases so far, (R, d), or None
    if no episode ends. Rows are clipped to `context_bound`, rewards to `reward_bound`.

    Guarantee:
        mu-GDP for replacing a reward if rows and ends of episodes are public: one sum moves by at
        most 2 reward_bound context_bound, which is mu times the noise's standard deviation.
    """

    # "rows and ends of episodes are public"
    needs = SUMMED | {Fact.CONTEXT}
    controls = (2,)

    def __init__(
        self, noise: Floats, *, mu: float, uses: int, context_bound: float, reward_bound: float
    ) -> None:
        R, most, d = noise.shape
        self.spend, self.uses = GaussianSpend(mu, f"{most} Gaussian episodes"), uses
        self.sensitivity = 2 * reward_bound * context_bound
        self.stddev = self.sensitivity / mu
        self._noise, self._bounds = noise, (context_bound, reward_bound)
        self._exact, self._total = np.zeros((R, d)), np.zeros((R, d))
        self._ended = np.zeros(R, np.int64)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        x, r = datum[:2]
        C, B = self._bounds
        return clip_range(r, -B, B)[:, None] * clip_norm(x, C)

    def admissible(self, *datum: npt.NDArray[Any]) -> tuple[Any, ...]:
        """Return the datum with row and reward clipped, for `dpbandit.testing`."""
        C, B = self._bounds
        return clip_norm(datum[0], C), clip_range(datum[1], -B, B), datum[2]

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        self._exact += self.query(*datum)
        (ends,) = np.nonzero(datum[2])
        if not ends.size:
            return None
        if self._ended[ends].max() >= self._noise.shape[1]:
            raise BudgetExceededError(f"{self.spend.note}: one more.")
        self._total[ends] += self._exact[ends] + self.stddev * self._noise[ends, self._ended[ends]]
        self._exact[ends] = 0.0
        self._ended[ends] += 1
        return self._total.copy()


class OneRegression(Epochs):
    """Base class of agents that play the best arm by one regression on all k releases so far.

    A is the regularised Gram matrix. "certified": A = sum of released Gram matrices + Gamma I, with
    Gamma = 2 sqrt(d k) times the standard deviation of noise off the diagonal of one release, and
    eigenvalues are raised to 0.3 Gamma. "paper": contexts, of norm at most C, are public, A is the
    exact C^2 I + sum of x x', and the regression is fitted anew at the ends of episodes, which
    are public (`episodes`) or the rounds in which det A has doubled.
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise that meets the claim, "paper" the paper's noise"""
    moments = started(EpisodeMoments)

    def predicted(self, context: Floats, regression: Regression) -> Floats:
        """Return scores of arms, (R, K), for rewards minus `middle`; the largest is played."""
        raise NotImplementedError

    def episodes(self) -> tuple[int, ...]:
        """Return the last rounds of the paper's episodes, if public; () if contexts decide them."""
        return ()

    def start(self) -> None:
        self.regression: Regression | None = None
        self.gram: Floats | float = 0.0
        self.moment: Floats | float = 0.0
        if self.calibration == "certified":
            super().start()
            return
        if not self.spec.shared:
            raise InputError(
                f"{type(self).__name__} is printed for arms that share a parameter, got arms "
                "with their own: choose calibration='certified' or another environment."
            )
        R, d, T = self.R, self.spec.dim, self.spec.horizon
        self.public = self.episodes()
        self.C = min(self.spec.context_norm, self.context_clip or inf)
        most = len(self.public) or ceil(d * log2(1 + T / d))  # det V <= C^2d (1 + T / d)^d
        self.moments = EpisodeMoments(
            np.array(self.streams.normals("episode noise", most, d).take(1)[0]),
            mu=self.mu,
            uses=T,
            context_bound=self.C,
            reward_bound=self.spec.half_range,
        )
        self.ledger = ledger_of(self.epsilon, self.moments.spend, notion=Notion(contexts="public"))
        self.gram = np.zeros((R, d, d))
        self.ended = np.zeros(R)  # number of episodes that have ended
        self.V_last = self.C**2 * np.tile(np.eye(d), (R, 1, 1))
        self.regression = self.printed(np.zeros((R, d)))

    def act(self, context: Floats) -> Ints:
        if self.regression is None or self.calibration == "certified":
            return super().act(context)
        return self.predicted(context, self.regression).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        if self.regression is None:
            return np.full((len(context), self.spec.n_actions), self.middle)
        return self.middle + self.predicted(context, self.regression)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        if self.calibration == "certified":
            super().learn(context, action, feedback)
            return
        x = clip_norm(pick(context, action), self.C)
        self.gram += x[:, :, None] * x[:, None, :]
        V = self.C**2 * np.eye(self.spec.dim) + self.gram
        ends = np.full(len(x), self.round in self.public)
        if not self.public:
            grown = np.linalg.slogdet(V)[1] - np.linalg.slogdet(self.V_last)[1]
            ends = grown >= log(2)
        total = self.moments(x, np.asarray(feedback, np.float64) - self.middle, ends)
        if total is not None:
            self.ended += ends
            self.V_last = np.where(ends[:, None, None], V, self.V_last)
            self.regression = self.printed(total)

    def printed(self, total: Floats) -> Regression:
        """Fit the paper's regression to all released moments (R, d) and exact Gram matrices."""
        gram, moment = self.V_last[:, None], total[:, None]
        noise = sqrt(self.ended.max()) * self.moments.stddev
        return Regression.of(gram, moment, ridge=0.0, least=1e-12, noise=noise)

    def refit(self, gram: Floats, moment: Floats) -> None:
        self.gram, self.moment = self.gram + gram, self.moment + moment
        self.regression = self.regression_of(self.gram, self.moment, self.releases)


class AdaCOFUL(OneRegression):
    """LinUCB in episodes, each of which ends with the release of one noisy moment.

    RECONSTRUCTED from the abstract of Azize and Basu, "Interactive and concentrated differential
    privacy for bandits", arXiv 2309.00557; details may differ::

        1. play argmax_a  x . theta_a + alpha h |x|_{A_a^-1},   h half the range of rewards
        2. at the end of an episode release the sum of its r x with noise, the middle of the range
           subtracted from r; u is the sum of all releases
        3. theta = A^-1 u, A the regularised Gram matrix:

    calibration    A                                       an episode ends               alpha
    certified      released Gram matrices + Gamma I        after first, 2 first, ...     1
    paper          I + the exact sum of x x'               when det A has doubled        0.3

    The first episode of "certified" has first = `first_epoch` rounds of uniformly random play.

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `Epochs`
        proves: a user is in one release. "paper" protects rewards alone, and so says the
        ledger: contexts are public, Gram matrices exact, and contexts decide when episodes end.

    Differs from the paper:
        1. "certified": noise on Gram matrices, public ends of episodes in place of doubled
           determinants, which leak contexts.
        2. exact mu in place of rho-zCDP, rho = mu^2 / 2.
        3. the width is a setting in place of the theory's width.
        4. contexts and rewards are clipped.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True)
    >>> certify(AdaCOFUL(calibration="paper"), spec).ledger.brief
    'contexts public'
    """

    alpha: Least0 | None = None
    """factor of widths, in half ranges of the reward; 0 is greedy; if None, 1 ("paper" 0.3)"""

    def predicted(self, context: Floats, regression: Regression) -> Floats:
        usual = 0.3 if self.calibration == "paper" else 1.0
        width = (usual if self.alpha is None else self.alpha) * self.spec.half_range
        return regression.means(context) + width * regression.widths(context)


class AdaPrivateTS(OneRegression):
    """Thompson sampling whose posterior variance includes that of the privacy noise.

    RECONSTRUCTED from the abstract of Riyazat and Ukwatta, AdaPrivate-TS, PMLR 318:723-734, arXiv
    2606.21757 (2026); details may differ::

        1. draw theta ~ N(A^-1 u, v^2 h^2 A^-1 + s^2 A^-2), h half the range of rewards, v the
           `scale`, s the standard deviation of the noise in u; play argmax_a x . theta_a
        2. at the end of a batch release the sum of its r x with noise, the middle of the range
           subtracted from r; u is the sum of all releases, A the regularised Gram matrix:

    calibration    A                                       batches
    certified      released Gram matrices + Gamma I        first, 2 first, 4 first, ... rounds
    paper          I + the exact sum of x x'               first, 2 first, 4 first, ... rounds

    The first batch of "certified" has first = `first_epoch` rounds of uniformly random play.

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `Epochs`
        proves: a user is in one release. "paper" protects rewards alone, and so says the
        ledger: contexts are public, and Gram matrices exact.

    Differs from the paper:
        1. "certified": noise on Gram matrices.
        2. exact mu in place of zCDP.
        3. no privacy amplification by subsampling of users, which shrinks signal and cost alike.
        4. contexts and rewards are clipped.

    >>> from dpbandit import certify
    >>> round(certify(AdaPrivateTS(epsilon=4.0), "Recommendation").epsilon, 6)
    4.0
    """

    scale: Least0 = 0.1
    """width v of the posterior, in half ranges of the reward"""

    def start(self) -> None:
        blocks = 1 if self.spec.shared else self.spec.n_actions
        self.normals = self.streams.normals("posterior", blocks, self.spec.dim)
        super().start()

    def episodes(self) -> tuple[int, ...]:
        return self.ends()

    def predicted(self, context: Floats, regression: Regression) -> Floats:
        values, width = regression.eigenvalues, self.scale * self.spec.half_range
        spread = np.sqrt(width**2 / values + (regression.noise / values) ** 2)
        drawn = regression.theta + np.matvec(regression.U, spread * self.normals())
        return predictions(context, drawn, shared=context.ndim == 3)


class BatchedElimination(Epochs):
    """Eliminate arms in epochs with one release each, by a fraction of the proved widths.

    A design of this project from known parts. In epoch m = 0, 1, ..., each twice as long as the
    one before, the first M with a release::

        1. every user's arms survive epoch j = 0..m-1 in turn where
               x_a . theta_j + w_j(a) >= max over the survivors of x_b . theta_j - w_j(b)
        2. play a survivor by the survivors' G-optimal design (three steps p_a <- p_a
           |x_a|^2_{V^-1} / d from uniform p, V = sum p_a x_a x_a'; uniform if no theta is shared)
        3. at the end release Gram matrix G and moment u of the epoch, with noise:
               A = G + shift I,    theta_m = A^-1 u,    shift = max(2 Gamma, C^2 / d),
               w_m(x) = width [ z h |x|_{A^-1} + (z s_u + (Gamma + shift) S) |A^-1 x| ],
               z = sqrt(2 ln(8 K T M / failure)),
               Gamma = s (2 sqrt(d) + 2 sqrt(ln(4 M B / failure)))

    h is half the range of rewards; s and s_u are the standard deviations of the noise off G's
    diagonal and in u; S bounds `|theta|`, C the norm of contexts; B is the number of matrices.

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `Epochs`
        proves: a user is in one release. **Widths.** With `width` = 1, linear mean rewards and
        contexts that do not react to rewards, the best arm survives with probability 1 - `failure`,
        so that a round of epoch m + 1 costs at most 4 max_a w_m(x_a). Actions of epoch m depend on
        earlier epochs only; given contexts and arms its reward noises eta are independent, and with
        privacy noise N in the Gram matrix and nu in the moment::

            theta_m - theta = A^-1 (sum of eta x + nu - (N + shift I) theta),   |N| <= Gamma,

        whose three parts the terms of w bound, because A is at least the exact Gram matrix plus
        Gamma I. With independent users and G-optimal play `E |x|^2_{(E V)^-1} <= d^2` for every
        surviving row (tight). This suggests (a sketch) regret of order z h d sqrt(T) +
        (z s_u + (Gamma + shift) S) d / sqrt(lambda) if the first epoch is much longer than d ln d,
        with lambda the least eigenvalue of the average Gram matrix.

    **Proved widths eliminate little**: at T = 5,000 with 3 features regret is 89, 62 and 51 % of
    that of uniform play at epsilon 1, 4 and 8; with 5 features at epsilon 1 no arm is ever
    eliminated, and play is random to the end. The default is therefore a fiftieth of the proved
    width, without a theorem about regret; privacy is the same at every width.

    >>> from dpbandit import certify
    >>> round(certify(BatchedElimination(epsilon=4.0), "Recommendation").epsilon, 6)
    4.0
    """

    width: Positive = 0.02
    """factor of the proved widths; at 1 the theorem holds, but with many features play is random"""
    parameter_norm: Positive | None = None
    """bound S on `|theta|`; if None, the largest that predicts within half the range"""
    failure: Inside01 = 0.05
    """largest probability that the best arm is eliminated (utility only, never privacy)"""

    def start(self) -> None:
        super().start()
        spec, M = self.spec, max(len(self.ends()), 1)
        K, T, d = spec.n_actions, spec.horizon, spec.dim
        G = 1 if spec.shared else K
        S = self.parameter_norm or spec.parameter_norm * spec.half_range / spec.reward_bound
        z = sqrt(2 * log(8 * K * T * M / self.failure))
        tail = 2 * sqrt(d) + 2 * sqrt(log(4 * M * G / self.failure))
        self.user, self.Gamma = self.statistic.context_bound**2 / d, tail * self.gram_noise
        self.shift = max(2 * self.Gamma, self.user)
        self.first_width = self.width * z * spec.half_range
        self.second_width = self.width * (z * self.moment_noise + (self.Gamma + self.shift) * S)
        self.epochs: list[Regression] = []

    def scores(self, context: Floats) -> Floats:
        if not self.epochs:
            return np.full((len(context), self.spec.n_actions), self.middle)
        return self.middle + self.epochs[-1].means(context)

    def choose(self, context: Floats, uniforms: Floats) -> Ints:
        alive = self.survivors(context)
        share = alive / np.maximum(alive.sum(axis=1, keepdims=True), 1)
        if self.spec.shared:
            x = clip_norm(context, self.statistic.context_bound)  # against overflow in the design
            share = _optimal_design(x, share, 1e-9 * self.user)
        return (share.cumsum(axis=1) > uniforms[:, None]).argmax(axis=1)

    def survivors(self, context: Floats) -> npt.NDArray[np.bool_]:
        """Return the mask of arms that are not eliminated, (R, K)."""
        alive = np.ones((len(context), self.spec.n_actions), bool)
        for epoch in self.epochs:
            means = epoch.means(context)
            widths = self.first_width * epoch.widths(context)
            widths += self.second_width * epoch.inverse_lengths(context)
            best = np.where(alive, means - widths, -inf).max(axis=1, keepdims=True)
            alive &= means + widths >= best
        return alive

    def refit(self, gram: Floats, moment: Floats) -> None:
        least = self.shift - self.Gamma  # A is above it where |N| <= Gamma
        self.epochs.append(
            Regression.of(gram, moment, ridge=self.shift, least=least, noise=self.moment_noise)
        )


def _optimal_design(x: Floats, share: Floats, ridge: float) -> Floats:
    """Return a nearly G-optimal design on rows (R, K, d): each arm's probability, (R, K)."""
    for _ in range(_DESIGN_STEPS):
        V = x.swapaxes(1, 2) @ (share[..., None] * x) + ridge * np.eye(x.shape[-1])
        share = share * np.vecdot(np.linalg.solve(V, x.swapaxes(1, 2)).swapaxes(1, 2), x)
        total = share.sum(axis=1, keepdims=True)
        share = share / np.where(total > 0, total, 1.0)
    return share
