"""Private Frank-Wolfe steps: the best vertex of the l_1 ball by a noisy minimum, for many arms.

`certified_budgets` computes epsilons of noisy minima, one for each step, that together just meet a
privacy target.
"""

from functools import cache
from math import inf, log, sqrt
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    gaussian_target,
    one_of,
    privacy_target,
    whole,
)
from dpbandit.privacy import curves
from dpbandit.privacy.gradients import RecursiveGradients, recursive_points
from dpbandit.privacy.ledger import Ledger, most
from dpbandit.privacy.mechanism import BudgetExceededError, Mechanism
from dpbandit.privacy.noise import Gumbel, Laplace, Law
from dpbandit.privacy.premises import SUMMED
from dpbandit.privacy.pure import BoundedRangeSpend, PureSpend

SelectionNoise: TypeAlias = Literal["gumbel", "laplace"]
SELECTION_LAWS: dict[str, tuple[Law, type[PureSpend]]] = {
    "laplace": (Laplace(1.0), PureSpend),
    "gumbel": (Gumbel(1.0), BoundedRangeSpend),
}
"""Noise law at scale 1, and spend class that prices one noisy minimum, by the name of the noise"""


class VertexGradients(Protocol):
    """Protocol of clipped gradients of a round (theta, previous, steps, ...), for `NoisyVertex`.

    Either `RecursiveGradients` of G arms, with `steps` (G,), or `RecursiveLossGradients`, whose
    arrays have no axis of arms and whose `steps` is one number.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a gradient in d dimensions, (d,), or (G, d) with a row for each of G arms."""
        ...

    @property
    def order(self) -> float:
        """Order of the norm of `sensitivity`; must be inf."""
        ...

    @property
    def sensitivity(self) -> float:
        """Largest change of a coordinate of the sum if one user is replaced."""
        ...

    def gradient(self, *datum: AnyArray) -> Floats:
        """Return the gradients `(R, *shape)` of one round, 0 for arms that take no step."""
        ...

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round with the user's data clipped to their bounds."""
        ...


class NoisyVertex(Mechanism):
    """Mechanism that sums gradients of G arms and releases vertices of the l_1 ball, (R, G).

    In a round some arms take a step. In the i-th step of arm a, with the sum G_a of its gradients::

        1. scores q_v = <w, v>, w = G_a / (i+1), of the 2d vertices v = +-rho e_j in R^d
        2. release argmin of q_v + noise of scale b_i = D S / ((i+1) epsilon_i),  D = 2 rho

    computed as +-G_aj + noise of scale 2 S / epsilon_i, S = `sensitivity`, the same choice at any
    radius rho: without noise (epsilon_i = inf) it is the argmin exactly, ties to the lowest index.
    Vertex j < d is +rho e_j, d + j is -rho e_j; arms without a step get -1. Laplace noise makes it
    report noisy min, Gumbel noise the exponential mechanism. A replica has one noise per round.

    With contexts <= M and residual clip k, S = 2 M k. If `adaptive`, k is replaced by the largest
    k_i = min(k, M `|u_i|_1` + B) of the arm's steps so far, for rewards <= B and points u_i known
    from releases; the user of step i has her residual clipped to +-k_i (identity link only).

    Guarantee:
        If user s is replaced, everything released is as private as n mechanisms of budgets
        epsilon_1..epsilon_n, the budgets of ONE arm, without a factor for the number of arms:
        `spend`. Proof, for the view of all vertices, with all other users given (they may react to
        the view): (a) Adding one number to all scores changes no argmin, so only the range of the
        change of scores counts: at most D `|change of w|_inf = D |change of G_a|_inf / (i+1)`. A
        range r against noise of scale b is (r/b)-DP for Laplace (given the other noises, the
        winner's threshold moves by at most r), and has bounded range r/b for Gumbel (log-weights
        move by that, the normaliser by a constant). (b) Given the view, only row s differs between
        the two neighbours: in arm a_s by g_s, in arm a'_s by g'_s. Later gradients depend on the
        view alone. If a_s = a'_s, one arm's sum moves by at most S in every later step, which costs
        epsilon_i in its i-th step, so the list of budgets is paid once. (c) If a_s != a'_s, two
        sums move by at most S/2 each, because a row in place of 0 is half a replacement, and the
        noises of the arms are independent. Laplace: two lists of epsilon_i / 2, and a pair of them
        is epsilon_i-DP. Gumbel: 2 (epsilon_i/2)^2 / 8 <= epsilon_i^2 / 8 of zCDP, and a pair of
        bounded ranges epsilon_i/2 has bounded range epsilon_i. Both cost no more than (b). (d)
        `adaptive` changes nothing: given the view, k_i and b_i are numbers, and S at step i covers
        every step up to it. The same holds for arms whose counters differ.

    Args:
        gradients: clipped gradients, in max-norm, summed per arm.
        streams: the random streams of the replicas.
        name: name of the random stream of the noise.
        noise: laplace or gumbel.
        budgets: epsilon_1..epsilon_n of one arm; inf adds no noise in that step.
        horizon: number of rounds.
        adaptive: True for noise by the largest k_i; needs `RecursiveGradients`.

    Raises `BudgetExceededError` for more than n steps of an arm, `InputError` for steps out of
    order.
    """

    # "Given the view, only row s differs between the two neighbours"
    needs = SUMMED
    controls = (0, 1, 2)

    order = inf
    """order of the norm of `sensitivity`, which bounds one coordinate of one arm's sum"""

    def __init__(
        self,
        gradients: VertexGradients,
        streams: Streams,
        name: str,
        *,
        noise: SelectionNoise,
        budgets: Floats,
        horizon: int,
        adaptive: bool = False,
    ) -> None:
        one_of("noise", noise, SELECTION_LAWS)
        whole("horizon", horizon, 1)
        if gradients.order != inf:
            raise InputError("Expected gradients clipped in max-norm: gradient_clip=None.")
        (*arms, d), n = gradients.shape, len(budgets)
        law, spend = SELECTION_LAWS[noise]
        self.spend = spend.of(f"{name}: {n} {noise} minima of {2 * d} vertices an arm", budgets)
        self.sensitivity, self.uses = gradients.sensitivity, horizon
        self._gradients, self._budgets = gradients, budgets
        self._by_arm: RecursiveGradients | None = None
        if adaptive:
            if not isinstance(gradients, RecursiveGradients):
                raise InputError("Expected adaptive=True only with the gradients of arms.")
            self._by_arm = gradients
        self._noise = law.sampler(streams, name, (*arms, 2 * d))
        self._exact: Floats = np.zeros((len(streams), *arms, d))  # never leaves here
        self._taken = np.zeros(arms, dtype=np.int64)  # steps of each arm, public
        self._largest: Floats = np.zeros((len(streams), *arms))  # k_i so far

    def query(self, *datum: AnyArray) -> Floats:
        # the clipped gradients of this round, (R, G, d)
        if self._by_arm is None:
            return self._gradients.gradient(*datum)
        return self._by_arm.gradient(*datum, clips=self._clips(self._by_arm, *datum[:3]))

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round with the user's data clipped, for `dpbandit.testing`."""
        return self._gradients.admissible(*datum)

    def _release(self, *datum: AnyArray) -> Any:
        steps = datum[2]
        self._count(steps)
        self._exact += self.query(*datum)
        if self._by_arm is not None:
            clips = self._clips(self._by_arm, *datum[:3])
            self._largest = np.maximum(self._largest, np.where(steps > 0, clips, 0.0))
        scores = vertex_scores(self._exact)
        scores -= self._scales()[..., None] * self._noise()
        return np.where(steps > 0, scores.argmin(axis=-1), -1)

    def _count(self, steps: AnyArray) -> None:
        taken = np.asarray(self._taken + (steps > 0))
        if not np.array_equal(taken[steps > 0], steps[steps > 0]):
            raise InputError(f"Expected steps={steps} to be the next ones, {taken}, or 0.")
        if taken.max() > len(self._budgets):
            raise BudgetExceededError(f"{self.spend.note}: an arm takes step {taken.max()}.")
        self._taken = taken

    @staticmethod
    def _clips(
        gradients: RecursiveGradients, theta: Floats, previous: Floats, steps: AnyArray
    ) -> Floats:
        """Return the residual clip of every arm in its step, (R, arms)."""
        M, B = gradients.context_bound, gradients.reward_bound
        size = np.abs(recursive_points(theta, previous, steps)).sum(axis=-1)
        return np.minimum(gradients.residual_clip, M * size + B)

    def _scales(self) -> Floats:
        """Return the arms' noise scales, 2 sensitivity / epsilon of their step."""
        budgets = self._budgets[np.maximum(self._taken, 1) - 1]
        if self._by_arm is None:
            return np.asarray(2 * self.sensitivity / budgets)
        return 4 * self._by_arm.context_bound * self._largest / budgets


def vertex_scores(sums: Floats) -> Floats:
    """Return scores <sum, v> (..., 2d) of sums (..., d) at vertices v = e_1..e_d, -e_1..-e_d."""
    return np.concatenate([sums, -sums], axis=-1)


def best_vertices(sums: Floats) -> Ints:
    """Return the index of the vertex of least score, (R, arms), of sums (R, arms, d)."""
    return vertex_scores(sums).argmin(axis=-1)


Profile: TypeAlias = Literal["inverse-sqrt", "uniform"]
_TARGET_PRECISION = 0.996
"""Share of the target epsilon at which the search for budgets ends; each try takes a second"""
_MAX_RISE = 1e3
"""Largest factor tried on budgets that meet the target by the sum of epsilons or zCDP"""


def paper_budgets(n: int, *, epsilon: float, delta: float) -> Floats:
    """Return the epsilons of the paper's noise of private online Frank-Wolfe, one for each step.

    Han et al. (see `DPHDBChoices`) use, for smoothness beta, diameter D, Lipschitz constant L::

        b_t = 4 D (beta D + L) sqrt(ln n ln(1/delta)) / (epsilon sqrt t).

    With S = 2 (beta D + L) a noisy minimum of scale b_t is epsilon_t-DP::

        epsilon_t = D S / ((t+1) b_t) = epsilon sqrt t / (2 (t+1) sqrt(ln n ln(1/delta))).

    Raises `InputError` for n = 1, where ln 1 = 0 means no noise at all.
    """
    whole("n", n, 1)
    gaussian_target(epsilon, delta)
    if epsilon == inf:
        return np.full(n, inf)
    if n == 1:
        raise InputError("Expected n=1 to be at least 2 steps: ln 1 = 0 prints no noise at all.")
    t = np.arange(1, n + 1)
    return epsilon * np.sqrt(t) / (2 * (t + 1) * sqrt(log(n) * log(1 / delta)))


@cache
def certified_budgets(
    n: int, *, noise: SelectionNoise, profile: Profile, epsilon: float, delta: float
) -> Floats:
    """Return epsilon_t = c / sqrt t (inverse-sqrt) or c (uniform), for about the largest valid c.

    The certificate, the lesser of the exact loss distribution and zCDP, comes out between 0.99 and
    1 of epsilon; the search for c starts where the plain sum or zCDP meets the target. With
    delta = 0 the plain sum is epsilon.

    >>> budgets = certified_budgets(
    ...     100, noise="gumbel", profile="uniform", epsilon=1.0, delta=0.0)
    >>> round(float(budgets.sum()), 9)
    1.0
    """
    whole("n", n, 1)
    one_of("noise", noise, SELECTION_LAWS)
    one_of("profile", profile, ("inverse-sqrt", "uniform"))
    privacy_target(epsilon, delta)
    t = np.arange(1, n + 1)
    shape = np.sqrt(1 / t) if profile == "inverse-sqrt" else np.ones(n)
    budgets: Floats = shape * _constant(shape, noise, epsilon, delta)
    budgets.flags.writeable = False
    return budgets


def _constant(shape: Floats, noise: SelectionNoise, epsilon: float, delta: float) -> float:
    spend = SELECTION_LAWS[noise][1]
    pure = epsilon / float(shape.sum()) * (1 - 1e-12)  # the plain sum is within the target
    if epsilon == inf or delta == 0:
        return pure

    def ledger(c: float) -> Ledger:
        return Ledger((spend.of("", c * shape),))

    by_zcdp = sqrt(curves.zcdp_rho_of(epsilon, delta) / spend.of("", shape).rho) * (1 - 1e-12)
    low = max(pure, by_zcdp)
    high = _MAX_RISE * low
    return most(ledger, epsilon=epsilon, delta=delta, low=low, high=high, close=_TARGET_PRECISION)
