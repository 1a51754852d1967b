"""The authors' program for private generalised linear bandits, in two revisions.

`PrivateGLMAsCoded` comes first, then its two trees, and its DP-SGD: how it descends, for how long,
and with what noise by its own accountants. A gradient is clipped to c = 0.2 and the mean of a batch
gets noise of stddev sigma c / b. Rows are shuffled in every epoch and cut into batches of b =
min(2048, n), so a row is in one batch of an epoch and a replaced one moves its mean by 2 c / b:
`Descent.mu` is exact, without the amplification by sampling that both accountants count on.
"""

from collections.abc import Callable
from functools import cache, partial
from math import ceil, exp, expm1, inf, log, log2, sqrt
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, roots_hermitenorm

from dpbandit.agent import Arms, Inside01, Positive, Private
from dpbandit.agents.contextual.private_glm import (
    OneModel,
    Refits,
    floored,
    floored_inverse,
    outgrown,
    whitening,
)
from dpbandit.base import Floats, InputError, Ints, Streams, pick
from dpbandit.privacy import GaussianSpend, Mechanism, PrefixSum, Tree, ledger_of
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.moments import Grams
from dpbandit.privacy.prefix_sums import mu_after
from dpbandit.privacy.premises import NOTHING, SUMMED
from dpbandit.specs import ContextualSpec, Link

Revision: TypeAlias = Literal["second", "first"]
_BATCH = 2048
_MOST_NOISE = 4e7
"""Where the search for sigma gives up."""
_FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Of the usual number of epochs: which are tried."""
_CLIP, _RATE, _RIDGE = 0.2, 10.0, 2e-5
_NODES, _WEIGHTS = roots_hermitenorm(121)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class PrivateGLMAsCoded(Private[ContextualSpec], Arms):
    """Optimistic play on a generalised linear model fitted by DP-SGD, as its authors coded it.

    The program of Sarmasarkar, "Shuffle and joint differential privacy for generalized linear
    contextual bandits", arXiv 2602.00417 (2026), in its two revisions; the printed tables belong to
    the first. With l = ln(4 T / failure), spread = 1.5 ln(4/delta) l^2 zeta'(0) / epsilon and
    lam = 4/3 spread + 0.75 d l::

          1. V, H = lam I + sums of x x' from two trees, with (epsilon, delta) / 3 each
          2. warm-up: where an arm has |x|^2 in V^-1 above tau = 1 / (0.01 kappa S^2 d), play the
             arm with the largest;  V += x x' / (1 + |x|^2)
          3. else play argmax x . theta / 2 + beta |x|_{H'^-1}, beta = 4 sqrt(d ln(T / failure));
             H += zeta'(0) x x' / e
          4. once H has grown from H' by enough, H' = H and theta = DP-SGD of all rows so far, at
             most n_2 times, with (epsilon, delta) / (3 n_2) each

    What differs in the revisions::

        revision    enough                         n_2             tree            noise of DP-SGD
        first       the largest det H has doubled  log2(..)        `NeighbourTree` no theorem's
        second      an eigenvalue of H'^-1 H is    3 log2(..)      right           Renyi accountant
                    above 1.05 + 5 / (8 sqrt(d))

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, with the epsilon of the
        certificate: all data goes through two Gaussian mechanisms. A row is in V or in H, in
        bit_length(T) nodes that are released, so both cost sqrt(2 bit_length) / sigma together, in
        the first revision more (`NeighbourTree`). A call of DP-SGD costs 2 sqrt(epochs) / sigma, in
        the first revision as often more as its last batch of an epoch is shorter than the others.
        Certified are n_2 of the dearest calls.

    Differs from the program:
        1. kappa is 1 / zeta'(S) and kappa* 1 / zeta'(0), of the public bound S. The program takes
           the least and largest slope over all contexts at the true parameter, which the noise
           depends on: as run it has no finite epsilon.
        2. n, which sets batches and noise, is the number of all users so far; the program counts
           those who did not warm up. In the paper's experiments nobody warms up.
        3. theta_w, a fit to warm-up rows alone, therefore stays 0 and eliminates nothing.
        4. contexts and rewards are clipped.
        5. searches over epochs for noise that is larger than any here are left out.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True, link="probit")
    >>> round(certify(PrivateGLMAsCoded(epsilon=4.0, parameter_norm=2.0), spec).epsilon, 2)
    1.17
    """

    epsilon: float = 1.0
    """epsilon that the program claims, > 0; inf plays without noise"""
    delta: float = 0.02
    """delta, in (0, 1)"""
    revision: Revision = "second"
    """revision of the authors' program"""
    parameter_norm: Positive = 4.0
    """S, a bound on `|theta|`, for contexts of norm 1"""
    failure: Inside01 = 0.02
    """zeta of the paper, the probability with which bounds may fail"""
    calibration: ClassVar[str] = "paper"

    def start(self) -> None:
        """Build a tree and the descents; raises `InputError` unless arms share a parameter."""
        self.model = OneModel(self, self.spec)
        R, T, d, streams = self.R, self.spec.horizon, self.spec.dim, self.streams
        first, S = self.revision == "first", self.parameter_norm
        third = self.epsilon / 3, self.delta / 3
        slope = self.model.link.largest_slope
        nats = log(4 * T / self.failure)
        spread = 1.5 * log(4 / self.delta) * nats**2 * slope / self.epsilon
        self.lam = 4 / 3 * spread + 0.75 * d * nats
        self.tau = float(self.model.link.slope(np.array(S))) / (0.01 * d) / S / S
        self.beta = 4 * sqrt(d * log(T / self.failure))
        low, high = self.lam - spread, self.lam + spread
        n_2 = max(1, int((1 if first else 3) * log2(high / low + T * slope**2 / (low * d))))
        self.statistic = RoutedGrams(dim=d, slope=slope)
        noise: dict[str, Any] = {"horizon": T, "noise_multiplier": printed_multiplier(T, *third)}
        self.sums: NeighbourTree | PrefixSum
        if first:
            self.sums = NeighbourTree(self.statistic, streams, **noise)
        else:
            self.sums = noisy_prefix_sum(Tree(), self.statistic, streams, refresh_every=1, **noise)
        epsilon, delta = of_each_call(*third, n_2)
        self.descents = DescentRefits(
            self.model.link,
            streams,
            partial(descent, self.revision, dim=d, epsilon=epsilon, delta=delta),
            mu=sqrt(n_2) * dearest(self.revision, T, d, epsilon, delta),
            longest=longest(self.revision, T, epsilon),
            dim=d,
            uses=T,
            most=n_2,
        )
        self.ledger = ledger_of(self.epsilon, self.sums.spend, self.descents.spend)
        self.left = np.full(R, n_2)
        self.theta: Floats = np.zeros((R, d))
        self.H_last = np.tile(self.lam * np.eye(d), (R, 1, 1))
        self.V_inverse = self.H_inverse = np.linalg.inv(self.H_last)
        self.root = whitening(self.H_last)
        self.largest = self.largest_last = np.linalg.slogdet(self.H_last)[1]

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        x = self.model.rows(context)
        length, optimism = _squares(x, self.V_inverse), self.predictors(x)
        chosen = np.where(self.warm(length)[:, None], length, optimism)
        return chosen.argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        """Upper confidence bounds of the mean rewards, (R, K)."""
        return self.model.reward(self.predictors(self.model.rows(context)))

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed both mechanisms; the second one fits where H has grown."""
        x = self.model.rows(context)
        length = _squares(x, self.V_inverse)
        warm, played = self.warm(length), pick(x, action)
        slope = self.model.link.largest_slope
        weight = np.where(warm, 1 / (1 + length.max(axis=1)), slope / exp(1))
        release = self.sums(played * np.sqrt(weight)[:, None], warm)
        due = np.zeros(len(x), bool)
        if release is not None:  # else it could not influence an action
            self.V_inverse, H = self.matrices(release)
            due = self.grown(H) & (self.left > 0)
            self.H_last = np.where(due[:, None, None], H, self.H_last)
            if due.any():
                self.H_inverse, self.root = np.linalg.inv(self.H_last), whitening(self.H_last)
                self.largest_last = np.maximum(self.largest_last, np.linalg.slogdet(self.H_last)[1])
        fitted = self.descents(played, self.model.share(feedback), due, self.theta)
        if fitted is not None:
            self.theta, self.left = fitted, self.left - due

    def predictors(self, x: Floats) -> Floats:
        """Step 3's index of every row, (R, K)."""
        return np.matvec(x, self.theta) / 2 + self.beta * np.sqrt(_squares(x, self.H_inverse))

    def warm(self, length: Floats) -> npt.NDArray[np.bool_]:
        """Who warms up, by the squared lengths of her rows, (R,)."""
        return np.asarray(length.max(axis=1) > self.tau)

    def matrices(self, release: Floats) -> tuple[Floats, Floats]:
        """V^-1 and H with the shift lam, no eigenvalue of either below 1e-12."""
        shift = self.lam * np.eye(self.spec.dim)
        V, H = (released + shift for released in self.statistic.unpack(release))
        return floored_inverse(V, 1e-12), floored(H, 1e-12)

    def grown(self, H: Floats) -> npt.NDArray[np.bool_]:
        """Who is due for a fit."""
        if self.revision == "first":
            self.largest = np.maximum(self.largest, np.linalg.slogdet(H)[1])
            return self.largest >= self.largest_last + log(2)
        return outgrown(H, self.root, 1.05 + 5 / (8 * sqrt(self.spec.dim)))


def of_each_call(epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    """By basic composition of up to ten calls, by advanced composition of more.

    >>> of_each_call(1.0, 0.01, 4)
    (0.25, 0.0025)
    """
    from scipy.optimize import brentq  # not before: slow to import

    if calls <= 10 or epsilon == inf:
        return epsilon / calls, delta / calls
    root = sqrt(2 * calls * log(2 / delta))
    each = brentq(lambda e: root * e + calls * e * expm1(e) - epsilon, 0.0, min(epsilon, 50.0))
    return float(each), delta / (2 * calls)


def _squares(x: Floats, inverse: Floats) -> Floats:
    """`|x|^2` in the inverse of a matrix, (R, K)."""
    return np.maximum(np.vecdot(x @ inverse, x), 0.0)


class RoutedGrams:
    """Sums of x x' of the rows that warm up, V, and of the others, H: two rows of `Grams`.

    A row is clipped to `|x| <= 1` where it goes to V, to `|x|^2` <= `slope` / e where it goes to H;
    the units of H are `slope` times those of V.

    Sensitivity. Replacing a row moves V by at most sqrt(2) or H by sqrt(2) / e of its units, or
    both, by 1 and 1 / e: sqrt(2) at most.
    """

    # "Replacing a row moves V by at most sqrt(2)"
    needs = NOTHING

    sensitivity = sqrt(2)

    def __init__(self, *, dim: int, slope: float) -> None:
        self._grams = V, _ = Grams(dim=dim), Grams(dim=dim, bound=sqrt(slope / np.e))
        self.shape = (2, *V.shape)
        self.units: Floats = np.array([V.units, slope * V.units])

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """Rows (n, R, dim), and which of them warm up, (n, R) -> `(R, *shape)`."""
        x, warm = batch
        routed = (warm[..., None] > 0, warm[..., None] <= 0)
        parts = zip(self._grams, routed, strict=True)
        return np.stack([gram.total(np.where(there, x, 0.0)) for gram, there in parts], axis=1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """`(R, *shape)` -> V and H, (R, dim, dim) each."""
        V, H = self._grams
        return V.unpack(vectors[:, 0]), H.unpack(vectors[:, 1])


def printed_multiplier(horizon: int, epsilon: float, delta: float) -> float:
    """Noise of a node over sqrt(2), by zCDP: rho = (sqrt(epsilon + l) - sqrt(l))^2, l = ln 1/delta.

    The program divides rho by the number of levels and takes the sensitivity for 1.
    """
    if epsilon == inf:
        return 0.0
    nats, levels = log(1 / delta), ceil(log2(horizon)) + 1
    rho = (epsilon / (sqrt(epsilon + nats) + sqrt(nats))) ** 2
    return sqrt(levels / (2 * rho)) / sqrt(2)


class NeighbourTree(Mechanism):
    """The tree of the first revision, which adds up other nodes than a prefix has.

    Leaves 1.. lie at 2^L, 2^L + 1, ... of a heap. After round t the program walks from leaf t to
    the root and adds, wherever it stands on an even node, the node on its left: a neighbour, and no
    sibling, which in the leftmost branch is the last node of the level above.

    Guarantee:
        mu-GDP, mu = sqrt(max(L + 1, 2 L - 1)) / noise_multiplier. A user moves her leaf and the odd
        nodes above it, each of which has one noise and is complete when it is released: at most L
        of them. But the root is added throughout the first half, with one noise and all users so
        far: hers are in it from round t on. Move its noise, and back before t: the rounds before t
        are the left siblings of the odd nodes above her leaf, and each has one noise that only it
        adds, its left neighbour's (a leaf has its own). So in the first half she is at most as far
        as a move of the root's noise, two of leaves and two of each of L - 2 levels between. (What
        is released is no prefix sum, which is no matter of privacy.)
    """

    # "A user moves her leaf and the odd nodes above it"
    needs = SUMMED

    def __init__(
        self, statistic: RoutedGrams, streams: Streams, *, horizon: int, noise_multiplier: float
    ) -> None:
        self.sensitivity, self.uses = statistic.sensitivity, horizon
        self._statistic, self._leaves = statistic, 2 ** ceil(log2(horizon))
        levels = self._leaves.bit_length()
        mu = mu_after(sqrt(max(levels, 2 * levels - 3)), noise_multiplier)
        self.spend = GaussianSpend(mu, f"wrong tree, {horizon} Gaussian releases")
        self._stddev = noise_multiplier * self.sensitivity
        self._normals = streams.normals("node noise", *statistic.shape)
        zeros = np.zeros((len(streams), *statistic.shape))
        self._nothing = zeros
        self._sums: dict[int, Floats] = {}
        self._noises: dict[int, Floats] = {}

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped statistic of one round in its units, `(R, *shape)`."""
        return self._statistic.total(*(array[None] for array in datum)) / self._statistic.units

    def _release(self, *datum: npt.NDArray[Any]) -> Floats:
        exact = self._statistic.total(*(np.asarray(a, np.float64)[None] for a in datum))
        leaf = self._leaves + self._used - 1
        path = [leaf >> level for level in range(leaf.bit_length())]
        for node in path:
            self._sums[node] = self._sums.get(node, self._nothing) + exact
        return sum((self._noisy(n - 1) for n in path if n % 2 == 0), self._noisy(leaf))

    def _noisy(self, node: int) -> Floats:
        if node not in self._noises:
            self._noises[node] = self._stddev * self._normals() * self._statistic.units
        return self._sums.get(node, self._nothing) + self._noises[node]


class Descent(NamedTuple):
    """A call of DP-SGD on n rows."""

    epochs: int
    burn_in: int
    """the ends of later epochs are averaged"""
    batch: int
    steps: int
    """batches of an epoch"""
    smallest: int
    """rows of its smallest batch"""
    sigma: float

    @property
    def mu(self) -> float:
        """Of all steps for replacing a row, which may be in the smallest batch each time."""
        if self.sigma == 0:
            return inf
        return 2 * sqrt(self.epochs) * self.batch / self.smallest / self.sigma


class DescentRefits(Refits):
    """A fit is a call of DP-SGD from theta / 2, of the size that `calls` has for n rows::

        g      the mean of a batch's gradients, each clipped to 0.2, + N(0, (0.2 sigma / b)^2 I)
        theta  <- theta - 10 / sqrt(step) (g + 2e-5 theta)

    over all batches of shuffled rows, in every epoch. The mean of theta at the ends of the epochs
    after the first `burn_in` comes out.

    Guarantee:
        mu-GDP for the `mu` of the spend, sqrt(most) times that of the dearest call: in an epoch a
        row is in one batch, whose mean it moves by at most 0.4 over its length (`Descent.mu`).
    """

    # "in an epoch a row is in one batch"
    needs = SUMMED

    def __init__(
        self,
        link: Link,
        streams: Streams,
        calls: Callable[[int], Descent],
        *,
        mu: float,
        longest: int,
        dim: int,
        uses: int,
        most: int,
    ) -> None:
        spend = GaussianSpend(mu, f"{most} calls of DP-SGD")
        super().__init__(link, spend, shape=(len(streams), uses, dim), most=most, clip=_CLIP)
        self._calls = calls
        self._noise = np.array(streams.normals("descent noise", most, longest, dim).take(1)[0])
        self._orders = np.array(streams.uniforms("orders of rows", most).take(1)[0])

    def _fit(self, i: int, x: Floats, y: Floats, theta: Floats, *public: Floats) -> Floats:
        n, fit = len(x), int(self._fits[i])
        call = self._calls(n)
        luck = np.random.default_rng(int(self._orders[i, fit] * 2**53))
        noise = iter(_CLIP * call.sigma / call.batch * self._noise[i, fit])
        theta, ends, order = theta / 2, [], np.arange(n)
        step = 0
        for _ in range(call.epochs):
            if call.batch < n:
                luck.shuffle(order)
            for first in range(0, call.steps * call.batch, call.batch):
                step += 1
                rows = order[first : first + call.batch]
                mean = self._gradients(x[rows], y[rows], theta).mean(axis=0)
                theta = theta - _RATE / step**0.5 * (mean + next(noise) + _RIDGE * theta)
            ends.append(theta)
        return np.mean(ends[call.burn_in :], axis=0)


@cache
def descent(revision: Revision, n: int, dim: int, epsilon: float, delta: float) -> Descent:
    """The call of a revision on `n` rows that is to be (epsilon, delta)-DP."""
    b = min(_BATCH, n)
    if revision == "first":
        steps, smallest = ceil(n / b), n % b or b
        sigma = _first_sigma(50 * steps, b / n, epsilon, delta)
        return Descent(50, 10, b, steps, smallest, sigma)
    usual = _usual_epochs(epsilon)

    def merit(call: Descent) -> tuple[float, int]:
        """Steps over noise^2; at b = n all tie, and the program's rounding errors decide."""
        quality = call.epochs / call.sigma**2 if call.sigma else 1.0
        return round(log(quality), 6), -abs(call.epochs - usual)

    return max(_candidates(n, dim, epsilon, delta), key=merit)


@cache
def dearest(revision: Revision, rows: int, dim: int, epsilon: float, delta: float) -> float:
    """The largest mu of a call on 1 to `rows` rows.

    In the second revision steps of an epoch are as many for all n between multiples of 2048, and
    the noise falls with b / n: the largest of them is the dearest. In the first the last batch of
    an epoch may be a single row.
    """
    if revision == "first":
        ends = range(1, rows + 1, _BATCH)
        worst = [
            descent(revision, n, dim, epsilon, delta) for n in {*ends, rows, min(rows, _BATCH)}
        ]
        return max(call.mu for call in worst)
    ends = range(2 * _BATCH - 1, rows, _BATCH)
    return max(
        call.mu
        for n in {min(rows, _BATCH), *ends, rows}
        for call in _candidates(n, dim, epsilon, delta)
    )


def longest(revision: Revision, rows: int, epsilon: float) -> int:
    """The most steps that a call on at most `rows` rows makes."""
    if revision == "first":
        return 50 * ceil(rows / _BATCH)
    return round(_FACTORS[-1] * _usual_epochs(epsilon)) * max(1, rows // _BATCH)


def _candidates(n: int, dim: int, epsilon: float, delta: float) -> list[Descent]:
    b = min(_BATCH, n)
    steps = n // b
    usual, least = _usual_epochs(epsilon), max(5, ceil(log(dim + 1)))
    found = []
    for epochs in sorted({max(least, round(usual * factor)) for factor in _FACTORS}):
        burn_in = max(1, round(10 * epochs / usual))
        sigma = _second_sigma(epochs * steps, b / n, epsilon, delta)
        found.append(Descent(epochs, burn_in, b, steps, b, sigma))
    return found


def _usual_epochs(epsilon: float) -> int:
    bounds = ((0.1, 15), (0.3, 25), (1.0, 50), (2.0, 75), (inf, 100))
    return next(epochs for bound, epochs in bounds if epsilon <= bound)


def _first_sigma(steps: int, rate: float, epsilon: float, delta: float) -> float:
    """Of Renyi divergences steps order rate^2 / (2 sigma^2), which no theorem gives."""
    orders = np.arange(2.0, 64.0)
    if epsilon < 0.3:
        orders = np.concatenate([np.arange(2.0, 64.0, 4.0), np.arange(70.0, 512.0, 6.0)])
    if epsilon == inf:
        return 0.0
    room = epsilon + log(delta) / (orders - 1)  # what an order leaves for the divergence
    if not (room > 0).any():
        raise _too_small(epsilon, delta)
    sigmas = np.sqrt(steps * orders[room > 0] * rate**2 / (2 * room[room > 0]))
    return float(sigmas.min())


def _second_sigma(steps: int, rate: float, epsilon: float, delta: float) -> float:
    """The least by the Renyi accountant for samples without replacement, replacing one row."""
    from scipy.optimize import brentq  # not before: slow to import

    def excess(sigma: float) -> float:
        return _renyi_epsilon(sigma, steps, rate, epsilon, delta) - epsilon

    if epsilon == inf:
        return 0.0
    least = most = rate * sqrt(steps) / (3 + epsilon)
    while excess(most) > 0:
        most *= 4
        if most > _MOST_NOISE:
            raise _too_small(epsilon, delta)
    return float(brentq(excess, least, most, xtol=1e-6)) if most > least else least


def _too_small(epsilon: float, delta: float) -> InputError:
    return InputError(
        f"Expected a larger epsilon or delta than {epsilon:.3g} and {delta:.3g} for a call of "
        "DP-SGD: no noise reaches them by the program's accountant."
    )


def _renyi_epsilon(sigma: float, steps: int, rate: float, epsilon: float, delta: float) -> float:
    """Renyi divergences as epsilon at delta (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    if rate == 1:
        orders = _orders(512.0 if epsilon >= 0.3 else 1024.0)
        divergences = orders / (2 * sigma**2)
    else:
        orders = _orders(256.0)
        divergences = _sampled_divergences(orders, sigma, rate)
    total = steps * divergences
    found = total + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    by_kl = delta**2 + np.expm1(-total) > 0
    return max(0.0, float(np.where(by_kl, 0.0, found).min()))


def _orders(most: float) -> Floats:
    tail = np.array([64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0])
    return np.concatenate([[1.25, 1.5, 1.75], np.arange(2.0, 64.0), tail[tail <= most]])


def _sampled_divergences(orders: Floats, sigma: float, rate: float) -> Floats:
    """Of a Gaussian release of b = `rate` n rows drawn without replacement, n public.

    Wang, Balle and Kasiviswanathan, "Subsampled Renyi differential privacy and analytical moments
    accountant", AISTATS 2019, Theorem 27: for whole orders a, with B_j the even central moments of
    the likelihood ratio, here by quadrature, (a - 1) divergence is at most::

        log(1 + sum_j C(a, j) rate^j m_j),
        m_j = min(4 sqrt(B_2floor(j/2) B_2ceil(j/2)), 2 e^(j (j-1) / (2 sigma^2)))
    """
    whole = np.ceil(orders)[:, None]  # below 2 convexity leaves the divergence of order 2
    j = np.arange(2, int(whole.max()) + 1)
    with np.errstate(over="ignore", divide="ignore"):
        gap = np.log(np.abs(np.expm1(_NODES / sigma - 1 / (2 * sigma**2))))
        even = np.log(np.exp(2 * np.arange(1, j[-1] // 2 + 2)[:, None] * gap) @ _WEIGHTS)
    size = log(4) + (even[j // 2 - 1] + even[(j + 1) // 2 - 1]) / 2
    size[0] = log(4) + log(expm1(min(sigma**-2, 700.0)))
    size = np.minimum(size, log(2) + j * (j - 1) / (2 * sigma**2))
    left = np.maximum(whole - j, 0)
    choices = gammaln(whole + 1) - gammaln(j + 1) - gammaln(left + 1)
    terms = np.where(j <= whole, choices + j * log(rate) + size, -inf)
    logs: Floats = np.logaddexp(0.0, np.logaddexp.reduce(terms, axis=1))
    return logs / (whole[:, 0] - 1)
