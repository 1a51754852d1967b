"""Calibrate sparse-vector experts: number of draws, learning rate and noise.

All losses are oblivious. An expert x drawn prop. to w_x = exp(-eta max(S(x), L*) / 2), S(x) its
total loss, is followed for a segment, until its loss since the draw exceeds L* + c/eta. If the best
of d experts loses at most L*, phi = sum of w_x falls from d w to at least w, w = exp(-eta L* / 2).

**Theorem.** Let A_j be the fall of log phi during the j-th segment. Then (A_1, A_2, ..) dominates
independent A's with::

    P(A <= a) = min(1, (1 - e^-a) / (1 - e^(-c/2))),        an exponential, given A <= c/2,

so that P(K + 1 segments end) <= P(A_1 + .. + A_{K+1} <= log d). *Proof.* The segment of draw j, at
time t, ends before log phi has fallen by a with probability at most::

    sum of (w_x / phi_t) (1 - e^(-eta inc_x / 2)) / (1 - e^(-c/2)) <= (1 - e^-a) / (1 - e^(-c/2)),

inc_x the growth of max(S(x), L*) up to then, which is c/eta or more if the segment of x ends; the
sum is (1 - phi_later / phi_t) / (1 - e^(-c/2)). The threshold's noise is independent of the draws,
and oblivious losses are independent of both. All falls together are at most log d.

Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in the
realizable regime", ICML 2023, Lemma 3.1, is the coarse version: a fall below log 2 has probability
2/3 at c = 4, which gives K = 6 ceil(log2 d) + 24 ln(1/beta).
"""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, expm1, inf, log, log1p, log2, sqrt

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from dpbandit.base import Floats, InputError
from dpbandit.privacy import BoundedRangeSpend, Ledger, PureSpend
from dpbandit.privacy.curves import loose_rho
from dpbandit.privacy.sparse_vector import SegmentNoise

_GRID_CELLS = 2000
"""Number of grid cells on [0, log d], d experts; falls of the log potential are rounded down."""
_CONVOLUTION_ERROR = 1e-14
"""Bound on the rounding error of one convolution, added to each probability."""
_POWERS_AT_ONCE = 16
"""Number of convolution powers computed together; errors add up as if computed one by one."""
_MIN_GRID_PROBABILITY = 1e-12
"""Smallest probability computed on the grid; below, the closed form `chernoff` is used."""
_RATE_MARGIN = 1 - 1e-12
"""Factor of the rate of draws, below 1 so that rounded sums stay within the privacy budget."""
_C_GRID = tuple(np.arange(1.0, 8.5, 0.5).tolist())  # tried c; segments end at L* + c/eta
_TEST_SHARES = tuple(np.linspace(0.1, 0.9, 33).tolist())  # tried shares of epsilon for tests


@cache
def completions(n_experts: int, c: float) -> Floats:
    """Return bounds on the probability that k segments end, for k = 0, 1, ..; end below 1e-12.

    They are P(A_1 + .. + A_k <= log d) of the module's theorem, with A rounded down to a grid.

    >>> completions(1, 4.0).tolist()
    [1.0]
    """
    if n_experts == 1:  # log d = 0
        return np.ones(1)
    step = log(n_experts) / _GRID_CELLS
    below = np.minimum(1.0, -np.expm1(-step * np.arange(_GRID_CELLS + 2)) / -expm1(-c / 2))
    mass = np.diff(below)  # of [j step, (j + 1) step), put at j
    size = next_fast_len(2 * len(mass))

    def convolved(one: Floats, transforms: Floats) -> Floats:
        return irfft(rfft(one, size) * transforms, size)[..., : _GRID_CELLS + 1].clip(0)

    powers = [mass]
    while len(powers) < _POWERS_AT_ONCE:
        powers.append(convolved(powers[-1], rfft(mass, size)))
    transforms, some, found = rfft(powers, size), np.array(powers), [1.0]
    while True:
        for total in some.sum(axis=1).tolist():
            found.append(min(1.0, total + _CONVOLUTION_ERROR * len(found)))
            if found[-1] <= _MIN_GRID_PROBABILITY + _CONVOLUTION_ERROR * len(found):
                return np.array(found)
        some = convolved(some[-1], transforms)


def chernoff(n_experts: int, c: float, draws: int) -> float:
    """Return Chernoff's bound on the probability that K + 1 segments end, K = `draws`.

    It is min over s of d^s (E e^(-s A))^(K+1), d experts, A a segment's fall of log phi, with
    E e^(-s A) = (1 - e^(-(1+s) c/2)) / ((1 + s) (1 - e^(-c/2)))
    """
    from scipy.optimize import minimize_scalar  # not before: slow to import

    def exponent(s: float) -> float:
        moment = log(-expm1(-(1 + s) * c / 2)) - log1p(s) - log(-expm1(-c / 2))
        return s * log(n_experts) + (draws + 1) * moment

    return exp(min(0.0, float(minimize_scalar(exponent, bounds=(0.0, 1e3), method="bounded").fun)))


@cache
def draws_needed(n_experts: int, c: float, failure: float) -> int:
    """Return the smallest number of draws that is not exceeded with probability 1 - `failure`.

    >>> [draws_needed(256, c, 0.5e-4) for c in (2.0, 4.0)]
    [25, 19]
    """
    if n_experts == 1:
        return 0
    enough = np.flatnonzero(completions(n_experts, c) <= failure)
    if len(enough):
        return int(enough[0]) - 1
    K = len(completions(n_experts, c)) - 1
    while chernoff(n_experts, c, K) > failure:
        K += 1
    return K


def expected_segments(n_experts: int, c: float) -> float:
    """Return a bound on the mean number of segments, the sum of all `completions`.

    >>> round(expected_segments(256, 4.0), 2)
    8.88
    """
    return float(completions(n_experts, c).sum())


@dataclass(frozen=True)
class SparseVectorPlan:
    """Public parameters of one run of `SparseVectorExperts`."""

    draws: int
    """number K of draws by the exponential mechanism; the first, uniform draw is not counted"""
    eta: float
    """bounded range of one draw, which is its privacy cost"""
    margin: float
    """threshold minus the public bound L* on the best expert's total loss"""
    threshold_epsilon: float
    """1 / scale of the threshold's noise, which is drawn once for each segment"""
    test_epsilon: float
    """1 / scale of a test's noise; all tests cost the larger of this and `threshold_epsilon`"""
    noise: SegmentNoise = "exponential"
    segments: float = inf
    """bound on the mean number of segments"""
    bound: float = inf
    """bound on the mean total loss, if the best expert loses at most the public bound L*"""
    c: float = inf
    """constant c of the theorem; with high probability an ended segment lost at least L* + c/eta"""

    @property
    def ledger(self) -> Ledger:
        """Ledger of all tests and draws."""
        tests = PureSpend.of("tests", [max(self.threshold_epsilon, self.test_epsilon)])
        return Ledger((tests, BoundedRangeSpend.alike("draws", self.eta, self.draws)))


def paper_plan(
    n_experts: int,
    horizon: int,
    *,
    epsilon: float,
    delta: float,
    failure: float,
    fixed: bool = False,
) -> SparseVectorPlan:
    """Return the parameters of the paper's Theorem 1, with log to base 2 in the number of draws.

    `fixed` doubles the margin's term for noise, as Theorem 1 needs: tests have eps/2 and beta/T.
    Raises `InputError` for delta > 0 unless epsilon <= 4 ln(1/delta).

    >>> plan = paper_plan(256, 10_000, epsilon=1.0, delta=0.0, failure=1e-4)
    >>> plan.draws, round(plan.eta, 6), round(plan.margin)
    (270, 0.001858, 2379)
    """
    if delta > 0 and epsilon > 4 * log(1 / delta):
        raise InputError(
            f"Expected epsilon={epsilon} <= 4 ln(1/delta), as the printed proof needs."
        )
    K = 6 * ceil(log2(n_experts)) + 24 * log(1 / failure)
    eta = epsilon / (sqrt(32 * K * log(1 / delta)) if delta > 0 else 2 * K) * _RATE_MARGIN
    accuracy = (16 if fixed else 8) * log(2 * horizon**2 / failure) / epsilon
    return SparseVectorPlan(ceil(K), eta, 4 / eta + accuracy, epsilon / 4, epsilon / 8, "laplace")


@cache
def certified_plan(
    n_experts: int,
    horizon: int,
    *,
    epsilon: float,
    delta: float,
    failure: float,
    best_loss: float = 0.0,
    cs: tuple[float, ...] = _C_GRID,
) -> SparseVectorPlan:
    """Return parameters of least bound on the mean loss, over c and the tests' share f of eps::

        eps1 = f eps,   eps2 = (1-f) eps,   K = `draws_needed`(d, c, beta/2), beta = `failure`
        eta  = eps2/K, or sqrt(8 rho / K) if larger, rho-zCDP implying (eps2, delta)-DP (BS)
        E loss <= (expected segments) (L* + c/eta + ln(T/beta)/eps1 + 1/eps1 + 1) + beta T

    Guarantee:
        Tests are eps1-DP (Lemma A, see `SegmentAboveThreshold`), draws eps2-DP or (eps2, delta)-DP.
        A test fires too early, at a loss below L* + c/eta, with probability beta/2 at most: P(some
        test noise >= a + rho) <= T e^(-a eps1) / 2. Otherwise the theorem holds, and each segment
        loses on average at most its threshold + the mean of its noise + 1.

    >>> plan = certified_plan(256, 10_000, epsilon=1.0, delta=0.0, failure=1e-4)
    >>> plan.draws, round(plan.eta, 6), round(plan.margin, 1), round(plan.bound)
    (19, 0.035526, 169.3, 1541)
    """
    plans = []
    for c in cs:
        K = draws_needed(n_experts, c, failure / 2)
        segments = expected_segments(n_experts, c)
        for f in _TEST_SHARES:
            eps1, eps2 = f * epsilon, (1 - f) * epsilon
            eta = max(eps2 / K, sqrt(8 * loose_rho(eps2, delta) / K)) * _RATE_MARGIN if K else inf
            margin = c / eta + log(horizon / failure) / eps1
            bound = segments * (best_loss + margin + 1 / eps1 + 1) + failure * horizon
            plans.append(
                SparseVectorPlan(K, eta, margin, eps1, eps1, "exponential", segments, bound, c)
            )
    return min(plans, key=lambda plan: plan.bound)


@cache
def tightened_plan(plan: SparseVectorPlan, *, epsilon: float, delta: float) -> SparseVectorPlan:
    """Return `plan` with the largest eta for which tests and draws together meet the target.

    With delta > 0 eta is a third larger than by the closed form, and the margin is smaller.
    """
    if delta == 0 or plan.draws == 0:
        return plan

    def fits(eta: float) -> bool:
        return replace(plan, eta=eta).ledger.delta(epsilon) <= delta

    low, high = plan.eta, 4 * plan.eta
    while not fits(low):  # a curve on a grid may be above the closed form
        low, high = 0.9 * low, low
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    saved = plan.c / plan.eta - plan.c / low
    bound = plan.bound - plan.segments * saved
    return replace(plan, eta=low, margin=plan.margin - saved, bound=bound)


def best_plan(
    n_experts: int,
    horizon: int,
    *,
    epsilon: float,
    delta: float,
    failure: float,
    best_loss: float = 0.0,
) -> SparseVectorPlan:
    """Return the certified plan, tightened; at epsilon = inf a plan without noise or margin."""
    if epsilon == inf:
        return SparseVectorPlan(horizon, inf, 0.0, inf, inf)
    target = {"epsilon": float(epsilon), "delta": delta}
    plan = certified_plan(n_experts, horizon, failure=failure, best_loss=best_loss, **target)
    return tightened_plan(plan, **target)
