"""Private agents for sets of products: a logit on fading sums, and noisy counts of purchases."""

from math import sqrt
from typing import Annotated

import numpy as np

from dpbandit.agent import Count, Least0, Positive
from dpbandit.agents.choice.mnl import Assortments, item_bought, items_of, offer_of
from dpbandit.agents.contextual.fading import FadingReleases
from dpbandit.base import Floats, Ints, clip_norm, gaussian_target, inside
from dpbandit.privacy import Statistic
from dpbandit.privacy.sales import ChoiceScores, Purchases

_LEAST_EIGENVALUE = 0.3
"""Floor on eigenvalues of the information matrix, in units of the noise's spectral norm."""
_RELEASE_FADE = 0.8
"""Factor of earlier releases' weights at each new release, as they used older parameters."""
_FIRST_SCORES, _FIRST_PRICED, _FIRST_COUNTS = 5.0, 8.0, 10.0
"""Rounds of the first batch, in units of 2 sqrt(D) / mu for D parameters (or D items for counts).
Prices need more rounds: an estimate without a slope in the price leads to useless prices."""
_MIN_WEIGHT, _MAX_WEIGHT = 1e-6, 50.0
"""Range of an item's optimistic weight, where buying nothing has weight 1."""


class Released(Assortments):
    """Base class of private agents: random sets in the first batch, then sets from releases."""

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    first_batch: Count | None = None
    """rounds of random sets; if None, enough to outweigh noise, at most a tenth of the horizon"""
    growth: Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)] = 0.1
    """relative growth of a batch over the batch before it"""

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)

    def release(self, statistic: Statistic, units: float, fade: float) -> None:
        """Set up the fading sum of `statistic`, its ledger, and random sets for the first batch."""
        releases = FadingReleases.of(self, fade=fade)
        first = releases.first(self.spec, units)
        self.sums = releases.sums(statistic, self.spec, self.streams, first)
        self.ledger = releases.ledger(self.sums.spend)
        self.explore()


class FadeMNL(Released):
    """Offer the best set under a multinomial logit that is fitted to private fading sums.

    A design of this project. Rounds are cut into batches, each a tenth longer than the one before;
    the first is random sets. At the parameter theta of a batch every user adds her contribution to
    a Newton step to a fading sum::

        1. p_j = exp(x_j . theta) / (1 + sum), xbar = sum p_j x_j, over the offered rows x_j
           H = sum p_j x_j x_j' - xbar xbar',   q = x_y - xbar + H theta,  x_y bought (or 0)
           release the sums of H and q, clipped, by a fading sum
        2. of all releases G = sum of weight H, m = sum of weight q, weight = n / (s^2 + n / D) for
           n users and noise s in D dimensions, times 0.8 for every later release
        3. theta = (G + ridge)^-1 (m + ridge theta), eigenvalues at least 0.3 of the noise's norm;
           clip theta to norm `radius`
        4. offer the set (and the prices, where the agent chooses them) of the largest expected
           margin under theta, exactly

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        mu-GDP: her contribution moves by at most sqrt(2 h^2 + 4 c^2) = 1.658 with h = 0.5 and c =
        0.75 (`ChoiceScores`), at every released theta; her rows, the set that she was offered (a
        function of her rows and of releases) and her choice enter nowhere else. A user of batch b
        is in release k >= b with weight fade^(k - b), and every release has fresh Gaussian noise
        (`FadingSum`). Batch ends, weights, steps and clips use public numbers and releases only.

    **Limits.** The logit has to be right: if tastes differ between people, the fit's best set may
    not be the best. If products share no features (`shared=False`) there are D = N d parameters for
    N products, and D (D + 1) / 2 noisy numbers in every release.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import AssortmentBandit
    >>> round(certify(FadeMNL(epsilon=1.0), AssortmentBandit().spec).epsilon, 6)
    1.0
    """

    fade: Annotated[float, lambda name, value: inside(name, value, 0, 0.999, ends=True)] = 0.7
    """factor of a user's weight from one release to the next, in [0, 0.999]"""
    information_clip: Positive = 0.5
    """norm h to which a user's information matrix H is clipped"""
    response_clip: Positive = 0.75
    """norm c to which a user's response vector q is clipped"""
    shift: Positive = 1.0
    """ridge, in units of the noise's spectral norm"""
    radius: Positive = 8.0
    """norm to which the parameter is clipped, for rows of norm 1"""

    def start(self) -> None:
        D = self.spec.row_dim
        self.statistic = ChoiceScores(
            dim=D,
            at_most=self.spec.at_most,
            context_bound=self.spec.context_norm,
            information_clip=self.information_clip,
            response_clip=self.response_clip,
        )
        fixed = self.spec.levels == 1
        first = _FIRST_SCORES if fixed else _FIRST_PRICED
        self.release(self.statistic, first * sqrt(D), self.fade)
        self.round, self.end, self.users, self.variance = 0, 0, 0.0, 0.0
        self.G, self.m = np.zeros((self.R, D, D)), np.zeros((self.R, D))
        self.theta: Floats = np.zeros((self.R, D))

    def utility(self, context: Floats) -> Floats:
        # Step 4, by rows of norm 1
        bound = self.statistic.context_bound
        x = clip_norm(self.spec.rows(context), bound)
        return np.vecdot(x, self.theta[:, None, None]) / bound

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.round += 1
        release = self.sums(self.theta, *offer_of(self.spec, context, action, feedback))
        if release is None:
            return
        self.exploring = False
        count, self.end = self.round - self.end, self.round
        self.users = self.sums.fade * self.users + count
        s, D = self.sums.stddev, self.statistic.dim
        weight = self.users / (s**2 + self.users / D)
        q, H = self.statistic.unpack(release)
        self.G = _RELEASE_FADE * self.G + weight * H
        self.m = _RELEASE_FADE * self.m + weight * q
        self.variance = _RELEASE_FADE**2 * self.variance + (weight * s) ** 2
        Gamma = 2 * sqrt(D) * sqrt(self.variance / 2)  # the norm of the noise in G
        ridge = self.shift * Gamma + weight
        eigenvalues, U = np.linalg.eigh(self.G)
        positive = np.maximum(eigenvalues + ridge, max(_LEAST_EIGENVALUE * Gamma, 1e-12))
        pull = np.vecmat(self.m + ridge * self.theta, U) / positive
        self.theta = clip_norm(np.matvec(U, pull), self.radius)


class MNLCounts(Released):
    """Offer the best set for optimistic item weights, from noisy counts released after each batch.

    A design of this project, with public batches in place of the epochs of `MNLBandit`, which are
    not private. It ignores contexts::

        1. public batches, each 1.3 times as long as the one before, the first of random sets
        2. at its end release with noise b_j, purchases of item j, and z_j, users who were offered
           j and bought nothing; add both to the earlier releases
        3. v_j = b_j / z_j + `bonus` standard errors of this ratio, from sampling and noise
        4. offer the best set for v, exactly

    The ratio estimates v_j whatever else was offered: P(j) / P(nothing) = v_j in every set with j.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, moves its counts by at most sqrt(2) (`Purchases`),
        and her set and her choice enter nowhere else. The ends of batches are public.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import AssortmentBandit
    >>> round(certify(MNLCounts(epsilon=1.0), AssortmentBandit().spec).epsilon, 6)
    1.0
    """

    growth: Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)] = 0.3
    """relative growth of a batch over the batch before it"""
    bonus: Least0 = 1.0
    """optimism, in standard errors of an item's weight"""

    def start(self) -> None:
        items = self.spec.n_products * self.spec.levels
        self.statistic = Purchases(n_items=items, at_most=self.spec.at_most)
        self.release(self.statistic, _FIRST_COUNTS * sqrt(items), 0.0)
        self.b, self.z = np.zeros((2, self.R, items))
        self.variance = 0.0
        self.sets = np.zeros((self.R, self.spec.n_products), np.int64)

    def act(self, context: Floats) -> Ints:
        # The set of this batch, (R, N); random sets before the first release
        return self.random() if self.exploring else self.sets.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        offered, bought = items_of(self.spec, action), item_bought(self.spec, action, feedback)
        release = self.sums(offered, bought)
        if release is None:
            return
        self.exploring = False
        b, z = self.statistic.unpack(release)
        self.b, self.z = self.b + b, self.z + z
        self.variance += self.sums.stddev**2
        S, noise = self.spec.at_most, self.variance  # variance of noise in b; z has S times that
        b, z = np.maximum(self.b, 0), np.maximum(self.z, 1 + 2 * sqrt(noise))
        v = b / z
        error = np.sqrt(b + noise + v**2 * (z + noise * S)) / z
        self.sets = self.best(np.clip(v + self.bonus * error, _MIN_WEIGHT, _MAX_WEIGHT))
