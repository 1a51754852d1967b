"""Agents whose users' devices send private messages to a server.

A `Broadcast` is one agent under four models of trust; the others need no server that is trusted.
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
SENT: dict[TrustModel, tuple[Message, ...]] = {
    "central": ("directions",),
    "aggregated": ("directions", "coins"),
    "shuffled": ("coins", "flips"),
    "local": ("privunit", "gaussian", "laplace", "k-norm"),
}
"""What can be sent, by who is trusted; the first is what "auto" sends"""
AnyMessage: TypeAlias = Annotated[Message | Literal["auto"], lambda name, value: None]
"""What is right depends on `trust`, beside which it is checked"""
Growth: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)]
_RIDGE = 0.05
"""Added to the moments, as a share of their mean eigenvalue"""
_FIRST = 9
"""Rounds of uniform play of `LocalLinUCB`, times d and the variance of a message's noise"""


class LocalSums:
    """Sums of local messages over batches: post-processing.

    Args:
        send: raw rounds go in, the messages of one user of each replica come out.
        spend: what a message costs.
        variance: of the noise of a coordinate of one message.
        ends, horizon: as of `FadingSum`.
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
        """That of as many messages."""
        return float(np.diff([0, *self._ends])[batch]) * self._variance

    def take_rounds(self, lead: tuple[int, ...], *datum: npt.NDArray[Any]) -> Floats | None:
        """The call for one round, whose `lead` is (R,)."""
        return self(*datum)

    def __call__(self, *datum: npt.NDArray[Any]) -> Floats | None:
        """One message of each replica's user; their sum at the end of a batch, else None."""
        if self._released == len(self._ends):
            return None
        self._sum = self._sum + cast(Floats, self._send(*datum))  # every call sends
        self._round += 1
        if self._round < self._ends[self._released]:
            return None
        release, self._sum, self._released = self._sum, np.zeros(1), self._released + 1
        return release


class Devices(Arms):
    """Play argmax_a x . theta_a; ties, as at first, uniformly at random."""

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
        """The row (R, d) of the arm that was played, and its block (R,)."""
        if self.spec.shared:
            return pick(context, action), np.zeros_like(action)
        return context, action


class Broadcast(PrivateAgent[ContextualSpec], Devices):
    """Devices choose by a broadcast model and send one private message about their reward.

    A design of this project. Rounds are cut into batches, each a tenth longer than the one before::

        on her device     plays argmax_a x . theta_a (the first batch, and ties, at random),
                          sends what (x, a, r) says
        at a batch's end  the server learns a noisy sum of what was sent, and broadcasts theta

    What is sent, and what the server sees of it, is a matter of trust::

        trust        message              what is sent                        the server sees
        central      directions           u = sign(r - centre) x / |x|        all; it adds noise
        aggregated   directions           u and a share of Gaussian noise     sums of batches
                     coins                signs of u and some fair coins      sums of batches
        shuffled     coins                signs of u and some fair coins      bits of a batch, mixed
                     flips                signs of u, each flipped at times   bits of a batch, mixed
        local        privunit             a point of the sphere, rather       every message
                                          in u's cap than not
                     gaussian, laplace,   u and noise of her own              every message
                     k-norm

    u lies in the block of the arm that was played; the signs of other blocks are fair coins. What
    the server does with sums is the same for all: weigh them by their noise, undo what greedy play
    did to the rows that were seen, assuming rows uniform on a sphere, and play greedily.

    Guarantee:
        (epsilon, delta)-DP of everything that the server sees, for replacing one user's round, and
        so joint DP under continual observation. "central" and "aggregated" are exactly mu-GDP;
        coins are paid for by an exact law, flips by an upper bound of theirs (`BitSpend`). Local
        messages are private one by one: "privunit", "laplace" and "k-norm" are epsilon-DP, whatever
        `delta` is. A user sends one message, which enters one batch. A device that the server
        tells what to show, or watches, protects nothing: choice and reward have to stay there.
        With `honest` < 1 that many of the devices of a batch add what they should, and stay.

    **Limits.** Signs of rewards must tell about the middle of their public range, and rows should
    be dense, centred and isotropic; theta is in no units of the reward. Nobody protects who sends.

    >>> from dpbandit import certify
    >>> proof = certify(Broadcast(epsilon=1.0, trust="local"), "GLMBandit", accountants=False)
    >>> round(proof.ledger.pure, 9), proof.ledger.brief
    (1.0, 'local')
    """

    trust: TrustModel = "aggregated"
    """who sees what, "central", "aggregated", "shuffled" or "local" """
    message: AnyMessage = "auto"
    """kind of message, see the table; "auto" is the first that `trust` allows"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay, in (0, 1]; "aggregated", "shuffled" """
    fade: Annotated[float, lambda name, value: inside(name, value, 0, 0.999, ends=True)] = 0.0
    """weight of a batch in the next sum, in [0, 0.999]; only with "central" """
    first_batch: Count | None = None
    """rounds of uniform play; if None, as many as the noise needs, from 100 to a tenth of T"""
    growth: Growth = 0.1
    """by how much each batch is longer than the one before"""
    channel = cast(FadingSum | BitSum | LocalSums, None)

    def check(self) -> None:
        super().check()
        one_of("message", self.message, ("auto", *SENT[self.trust]))
        Trust(self.trust, self.honest)
        if self.fade and self.trust != "central":
            raise InputError(
                f"Expected fade={self.fade} only with trust='central': elsewhere nobody keeps sums."
            )

    @property
    def sent(self) -> Message:
        """What is sent."""
        return SENT[self.trust][0] if self.message == "auto" else self.message

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
        """Rounds of uniform play until the noise of a sum hides no direction, at most T / 10."""
        d, D, V = self.spec.dim, self.blocks * self.spec.dim, self.variance()
        if self.sent in LOCAL:
            rounds = 18 * D * V
        else:
            told = 1.0 if self.sent == "directions" else sqrt(2 * d / pi)
            rounds = 3 * D * sqrt(V + 1) / (0.9 * told)
        return max(1, ceil(min(max(100.0, rounds), self.spec.horizon / 10)))

    def variance(self) -> float:
        """Of the noise of a sum, or of a message, about."""
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
        """A channel that is (epsilon, delta)-DP for one user's round."""
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
        # The device sends what its user's round says; a new model at the end of a batch
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
        ridge = _RIDGE * size[:, None, None, None] * np.eye(d)
        self.theta = np.linalg.solve(self.seen + ridge, self.released_sum[..., None])[..., 0]


class LocalLinUCB(SummedRegression, PrivateAgent[ContextualSpec]):
    """Ridge regression on sums of locally private messages, each a user's noisy (x x', s x).

    After Zheng, Cai, Huang, Li and Wang, "Locally differentially private (contextual) bandits
    learning", NeurIPS 2020, of whose text only the introduction was at hand, and two programs::

        send             (x x' / sqrt(2), s x) + N(0, (2 / mu)^2 I), s the sign of the reward about
                         the middle of its range
        end of a batch   G, b = the sums of all messages, Gamma = 2 sqrt(d) times the noise that an
                         entry of G has by now;     theta = (G + ridge Gamma I)^-1 b
        play             argmax_a x . theta + bonus s |(G + ridge Gamma I)^-1 x|, s the noise of an
                         entry of b; the first batch, and ties, at random

    Guarantee:
        Every message is locally (epsilon, delta)-DP, exactly mu-GDP: `|xx' - yy'|^2 / 2 + |sx -
        ty|^2 <= 4` for all rows of length at most 1 (`SecondMoments`), so that the Gram matrix is
        free; a user sends one. No server is trusted, as long as devices choose and look at rewards
        themselves.

    Differs from the paper:
        Reconstructed. Exact Gaussian noise for both parts together, signs of rewards, greedy as set
        here, and a new model at the end of growing batches only. The programs fit in every round,
        and are optimistic with a width that grows like T^(1/4).

    >>> from dpbandit import certify
    >>> certify(LocalLinUCB(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    plays = ContextualSpec
    epsilon: float = 1.0
    """target, > 0; inf sends exact rounds"""
    ridge: Positive = 1.0
    """ridge, in units of the noise's spectral norm, > 0"""
    bonus: Least0 = 0.0
    """size of the bonus, in standard deviations of the noise that privacy adds to a prediction, >=
    0"""
    growth: Growth = 0.1
    """by how much each batch is longer than the one before"""

    def start(self) -> None:
        spec, T = self.spec, self.spec.horizon
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            moment_weight=sqrt(2),  # at which the Gram matrix is free
        )
        target = {"epsilon": self.epsilon, "delta": self.delta}
        messages = LocalStatistic(statistic, self.streams, uses=T, **target)
        V = messages.stddev**2
        first = max(1, ceil(min(max(100.0, _FIRST * spec.dim * V), T / 10)))
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
    """Greedy play on a logistic model; each device sends one locally private gradient.

    After Han, Liang, Wang and Zhang, "Generalized linear bandits with local differential privacy",
    NeurIPS 2021, whose algorithm as printed is `LDPSGD`::

        in round t    play argmax_a x . theta_t, ties at random
                      g = (y - logistic(x . theta_t)) x, y the reward on a scale from 0 to 1
                      send z, a locally private message of mean g
                      theta_{t+1} = the point of the ball next to theta_t + z c / (t + 10 c)

    Guarantee:
        Every message is locally private: epsilon-DP with "privunit", "laplace" and "k-norm", else
        (epsilon, delta)-DP, whatever a user has, as `|g|` <= 1 is enforced; a user sends one. So
        everything that is ever seen is, and joint DP follows. No server is trusted, as long as
        devices choose and look at rewards themselves.

    Differs from the paper:
        1. Messages of PrivUnit, whose cap is the best one, not half of the sphere; other laws.
        2. One message about all arms' parameters, not one for each arm. No warm-up, no arm dropped.
        3. Steps c / (t + 10 c) and the ball, of our own experiments. The model is logistic.

    **Limits.** Greedy, and the model of rewards is logistic, whatever they are.

    >>> from dpbandit import certify
    >>> certify(LocalSGD(epsilon=1.0), "GLMBandit", accountants=False).ledger.brief
    'local'
    """

    epsilon: float = 1.0
    """target, > 0; inf sends exact gradients"""
    delta: float = 1e-5
    """target, in (0, 1), of "gaussian" messages"""
    message: LocalMessage = "privunit"
    """kind of message"""
    step: Positive | None = None
    """c, > 0; if None, 4 D, one over the least curvature of D parameters at 0"""
    radius: Positive = 6.0
    """radius of the ball in which theta lies, > 0"""
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
        """Rows of norm at most 1."""
        return clip_norm(x, self.spec.context_norm) / self.spec.context_norm

    def scores(self, context: Floats) -> Floats:
        # x . theta_a, (R, K); the expected reward increases in them.
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


_PEOPLE = 3000
_AT_ONCE, _ENTRIES = 500, 2**18
"""People, and numbers of their rows, that are held at once"""


class ImaginedPeople:
    """E[f(x) x' 1(block)] of the rows x that a greedy policy plays, f the identity or the sign.

    Rows are uniform on the unit sphere: one of each person for all arms, or one for each arm, which
    then share a parameter. Every call imagines new people, the same in all replicas: their numbers
    are a constant of the program.

    Args:
        arms, dim: K and d.
        shared: whether every arm has a row of its own; then there is one block.
        signs: whether f is the sign.
    """

    def __init__(self, arms: int, dim: int, *, shared: bool, signs: bool) -> None:
        self._shape, self._signs = (_PEOPLE, arms if shared else 1, dim), signs
        self._public = np.random.default_rng(0)

    def moments(self, theta: Floats) -> Floats:
        """For parameters (R, blocks, d) -> (R, blocks, d, d); ties are played at random."""
        n, rows, d = self._shape
        people = self._public.standard_normal(self._shape)
        x = (people / np.linalg.norm(people, axis=2, keepdims=True)).reshape(n * rows, d)
        f = np.sign(x) if self._signs else x
        theta, place = np.unique(theta, axis=0, return_inverse=True)  # at first all are 0
        R, blocks, _ = theta.shape
        moments = np.zeros((R, blocks, d * d))
        for begin in range(
            0, n * rows, step := rows * min(_AT_ONCE, 1 + _ENTRIES // (rows * d * d))
        ):
            part = slice(begin, begin + step)
            outer = (f[part, :, None] * x[part, None]).reshape(-1, d * d)
            moments += self._played(theta @ x[part].T) @ outer
        return (moments.reshape(R, blocks, d, d) / n)[place.ravel()]

    def _played(self, scores: Floats) -> Floats:
        """How often each row is played, in each block, of scores (R, blocks, people x rows)."""
        R, blocks, length = scores.shape
        options = scores.reshape(R, blocks, -1, self._shape[1])  # rows or blocks are 1
        best = options == options.max(axis=(1, 3), keepdims=True)
        played: Floats = best / best.sum(axis=(1, 3), keepdims=True)
        return played.reshape(R, blocks, length)
