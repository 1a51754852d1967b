"""Greedy play on released moments of signed directions, corrected for selection.

`Moments` learns from the releases of a `FadingSum` of signed directions only. Shrinkage functions,
which are post-processing, take z = mean + standard normal noise, (R, n), and return estimates of
the n means of each replica.
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpbandit.agent import Arms, Count, PrivateAgent, started
from dpbandit.agents.contextual.fading import OnDevices, check_layout
from dpbandit.base import Floats, InputError, Ints, Streams, inside
from dpbandit.privacy import FadingSum, SignedDirections, certified_fading_sum, ledger_of
from dpbandit.privacy.residuals import Layout
from dpbandit.specs import ContextualSpec

_MOMENT_RIDGE = 0.05
"""Ridge added to expected moment matrices, as a share of their mean eigenvalue"""
_IMAGINED_USERS = 2000
"""Number of synthetic users from which the moments of one policy are computed"""
_CACHED_VALUES = 2**16
"""Number of array entries that a cache holds; changes speed, never values"""
_VARIANCES = np.concatenate([[0.0], np.geomspace(0.25, 256.0, 11)])
"""Prior variances of the scale mixture, in units of the noise variance"""
_EM_STEPS = 30
"""Number of EM steps, after which the mixture's weights have settled to about 1 %"""


def raw(z: Floats) -> Floats:
    """Return the noisy means z themselves, without shrinkage."""
    return z


def soft_threshold(z: Floats) -> Floats:
    """Return z with every coordinate moved towards 0 by one noise stddev, at most to 0."""
    return np.sign(z) * np.maximum(np.abs(z) - 1.0, 0.0)


def empirical_bayes(z: Floats) -> Floats:
    """Return the posterior mean under a scale mixture of normals that is fitted to z.

    Stephens, "False discovery rates: a new deal", Biostatistics 2017 (adaptive shrinkage), with
    known noise: means ~ sum_k weight_k N(0, variance_k), variances on a fixed grid that contains 0;
    weights are found by EM, with one pseudo-observation of 0. The fit thresholds sparse vectors and
    scales dense ones, without a setting for sparsity.

    >>> empirical_bayes(np.array([[9.0, 0.5, -0.5, 0.1, 0.2, -0.3]])).round(1) + 0.0
    array([[8.9, 0. , 0. , 0. , 0. , 0. ]])
    """
    total = 1.0 + _VARIANCES
    density = -0.5 * (z[..., None] ** 2 / total + np.log(total))  # (R, n, k)
    likelihood = np.exp(density - density.max(axis=-1, keepdims=True))
    weights = np.full((len(z), 1, len(total)), 1.0 / len(total))
    prior = 1.0 * (_VARIANCES == 0.0)
    for _ in range(_EM_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=-1, keepdims=True)
        weights = (posterior.sum(axis=1, keepdims=True) + prior) / (z.shape[1] + 1)
    posterior = likelihood * weights
    posterior /= posterior.sum(axis=-1, keepdims=True)
    return z * (posterior * (_VARIANCES / total)).sum(axis=-1)


Shrinkage: TypeAlias = Literal["none", "soft-threshold", "empirical-bayes"]
SHRINKAGES: dict[str, Callable[[Floats], Floats]] = {  # functions by the setting `shrinkage`
    "none": raw,
    "soft-threshold": soft_threshold,
    "empirical-bayes": empirical_bayes,
}


class Moments(Arms):
    """Base class of agents that play argmax_a x . theta_a by released moments of signed directions.

    The first batch is played uniformly at random. Release k adds up N_k rounds (faded ones count
    less) with noise of stddev sigma. A round adds sampling noise of variance v to each coordinate,
    v = 1 / (number of coordinates). Release k has the weight w_k = N_k / (sigma^2 + N_k v), a
    function of public numbers (an arm's number of pulls would not be public). Then::

        z = sum_k w_k release_k / stddev,       theta = shrink(z),
        stddev^2 = sigma^2 sum_k w_k^2 + v sum_b n_b (sum_{k >= b} w_k fade^(k-b))^2,

    for all arms of a replica together; shrink is a shrinkage function, n_b the length of batch b.
    With `debias` an arm's sum is first multiplied by the inverse of the expected moment matrix of
    the policies played (`SelectedMoments`), whose mean eigenvalue scales the stddev.
    """

    sums = started(FadingSum)

    def play_by(
        self,
        statistic: SignedDirections,
        sums: FadingSum,
        *,
        shrink: Callable[[Floats], Floats],
        debias: bool,
    ) -> None:
        """Initialise the estimate of theta, which is learned from the releases of `sums`."""
        self.sums, self._shrink = sums, shrink
        R, (blocks, d), K = self.R, statistic.shape, statistic.n_actions
        self._difference, self._blocks = statistic.layout == "difference", blocks
        self._uniforms = self.streams.uniforms("exploration")
        self._selected = SelectedMoments(self.streams, K) if debias else None
        self._end, self._released = 0, 0
        self._moment, self._private = np.zeros((R, blocks, d)), 0.0
        self._lengths, self._faded, self._weights = np.zeros((3, 0))  # of each batch so far
        self._recent: Floats = np.zeros((1, K, d, d))  # expected moment matrix, faded like the sum
        self._matrix: Floats = np.zeros((1, K, d, d))
        self._theta: Floats = np.zeros((R, K, d))

    @property
    def rounds_to_release(self) -> int:
        return self.sums.rounds_to_release

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or (n, R); at random before the first release and where scores are equal
        score = self.scores(context)
        random = (self._uniforms.over(score.shape[:-1]) * self.spec.n_actions).astype(np.int64)
        tied = score.max(axis=-1) == score.min(axis=-1)
        return np.where(tied, random, score.argmax(axis=-1))

    def scores(self, context: Floats) -> Floats:
        return np.matvec(self._theta, context)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        release = self.sums.take_rounds(action.shape, context, action, feedback)
        if release is None:
            return
        count, self._end = self.round - self._end, self.round
        v = 1 / (self._blocks * release.shape[-1])
        self._lengths = np.append(self._lengths, count)
        self._faded = np.append(self.sums.fade * self._faded, 1.0)
        users = float(self._lengths @ self._faded)
        weight = users / (self.sums.stddev**2 + users * v)
        self._weights = np.append(self._weights, 0.0) + weight * self._faded
        self._moment += weight * release
        self._private += (weight * self.sums.stddev) ** 2
        stddev = sqrt(self._private + v * float(self._lengths @ self._weights**2))
        self._theta = self._estimate(weight, count, stddev)
        self._released += 1

    def _estimate(self, weight: float, count: int, stddev: float) -> Floats:
        if self._difference:
            z = self._shrink(self._moment[:, 0] / stddev)  # (R, d)
            return np.stack([z, -z], axis=1)
        R, K, d = self._theta.shape
        scale: Any = stddev
        moment = self._moment
        if self._selected is not None:
            now = self._selected(self._theta) if self._released else uniform_moments(K, d)
            self._recent = self.sums.fade * self._recent + count * now
            self._matrix = self._matrix + weight * self._recent
            size = np.trace(self._matrix, axis1=2, axis2=3)[..., None] / d  # mean eigenvalue
            ridge = _MOMENT_RIDGE * size.mean(axis=1, keepdims=True)[..., None] * np.eye(d)
            moment = np.linalg.solve(self._matrix + ridge, moment[..., None])[..., 0]
            scale = stddev / size
        z = self._shrink((moment / scale).reshape(R, -1)).reshape(R, K, d)
        return z * scale


class FadeMoments(OnDevices, Moments):
    """Play arms with parameters of their own by fading sums of sign(r - centre) `x / |x|`.

    FADE's model of many features with coding="rewards", whose sums do not depend on releases; the
    centre is the middle of the range of rewards::

        each round       sum sign(r - centre) x / |x| for each arm, or the difference of two arms'
                         sums (`SignedDirections`)
        after release k  weight it by its noise, correct for the selection of an arm's contexts by
                         the policy (`SelectedMoments`), and shrink by empirical Bayes, which adapts
                         to sparse parameters (see `Moments`)
        play             argmax_a x . theta_a, ties at random

    Guarantee:
        The guarantee of `Fading`, with sensitivity 2.

    **Limits.** Contexts have to be symmetric about 0 and roughly isotropic, and rewards have to lie
    on both sides of their range's middle. Predictions are not in units of the reward.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000)
    >>> round(certify(FadeMoments(epsilon=1.0, delta=1e-4), spec).epsilon, 6)
    1.0
    """

    shrinkage: Shrinkage = "empirical-bayes"
    """function by which estimates from the weighted releases are shrunk"""
    debias: bool = True
    """True if estimates for more than two arms are corrected for the selection of contexts"""

    def begin(self) -> None:
        spec, K = self.spec, self.spec.n_actions
        check_layout(self, shared=False)
        self.statistic = SignedDirections(
            n_actions=K,
            dim=spec.dim,
            layout="difference" if K == 2 else "blocks",
            centre=(spec.reward_low + spec.reward_high) / 2,
        )
        self.sum_up(self.statistic, self.releases.first(spec, 4.5 * sqrt(spec.dim) * K / 2))
        debias = self.debias and K > 2
        self.play_by(self.statistic, self.sums, shrink=SHRINKAGES[self.shrinkage], debias=debias)


class BatchMoment(Moments, PrivateAgent[ContextualSpec]):
    """Play greedily on sums of `sign(reward) x / |x|`; each user is in the release of one batch.

    A design of this project, for arms with their own parameters and contexts that are symmetric
    about 0 and roughly isotropic::

        batches of rounds [1, T0], (T0, 2 T0], (2 T0, 4 T0], ..., T0 the `first_batch`
        in round t    g_t = sign(r_t - centre) x_t / |x_t|      (+ for arm 0, - for arm 1 if K = 2)
        batch's end   release its sum of g_t + N(0, sigma^2 I)
        play          argmax_a x . theta_a, theta from the weighted and thresholded releases;
                      the first batch, and ties, uniformly at random

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round: she is in one release, which she
        moves by at most 2 (`SignedDirections`), so the whole run is mu-GDP with mu = 2 / sigma,
        whatever the horizon; the agent uses contexts and rewards nowhere else, and weights,
        thresholds and batches are public. The last batch is never released.

    Defaults were tuned on the reference problem P1 (two and five arms, several epsilons).

    **Limits.** The sign of r - centre must depend on the arm, and contexts must have mean 0; the
    bias by selection of contexts with more than two arms is not corrected (`FadeMoments` does so).

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=10_000, reward_low=-1.2, reward_high=1.2)
    >>> round(certify(BatchMoment(epsilon=1.0, delta=1e-4), spec).mu, 4)
    0.3139
    """

    first_batch: Count | None = None
    """rounds of uniform play, T0; if None, 500 / epsilon clipped to 200 to 2000 for two arms, else
    twice that, at most a fifth of T"""
    blocks: Layout | None = None
    """layout of sums; if None, the difference of two arms' sums, or a sum per arm for more arms"""
    shrinkage: Shrinkage = "soft-threshold"
    """function by which estimates from the weighted releases are shrunk"""
    centre: (
        Annotated[float, lambda name, value: inside(name, value, -inf, inf, ends=False)] | None
    ) = None
    """level with which rewards are compared; if None, the middle of their public range"""

    def start(self) -> None:
        spec, T, K = self.spec, self.spec.horizon, self.spec.n_actions
        if spec.shared:
            raise InputError(
                "BatchMoment plays arms with their own parameters, got one shared by all: choose "
                "another agent or environment, such as fade."
            )
        default = (1 if K == 2 else 2) * int(min(max(500 / self.epsilon, 200), 2000))
        first = self.first_batch or max(1, min(default, T // 5))
        statistic = SignedDirections(
            n_actions=K,
            dim=spec.dim,
            layout=self.blocks or ("difference" if K == 2 else "blocks"),
            centre=(spec.reward_low + spec.reward_high) / 2 if self.centre is None else self.centre,
        )
        sums = certified_fading_sum(
            statistic,
            self.streams,
            ends=doubling_batches(T, first),
            horizon=T,
            fade=0.0,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        self.ledger = ledger_of(self.epsilon, sums.spend)
        self.play_by(statistic, sums, shrink=SHRINKAGES[self.shrinkage], debias=False)


def doubling_batches(horizon: int, first: int) -> tuple[int, ...]:
    """Return the last rounds of batches before the horizon, first, 2 first, 4 first, ...

    >>> doubling_batches(10_000, 500)
    (500, 1000, 2000, 4000, 8000)
    """
    ends, end = [], first
    while end < horizon:
        ends.append(end)
        end *= 2
    return tuple(ends)


class SelectedMoments:
    """Estimate of E[u u' 1(arm a is played)], greedy play on contexts u uniform on the unit sphere.

    An arm is played where its score is the largest, which selects contexts along its parameter. The
    sum of r x over those rounds has mean E[x x'] theta_a for *selected* contexts, so an estimate
    with E[x x'] of all contexts is biased towards the current policy. If contexts are isotropic,
    E[x x'] of selected ones follows from the policy, which is public.

    With theta = U S V' (thin singular value decomposition, rank K), the scores depend on u through
    the K numbers V'u, nearly N(0, I / d). Orthogonally to the span of V there is no selection::

        E[u u' 1_a]  =  ( P(a) (I - V V') + V E[c c' 1_a] V' ) / d,      c ~ N(0, I_K),

    with P(a) the probability of arm a and 1_a its indicator; E is over synthetic users, not data.
    """

    def __init__(self, streams: Streams, n_actions: int) -> None:
        self._users = streams.normals("imagined users", _IMAGINED_USERS, n_actions)

    def __call__(self, theta: Floats) -> Floats:
        """Return E[u u' 1(arm a is played)] for the policy argmax_a u . theta_a, (R, K, d, d)."""
        return self._moments(theta, np.zeros((*theta.shape[:2], 1)))[2]

    def with_constant(self, theta: Floats, constant: float) -> Floats:
        """Return the same, (R, K, 1 + d, 1 + d), for u = (c, sqrt(1 - c^2) direction).

        Theta (R, K, 1 + d) begins with coefficients of the constant c, which is below 1.
        """
        R, K, D = theta.shape
        c, width = constant, sqrt(1 - constant**2)
        share, first, second = self._moments(theta[..., 1:], c / width * theta[..., :1])
        found = np.empty((R, K, D, D))
        found[..., :1, :1] = c**2 * share
        found[..., 0, 1:] = c * width * first
        found[..., 1:, 0] = found[..., 0, 1:]
        found[..., 1:, 1:] = width**2 * second
        return found

    def _moments(self, theta: Floats, offset: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E 1_a (R, K, 1, 1), E[u 1_a] (R, K, d) and E[u u' 1_a] (R, K, d, d).

        Arm a is played if u . theta_a + offset_a is the largest; `offset` is (R, K, 1).
        """
        R, K, d = theta.shape
        U, S, Vt = np.linalg.svd(theta, full_matrices=False)  # (R, K, m), (R, m), (R, m, d)
        m, users = S.shape[1], self._users()  # m = min(K, d)
        V = Vt.transpose(0, 2, 1)
        off_span = np.eye(d) - V @ Vt
        share, first = np.empty((R, K, 1, 1)), np.empty((R, K, m))
        second = np.empty((R, K, m, m))
        few = max(1, _CACHED_VALUES // (K * m * _IMAGINED_USERS))
        for r in range(0, R, few):
            some = slice(r, r + few)
            c = np.ascontiguousarray(users[some, :, :m].transpose(0, 2, 1))  # (few, m, n)
            scores = (U[some] * S[some, None]) @ c + sqrt(d) * offset[some]  # (few, K, n)
            played = 1.0 * (scores == scores.max(axis=1, keepdims=True))
            played /= played.sum(axis=1, keepdims=True)  # ties are played at random
            share[some, :, 0, 0] = played.mean(axis=2)
            first[some] = played @ c.transpose(0, 2, 1)
            second[some] = (c[:, None] * played[:, :, None]) @ c.transpose(0, 2, 1)[:, None]
        first, second = first / _IMAGINED_USERS, second / _IMAGINED_USERS
        second = (share * off_span[:, None] + V[:, None] @ second @ Vt[:, None]) / d
        return share, first @ Vt / sqrt(d), second


def uniform_moments(n_actions: int, dim: int) -> Floats:
    """Return E[u u' 1(arm a is played)] for uniform play and u on the sphere, (1, K, d, d)."""
    return np.tile(np.eye(dim) / (n_actions * dim), (1, n_actions, 1, 1))
