"""Agents whose users' devices send private messages to a server.

`Broadcast` is one agent for four models of trust; the others need no trusted server.
"""

from collections.abc import Callable, Sequence
from math import ceil, inf, pi, sqrt
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpbandit.agent import Arms, Count, Least0, Positive, PrivateAgent, started
from dpbandit.agents.contextual.fade_regression import SummedRegression
from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    clip_norm,
    clip_range,
    inside,
    one_of,
    pick,
    predictions,
    rows,
)
from dpbandit.privacy import (
    FadingSum,
    SecondMoments,
    SignedDirections,
    certified_fading_sum,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.bits import BitSum, SignBits
from dpbandit.privacy.fading import AggregatedSum, growing_batches, released_ends
from dpbandit.privacy.messages import (
    MESSAGES as LOCAL,
    LocalStatistic,
    LocalVectors,
    Message as LocalMessage,
    law_of,
)
from dpbandit.privacy.notion import LOCAL_DP, Notion, Trust, TrustModel
from dpbandit.privacy.spends import Spend
from dpbandit.specs import ContextualSpec

Message: TypeAlias = Literal[
    "directions", "coins", "flips", "privunit", "gaussian", "laplace", "k-norm"
]
MESSAGES: dict[TrustModel, tuple[Message, ...]] = {
    "central": ("directions",),
    "aggregated": ("directions", "coins"),
    "shuffled": ("coins", "flips"),
    "local": ("privunit", "gaussian", "laplace", "k-norm"),
}
"""Messages that each model of trust allows; `message="auto"` chooses the first"""
AnyMessage: TypeAlias = Annotated[Message | Literal["auto"], lambda name, value: None]
"""Kind of a message, or "auto"; checked only together with `trust`, not alone"""
Growth: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)]
_MOMENT_RIDGE = 0.05
"""Ridge of a regression on sums of messages, as a share of its matrix's mean eigenvalue"""
_UNIFORM_ROUNDS = 9
"""Rounds of random play of `LocalLinUCB`, in units of d times a message entry's noise variance"""


class LocalSums:
    """Mechanism that sums local messages over batches; the sums are post-processing of messages.

    Args:
        send: function from raw rounds to the messages of one user of each replica.
        spend: privacy cost of one message.
        variance: noise variance of a coordinate of one message.
        ends: last rounds of batches.
        horizon: number of rounds of the run.
    """

    fade = 0.0
    rounds_to_release = 1

    def __init__(
        self,
        send: Callable[..., Floats | None],
        spend: Spend,
        *,
        variance: float,
        ends: Sequence[int],
        horizon: int,
    ) -> None:
        self.spend, self._send, self._variance = spend, send, variance
        self._ends = released_ends(ends, horizon)
        self._round, self._released = 0, 0
        self._sum: Floats = np.zeros(1)

    @property
    def stddev(self) -> float:
        return sqrt(self.noise(self._released - 1))

    def noise(self, batch: int) -> float:
        """Return the noise variance of a coordinate of a batch's sum."""
        return float(np.diff([0, *self._ends])[batch]) * self._variance

    def take_rounds(self, lead: tuple[int, ...], *datum: npt.NDArray[Any]) -> Floats | None:
        """Make one call with every replica's datum of a round; its shape `lead` is ignored."""
        return self(*datum)

    def __call__(self, *datum: npt.NDArray[Any]) -> Floats | None:
        """Send each replica's message; return their sum at the end of a batch, else None."""
        if self._released == len(self._ends):
            return None
        self._sum = self._sum + cast(Floats, self._send(*datum))  # every call sends
        self._round += 1
        if self._round < self._ends[self._released]:
            return None
        release, self._sum, self._released = self._sum, np.zeros(1), self._released + 1
        return release


class Devices(Arms):
    """Base class of agents that play argmax_a x . theta_a, with ties at random."""

    def start(self) -> None:
        spec = self.spec
        self.blocks = 1 if spec.shared else spec.n_actions
        self.uniforms = self.streams.uniforms("ties", spec.n_actions)
        self.theta: Floats = np.zeros((self.R, self.blocks, spec.dim))

    def act(self, context: Floats) -> Ints:
        scores = self.scores(context)
        ties = scores >= scores.max(axis=1, keepdims=True)
        return np.where(ties, 1 + self.uniforms(), 0.0).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        return predictions(context, self.theta, shared=context.ndim == 3)

    def row_and_block(self, context: Floats, action: Ints) -> tuple[Floats, Ints]:
        """Return the row (R, d) of the arm played, and the index (R,) of that arm's parameter."""
        if self.spec.shared:
            return pick(context, action), np.zeros_like(action)
        return context, action


class Broadcast(PrivateAgent[ContextualSpec], Devices):
    """Play on devices by a broadcast model; each device sends one private message on its reward.

    A design of this project. Each batch of rounds is a tenth longer than the one before::

        on a user's device  plays argmax_a x . theta_a (the first batch, and ties, at random),
                            sends a message on (x, a, r)
        at a batch's end    the server learns a noisy sum of the messages, and broadcasts theta

    The message, and what the server sees of it, depend on trust::

        trust        message              content                             the server sees
        central      directions           u = sign(r - centre) x / |x|        all; it adds noise
        aggregated   directions           u and a share of Gaussian noise     sums of batches
                     coins                signs of u and some fair coins      sums of batches
        shuffled     coins                signs of u and some fair coins      bits of a batch, mixed
                     flips                signs of u, each flipped at times   bits of a batch, mixed
        local        privunit             a point of the sphere, more often   every message
                                          in the cap around u than outside
                     gaussian, laplace,   u and noise of her own              every message
                     k-norm

    Here r is the reward, `centre` the middle of its range and x the row of the arm played. u fills
    the coordinates of that arm's parameter; signs of other arms are fair coins. The server weighs
    sums by their noise and corrects for selection by greedy play, as for rows uniform on a sphere.

    Guarantee:
        (epsilon, delta)-DP of everything that the server sees, for replacing one user's round, and
        so joint DP under continual observation. "central" and "aggregated" are exactly mu-GDP; the
        cost of coins is exact, that of flips an upper bound (`BitSpend`). Local messages are
        private one by one: "privunit", "laplace" and "k-norm" are epsilon-DP for every `delta`. A
        user sends one message, which enters one batch. The server must neither choose the action
        nor observe action or reward: both stay on the device. With `honest` < 1 this share of a
        batch's devices must add their noise and not drop out.

    **Limits.** The sign of a reward about the middle of the public range must depend on the arm,
    and rows should be dense, centred and isotropic; theta is not in units of the reward. The
    identities of users who send messages are not protected.

    >>> from dpbandit import certify
    >>> proof = certify(Broadcast(epsilon=1.0, trust="local"), "GLMBandit", accountants=False)
    >>> round(proof.ledger.pure, 9), proof.ledger.brief
    (1.0, 'local')
    """

    trust: TrustModel = "aggregated"
    """model of trust, "central", "aggregated", "shuffled" or "local" """
    message: AnyMessage = "auto"
    """kind of message, see the table; "auto" is the first that `trust` allows"""
    honest: float = 1.0
    """share of devices that add noise and stay, in (0, 1]; only with "aggregated" or "shuffled" """
    fade: Annotated[float, lambda name, value: inside(name, value, 0, 0.999, ends=True)] = 0.0
    """factor of a batch's weight from one sum to the next, in [0, 0.999]; only with "central" """
    first_batch: Count | None = None
    """rounds of uniform play; if None, it grows with the noise, from 100 to a tenth of T"""
    growth: Growth = 0.1
    """growth of batches; each has (1 + growth) times the rounds of the one before"""
    channel = cast(FadingSum | BitSum | LocalSums, None)

    def check(self) -> None:
        super().check()
        one_of("message", self.message, ("auto", *MESSAGES[self.trust]))
        Trust(self.trust, self.honest)
        if self.fade and self.trust != "central":
            raise InputError(
                f"Expected fade={self.fade} only with trust='central': elsewhere nobody keeps sums."
            )

    @property
    def sent(self) -> Message:
        """Kind of message that devices send."""
        return MESSAGES[self.trust][0] if self.message == "auto" else self.message

    def start(self) -> None:
        super().start()
        spec, bits = self.spec, self.sent in ("coins", "flips")
        centre = (spec.reward_low + spec.reward_high) / 2
        self.directions = SignedDirections(n_actions=self.blocks, dim=spec.dim, centre=centre)
        first = self.first_batch or self.usual_first_batch()
        self.open(growing_batches(spec.horizon, first=first, growth=self.growth))
        spend = self.channel.spend
        notion = Notion(trust=Trust(self.trust, self.honest))
        self.ledger = ledger_of(self.epsilon, spend, notion=notion)
        self.imagined = ImaginedPeople(spec.n_actions, spec.dim, shared=spec.shared, signs=bits)
        self.spread = 1 / self.blocks if bits else 1 / (self.blocks * spec.dim)
        self.batch, self.end, self.people = 0, 0, 0.0
        self.released_sum = np.zeros_like(self.theta)
        self.seen = np.zeros((*self.theta.shape, spec.dim))
        self.recent: Floats | float = 0.0

    def usual_first_batch(self) -> int:
        """Return rounds of uniform play until a sum's signal exceeds its noise, at most T / 10."""
        d, D, V = self.spec.dim, self.blocks * self.spec.dim, self.variance()
        if self.sent in LOCAL:
            rounds = 18 * D * V
        else:
            signal = 1.0 if self.sent == "directions" else sqrt(2 * d / pi)
            rounds = 3 * D * sqrt(V + 1) / (0.9 * signal)
        return max(1, ceil(min(max(100.0, rounds), self.spec.horizon / 10)))

    def variance(self) -> float:
        """Return the approximate noise variance of a coordinate of a sum, or of a local message."""
        D = self.blocks * self.spec.dim
        if self.epsilon == inf:
            return 0.0
        if self.sent in LOCAL:
            return law_of(self.sent, D, self.epsilon, self.delta).variance(D)
        gaussian = (2 / mu_of(self.epsilon, self.delta)) ** 2
        if self.sent == "directions":
            return gaussian / self.honest / (1 - self.fade**2)
        return gaussian * self.spec.dim

    def open(self, ends: Sequence[int]) -> None:
        """Set `channel` to an (epsilon, delta)-DP mechanism that sums batches ending at `ends`."""
        target: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        batches: dict[str, Any] = {"ends": ends, "horizon": self.spec.horizon}
        sums, sent, streams = self.directions, self.sent, self.streams
        if sent in LOCAL:
            uses = self.spec.horizon
            send = LocalVectors(
                streams, dim=self.blocks * self.spec.dim, law=sent, uses=uses, **target
            )
            self.channel = LocalSums(send, send.spend, variance=send.variance, **batches)
        elif sent in ("coins", "flips"):
            bits = SignBits(n_actions=self.blocks, dim=self.spec.dim, centre=sums.centre)
            self.channel = BitSum(
                bits, streams, cover=sent, honest=self.honest, **batches, **target
            )
        elif self.fade:
            self.channel = certified_fading_sum(sums, streams, fade=self.fade, **batches, **target)
        else:
            self.channel = AggregatedSum(sums, streams, honest=self.honest, **batches, **target)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # The device sends a message on its user's round; the model changes at the end of a batch
        row, block = self.row_and_block(context, action)
        if isinstance(self.channel, LocalSums):
            u = self.directions.total(row[None], block[None], feedback[None])
            release = self.channel(u.reshape(self.R, -1))
        else:
            release = self.channel(row, block, feedback)
        if release is None:
            return
        count, self.end = self.round - self.end, self.round
        fade = self.channel.fade
        self.people = fade * self.people + count
        self.recent = fade * self.recent + count * self.imagined.moments(self.theta)
        noise = self.channel.noise(self.batch)
        weight = self.people / (noise + self.people * self.spread)
        self.batch += 1
        self.released_sum += weight * release.reshape(self.released_sum.shape)
        self.seen += weight * self.recent
        d = self.spec.dim
        size = np.trace(self.seen, axis1=2, axis2=3).mean(axis=1) / d  # (R,)
        ridge = _MOMENT_RIDGE * size[:, None, None, None] * np.eye(d)
        self.theta = np.linalg.solve(self.seen + ridge, self.released_sum[..., None])[..., 0]


class LocalLinUCB(SummedRegression, PrivateAgent[ContextualSpec]):
    """Play by ridge regression on sums of locally private messages, each a user's noisy moments.

    After Zheng, Cai, Huang, Li and Wang, "Locally differentially private (contextual) bandits
    learning", NeurIPS 2020, of which we read only the introduction, and two public programs::

        send             (x x' / sqrt(2), y x) + N(0, (2 / mu)^2 I), y the sign of the reward about
                         the middle of its range
        end of a batch   G, b = the sums of all messages' estimates of x x' and y x,
                         Gamma = 2 sqrt(d) times the standard deviation of the noise in G's entries;
                         theta = (G + ridge Gamma I)^-1 b
        play             argmax_a x . theta + bonus s |(G + ridge Gamma I)^-1 x|, s the standard
                         deviation of the noise in b; the first batch, and ties, at random

    Guarantee:
        Every message is locally (epsilon, delta)-DP, exactly mu-GDP: before noise, those of any two
        users differ by at most 2 in L2, for rows of norm at most 1, and so may y x alone: the Gram
        matrix costs nothing (`SecondMoments`). A user sends one message. No trusted server is
        needed, as long as actions are chosen and rewards observed on the device.

    Differs from the paper:
        Reconstructed, with exact Gaussian noise for both parts together, signs of rewards, greedy
        play by default, and new models at ends of batches only. The two programs fit in every
        round, and add a confidence width that grows like T^(1/4).

    >>> from dpbandit import certify
    >>> certify(LocalLinUCB(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    plays = ContextualSpec
    epsilon: float = 1.0
    """target epsilon, > 0; inf sends exact rounds"""
    ridge: Positive = 1.0
    """ridge, in units of the spectral norm of the Gram matrix's noise, > 0"""
    bonus: Least0 = 0.0
    """size of the bonus, in standard deviations of the privacy noise in a prediction, >= 0"""
    growth: Growth = 0.1
    """growth of batches; each has (1 + growth) times the rounds of the one before"""

    def start(self) -> None:
        spec, T = self.spec, self.spec.horizon
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            moment_weight=sqrt(2),  # with this weight the Gram matrix adds no sensitivity
        )
        target = {"epsilon": self.epsilon, "delta": self.delta}
        messages = LocalStatistic(statistic, self.streams, uses=T, **target)
        V = messages.stddev**2
        first = max(1, ceil(min(max(100.0, _UNIFORM_ROUNDS * spec.dim * V), T / 10)))
        ends = growing_batches(T, first=first, growth=self.growth)
        spend = messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="exact rounds", notion=LOCAL_DP)
        self.regress(
            statistic,
            LocalSums(messages, spend, variance=V, ends=ends, horizon=T),
            shift=self.ridge,
            bonus=self.bonus,
            signs=True,
        )


class LocalSGD(PrivateAgent[ContextualSpec], Devices):
    """Play greedily by a logistic model; each device sends one locally private gradient.

    After Han, Liang, Wang and Zhang, "Generalized linear bandits with local differential privacy",
    NeurIPS 2021, whose own algorithm is `LDPSGD`::

        in round t    play argmax_a x . theta_t, ties at random
                      g = (y - logistic(x . theta_t)) x, y the reward scaled to [0, 1]
                      send z, a locally private message of mean g;  with c the `step`,
                      theta_{t+1} = the projection of theta_t + z c / (t + 10 c) onto a ball

    Guarantee:
        Every message is locally private: epsilon-DP with "privunit", "laplace" and "k-norm", else
        (epsilon, delta)-DP, for all rounds, as `|g|` <= 1 is enforced; a user sends one. So the
        transcript is private, and joint DP follows. No trusted server is needed, as long as actions
        are chosen and rewards observed on the device.

    Differs from the paper:
        1. PrivUnit messages with the optimal cap, not half of the sphere; other noise laws, too.
        2. One message on all arms' parameters, not one for each arm; no warm-up, no elimination.
        3. Step sizes c / (t + 10 c) and the ball are from our experiments. The model is logistic.

    **Limits.** Greedy play, and a logistic model for all rewards.

    >>> from dpbandit import certify
    >>> certify(LocalSGD(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    epsilon: float = 1.0
    """target epsilon, > 0; inf sends exact gradients"""
    delta: float = 1e-5
    """target delta of "gaussian" messages, in (0, 1)"""
    message: LocalMessage = "privunit"
    """distribution of a message's noise"""
    step: Positive | None = None
    """step size c, > 0; if None, 4 times the number of parameters, the inverse of the logistic
    loss's smallest curvature at theta = 0"""
    radius: Positive = 6.0
    """radius of the ball onto which theta is projected, > 0"""
    messages = started(LocalVectors)

    def start(self) -> None:
        super().start()
        D = self.blocks * self.spec.dim
        self.c = self.step or 4.0 * D
        self.messages = LocalVectors(
            self.streams,
            dim=D,
            law=self.message,
            epsilon=self.epsilon,
            delta=self.delta,
            uses=self.spec.horizon,
        )
        spend = self.messages.spend
        self.ledger = ledger_of(self.epsilon, spend, without="exact gradients", notion=LOCAL_DP)

    def clipped(self, x: Floats) -> Floats:
        """Return rows clipped to the bound of contexts and divided by it, of norm at most 1."""
        return clip_norm(x, self.spec.context_norm) / self.spec.context_norm

    def scores(self, context: Floats) -> Floats:
        # x . theta_a, (R, K); the expected reward increases in it
        return super().scores(self.clipped(context))

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        row, block = self.row_and_block(context, action)
        x, every = self.clipped(row), rows(self.R)
        low, high = self.spec.reward_low, self.spec.reward_high
        y = (clip_range(feedback, low, high) - low) / (high - low)
        residual = y - expit(np.vecdot(x, self.theta[every, block]))
        gradient = np.zeros_like(self.theta)
        gradient[every, block] = residual[:, None] * x
        sent = cast(Floats, self.messages(gradient.reshape(self.R, -1)))  # every call sends
        step = self.c / (self.round - 1 + 10 * self.c)
        moved = self.theta.reshape(self.R, -1) + step * sent
        self.theta = clip_norm(moved, self.radius).reshape(self.theta.shape)


_IMAGINED_PEOPLE = 3000  # synthetic people drawn for one estimate of moments
_CHUNK_PEOPLE, _CHUNK_ENTRIES = 500, 2**18
"""Limits of synthetic people computed at once, in number and in matrix entries of their rows"""


class ImaginedPeople:
    """Estimate of E[f(x) x' 1(arm)] for rows x played greedily, from synthetic people.

    f is the identity or the sign; 1(arm) is 1 in rounds of one arm, or in all rounds if arms share
    a parameter. Rows are uniform on the unit sphere: one per person for all arms, or one for each
    arm. Every call draws new people, the same in all replicas and all runs (fixed seed).

    Args:
        arms: number of arms, K.
        dim: number of features, d.
        shared: True if every arm has a row and all share one parameter.
        signs: True if f is the sign.
    """

    def __init__(self, arms: int, dim: int, *, shared: bool, signs: bool) -> None:
        self._shape, self._signs = (_IMAGINED_PEOPLE, arms if shared else 1, dim), signs
        self._public = np.random.default_rng(0)

    def moments(self, theta: Floats) -> Floats:
        """Return the moments (R, K, d, d) for parameters (R, K, d), K = 1 if arms share one."""
        n, rows, d = self._shape
        people = self._public.standard_normal(self._shape)
        x = (people / np.linalg.norm(people, axis=2, keepdims=True)).reshape(n * rows, d)
        f = np.sign(x) if self._signs else x
        theta, place = np.unique(theta, axis=0, return_inverse=True)  # equal ones only once
        R, blocks, _ = theta.shape
        moments = np.zeros((R, blocks, d * d))
        for begin in range(
            0, n * rows, step := rows * min(_CHUNK_PEOPLE, 1 + _CHUNK_ENTRIES // (rows * d * d))
        ):
            part = slice(begin, begin + step)
            outer = (f[part, :, None] * x[part, None]).reshape(-1, d * d)
            moments += self._played(theta @ x[part].T) @ outer
        return (moments.reshape(R, blocks, d, d) / n)[place.ravel()]

    def _played(self, scores: Floats) -> Floats:
        """Return each row's probability of being played, shaped as scores (R, K, people x rows)."""
        R, blocks, length = scores.shape
        options = scores.reshape(R, blocks, -1, self._shape[1])  # rows or blocks are 1
        best = options == options.max(axis=(1, 3), keepdims=True)
        played: Floats = best / best.sum(axis=(1, 3), keepdims=True)
        return played.reshape(R, blocks, length)
