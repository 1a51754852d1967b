"""Private hard thresholding: noisy selection and release of a vector's s largest coordinates::

    peeling          selection                                       values
    LaplacePeeling   s times the largest of |v| + fresh Laplace      v + Laplace
                     noise among those that are left
    GumbelPeeling    the s largest of |v| + Gumbel noise, at once    v + Gaussian

Scales are multiples of the change of v by one user: one coordinate by at most `move` (l_inf), any s
coordinates together by at most `move_2` (l_2). A scale of 0 is plain hard thresholding, by the same
code, ties to the lowest index.

**Several rows**, s picks from each, cost no more than one row if a user who moves two rows moves
each by at most half of `move` and of `move_2`. Given all earlier picks, the j-th picks of both rows
are independent, and each costs half of the epsilon or bounded range of one pick, so that both cost
one pick. Gaussian values move by sqrt(2) / 2 of `move_2`; two Laplace values moved by half of
`move` cost no more than one moved by `move` (`pure`).

`NoisyHardThresholding` is sparse linear regression by such steps, one estimate per episode.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log, sqrt
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    clip_norm,
    clip_range,
    gaussian_target,
    inside,
    positive,
    rows,
    whole,
)
from dpbandit.privacy.ledger import Sequential, least_noise
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise import Gaussian, Gumbel, Laplace, Sampler
from dpbandit.privacy.premises import NO_FACTS, SUMMED
from dpbandit.privacy.pure import BoundedRangeSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import GaussianSpend

Peel: TypeAlias = Callable[[Floats, float, float], Floats]
"""Function of P rows v (R, P, D), a user's largest change of a coordinate and largest l_2 change
of all selected, which returns the noisy selected coordinates (R, P, D), 0 elsewhere"""


class Peeling(Protocol):
    """Protocol of a peeling: its privacy cost and its sampler."""

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        """Return the cost of selecting and releasing `picks` coordinates, done `repeats` times."""
        ...

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        """Return the peeling function for vectors `(R, *shape)`, with noise of `streams`."""
        ...


@dataclass(frozen=True)
class LaplacePeeling:
    """Peeling with Laplace noise, as in the papers: s noisy maxima in turn, then s noisy values.

    Dwork, Su and Zhang, "Differentially private false discovery rate control", Journal of Privacy
    and Confidentiality 2021; in regression, Cai, Wang and Zhang, "The cost of privacy", Annals of
    Statistics 2021.

    Guarantee:
        If one user moves every coordinate up or down by at most `move`, then a pick is (2 /
        multiplier)-DP (`choices.ReportNoisyMax`), because `|v|` moves no further than v, and a
        released value is (1 / multiplier)-DP.
    """

    multiplier: float
    """Laplace scale of selection and values, divided by a user's largest change of a coordinate"""

    def __post_init__(self) -> None:
        at_least("multiplier", self.multiplier, 0)

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        ratio, count = 1 / self.multiplier if self.multiplier else inf, picks * repeats
        chosen = PureSpend.alike(f"{where}: {count} noisy maxima", 2 * ratio, count)
        values = LaplaceSpend(ratio if count else 0.0, count, f"{where}: {count} Laplace values")
        return Sequential((chosen, values), f"{where}: Laplace peeling")

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        law = Laplace(self.multiplier)
        return _OneByOne(
            picks,
            law.sampler(streams, "peeling picks", (picks, *shape)),
            law.sampler(streams, "peeling values", (shape[0], picks)),
        )


@dataclass(frozen=True)
class GumbelPeeling:
    """Peeling in one shot, with Gaussian noise on the values.

    Durfee and Rogers, NeurIPS 2019: the s largest of `|v|` + Gumbel noise have the law of s
    exponential mechanisms, one after the other (as `choices.OneShotTopK`).

    Guarantee:
        If one user moves every coordinate up or down by at most `move`, and any s of them by at
        most `move_2` in l_2, then a pick has bounded range 2 / pick, because `|v|` moves no further
        than v, and the values of one peeling are (1 / value)-GDP.
    """

    pick: float
    """Gumbel scale in the selection, divided by a user's largest change of a coordinate"""
    value: float
    """standard deviation of values' noise, divided by a user's largest l_2 change of all values"""

    def __post_init__(self) -> None:
        at_least("pick", self.pick, 0)
        at_least("value", self.value, 0)

    @classmethod
    def split(cls, noise: float, share: float, picks: int, repeats: int) -> "GumbelPeeling":
        """Return the peeling of zCDP cost 1 / (2 noise^2) in all, a `share` of it for selection.

        Selection costs picks x repeats x (2 / pick)^2 / 8, the values repeats / (2 value^2).
        """
        return cls(noise * sqrt(picks * repeats / share), noise * sqrt(repeats / (1 - share)))

    def spend(self, picks: int, repeats: int, where: str) -> Sequential:
        count, eta = picks * repeats, 2 / self.pick if self.pick else inf
        mu = sqrt(repeats) / self.value if self.value else inf
        chosen = BoundedRangeSpend.alike(f"{where}: {count} Gumbel picks", eta, count)
        values = GaussianSpend(mu if count else 0.0, f"{where}: {count} Gaussian values")
        return Sequential((chosen, values), f"{where}: Gumbel peeling")

    def sampler(self, streams: Streams, picks: int, shape: tuple[int, int]) -> Peel:
        return _OneShot(
            picks,
            Gumbel(self.pick).sampler(streams, "peeling picks", shape),
            Gaussian(self.value).sampler(streams, "peeling values", (shape[0], picks)),
        )


def printed_peeling(epsilon: float, delta: float, *, picks: int, repeats: int) -> LaplacePeeling:
    """Return the papers' Laplace peeling; each of M = `repeats` is claimed (epsilon/M, delta/M)-DP.

    Its Laplace scale is 2 sqrt(3 picks ln(M / delta)) M / epsilon times a coordinate's change.
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf:
        return LaplacePeeling(0.0)
    return LaplacePeeling(2 * sqrt(3 * picks * log(repeats / delta)) * repeats / epsilon)


@cache
def least_peeling(
    epsilon: float, delta: float, *, picks: int, repeats: int, share: float
) -> GumbelPeeling:
    """Return the Gumbel peeling of least noise that is certified (epsilon, delta)-DP in all.

    >>> peeling = least_peeling(1.0, 1e-4, picks=5, repeats=2, share=0.5)
    >>> peeling.spend(5, 2, "").delta(1.0) <= 1e-4
    True
    """
    gaussian_target(epsilon, delta)
    inside("share", share, 0, 1, ends=False)

    def spend(noise: float) -> Sequential:
        return GumbelPeeling.split(noise, share, picks, repeats).spend(picks, repeats, "")

    noise = least_noise(spend, epsilon=epsilon, delta=delta)
    return GumbelPeeling.split(noise, share, picks, repeats)


@dataclass
class _OneByOne:
    picks: int
    maxima: Sampler
    values: Sampler

    def __call__(self, v: Floats, move: float, move_2: float) -> Floats:
        noise, left = move * self.maxima(), np.abs(v)
        chosen = np.empty((*v.shape[:2], self.picks), dtype=np.int64)
        for j in range(self.picks):
            chosen[..., j] = (left + noise[:, j]).argmax(axis=-1)
            np.put_along_axis(left, chosen[..., j : j + 1], -inf, axis=-1)
        return _noisy_entries(v, chosen, move * self.values())


@dataclass
class _OneShot:
    picks: int
    gumbel: Sampler
    values: Sampler

    def __call__(self, v: Floats, move: float, move_2: float) -> Floats:
        noisy = np.abs(v) + move * self.gumbel()
        chosen = np.argsort(-noisy, axis=-1, kind="stable")[..., : self.picks]
        return _noisy_entries(v, chosen, move_2 * self.values())


def _noisy_entries(v: Floats, chosen: Ints, noise: Floats) -> Floats:
    """Return an array like `v` with v + noise at the chosen coordinates and 0 elsewhere."""
    sparse = np.zeros_like(v)
    np.put_along_axis(sparse, chosen, np.take_along_axis(v, chosen, axis=-1) + noise, axis=-1)
    return sparse


@dataclass(frozen=True, kw_only=True)
class SparseRows:
    """Clips of a round (context, action, reward), and the gradient term of a clipped round.

    A context is clipped to Euclidean norm `norm_bound`, then every coordinate to `entry_bound`;
    the reward to [reward_low, reward_high]; a residual to +-residual_clip. With several `blocks`
    the arm a has parameters of its own, beta_a, and a round's gradient is zero outside block a.
    """

    # "A context is clipped to Euclidean norm `norm_bound`"
    needs = NO_FACTS

    blocks: int
    """number of parameter vectors, K for disjoint arms and 1 for a shared one"""
    dim: int
    entry_bound: float
    norm_bound: float
    reward_low: float
    reward_high: float
    residual_clip: float

    def __post_init__(self) -> None:
        whole("blocks", self.blocks, 1)
        whole("dim", self.dim, 1)
        for name in ("entry_bound", "norm_bound", "residual_clip"):
            positive(name, getattr(self, name))

    def row(self, context: AnyArray, action: Ints, reward: AnyArray) -> tuple[Floats, Ints, Floats]:
        """Return a clipped round, the row (R, d) of the arm played, its block (R,), reward (R,)."""
        if context.ndim == 3:  # every arm has its row, and all share block 0
            context, action = context[rows(len(action)), action], np.zeros_like(action)
        x = clip_norm(context, self.norm_bound).clip(-self.entry_bound, self.entry_bound)
        return x, action, clip_range(reward, self.reward_low, self.reward_high)

    def gradient(self, x: Floats, block: Ints, r: Floats, beta: Floats) -> Floats:
        """Return the sum (R, blocks, d) of x clip(r - x . beta_block) over n rows x (R, n, d)."""
        mine = block[:, None, :] == rows(self.blocks)[:, None]  # (R, G, n)
        fitted = (np.matmul(beta, x.swapaxes(1, 2)) * mine).sum(axis=1)
        residual = np.clip(r - fitted, -self.residual_clip, self.residual_clip)
        return np.matmul(mine * residual[:, None, :], x)

    def moves(self, picks: int) -> tuple[float, float]:
        """Return a user's largest change of a gradient, in one coordinate, and in l_2 of `picks`.

        A term is a row times a residual of at most residual_clip, and two terms may be opposite.
        """
        k = 2 * self.residual_clip
        return k * self.entry_bound, k * min(sqrt(picks) * self.entry_bound, self.norm_bound)


class Peeled(NamedTuple):
    """Record of one iteration of noisy hard thresholding, for audits."""

    beta: Floats
    """estimate before the iteration, (R, blocks, d)"""
    v: Floats
    """exact vectors of which coordinates are selected, (R, vectors, length)"""
    retained: Floats
    """noisy values of the selected coordinates, 0 elsewhere, (R, vectors, length)"""
    move: float
    """largest change of a coordinate of v by one user"""
    move_2: float
    """largest l_2 change of `sparsity` coordinates of v by one user"""


class NoisyHardThresholding(Mechanism):
    """Mechanism of sparse linear regression: one estimate from the rounds of each episode.

    Cai, Wang and Zhang, "The cost of privacy", Annals of Statistics 2021, noisy iterative hard
    thresholding, as used by Chakraborty, Roy and Basu (FLIPHAT, arXiv 2405.14038, 2024)::

        call(context, action, reward) -> beta (R, blocks, d) at the end of an episode, else None

        beta = 0;  `iterations` times, with the n rounds of the episode:
          1. v = beta + step_size / n * sum of x clip(r - x . beta)        a block for each arm
          2. keep the s largest coordinates of v, privately                `peeling`
          3. project every block onto the l_1 ball of `radius`             post-processing

    Guarantee:
        If one user's round is replaced, all calls together cost `spend`. (a) She is in one episode;
        estimates of other episodes do not depend on her (parallel composition; their lengths are
        public). (b) In her episode, given the released beta, v moves in every coordinate by at most
        (step_size / n) 2 entry_bound residual_clip, because the clipped residual times the clipped
        row bounds each user's term whatever beta is; and in l_2 over s coordinates by what
        `SparseRows.moves` returns. A user whose arm changes moves two blocks by half of that. (c)
        The peelings of an episode compose (`spend.parts`: picks and values); the steps between them
        use releases only. After the last episode listed nothing is stored or released.

    `query` is a round's gradient term at beta = 0, where every episode starts; terms at other beta
    have the same bounds. Every peeling is paid for as if it were released. `on_peeled`, if set, is
    called with each peeling, for audits.

    Args:
        spec: bounds and clips of a round.
        peeling: selection and release of coordinates.
        streams: the random streams of the replicas.
        episodes: lengths of consecutive episodes, in rounds.
        uses: number of calls; those after the last episode return None.
        sparsity: s, number of coordinates retained of each peeled row.
        joint: True to peel all blocks as one row of coordinates, False to peel each alone.
        iterations: gradient steps of an episode.
        step_size: size of a gradient step.
        radius: radius of the l_1 ball for each block.
    """

    # "their lengths are public"
    needs = SUMMED

    order = np.inf
    """order of the norm of `sensitivity`, which bounds one coordinate of a round's gradient"""
    on_peeled: Callable[[Peeled], None] | None = None

    def __init__(
        self,
        spec: SparseRows,
        peeling: Peeling,
        streams: Streams,
        *,
        episodes: Sequence[int],
        uses: int,
        sparsity: int,
        joint: bool,
        iterations: int,
        step_size: float,
        radius: float,
    ) -> None:
        G, d = spec.blocks, spec.dim
        shape = (1, G * d) if joint else (G, d)
        whole("uses", uses, 0)
        whole("sparsity", sparsity, 1, shape[1])
        whole("iterations", iterations, 1)
        positive("step_size", step_size)
        positive("radius", radius)
        for length in episodes:
            whole("episode", length, 1)
        if sum(episodes) > uses:
            raise InputError(f"Expected episodes={list(episodes)} to end within uses={uses} calls.")
        self.uses, self.sensitivity = uses, spec.moves(1)[0]
        where = f"each user in one of {len(episodes)} episodes"
        self.spend: Sequential = peeling.spend(sparsity, iterations if episodes else 0, where)
        self._spec, self._moves, self._replicas = spec, spec.moves(sparsity), len(streams)
        self._shape, self._iterations = (len(streams), *shape), iterations
        self._step_size, self._radius = step_size, radius
        self._peel = peeling.sampler(streams, sparsity, shape)
        self._lengths = list(episodes)
        self._start()

    def query(self, *datum: AnyArray) -> Floats:
        return self.term(np.zeros((self._replicas, self._spec.blocks, self._spec.dim)), *datum)

    def term(self, beta: Floats, *datum: AnyArray) -> Floats:
        """Return a round's term of the gradient at `beta`, (R, blocks, d)."""
        x, block, r = self._spec.row(*datum)
        return self._spec.gradient(x[:, None], block[:, None], r[:, None], beta)

    def _start(self) -> None:
        """Allocate room for the next episode's raw rounds, which never leave the mechanism."""
        n = self._lengths.pop(0) if self._lengths else 0
        self._filled = 0
        self._x = np.empty((self._replicas, n, self._spec.dim))
        self._block = np.empty((self._replicas, n), dtype=np.int64)
        self._r = np.empty((self._replicas, n))

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round clipped to the bounds of `spec`, for `dpbandit.testing`."""
        (context, action, reward), rows = datum, self._spec
        x = clip_norm(context, rows.norm_bound).clip(-rows.entry_bound, rows.entry_bound)
        return x, action, clip_range(reward, rows.reward_low, rows.reward_high)

    def _release(self, *datum: AnyArray) -> Floats | None:
        n = self._r.shape[1]
        if n == 0:
            return None
        i = self._filled
        self._x[:, i], self._block[:, i], self._r[:, i] = self._spec.row(*datum)
        self._filled += 1
        if self._filled < n:
            return None
        beta = self._estimate(self._step_size / n)
        self._start()
        return beta

    def _estimate(self, step: float) -> Floats:
        move, move_2 = (step * size for size in self._moves)
        beta: Floats = np.zeros((self._replicas, self._spec.blocks, self._spec.dim))
        for _ in range(self._iterations):
            v = beta + step * self._spec.gradient(self._x, self._block, self._r, beta)
            peeled = self._peel(v.reshape(self._shape), move, move_2)
            if self.on_peeled is not None:
                self.on_peeled(Peeled(beta, v.reshape(self._shape), peeled, move, move_2))
            beta = project_l1(peeled.reshape(v.shape), self._radius)
        return beta


def project_l1(v: Floats, radius: float) -> Floats:
    """Return the projection of `v` onto the l_1 ball of `radius`, along the last axis.

    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball", ICML 2008:
    soft thresholding at the level at which the norm is `radius`.

    >>> project_l1(np.array([[3.0, -2.0, 0.5], [0.1, 0.2, 0.0]]), 2.0)
    array([[ 1.5, -0.5,  0. ],
           [ 0.1,  0.2,  0. ]])
    """
    size = np.abs(v)
    order = -np.sort(-size, axis=-1)
    levels = (order.cumsum(axis=-1) - radius) / (rows(v.shape[-1]) + 1)
    last = (order > levels).sum(axis=-1, keepdims=True) - 1
    level = np.take_along_axis(levels, last, axis=-1).clip(0.0)
    return np.copysign((size - level).clip(0.0), v)
