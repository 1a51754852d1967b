"""Noisy descent on users sampled repeatedly from a block."""

from math import inf, log, sqrt
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbandit.agent import Count, Positive
from dpbandit.agents.convex.leaders import slope
from dpbandit.agents.streams.gradient_descent import Block, Blocks, Refit, block_lengths
from dpbandit.base import MOST_ROUNDS, AnyArray, Floats, Streams, norms, printed_target, rows, whole
from dpbandit.domains import nearest
from dpbandit.losses.loss import Loss, row_sums
from dpbandit.losses.regressions import Regression
from dpbandit.privacy.premises import SUMMED, Fact
from dpbandit.privacy.subsampling import SampledGaussianSpend, largest_ratio

Calibration: TypeAlias = Literal["certified", "paper"]
Steps: TypeAlias = Annotated[int, lambda name, value: whole(name, value, 1, MOST_ROUNDS)]
_DEFAULT_PASSES = 10
"""Default number of steps of NoisySGD divided by the number of users."""


class Sampled(Block):
    """Block that stores its data to the end, and then makes m noisy steps with b users each.

    Each step samples b of the n users without replacement, independently of other steps and
    replicas, and moves against the mean g of their gradients at the iterate, plus N(0, sigma^2 I)
    in coordinates of the affine hull. The mean of the iterates after each step is released.

    Guarantee:
        Given the iterates, g moves by at most 2 L / b where the user was drawn, for Lipschitz
        constant L. `SampledGaussianSpend(2 L / (b sigma), b / n, m)` covers all iterates at once,
        even if they are released.
    """

    # "g moves by at most 2 L / b where the user was drawn"
    needs = SUMMED | {Fact.LOSS}

    def __init__(
        self,
        loss: Loss,
        streams: Streams,
        *,
        users: int,
        batch: int = 1,
        steps: int,
        sigma: float,
        eta: float,
    ) -> None:
        ratio = 2 * loss.lipschitz / (batch * sigma) if sigma else inf
        note = f"{steps} noisy gradients of {batch if batch > 1 else 'one'} of {users} users each"
        spend = SampledGaussianSpend(ratio, batch / users, steps, note)
        super().__init__(loss, streams, users=users, spend=spend)
        self.batch, self.steps, self.sigma, self.eta = batch, steps, sigma, eta
        self._draws = streams.uniforms("who", *(() if batch == 1 else (users,)))

    def begin(self, start: Floats) -> None:
        super().begin(start)
        self._data: Floats = np.zeros((self.uses, len(start), *self._loss.datum_shape))

    def _learn(self, z: Floats) -> None:
        self._data[self._used - 1] = z

    def _answer(self) -> Floats:
        domain = self._loss.domain
        w, total = self._start, np.zeros_like(self._start)
        for _ in range(self.steps):
            g = self._gradient(w)
            w = self._step(w, domain.embedded(g + self.sigma * self._noise()))
            total += w
        del self._data
        return total / self.steps

    def _step(self, w: Floats, g: Floats) -> Floats:
        """Return the point after a step from `w` against the noisy gradient `g`, all (R, N)."""
        return nearest(self._loss.domain, w - self.eta * g, w).point

    def _gradient(self, w: Floats) -> Floats:
        """Return the mean gradient at `w` of `batch` randomly drawn users, (R, k)."""
        n, b, everybody = self.uses, self.batch, rows(len(w))
        who: AnyArray = self._draws()
        if b == 1:
            index = np.minimum((who * n).astype(np.int64), n - 1)
            return slope(self._loss, w, self._data[index, everybody])
        if b == n:
            index = np.broadcast_to(rows(n), who.shape)
        else:
            index = np.argpartition(who, b - 1, axis=1)[:, :b]
        users = self._data.reshape(-1, *self._loss.datum_shape)
        z = users.take(index * len(w) + everybody[:, None], axis=0)  # (R, b, *datum_shape)
        return row_sums(slope(self._loss, w[:, None], z)) / b


class NoisySGD(Blocks):
    """Noisy stochastic gradient descent, with many passes over each block of users.

    Bassily, Feldman, Guzman and Talwar, "Stability of stochastic gradient descent on nonsmooth
    convex losses", NeurIPS 2020, Algorithm 2, on blocks of n users::

        w_0 = the point released last, or the centre of the domain C; for t = 1..m:
          1. draw a user z of the block, with replacement: g = grad f(w_{t-1}; z)
          2. w_t = nearest point of C to  w_{t-1} - eta (g + N(0, sigma^2 I))
        release the mean of w_1..w_m

        calibration   m               eta                                      sigma
        paper         n^2             R / (L sqrt(m) max(sqrt(n),              sqrt(8 ln(1/delta))
                                      sqrt(k ln(1/delta)) / epsilon))          L / epsilon
        certified     min(10 n, n^2)  R / sqrt(m (L^2 (1 + m/n [+ sqrt m])     least that meets
                                      + k sigma^2))                            the target

    R is the radius of C in k dimensions, L the Lipschitz constant; [+ sqrt m] is for losses without
    smoothness. The m steps at the end of a block take 20 to 40 microseconds each for one replica:
    the paper's 10^8 steps at n = 10^4 take an hour. `steps` sets m; sigma is certified for it.

    Guarantee:
        (epsilon, delta)-DP of all released points for replacing one datum. A step draws the user
        with probability 1/n, and then its gradient moves by at most 2 L, as both gradients are of
        admissible data at a point of C; `SampledGaussianSpend` composes m steps exactly, for all
        iterates at once. Blocks are disjoint (parallel composition). The same accountant computes
        the epsilon of the paper's noise.

    Differs from the paper:
        1. Composition is exact.
        2. If certified, the number of steps and the step size differ.
        3. Users are cut into blocks, each with a release.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=100)
    >>> bool(certify(NoisySGD(), spec, accountants=False).epsilon <= 1)
    True
    """

    calibration: Calibration = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    steps: Steps | Literal["auto", "paper"] | None = None
    """steps of a block of n users; "auto" is min(10 n, n^2), "paper" n^2, None by `calibration`"""
    scale: Positive = 1.0
    """factor of the step size"""
    beyond_validity: bool = False
    """True to run the paper's noise at epsilon > 3, too, certified at the epsilon that it meets"""
    refit: Refit = "doubling"
    """"doubling" for blocks of doubling length, "once" for one block that ends at the last round"""
    first: Count = 16
    """number of users of the first block if `refit` is "doubling" """

    def check(self) -> None:
        super().check()
        printed_target(self.epsilon, self.calibration, beyond_validity=self.beyond_validity)

    def all_blocks(self) -> tuple[Block, ...]:
        lengths = block_lengths(self.spec.horizon, self.refit, self.first)
        made = []
        for i, n in enumerate(lengths):
            m, sigma, eta = self.numbers(n)
            made.append(Sampled(self.loss, self.place(i), users=n, steps=m, sigma=sigma, eta=eta))
        return tuple(made)

    def numbers(self, users: int) -> tuple[int, float, float]:
        """Return the number of steps, noise per coordinate and step size of a block of `users`."""
        loss, paper, private = self.loss, self.calibration == "paper", self.epsilon < inf
        L, k, R = loss.lipschitz, loss.domain.affine_dim, loss.domain.outer_radius
        m: Any = self.steps or ("paper" if paper else "auto")
        if isinstance(m, str):
            m = users**2 if m == "paper" else min(_DEFAULT_PASSES * users, users**2)
        sigma = 0.0
        if private and paper:
            sigma = L * sqrt(8 * log(1 / self.delta)) / self.epsilon
        elif private:
            ratio = largest_ratio(rate=1 / users, count=m, epsilon=self.epsilon, delta=self.delta)
            sigma = 2 * L / ratio
        if paper:
            noise = sqrt(k * log(1 / self.delta)) / self.epsilon if private else 0.0
            slowness = L * sqrt(m) * max(sqrt(users), noise)
        else:
            visits = m / users if loss.smoothness < inf else m / users + sqrt(m)
            slowness = sqrt(m * (L**2 * (1 + visits) + k * sigma**2))
        return m, sigma, self.scale * R / slowness


class LocalMD(Blocks):
    """Localised noisy mirror descent in l_p geometry, 1 < p <= 2.

    Asi, Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in l_1
    geometry", ICML 2021, Algorithms 5 and 6, a competitor in Han et al. (see `DPTOFW`)::

        theta_0 = the centre of the domain C; for i = 1, 2, ..: the next n_i = T / 2^i users
          1. x_0 = theta_{i-1},  h(x) = |x - x_0|_p^2 / (2 (p - 1)),  b = batch,  m = (n_i / b)^2
          2. for s = 1..m: g = mean gradient at x_{s-1} of b of the n_i users, drawn at random
             without replacement, + N(0, sigma_i^2 I);
             grad h(y) = grad h(x_{s-1}) - eta_i g,  x_s = y moved into C and |x - x_0|_p <= rho_i
          3. theta_i = mean of x_1..x_m

        eta_i = eta / 16^i,  eta = scale (D / L) min(1 / sqrt((p-1) T),
                                             epsilon / sqrt(d ln(1/delta) (1 + ln d)))
        rho_i = 2 L eta_i n_i (p - 1),   b = max(sqrt(n_i / ln d), sqrt(d / epsilon_i))

        calibration   epsilon_i        sigma_i
        paper         epsilon / 2^i    100 L sqrt(d^(1 - 2/q) ln(1/delta)) / (b epsilon_i)
        certified     epsilon          least that meets the target, by `SampledGaussianSpend`

    Regressions on l_p balls with 1 < p <= 2 have the ball's p, with d features, gradients in
    l_q, Lipschitz constant L, diameter D; p = 1 becomes 1 + 1/ln d, L times d^(1/q) <= e; all other
    losses have p = 2. Phases with b > n_i are left out: the last few, or all at small epsilon.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum. Given x_{s-1}, the mean of a
        batch with the user moves by 2 L_2 / b, L_2 the Euclidean Lipschitz constant of admissible
        data on C, and sampling hides whether the batch has her; m steps compose exactly, for all
        iterates at once. A user is in one phase (parallel composition), so each phase may cost all
        of epsilon. The proof needs only that points stay in C, not the geometry of step 2.

    Differs from the paper:
        1. Composition is exact, with all of epsilon for each phase, if certified.
        2. Step 2 moves y to C by the Euclidean projection and then shrinks it towards x_0, in place
           of a Bregman projection on both sets, a convex program in each step.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(5, 1.5, 2.0)), horizon=100)
    >>> bool(certify(LocalMD(), spec, accountants=False).epsilon <= 1)
    True
    """

    calibration: Calibration = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    scale: Positive | None = None
    """factor of the step size; if None, 1 for "paper", or 16 if certified"""

    def all_blocks(self) -> tuple[Block, ...]:
        T, d, (p, L, D) = self.spec.horizon, self.domain.affine_dim, geometry_of(self.loss)
        paper, made = self.calibration == "paper", list[Block]()
        rate = 1 / sqrt((p - 1) * T)
        if self.epsilon < inf:
            rate = min(rate, self.epsilon / sqrt(d * log(1 / self.delta) * (1 + log(d))))
        eta = (self.scale or (1.0 if paper else 16.0)) * D / L * rate
        for i in range(1, T.bit_length()):
            n, step = T >> i, eta / 16**i
            epsilon = self.epsilon / 2**i if paper else self.epsilon
            b = int(max(1.0, sqrt(n / log(max(d, 2))), sqrt(d / epsilon)))
            if b > n:
                continue
            m, sigma = max(1, int((n / b) ** 2)), 0.0
            if epsilon < inf and paper:
                spread = sqrt(d ** (2 / p - 1) * log(1 / self.delta))  # 1 - 2/q = 2/p - 1
                sigma = 100 * L * spread / (b * epsilon)
            elif epsilon < inf:
                ratio = largest_ratio(rate=b / n, count=m, epsilon=epsilon, delta=self.delta)
                sigma = 2 * self.loss.lipschitz / (b * ratio)
            phase = MirrorPhase(
                self.loss,
                self.place(len(made)),
                users=n,
                batch=b,
                steps=m,
                sigma=sigma,
                eta=step,
                radius=2 * L * step * n * (p - 1),
            )
            made.append(phase)
        return tuple(made)


class Geometry(NamedTuple):
    """Index p of the points' norm, Lipschitz constant and diameter, for mirror descent."""

    p: float
    lipschitz: float
    diameter: float


def geometry_of(loss: Loss) -> Geometry:
    """Return the geometry for a loss, with the l_p norm of a regression's ball, else Euclidean."""
    domain = loss.domain
    if not isinstance(loss, Regression) or loss.domain.p >= 2:
        return Geometry(2.0, loss.lipschitz, domain.diameter)
    p, L = loss.domain.p, loss.dual_lipschitz
    if p == 1:
        p = 1 + min(1.0, 1 / log(max(domain.dim, 2)))
        L *= domain.dim ** (1 - 1 / p)
    return Geometry(p, L, 2 * loss.domain.radius)


class MirrorPhase(Sampled):
    """Phase of `LocalMD`, with iterates in the l_p ball of `radius` around its start."""

    # "g moves by at most 2 L / b where the user was drawn", however the step goes on from g
    needs = SUMMED | {Fact.LOSS}

    def __init__(self, loss: Loss, streams: Streams, *, radius: float, **numbers: Any) -> None:
        super().__init__(loss, streams, **numbers)
        self.radius, self._p = radius, geometry_of(loss).p

    def _step(self, w: Floats, g: Floats) -> Floats:
        domain, p = self._loss.domain, self._p
        q = p / (p - 1)
        dual = mirrored(domain.coordinates(w - self._start), p) / (p - 1)
        y = (p - 1) * mirrored(dual - self.eta * domain.coordinates(g), q)
        x = nearest(domain, self._start + domain.embedded(y), w).point
        away = x - self._start
        length = norms(domain.coordinates(away), p)
        return self._start + away * (self.radius / np.maximum(length, self.radius))


def mirrored(y: Floats, order: float) -> Floats:
    """Return the gradient of half the squared l_order norm at y, (R, k)."""
    if order == 2:
        return y
    length = norms(y, order)
    share = np.abs(y) / np.where(length > 0, length, 1.0)
    return length * np.sign(y) * share ** (order - 1)
