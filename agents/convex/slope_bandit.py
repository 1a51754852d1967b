"""Bandit feedback for losses of public curvature: mean slopes from pairs of noisy values."""

from math import ceil, inf, sqrt

import numpy as np

from dpbandit.agent import Delta, Epsilon, Points, Positive, started
from dpbandit.agents.convex.one_point import range_of, with_values
from dpbandit.agents.convex.slopes import Slopes
from dpbandit.base import AnyArray, Bools, Floats, Ints, clip_range, rows
from dpbandit.domains.projections import nearest
from dpbandit.privacy import ledger_of, no_data
from dpbandit.privacy.batches import CountedSums, gaussian_mu
from dpbandit.privacy.fading import growing_batches

_PARTS = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
"""Tried shares of the inner radius, and of the rounds."""
_FUTURES = 16
"""Number of draws of the mean slope by which exploration is judged."""
_DEVIATION = 0.25
"""Assumed standard deviation of the values at a point, as a share of their range."""


class SlopeBandit(Points):
    """Learn the mean slope from pairs of noisy values around the best point, as far as it pays.

    Phases of exploration and play, after Rusmevichientong and Tsitsiklis, "Linearly parameterized
    bandits", Mathematics of Operations Research 2010, with private sums, for losses of public
    curvature (`Loss.quadratic`), such as linear and quadratic ones::

        share = 1, z = r, y = w = c0; public batches of n rounds, each twice as long as the last
        1. at the start of a batch: draw orthonormal b_1..b_D in the span of the domain C
        2. play w, but in a share of the rounds explore: take pairs of the b_i in turn, play
           y + s z b_i and then y - s z b_i, s = 1 or -1 by a coin; add s and -s times the two
           values, less the middle of their range, to the sum of b_i
        3. at the end of a batch: release each sum with its own noise of variance v. The sum of c
           values is c z (<g, b_i> + <Q y, b_i>) in the mean, g the mean slope, and has precision
           c^2 z^2 / (v + c (W / 4)^2) for <g, b_i>; values are taken to deviate by W / 4
        4. m = posterior mean of g, w = argmin over C of  <m, x - c0> + <x - c0, Q (x - c0)> / 2
        5. the next batch explores so that the least is lost, by the posterior,
           n x (loss of exploring) + `ahead` n x (expected loss of the w after it)

        step 5 tries, for parts p = 1, 1/2, 1/4, .., 1/32, 0, with inner radius r and centre c0 of C
          in every round       y = the nearest point to w in C shrunk by p,       z = p r
          in a share p         y = c0,                                            z = r
        and for linear losses on a ball, in place of the first, the sphere around w on its surface:
          in every round       y = c0 + sqrt(1 - p^2) (w - c0),  b_i orthogonal to w,  z = p r

    Guarantee:
        epsilon-DP of all points for replacing one round's loss, even if later losses depend on
        earlier points: given coins and releases, a value is in one sum, which it moves by at most
        W, its range, and that sum is released once (`CountedSums`). Values are clipped: a
        loss that declares a wrong curvature or range costs regret, not privacy. At delta > 0 noise
        is Gaussian where this has less variance, and the guarantee (epsilon, delta)-DP.

    **Regret.** No bound is proved. Losses that change between batches mislead the posterior, and
    adversaries that see the point of a round know s: then play `private-bandit`.

    Differs from the paper:
        The paper explores at full length between phases of play that grow by a round, without
        noise. Here share and length follow from the posterior, as noise does not depend on z.

    >>> from dpbandit import certify
    >>> proof = certify(SlopeBandit(epsilon=1.0), "ConvexBandit")
    >>> round(proof.epsilon, 6), proof.ledger.delta(1.0)
    (1.0, 0.0)
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf plays without privacy"""
    delta: Delta = 0.0
    """target, in [0, 1); noise is Laplace, or Gaussian if this has less variance at delta"""
    ahead: Positive = 8.0
    """rounds for which a batch's exploration is to pay, as a multiple of its length"""
    feedback = "value"
    blind = True  # `act` reads no context
    slopes = started(Slopes)

    def fit(self) -> None:
        with_values(self, self.spec)
        if not self.flat():
            self.slopes = Slopes(self.loss, self.R)

    def begin(self) -> None:
        r, T = self.domain.inner_radius, self.spec.horizon
        self.k = k = self.domain.affine_dim
        (low, high), e, d = range_of(self.loss), self.epsilon, self.delta
        self.middle, self.width = (low + high) / 2, (W := high - low)
        self.sums = CountedSums(
            self.streams, k + 1, low=-W / 2, high=W / 2, epsilon=e, delta=d, uses=T
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend, without="exact values")
        self.variance = W**2 * (1 / mu**2 if (mu := gaussian_mu(e, d)) else 2 / e**2)
        pairs = max(1, ceil(sqrt(self.variance) / (2 * r * self.slopes.bound)))
        self.ends = growing_batches(T, first=2 * k * pairs, growth=1.0)
        if not self.ends:  # no batch is over before the last round: nothing to explore for
            self.resting, self.ledger = True, no_data()
        self.normals = self.streams.normals("directions", k, k)
        self.futures = self.streams.normals("futures", _FUTURES, k)
        self.coins = self.streams.uniforms("signs")
        self.on_sphere = k > 1 and r == self.domain.outer_radius and not self.slopes.form.any()
        self.batch = self.round = self.opened = 0
        self.explore(self.orthonormal(), np.ones(self.R), np.full(self.R, r), self.point)

    def act(self, context: Floats) -> Floats:
        return self.point if self.resting else self.next

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        if self.batch == len(self.ends):
            self.next = self.point
            return
        self.round += 1
        value = clip_range(0.0 - feedback, *self.loss.value_range) - self.middle
        self.counts[rows(self.R), self.cell] += 1
        over = self.round == self.ends[self.batch]
        at_release: Bools = (self.counts > 0) & over & (rows(self.k + 1) < self.k)
        total = self.sums(self.sign * value, self.cell, at_release)
        if over:
            self.close(np.zeros(self.counts.shape) if total is None else total)
        else:
            self.advance()

    @property
    def directions(self) -> Floats:
        """Orthonormal directions of the batch, (R, D, k)."""
        return self.columns.swapaxes(-1, -2)

    def explore(self, directions: Floats, share: Floats, length: Floats, middle: Floats) -> None:
        """Begin a batch that explores in a share (R,) of its rounds (steps 1 and 2)."""
        # stored as columns: rounding depends on layout, and pickles make arrays contiguous
        self.columns, self.steps = directions.swapaxes(-1, -2), self.domain.embedded(directions)
        self.share, self.length, self.around = share, length, middle
        self.explored: Ints = np.zeros(self.R, np.int64)
        self.counts: Ints = np.zeros((self.R, self.k + 1), np.int64)
        self.sign: Floats = np.ones(self.R)
        self.advance()

    def advance(self) -> None:
        """Choose the points of the next round (step 2)."""
        t = self.round - self.opened
        exploring = np.floor((t + 1) * self.share) > np.floor(t * self.share)
        coin = np.where(self.coins() < 0.5, -1.0, 1.0)
        turned = np.where(self.explored % 2 == 1, -self.sign, coin)
        self.sign = np.where(exploring, turned, self.sign)
        place = self.explored // 2 % self.directions.shape[1]
        self.cell = np.where(exploring, place, self.k)
        step = (self.sign * self.length)[:, None] * self.steps[rows(self.R), place]
        self.next = np.where(exploring[:, None], self.around + step, self.point)
        self.explored += exploring

    def close(self, total: Floats) -> None:
        """Learn from released shares (R, k + 1) of the sums, and plan the next batch."""
        D, slopes = self.directions.shape[1], self.slopes
        count = self.counts[:, :D]
        sums = self.width * (total[:, :D] - count / 2)
        tilt = np.matvec(slopes.form, self.domain.coordinates(self.around - self.domain.centre))
        bent = np.vecdot(self.directions, tilt[:, None])
        mean = sums / (self.length[:, None] * np.maximum(count, 1)) - bent
        slopes.observe(self.directions, self.precisions(count, self.length), mean)
        self.point = self.next = slopes.best(slopes.mean)
        self.batch, self.opened = self.batch + 1, self.round
        if self.batch < len(self.ends):
            self.plan(self.ends[self.batch] - self.round)

    def precisions(self, count: AnyArray, length: Floats) -> Floats:
        """Return the precisions of slopes from sums of `count` values (R, D) at length (R,)."""
        spread = self.variance + np.maximum(count, 1) * (_DEVIATION * self.width) ** 2
        return (length[:, None] * count) ** 2 / spread

    def plan(self, n: int) -> None:
        """Begin a batch of n rounds with the exploration of the least expected loss (step 5)."""
        slopes, w, mean = self.slopes, self.point, self.slopes.mean
        directions = self.orthonormal()
        later = min(self.ahead * n, self.spec.horizon - self.ends[self.batch])
        R, D = directions.shape[:2]
        futures, bend = self.futures(), np.trace(slopes.form) / self.k / 2
        least = np.full(R, inf)
        chosen: tuple[Floats, ...] = (np.zeros(R), np.ones(R), w.T)
        for share, z, middle in self.designs(w):
            length, count = np.full(R, z), np.full((R, D), share * n / D)
            lost = share * (slopes.loss(mean, middle) + bend * z**2 - slopes.loss(mean, w))
            precision = slopes.with_precision(directions, self.precisions(count, length))
            total = n * lost + later * self.loss_after(precision, mean, futures)
            better, least = total < least, np.minimum(total, least)
            design = (np.full(R, share), length, middle.T)
            chosen = tuple(np.where(better, *two) for two in zip(design, chosen, strict=True))
        self.explore(directions, chosen[0], chosen[1], np.ascontiguousarray(chosen[2].T))

    def designs(self, w: Floats) -> list[tuple[float, float, Floats]]:
        """Return the share of rounds, the length and the middle (R, N) of each exploration."""
        r, centre = self.domain.inner_radius, np.broadcast_to(self.domain.centre, w.shape)
        found = [(0.0, r, w), *((part, r, centre) for part in _PARTS)]
        if self.on_sphere:
            return found + [(1.0, p * r, centre + sqrt(1 - p**2) * (w - centre)) for p in _PARTS]
        near = (nearest(self.domain, w, centre, shrink=part).point for part in _PARTS[1:])
        return found + [(1.0, part * r, y) for part, y in zip(_PARTS[1:], near, strict=True)]

    def loss_after(self, precision: Floats, mean: Floats, futures: Floats) -> Floats:
        """Return the expected regret (R,) of a round of the best point at a precision (R, k, k)."""
        values, vectors = np.linalg.eigh(precision)
        root = (vectors / np.sqrt(values)[:, None]).swapaxes(-1, -2)
        drawn = mean[:, None] + np.matmul(futures, root)  # (R, S, k)
        best = self.slopes.best(drawn.reshape(-1, self.k)).reshape(*drawn.shape[:2], -1)
        lost = (self.slopes.loss(drawn, x) for x in (self.point[:, None], best))
        return np.subtract(*lost).sum(axis=1) / _FUTURES

    def orthonormal(self) -> Floats:
        """Return random orthonormal vectors (R, D, k), on a sphere those orthogonal to `point`."""
        frame, aside = self.normals(), int(self.on_sphere and self.batch > 0)
        if aside:
            first = self.domain.coordinates(self.point - self.domain.centre)[..., None]
            frame = np.concatenate([first, frame[..., 1:]], axis=-1)
        return np.linalg.qr(frame)[0].swapaxes(-1, -2)[:, aside:]
