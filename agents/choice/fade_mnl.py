"""FADE for assortments: Newton steps of a multinomial logit, released by a fading sum."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpbandit.agents.choice.offers import offer_of
from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.base.arrays import Floats, Ints, clip_norm
from dpbandit.base.inputs import gaussian_target, inside, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.losses.multinomial import weights
from dpbandit.privacy.statistics.choice_scores import ChoiceScores
from dpbandit.specs.best_sets import best_levels
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.protocols import Agent, Spec, fits

_LEAST_EIGENVALUE = 0.3
"""In units of the noise's spectral norm: what is smaller is taken for noise."""
_FORGETTING = 0.8
"""A release: what was linearised at parameters of long ago counts less."""
_FIRST = 8.0
"""Rounds of the first batch, over 2 sqrt(D) / mu."""


@dataclass(frozen=True, kw_only=True)
class FadeMNL:
    """Offer the best set of a multinomial logit that is fitted to fading sums.

    A design of this project. Rounds are cut into batches, each a tenth longer than the one before;
    the first is random sets. At the parameter theta played in a batch every user adds to a fading
    sum what she contributes to a Newton step::

        1. p_j = exp(x_j . theta) / (1 + sum), xbar = sum p_j x_j, nothing being a row of 0
           H = sum p_j x_j x_j' - xbar xbar',   q = x_y - xbar + H theta
           release the sums of H and q, clipped, by a fading sum
        2. of all releases G = sum of weight H, m = sum of weight q, weight = n / (s^2 + n / D) of
           a release of n users and noise s, each 0.8 times as much with every later one
        3. theta = (G + ridge)^-1 (m + ridge theta), no eigenvalue below 0.3 of the noise's norm,
           shortened to norm `radius`
        4. offer the set (and the prices, where the agent chooses them) of the largest expected
           margin under theta, exactly

    Code:
        Step 1 is the statistic `ChoiceScores` in a `FadingSum` that `FadingReleases`
        (fading_releases.py) makes, on what `offer_of` (offers.py) cuts out of a round; steps 2 and
        3 are `FadeMNLAgent.update`, step 4 is `best_levels` of `dpbandit.specs.best_sets`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        mu-GDP: what she adds moves by at most sqrt(2 h^2 + 4 c^2) = 1.658 with h = 0.5 and c = 0.75
        (`ChoiceScores`), at every released theta; her rows, the set that she was offered (a
        function of her rows and of releases) and her choice enter nowhere else. A user of batch b
        is in release k >= b with weight fade^(k - b), and all that has fresh Gaussian noise
        (`FadingSum`). Batch ends, weights, steps and the ball see public numbers and releases only.

    **Limits.** The logit has to be right: of people whose tastes differ the best set may be another
    one than the fit's. Where products have no rows in common (`shared=False`) there are N d
    parameters, and D (D + 1) / 2 noisy numbers in every release.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import AssortmentBandit
    >>> round(certify(FadeMNL(epsilon=1.0), AssortmentBandit().spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    first_batch: int | None = None
    """rounds of random sets; if None, as many as the noise asks for, at most a tenth of T"""
    growth: float = 0.1
    """by how much each batch is longer than the one before"""
    fade: float = 0.7
    """weight of a user in the next release, in [0, 0.999]"""
    information_clip: float = 0.5
    """h, the largest norm of a user's H"""
    response_clip: float = 0.75
    """c, the largest norm of a user's q"""
    shift: float = 0.5
    """ridge, in units of the noise's spectral norm"""
    radius: float = 8.0
    """of the ball that theta is kept in, for rows of norm 1"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)
        inside("fade", self.fade, 0, 0.999, ends=True)
        for name in ("information_clip", "response_clip", "shift", "radius"):
            positive(name, getattr(self, name))

    def make(self, spec: Spec, streams: Streams) -> Agent:
        """A running agent; raises `InputError` for anything but assortments."""
        return FadeMNLAgent(self, fits(self, spec, AssortmentSpec), streams)


class FadeMNLAgent:
    """See `FadeMNL`."""

    def __init__(self, config: FadeMNL, spec: AssortmentSpec, streams: Streams) -> None:
        self._spec, self._shift, self._radius = spec, config.shift, config.radius
        R, D = len(streams), spec.row_dim
        self._scores = ChoiceScores(
            dim=D,
            at_most=spec.at_most,
            context_bound=spec.context_norm,
            information_clip=config.information_clip,
            response_clip=config.response_clip,
        )
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=config.growth,
            fade=config.fade,
        )
        first = releases.first(spec, _FIRST * sqrt(D))
        self._sums = releases.sums(self._scores, spec, streams, first)
        self.ledger = releases.ledger(self._sums)
        self._random = spec.uniform(streams)
        self._round, self._end, self._users = 0, 0, 0.0
        self._G, self._m, self._variance = np.zeros((R, D, D)), np.zeros((R, D)), 0.0
        self._theta: Floats = np.zeros((R, D))

    def act(self, context: Floats) -> Ints:
        """The best set (R, N); random ones before the first release."""
        if self._end == 0:
            random: Ints = self._random()
            return random
        x = clip_norm(self._spec.rows(context), self._scores.context_bound)
        utility = np.vecdot(x, self._theta[:, None, None]) / self._scores.context_bound
        return best_levels(weights(utility), self._spec.margin_table, self._spec.at_most)[0]

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; take a step when it releases."""
        self._round += 1
        release = self._sums(self._theta, *offer_of(self._spec, context, action, feedback))
        if release is None:
            return
        count, self._end = self._round - self._end, self._round
        self._users = self._sums.fade * self._users + count
        s, D = self._sums.stddev, self._scores.dim
        weight = self._users / (s**2 + self._users / D)
        q, H = self._scores.unpack(release)
        self._G = _FORGETTING * self._G + weight * H
        self._m = _FORGETTING * self._m + weight * q
        self._variance = _FORGETTING**2 * self._variance + (weight * s) ** 2
        Gamma = 2 * sqrt(D) * sqrt(self._variance / 2)  # the norm of the noise in G
        ridge = self._shift * Gamma + weight
        eigenvalues, U = np.linalg.eigh(self._G)
        positive = np.maximum(eigenvalues + ridge, max(_LEAST_EIGENVALUE * Gamma, 1e-12))
        pull = np.vecmat(self._m + ridge * self._theta, U) / positive
        self._theta = clip_norm(np.matvec(U, pull), self._radius)
