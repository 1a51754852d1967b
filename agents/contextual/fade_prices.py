"""FADE's agents for price lists whose demand is a line, and the base of all its pricing agents."""

from collections.abc import Iterator
from functools import partial
from math import sqrt
from typing import Any, Literal, cast

import numpy as np

from dpbandit.agents.contextual.demand import (
    Features,
    bends_of,
    customer_features,
    demand_rows,
    demand_spec,
    price_features,
    shared_slope,
)
from dpbandit.agents.contextual.fading import (
    GOLDEN_STEP,
    Fading,
    NoPrior,
    WarmStarted,
    in_force,
)
from dpbandit.agents.contextual.released_scores import (
    Faded,
    Fit,
    ReleasedScores,
    Scores,
    faded,
    in_ball,
    with_latest,
)
from dpbandit.agents.contextual.shrunk_effects import averaged, ridge_of
from dpbandit.base import Floats, Ints, Streams, clip_norm, rows
from dpbandit.privacy.residuals import SaleResiduals, score_lengths
from dpbandit.specs import SellingSpec

PRIOR = 4.0
"""Standard deviation of each coordinate of the demand parameter in its normal prior"""
_CROSSED_PRIOR = 8.0, 4.0
"""Prior standard deviations, with features="interactions", of a customer feature's effect on
utility and on the slope of utility in the price"""
LEAST_SLOPE = 0.05
"""Smallest size of the parameter by which utility falls in the price, the same for all customers"""
STEPS = 8
"""Largest number of Newton steps of a fit to all releases"""
_BLOCK_OFFERS = 2**16
"""Largest number of offers to synthetic customers in replicas that are fitted together, to limit
memory; one replica may have more"""
_ALL_REPLICAS = slice(None)
"""Slice of all replicas"""
MIN_DRAW_WIDTH = 0.5
"""Floor of the width of posterior draws, in posterior standard deviations"""
CROSSED_WIDTH = 0.2
"""Width of posterior draws, in posterior standard deviations, where customers differ in slope"""
_LEAST_NOISE = 2.0
"""Floor of the noise assumed in releases, since the fit uses synthetic customers, and an exact fit
to the first releases may lock in prices from which nothing more is learned"""


class ScoredSales(Fading):
    """Base class of agents that play argmax_a margin_a x P(sale at price a) by a logistic model."""

    plays = SellingSpec
    spec, statistic = cast(SellingSpec, None), cast(SaleResiduals, None)  # set when it starts
    features = cast(Any, "additive")
    known = NoPrior()
    _before = 0  # first rounds, whose sales are counted and not summed

    @property
    def crossed(self) -> bool:
        """True if every customer has a price slope of her own."""
        return self.features in ("interactions", "shrunk", "curve")

    def sales_statistic(self) -> SaleResiduals:
        """Return the statistic that is summed: the score of a sale and the customer's moments."""
        return SaleResiduals(
            dim=demand_spec(self.spec, self.features).dim,
            features=self.spec.dim,
            # with interactions moments of customers matter more: they aim the scores
            moment_weight=0.5 if self.crossed else 0.35,
        )

    def fit_sales(self, width: float) -> None:
        """Initialise the posterior; its draws are `width` posterior standard deviations wide."""
        spec, R, D = self.spec, self.R, self.statistic.dim
        self._width = width
        self._effects = price_features(spec, self.features)  # (K, e)
        self._bends = bends_of(spec, self.features)
        self._uniforms = self.streams.uniforms("exploration")
        self._normals = self.streams.normals("posterior", D)
        self._shared = self._shared_effects()
        self._shared_normals = self.streams.normals("price slope", max(1, len(self._shared)))
        self._customers = ImaginedCustomers(self.streams, spec.dim)
        self._ridge = prior_precision(spec.dim, D, self.features)
        self._aimed = AimedScores(R, D) if self.crossed else None
        self._shared_slope = shared_slope(spec.dim, self.features)
        at = self._shared_slope
        self._admissible = in_ball if at is None else partial(falling, at=at)
        self._ends = np.zeros(0, np.int64)
        self._theta: Floats = np.zeros((R, D))
        self._played: Floats = np.zeros((R, D))
        self._references: Floats = np.zeros((R, 0, D))  # theta of each batch
        self._policies: Floats = np.zeros((R, 0, D))  # parameter played after each release
        self._releases: Floats = np.zeros((R, 0, *self.statistic.shape))
        self._precision: Floats = np.tile(np.diag(self._ridge), (R, 1, 1))
        if self.known.informed:
            self._precision = self._precision + self.known.precision
            self._theta = self._admissible(self.known.mode(self._precision))
            self._draw()
        self._mode = self._theta.copy()  # of the last fit, with which the next one begins

    def act(self, context: Floats) -> Ints:
        # Prices (R,), or (n, R), as places on the list; at random before the first release
        if self._policies.shape[1]:
            return self.scores(context).argmax(axis=-1)
        return (self._uniforms.over(context.shape[:-1]) * self.spec.n_actions).astype(np.int64)

    def scores(self, context: Floats) -> Floats:
        # of a user with the context 0, if hers is not finite
        x = clip_norm(context, self.spec.context_norm) / self.spec.context_norm
        x, crossed = customer_features(x, self.features)
        level, slope = np.split(self._played, [x.shape[-1]], axis=1)
        if crossed is not None:
            slope, bent = self._by_effect(slope)
            slope = np.vecdot(crossed[..., None, :], slope)
            bent = np.broadcast_to(bent, (*slope.shape[:-1], bent.shape[-1]))
            slope = np.concatenate([slope, bent], axis=-1)
        no_sale = self._no_sale_odds(np.vecdot(x, level), slope)
        return np.asarray(self.spec.largest_margins(context) / (1 + no_sale))

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        sold = self.spec.share_sold(context, action, feedback)
        phi = demand_rows(self.spec, context, self.features, price=action)
        aimed = () if self._aimed is None else (self._aimed.along(phi),)
        release = self.sums.take_rounds(
            action.shape, np.broadcast_to(self._theta, phi.shape), phi, sold, *aimed
        )
        if release is None:
            return
        if self._aimed is not None:
            self._aimed.batch_ends()
        self._ends = np.append(self._ends, self.round)
        self._references = with_latest(self._references, self._theta)
        self._releases = with_latest(self._releases, release)
        self._theta, self._precision = self._posterior()
        self._draw()
        if self._aimed is not None:
            for some in self._blocks():
                customers = self._imagined(self._faded(), some)
                best = self._best(customers, self._played[some, None])
                self._aimed.aim(self._rows(customers, best)[:, 0], some)

    def _draw(self) -> None:
        covariance = np.linalg.inv(self._precision)
        draw = self._width * np.matvec(np.linalg.cholesky(covariance), self._normals())
        if self._shared:
            # A price at which nobody buys tells nothing of the slope. So what all share is drawn as
            # widely as with one slope for all, and other parameters by their regression on it.
            root = np.linalg.cholesky(covariance[:, self._shared][:, :, self._shared])
            width = sqrt(self._shared_width**2 - self._width**2)
            along = np.linalg.solve(root.swapaxes(-1, -2), self._shared_normals()[..., None])
            draw = draw + (covariance[..., self._shared] @ (width * along))[..., 0]
        self._played = self._admissible(self._theta + self._mirrored(draw))
        self._policies = with_latest(self._policies, self._played)

    @property
    def _shared_width(self) -> float:
        """Width of draws of the effects that all customers share, in standard deviations."""
        return min_width(self.releases.mu)

    def _shared_effects(self) -> list[int]:
        """Return the parameters of the price that all customers share, if others vary less."""
        if self.features not in ("shrunk", "curve"):
            return []
        at = cast(int, shared_slope(self.spec.dim, self.features))
        return [at, *range(self.statistic.dim - self._bends, self.statistic.dim)]

    def _mirrored(self, draw: Floats) -> Floats:
        """Reflect draws, (R, D), by which demand would rise in the price for all customers."""
        if self._shared_slope is None:
            return draw
        return np.where((self._theta + draw)[:, [self._shared_slope]] > 0, -draw, draw)

    def _blocks(self) -> Iterator[slice]:
        """Yield slices of few replicas, whose synthetic customers need little memory."""
        offers = len(self._ends) + self.spec.n_actions
        size = max(1, _BLOCK_OFFERS // (IMAGINED_CUSTOMERS * offers))
        for start in range(0, self.R, size):
            yield slice(start, start + size)

    def _posterior(self) -> tuple[Floats, Floats]:
        """Return the parameter around which draws are made, (R, D), and its precision."""
        theta, precision = np.empty_like(self._theta), np.empty_like(self._precision)
        past = self._faded()
        for some in self._blocks():
            fit = ReleasedScores(
                *self._score_sums(past, some),
                ridge=self._ridge,
                admissible=self._admissible,
                prior=self.known.of_replicas(some),
            ).maximise(self._mode[some], STEPS)
            self._mode[some] = fit.theta
            theta[some], precision[some] = self._shrunk(fit)
        return theta, precision

    def _shrunk(self, fit: Fit) -> tuple[Floats, Floats]:
        """Return parameter and precision by a fit to the releases of some replicas."""
        return fit.theta, fit.precision

    def _score_sums(self, past: Faded, some: slice) -> tuple[Scores, Floats, Floats]:
        """Return synthetic customers' scores, and batches' weights and releases, both whitened."""
        statistic = self.statistic
        users, noise, sampling = past
        released, _, _ = statistic.unpack(self._releases[some])
        phi = self._offered_rows(self._imagined(past, some), some)
        p = 1 / (1 + np.exp(-np.matvec(phi, self._references[some])))
        directions = phi if self._aimed is None else self._aimed.of_batches(phi, some)
        whiten = np.linalg.inv(np.linalg.cholesky(noise + 0.5 / statistic.dim * sampling))
        scores = Scores(phi, p, score_lengths(directions, p), directions)
        return scores, whiten @ users, whiten @ released

    def _faded(self) -> Faded:
        return faded(self._ends - self._before, self.sums.fade, max(self.sums.stddev, _LEAST_NOISE))

    def _imagined(self, past: Faded, some: slice) -> Floats:
        """Return N synthetic customers, (R, N, d), whose moments equal the released ones."""
        users, noise, sampling = past
        _, first, second = self.statistic.unpack(self._releases[some])
        covariance = noise / self.statistic.moment_weight**2 + CUSTOMER_SPREAD * sampling
        return self._customers(first, second, users.sum(axis=1), covariance, some)

    def _offered_rows(self, customers: Floats, some: slice = _ALL_REPLICAS) -> Floats:
        """Return N customers' rows at the prices of m past batches' policies, (R, m, N, D)."""
        (R, N, _), m = customers.shape, len(self._ends)
        random = 0 if self.known.informed else 1
        prices = np.empty((R, random + self._policies.shape[1], N), np.int64)
        prices[:, 0] = rows(N) * GOLDEN_STEP % 1 * self.spec.n_actions
        prices[:, random:] = self._best(customers, self._policies[some])
        ends = np.append(self._before, self._ends) if self._before else self._ends
        return self._rows(customers, prices[:, in_force(ends, self.spec.delay, N)[-m:], rows(N)])

    def _rows(self, customers: Floats, price: Ints) -> Floats:
        """Return N customers' features at prices with indices (R, m, N), (R, m, N, D)."""
        x, crossed = customer_features(customers, self.features)  # (R, N, d)
        effects = self._effects.T.take(price, axis=1).swapaxes(0, 1)
        if crossed is not None:
            effects, bent = np.split(effects, [effects.shape[1] - self._bends], axis=1)
            pairs = effects[:, :, None] * crossed.swapaxes(1, 2)[:, None, :, None]
            effects = pairs.reshape(len(x), -1, *price.shape[1:])
            effects = np.concatenate([effects, bent], axis=1)
        d, by_coordinate = x.shape[-1], np.empty((len(x), self.statistic.dim, *price.shape[1:]))
        by_coordinate[:, :d], by_coordinate[:, d:] = x.swapaxes(1, 2)[:, :, None], effects
        by_coordinate /= sqrt(2)
        return by_coordinate.transpose(0, 2, 3, 1)

    def _best(self, customers: Floats, policies: Floats) -> Ints:
        """Return indices (R, m, N) of customers' best prices by m policies' parameters."""
        x, crossed = customer_features(customers, self.features)
        d = x.shape[-1]
        level, slope = policies[..., :d] @ x.swapaxes(1, 2), policies[..., None, d:]
        if crossed is not None:
            slope, bent = self._by_effect(policies[..., d:])
            slope = (slope @ crossed.swapaxes(1, 2)[:, None]).swapaxes(-1, -2)
            bent = np.broadcast_to(bent[..., None, :], (*slope.shape[:-1], bent.shape[-1]))
            slope = np.concatenate([slope, bent], axis=-1)
        margins = self.spec.largest_margins(customers * self.spec.context_norm)
        best = np.empty(level.shape, np.int64)
        for j in range(level.shape[1]):  # one at a time, which needs less memory
            no_sale = self._no_sale_odds(level[:, j], slope[:, j])
            best[:, j] = ((1 + no_sale) / margins).argmin(axis=-1)
        return best

    def _by_effect(self, slopes: Floats) -> tuple[Floats, Floats]:
        """Return parameters (..., e m) of pairs for each of e features of arms, and of bends."""
        e = self._effects.shape[1] - self._bends
        slopes, bends = np.split(slopes, [slopes.shape[-1] - self._bends], axis=-1)
        return slopes.reshape(*slopes.shape[:-1], e, slopes.shape[-1] // e), bends

    def _no_sale_odds(self, level: Floats, slope: Floats) -> Floats:
        """Return P(no sale) / P(sale) at K prices for sqrt(2) utility = level + effect . slope."""
        prices = np.exp(np.matvec(self._effects, slope) / -sqrt(2))
        return np.exp(level / -sqrt(2))[..., None] * prices


def prior_precision(dim: int, length: int, features: Features) -> Floats:
    """Return prior precisions of all `length` parameters for `dim` customer features."""
    if features == "shrunk":
        return ridge_of(dim, length)
    if features == "interactions":
        level, slope = _CROSSED_PRIOR
        return np.concatenate([np.full(dim, level), np.full(length - dim, slope)]) ** -2.0
    return np.full(length, PRIOR) ** -2.0


def falling(theta: Floats, at: int = -1) -> Floats:
    """Clip theta (R, D) to the ball `in_ball`, and its price slope, coordinate `at`, to below 0."""
    theta = np.array(theta)
    theta[:, at] = np.minimum(theta[:, at], -LEAST_SLOPE)
    return in_ball(theta)


_EIGENVALUE_FLOOR = 1.0
"""Amount added to eigenvalues, as a share of their mean, so that inverses stay bounded"""


class AimedScores:
    """Directions W phi of scores (y - p) W phi / |W phi|, with W chosen anew after every release.

    Here phi is a row of features, y the sale and p its prediction. A score has norm at most 1 and
    the noise is isotropic. Scores along phi have most of their norm in coordinates that all rows
    share, the constant and the price. W, the inverse root of E phi phi' (plus a floor) over
    synthetic customers at the next batch's prices, gives the other coordinates more of the norm. It
    is a function of releases.
    """

    def __init__(self, replicas: int, dim: int) -> None:
        self._W: Floats = np.tile(np.eye(dim), (replicas, 1, 1))
        self._past: Floats = np.zeros((replicas, 0, dim, dim))  # of each batch that was released

    def along(self, phi: Floats) -> Floats:
        """Return the directions W phi of scores for a round's rows phi, (R, D)."""
        return np.matvec(self._W, phi)

    def of_batches(self, phi: Floats, some: slice = _ALL_REPLICAS) -> Floats:
        """Return the directions for rows of m past batches, (R, m, N, D), by the matrix of each."""
        return phi @ self._past[some].swapaxes(-1, -2)

    def batch_ends(self) -> None:
        """Append the current matrix W to those of past batches."""
        self._past = with_latest(self._past, self._W)

    def aim(self, phi: Floats, some: slice = _ALL_REPLICAS) -> None:
        """Set the matrix W for a batch whose rows are distributed like `phi`, (R, N, D)."""
        eigenvalues, U = np.linalg.eigh(phi.swapaxes(1, 2) @ phi / phi.shape[1])
        floor = _EIGENVALUE_FLOOR * eigenvalues.mean(axis=1, keepdims=True)
        root = np.sqrt(np.maximum(eigenvalues, 0.0) + floor)
        self._W[some] = (U / root[:, None]) @ U.swapaxes(1, 2)


IMAGINED_CUSTOMERS = 128  # synthetic customers per replica, in pairs
CUSTOMER_SPREAD = 0.05
"""Sampling variance of an entry of one customer's x and x x', a rough public guess"""
_MIN_EIGENVALUE, _MAX_EIGENVALUE = 1e-4, 1.0
"""Bounds to which eigenvalues of customers' estimated covariance are clipped"""


class ImaginedCustomers:
    """Synthetic customers, normal vectors with the released moments, clipped to the unit ball.

    The mean of a release is its faded number of users times a customer's first two moments, and
    its noise has a public covariance, so generalised least squares estimates these moments.
    The normals are drawn once, so that customers change only as the estimates do.
    """

    def __init__(self, streams: Streams, dim: int) -> None:
        half = streams.normals("imagined customers", IMAGINED_CUSTOMERS // 2, dim)()
        if 2 * dim < half.shape[1]:  # enough to estimate all second moments
            root = np.linalg.cholesky(half.swapaxes(1, 2) @ half / half.shape[1])
            half = np.linalg.solve(root, half.swapaxes(1, 2)).swapaxes(1, 2)
        # pairs z, -z, so that each part of the customers has mean 0
        self._normals = np.stack([half, -half], axis=2).reshape(len(half), -1, dim)  # (R, N, d)

    def __call__(
        self,
        first: Floats,
        second: Floats,
        users: Floats,
        covariance: Floats,
        some: slice = _ALL_REPLICAS,
    ) -> Floats:
        """Return N customers, (R, N, d), for m released sums of x (`first`) and x x' (`second`).

        `users` (m,) are the sums' faded numbers of users, `covariance` (m, m) that of their errors.
        """
        R, m, d = first.shape
        weights = np.linalg.solve(covariance, users)
        weights = weights / (weights @ users)
        mean = clip_norm(np.vecmat(weights, first), 1.0)  # (R, d)
        moments = np.vecmat(weights, second.reshape(R, m, d * d)).reshape(R, d, d)
        eigenvalues, U = np.linalg.eigh(moments - mean[:, :, None] * mean[:, None])
        root = U * np.sqrt(np.clip(eigenvalues, _MIN_EIGENVALUE, _MAX_EIGENVALUE))[:, None]
        return clip_norm(mean[:, None] + self._normals[some] @ root.transpose(0, 2, 1), 1.0)


class FadePrices(WarmStarted, ScoredSales):
    """Play price lists by a logistic model of demand, learned from fading sums of scores of sales.

    FADE's model of prices, with p the predicted chance of a sale at the released theta::

        each round          sum (sale - p) times features, scaled to norm at most 1, and the
                            customer's moments (`SaleResiduals`)
        after release m     draw customers with the released moments (`ImaginedCustomers`);
                            offer them the prices of all past policies, which are public;
                            theta = argmax of the likelihood of ALL releases times a prior
                            (`ReleasedScores`), played = theta + width C z, C C' the posterior's
                            covariance and z normal, one draw for the whole batch,
                            reflected if demand would rise in the price
        play                argmax_a margin_a logistic(phi_a . played), phi_a of `demand_rows`

    With interactions every customer has her own price slope, no draw is reflected, and scores
    give more weight to directions of small variance (`AimedScores`). Parameters stay in a ball.
    With features="shrunk" these effects of features are shrunk by empirical Bayes (`averaged`)::

        after release m     one fit gives a quadratic likelihood; each of six priors, of effects
                            small to large, has there its mean and its evidence in closed form;
                            theta = the mean over priors, weighted by their evidence; a constant
                            and a slope that all customers share have wide priors; this slope
                            is drawn more widely, and the draw reflected if it would be positive

    Offers of several products at prices (`OfferSpec`) are played alike, with a direction for each
    product beside the price in every row.

    p is computed from the theta in force when the reward arrives. With delayed rewards the prices
    of a batch are therefore those of older policies, each for its share of the synthetic customers.

    Guarantee:
        The guarantee of `Fading`, with sensitivity sqrt(4 + 4.5 0.35^2), or, with interactions,
        shrunk or not, sqrt(4 + 4.5 0.5^2). If margins depend on the customer (`PremiumSpec`), hers
        are used for her own price and her clipped sale alone; a fit uses synthetic customers'.

    **Limits.** Greedy play has no worst-case regret bound: a few runs play a price that does not
    sell for thousands of rounds. If utility is not linear in the price, as with two kinds of
    customers, a linear model may stay at a wrong price for good (`FadeCurve` seldom does).

    >>> from dpbandit import certify
    >>> round(certify(FadePrices(epsilon=1.0), "OJPricing").epsilon, 6)
    1.0
    """

    features: Literal["additive", "interactions", "shrunk"] = "additive"
    """features of a price, with one slope for all customers or one for each (`demand_rows`), or
    one for each that is shrunk to what they have in common"""

    def begin(self) -> None:
        spec = self.spec
        self.statistic = self.sales_statistic()
        D = self.statistic.dim
        self.sum_up(self.statistic, self.releases.first(spec, 5 * sqrt(D), least=7.5))
        crossed = ", times each of them" if self.crossed else ""
        self.start_from(D, f"of {spec.dim} features of a customer and of the price{crossed}")
        self.fit_sales(CROSSED_WIDTH if self.crossed else min_width(self.releases.mu))

    def _shrunk(self, fit: Fit) -> tuple[Floats, Floats]:
        if self.features != "shrunk" or self.known.informed:
            return super()._shrunk(fit)
        found = averaged(fit, self.spec.dim)
        return self._admissible(found.mean), found.precision


def min_width(mu: float) -> float:
    """Return the width of posterior draws, mu clipped to [0.5, 1], in standard deviations."""
    return max(MIN_DRAW_WIDTH, min(1.0, mu))
