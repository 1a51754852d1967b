"""Private gradient descent in one pass over blocks of users; exact minimisation without privacy.

Iterates are not released: they stay with the data in a `Block`, a mechanism whose only release is a
noisy point. Blocks have disjoint users, and each begins at the point of the last one.
"""

from abc import abstractmethod
from itertools import pairwise
from math import ceil, inf, sqrt
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpbandit.agent import Count, Points, Positive, PrivateAgent
from dpbandit.agents.convex.leaders import slope
from dpbandit.base import AnyArray, Floats, InputError, Streams, at_least
from dpbandit.losses.loss import Loss
from dpbandit.privacy import GaussianSpend, Ledger, Mechanism, Parallel, mu_of, no_privacy
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.premises import SUMMED, Fact
from dpbandit.privacy.spends import Spend, different
from dpbandit.specs import ConvexSpec

Refit: TypeAlias = Literal["once", "doubling"]
Growth: TypeAlias = Annotated[float, lambda name, value: at_least(name, value, 1.001)]


class Block(Mechanism):
    """Block of users: each call after `begin` adds a datum, the last call releases a point.

    Steps are made at private iterates, which a test at the mechanism cannot see. So `query` is a
    user's contribution to the first step: the gradient at the released start, in coordinates of the
    domain's hull, of her datum moved into the loss's public set. At every point of the domain
    this gradient is at most the Lipschitz constant L in l_2: `sensitivity` is 2 L. A subclass
    proves how far this change moves the release (a step is `eta` times the gradient, and later
    steps do not stretch it). The proof replaces a clip: a clipped gradient need not be the gradient
    of a convex function, on which such proofs rest.
    """

    # "a clipped gradient need not be the gradient of a convex function, on which such proofs rest"
    needs = SUMMED | {Fact.LOSS}

    def __init__(self, loss: Loss, streams: Streams, *, users: int, spend: Spend) -> None:
        self.spend, self.uses = spend, users
        self.sensitivity = 2 * loss.lipschitz
        self._loss = loss
        self._noise = streams.normals("noise", loss.domain.affine_dim)

    def begin(self, start: Floats) -> None:
        """Start the iterates at the released point `start`, (R, N)."""
        self._start = self._w = start

    def query(self, *datum: AnyArray) -> Floats:
        return slope(self._loss, self._start, self._admitted(datum[0]))

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the datum moved into the loss's public set, for `dpbandit.testing`."""
        return self._loss.admissible(datum[0]), *datum[1:]

    def _release(self, *datum: AnyArray) -> Floats | None:
        self._learn(self._admitted(datum[0]))
        return self._answer() if self._used == self.uses else None

    def _admitted(self, feedback: Floats) -> Floats:
        return self._loss.admitted(feedback, len(self._start))

    @abstractmethod
    def _learn(self, z: Floats) -> None:
        """Learn from one admissible datum, `(R, *datum_shape)`."""

    @abstractmethod
    def _answer(self) -> Floats:
        """Return the point to release, (R, N)."""


class Blocks(PrivateAgent[ConvexSpec], Points):
    """Base class of agents that play the last released point; data go to the current block."""

    def begin(self) -> None:
        self.blocks = self.all_blocks()
        spends = different(block.spend for block in self.blocks)
        private = all(spend.rho < inf for spend in spends)
        self.ledger = Ledger((Parallel(spends),)) if private else no_privacy("exact descent")
        self.over = 0
        self.open()

    def open(self) -> None:
        """Begin the next block at the last released point."""
        if self.over < len(self.blocks):
            self.blocks[self.over].begin(self.point)

    def all_blocks(self) -> tuple[Block, ...]:
        """Return all blocks of the run, which may leave out the last users."""
        raise NotImplementedError

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        if self.over == len(self.blocks):
            return
        released = self.blocks[self.over](feedback)
        if released is not None:
            self.point, self.over = released, self.over + 1
            self.open()

    def place(self, number: int) -> Streams:
        """Return the random streams of the block with this number."""
        return self.streams.child(f"block {number}")


def block_lengths(horizon: int, refit: Refit, first: int) -> tuple[int, ...]:
    """Return the users of each block: all for "once"; `first`, 2 x `first`, .. for "doubling".

    >>> block_lengths(100, "once", 10), block_lengths(100, "doubling", 10)
    ((100,), (10, 20, 40))
    """
    if refit == "once":
        return (horizon,)
    ends = growing_batches(horizon, first=first, growth=1.0)
    return tuple(end - before for before, end in pairwise((0, *ends)))


class Contracting(Blocks):
    """Base class of agents whose privacy proof requires steps that do not expand distances."""

    def fit(self) -> None:
        name, loss = type(self).__name__, self.loss
        if loss.smoothness == inf:
            raise InputError(
                f"Expected smooth losses: the privacy of {name} rests on short steps, got {loss}."
            )
        if not loss.domain.has_projection:
            raise InputError(
                f"Expected a domain with an exact projection for {name}: {loss.domain}."
            )


class PhasedSGD(Contracting):
    """SGD in phases from the last release, each half as long, with a quarter of the step size.

    Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in linear
    time", STOC 2020, Algorithm 2 (Phased-SGD)::

        theta_0 = the centre of the domain C; for i = 1, 2, .. while there are users:
          1. the next n_i = T / 2^i users; play theta_{i-1} meanwhile
          2. w = theta_{i-1}; for each datum z  w <- nearest point of C to w - eta_i grad f(w; z)
          3. theta_i = mean of the n_i points w + noise, moved to the nearest point of C

        eta_i = min(eta / 4^i, 2 / beta),    eta = scale (R / L) min(4 / sqrt(T), mu / sqrt(k))

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum, exactly mu-GDP: noise has a
        stddev of S_i / mu, S_i = 2 L eta_i. Proof, given theta_{i-1}. Before the user of step j the
        points w are the same; her step moves them apart by `eta_i |g - g'| <= 2 L eta_i`, as both
        are gradients of admissible data at one point of C. Later steps do not expand distances: for
        convex f with beta-Lipschitz gradients, w -> w - eta grad f(w; z) is no expansion for eta <=
        2 / beta, and neither is a projection. So every w, and their mean, moves by at most S_i. A
        user is in one phase (parallel composition), and later phases start at releases. Moving the
        noisy mean into C is post-processing. A linear loss in one dimension attains S_i.

    It needs losses with smoothness beta < infinity and a domain (radius R, dimension k) with an
    exact projection. L is the Lipschitz constant.

    Differs from the paper:
        1. Noise is Gaussian with exact constants.
        2. The mean is over the points after each step, and its release is projected.
        3. eta has the mu of GDP in place of the paper's measure of privacy.
        4. The point of every phase is released, while data arrive.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> round(certify(PhasedSGD(delta=1e-3), spec, accountants=False).epsilon, 6)
    1.0
    """

    scale: Positive = 1.0
    """factor of the step size"""

    def all_blocks(self) -> tuple[Block, ...]:
        # Phase i has T / 2^i users
        loss, T, mu = self.loss, self.spec.horizon, mu_of(self.epsilon, self.delta)
        R, k = loss.domain.outer_radius, loss.domain.affine_dim
        eta = self.scale * R / loss.lipschitz * min(4 / sqrt(T), mu / sqrt(k))
        longest = 2 / loss.smoothness if loss.smoothness else eta
        sizes = [(T >> i, eta / 4**i) for i in range(1, T.bit_length())] or [(1, eta)]
        return tuple(
            Phase(loss, self.place(i), users=users, eta=min(step, longest), mu=mu)
            for i, (users, step) in enumerate(sizes)
        )


class Phase(Block):
    """Block of one pass over its users with step size `eta`, released as the mean iterate."""

    # "how far one user moves the mean"
    needs = SUMMED | {Fact.LOSS}

    def __init__(self, loss: Loss, streams: Streams, *, users: int, eta: float, mu: float) -> None:
        note = "means of one-pass descent, Gaussian noise"
        super().__init__(loss, streams, users=users, spend=GaussianSpend(mu, note))
        self.eta = eta
        self.point_sensitivity = 2 * loss.lipschitz * eta
        """sensitivity of the released mean, how far one user moves the mean"""
        self._stddev = self.point_sensitivity / mu
        self._sum: Floats | float = 0.0

    def _learn(self, z: Floats) -> None:
        domain = self._loss.domain
        step = domain.embedded(self.eta * slope(self._loss, self._w, z))
        self._w = domain.project(self._w - step)
        self._sum = self._sum + self._w

    def _answer(self) -> Floats:
        domain = self._loss.domain
        noisy = self._sum / self.uses + domain.embedded(self._stddev * self._noise())
        return domain.project(noisy)


class SnowballSGD(Contracting):
    """Projected SGD in one pass; the noise of later steps hides the users of earlier steps.

    Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in linear
    time", STOC 2020, Algorithm 1 (Snowball-SGD), on blocks of n users::

        w_0 = the point released last, or the centre of C; m = ceil(n / 2) steps; for t = 1..m:
          1. g = mean of grad f(w_{t-1}; z) over the next b_t = ceil(c / sqrt(m - t + 1)) users
          2. w_t = nearest point of C to  w_{t-1} - eta (g + N(0, sigma^2 I))
        release w_m

    c is the largest with b_1 + .. + b_m <= n: early steps have few users, late steps have many.
    eta = scale R / sqrt(m (L^2 + k sigma^2)), at most 2 / beta, for smoothness beta, Lipschitz
    constant L and a domain C of radius R in k dimensions.

    Guarantee:
        (epsilon, delta)-DP of all released points for replacing one datum, mu-GDP with::

            mu = max over t of  2 L / (b_t sigma sqrt(m - t + 1)) <= 2 L / (c sigma),

        which determines sigma. This is privacy amplification by iteration (Feldman, Mironov, Talwar
        and Thakurta, FOCS 2018) with exact constants. Proof for a user of step t; phi_i are steps
        before noise, s = `2 L eta / b_t >= |phi_t - phi'_t|` at any point, m' = m - t + 1. Run the
        steps phi' of the neighbouring data on the noise Z_i of the first run with a drift v_i:
        W_(t-1) = w_(t-1), and for i >= t::

            W_i = Proj(phi'_i(W_(i-1)) + v_i + Z_i),
            v_i = (phi_i(w_(i-1)) - phi'_i(W_(i-1))) / (m - i + 1).

    Steps and projections do not expand (eta <= 2 / beta), so the gap before noise is at
    most s at i = t, and `|w_i - W_i| <= (m - i) / m' s`: it closes at m, W_m = w_m, and all
    `|v_i| <= s / m'`. v_i is a function of the sums Z_j + v_j, j < i: the sequences Z_j + v_j and
    Z_j are m' adaptive Gaussian releases that differ by s / m' each, sqrt(m') (s / m') / (eta
    sigma)-GDP together. The steps phi' map the first sequence to W_m = w_m, the second to w'_m.
    Blocks are disjoint (parallel composition). w_1..w_{m-1} are not released, and not covered.

    It needs smooth losses (beta < infinity) and a domain with an exact projection.

    Differs from the paper:
        1. Constants follow from GDP, not from Renyi divergences; c follows from the number of
           users, not from sigma = L / sqrt(d).
        2. Blocks have growing length, so that points are released during the run.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> round(certify(SnowballSGD(delta=1e-3), spec, accountants=False).epsilon, 6)
    1.0
    """

    scale: Positive = 0.5
    """factor of the step size"""
    refit: Refit = "doubling"
    """"doubling" for blocks of doubling length, "once" for one block that ends at the last round"""
    first: Count = 16
    """number of users of the first block if `refit` is "doubling" """

    def all_blocks(self) -> tuple[Block, ...]:
        mu = mu_of(self.epsilon, self.delta)
        lengths = block_lengths(self.spec.horizon, self.refit, self.first)
        return tuple(
            Snowball(self.loss, self.place(i), users=n, mu=mu, scale=self.scale)
            for i, n in enumerate(lengths)
        )


class Snowball(Block):
    """Block of users with growing batches, released as its last iterate."""

    # "Steps and projections do not expand (eta <= 2 / beta)"
    needs = SUMMED | {Fact.LOSS}

    def __init__(
        self, loss: Loss, streams: Streams, *, users: int, mu: float, scale: float = 1.0
    ) -> None:
        note = "last points of noisy descent, amplified by iteration"
        super().__init__(loss, streams, users=users, spend=GaussianSpend(mu, note))
        self.batches = growing_steps(users)
        """number of users of each step"""
        m, domain = len(self.batches), loss.domain
        least = min(b * sqrt(m - t) for t, b in enumerate(self.batches))
        self.sigma = 2 * loss.lipschitz / (least * mu)
        square = loss.lipschitz**2 + domain.affine_dim * self.sigma**2
        eta = scale * domain.outer_radius / sqrt(m * square)
        self.eta = min(eta, 2 / loss.smoothness) if loss.smoothness else eta
        self._step, self._held = 0, 0
        self._sum: Floats | float = 0.0

    def _learn(self, z: Floats) -> None:
        if self._step == len(self.batches):  # the last users may be too few for a batch
            return
        self._sum = self._sum + slope(self._loss, self._w, z)
        self._held += 1
        size = self.batches[self._step]
        if self._held == size:
            domain = self._loss.domain
            g: Any = self._sum / size + self.sigma * self._noise()
            self._w = domain.project(self._w - domain.embedded(self.eta * g))
            self._step, self._held, self._sum = self._step + 1, 0, 0.0

    def _answer(self) -> Floats:
        return self._w


def growing_steps(users: int) -> tuple[int, ...]:
    """Return the number of users of each step of `SnowballSGD`, with sum at most `users`."""
    left = np.sqrt(np.arange(ceil(users / 2), 0, -1))  # sqrt(m - t + 1)
    low, high = 0.0, float(users)
    while high - low > 1e-9 * high:  # low fits, high does not or is the last to try
        c = (low + high) / 2
        fits = np.ceil(c / left).sum() <= users
        low, high = (c, high) if fits else (low, c)
    return tuple(int(b) for b in np.maximum(1, np.ceil(low / left)))


class LeastSquares(Points):
    """Constrained minimiser of the mean loss so far, computed again at growing intervals.

    Step by step::

        theta = the centre of the domain C; for t = 1..T:
          1. play theta
          2. store the datum, for squared losses as sums of a few matrices
          3. at t = 1, and whenever t has grown by the factor `growth`: theta = the minimiser over C

    It is the reference of every comparison on a stream: no estimator has less excess risk, up to
    constants. It plays any loss, not only squared losses.

    Guarantee:
        None: exact data reaches later actions.

    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(1, 1.5, 2.0)), horizon=10)
    >>> agent = LeastSquares().make(spec, Streams([0]))
    >>> agent.update(np.zeros((1, 2)), agent.act(np.zeros((1, 2))), np.array([[1.0, 0.5]]))
    >>> agent.act(np.zeros((1, 2))).round(6), agent.refits
    (array([[0.5]]), 1)
    """

    growth: Growth = 1.1
    """factor by which the number of data grows from one fit to the next, > 1"""
    refits = 0

    def flat(self) -> bool:
        # Constant losses need no special case
        return False

    def begin(self) -> None:
        self.ledger = no_privacy("exact minimisers")
        self.account = self.loss.comparator(self.R)
        self.data, self.next_step = 0, 1

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        self.account.add(self.loss.admitted(feedback, self.R))
        self.data += 1
        if self.data == self.next_step:
            self.point, _ = self.account.best()
            self.refits += 1
            self.next_step = max(self.data + 1, ceil(self.growth * self.data))
