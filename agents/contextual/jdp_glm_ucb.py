"""JDP-GLM-UCB: optimism on a logistic model of demand, of which each user is in one release."""

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, get_args

import numpy as np

from dpbandit.agents.contextual.demand import DemandPricing, Features
from dpbandit.agents.contextual.fade_rewards import FadingDemand
from dpbandit.agents.contextual.fading_regression import LogisticPlayer
from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.base import (
    Floats,
    Streams,
    at_least,
    gaussian_target,
    inside,
    one_of,
    positive,
    whole,
)
from dpbandit.specs import BanditSpec, PriceListSpec, fits


@dataclass(frozen=True, kw_only=True)
class JDPGLMUCB:
    """Ask the price that may earn most by a logistic model of demand, fitted batch by batch.

    After Chen, Simchi-Levi and Wang, "Privacy-preserving dynamic personalized pricing with demand
    learning", Management Science 68 (arXiv 2009.12920), who hide a user from all later prices;
    reconstructed from the abstract. With z the D features of a customer at a price
    (`demand_rows`)::

        1. public batches, each 1.5 times as long as the one before; the first at random prices, of
           40 sqrt(D) / mu customers, at least 30 and at most T / 10
        2. at the end of one release, with noise, the Gram matrix of sqrt(h) z and the moment of the
           working responses, as in FADE's model of demand; add them to 0.8 times the earlier ones
        3. theta is a Newton step from the last one, moved into a ball (`parameter_norm`);
           A = G/4 + ridge
        4. ask the price with the largest margin x logistic(z . theta + alpha |z|_{A^-1})

    Code:
        `FadingDemand` (fade_rewards.py) makes it on `FadingReleases` (fading_releases.py) that
        forget at once: steps 2 and 3 are `LogisticPlayer` (fading_regression.py), steps 1 and 4
        `DemandPricing` (demand.py) with the bonus of `OptimisticPlayer`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: a user is in one release, whose two parts she moves by at most sqrt(5)
        together, moments clipped to 0.75 of their units (`SecondMoments`), whatever was released
        before; she enters nothing else. The ends of batches are public, everybody else's price is
        post-processing. Their "anticipating" (epsilon, delta)-DP, in which a user's data is hidden
        from later prices, is what is called joint DP here.

    Differs from the paper:
        1. It was not read but for its abstract: batches, statistic, widths and all constants are
           ours.
        2. A list of prices, and a logistic model of a sale.
        3. Newton steps on released sums, where it may have a likelihood that is maximised.
        4. Random prices now and then, as `DemandPricing` has them; optimism alone did as well.

    A whole Newton step may be too long where demand is steep: `FADE` limits its length.

    >>> from dpbandit import certify
    >>> from dpbandit.envs import OJPricing
    >>> round(certify(JDPGLMUCB(epsilon=1.0), OJPricing().spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    alpha: float = 0.3
    """optimism, times the norm of a row in A^-1; 0 is greedy"""
    first_batch: int | None = None
    """rounds of uniform play; if None, as many as the noise asks for, at most a tenth of T"""
    growth: float = 0.5
    """by how much each batch is longer than the one before"""
    parameter_norm: float = 20.0
    """a bound on `|theta|`, for contexts of norm 1"""
    features: Features = "additive"
    """whether a price costs every customer the same utility; see `demand_rows`"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        at_least("alpha", self.alpha, 0)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)
        positive("parameter_norm", self.parameter_norm)
        one_of("features", self.features, get_args(Features))

    def make(self, spec: BanditSpec, streams: Streams) -> DemandPricing:
        """A running agent; raises `InputError` for anything but a list of prices."""
        releases = FadingReleases(
            epsilon=self.epsilon,
            delta=self.delta,
            first_batch=self.first_batch,
            growth=self.growth,
            fade=0.0,
        )
        return FadingDemand(
            releases=releases,
            shift=None,
            bonus=self.alpha,
            features=self.features,
            player=partial(OptimisticPlayer, ball=self.parameter_norm),
        ).make(fits(self, spec, PriceListSpec), streams)


class OptimisticPlayer(LogisticPlayer):
    """Whole Newton steps on plain sums of releases, and a bonus alpha `|x|_{A^-1}`."""

    _longest_step = inf

    def __init__(self, *given: Any, ball: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ball = ball

    def _weight(self, noise: float) -> float:
        return 1.0

    def _wide(self, s: float, inverse: Floats) -> Floats:
        eigenvalues, U = np.linalg.eigh(inverse)
        root: Floats = U * np.sqrt(eigenvalues.clip(0))[..., None, :]  # |x' root| = |x|_{A^-1}
        return self._bonus * root
