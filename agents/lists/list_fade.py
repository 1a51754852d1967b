"""Private agents for ranked lists: fading sums of clicks, and elimination of ranking policies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, inf, sqrt
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpbandit.agent import Chance, Count, Least0, Positive
from dpbandit.agents.contextual.fading import FadingReleases
from dpbandit.agents.lists.ranked import Lists, best_lists, diverse_lists, products
from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    gaussian_target,
    inside,
    norms,
    pick,
    reals,
    rows,
    vector,
    whole,
)
from dpbandit.losses.click_models import Cascade, DependentClicks, PositionBased, UntoldPositions
from dpbandit.privacy import Parallel, certified_fading_sum, ledger_of, mu_of
from dpbandit.privacy.clicks import (
    ListClicks,
    ListResiduals,
    ListStatistic,
    PolicyClicks,
    PositionCounts,
    WeightedClicks,
    tastes,
)
from dpbandit.specs.lists import ListSpec

_LEAST_EIGENVALUE = 1e-3  # floor on eigenvalues of the regression matrix that is solved
_POSITION_WARMUP_RELEASES = 9
"""Number of releases before position weights are estimated, as later lists get more clicks."""
_MIN_POSITION_WEIGHT = 0.05
"""Smallest estimated weight of a position, relative to the position with the most clicks."""
_MAX_POLICIES = 1000  # largest number of ranking policies

Growth: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)]


class PositionWeights:
    """Private estimate of position weights, from clicks on lists in random order.

    In random order items at all positions have the same mean attraction a, so that n users click
    n chi_k a times at position k, chi_k the share of users who look there. Counts are released
    once, with noise; a weight is a count divided by the largest, at least 0.05. The regression
    absorbs the weights' unknown scale.

    Args:
        spec: the public description of the problem.
        streams: the random streams of the replicas.
        epsilon, delta: privacy target of the release for the counted users.
        rounds: number of counted lists; if None, max(500, 80 sqrt(m) / mu), m positions, <= T / 10.
    """

    def __init__(
        self, spec: ListSpec, streams: Streams, *, epsilon: float, delta: float, rounds: int | None
    ) -> None:
        if not isinstance(spec.clicks, PositionBased | UntoldPositions):
            raise InputError(
                "Expected positions='learned' where clicks are position-based, got "
                f"{type(spec.clicks).__name__}."
            )
        m = spec.length
        if rounds is None:
            mu = inf if epsilon == inf else mu_of(epsilon, delta)
            rounds = max(1, min(ceil(max(500, 80 * m**0.5 / mu)), spec.horizon // 10))
        self.rounds, self.known = rounds, False
        self.counts = certified_fading_sum(
            PositionCounts(m),
            streams.child("positions"),
            ends=[rounds],
            horizon=spec.horizon,
            fade=0.0,
            epsilon=epsilon,
            delta=delta,
        )
        self.spend = self.counts.spend
        self.uniforms = streams.uniforms("orders of lists", m)
        self.values: Floats = np.ones((len(streams), m))
        """position weights (R, m), 1 at the position that most users look at"""

    @property
    def look_total(self) -> Floats:
        """Sum of the position weights, (R, 1)."""
        return self.values.sum(axis=1, keepdims=True)

    def count(self, clicks: Floats) -> None:
        """Count the clicks (R, m) on one shuffled list; set the weights at the release."""
        release = self.counts(clicks)
        if release is None:
            return
        most = np.maximum(release.max(axis=1, keepdims=True), 1e-300)
        self.values, self.known = (release / most).clip(_MIN_POSITION_WEIGHT, 1), True

    def shuffled(self, lists: Ints) -> Ints:
        """Return lists (R, m) in uniformly random order."""
        order = np.argsort(self.uniforms(), axis=1)
        return np.take_along_axis(lists, order, axis=1)

    def placed(self, lists: Ints) -> Ints:
        """Return lists (R, m), given best item first, with better items where more users look."""
        found = np.empty_like(lists)
        order = np.argsort(-self.values, axis=1, kind="stable")
        np.put_along_axis(found, order, lists, axis=1)
        return found


class ListFADE(Lists):
    """Show the list with the best predicted clicks, learned from private fading sums.

    1. Batch 1, of max(30, 16 sqrt(d) / mu) rounds and at most T / 10: uniformly random lists. Each
       later batch is longer by a share `growth`.
    2. A user's clicks, with features phi_k of item k, become a moment z of length at most 1 and a
       Gram matrix G. z sums clicks minus the predictions phi_k . theta of the last release
       (`ListResiduals`), or clicks (`ListClicks`).
    3. At the end of a batch the sums, faded, are released with noise (`FadingSum`).
    4. Releases k, of N_k users (faded ones count less), are added up with the public weights w_k =
       N_k / (s_z^2 + N_k / d), s_z the noise of z, times `forgetting` for each later release. With
       F the sum of position weights, squared unless clicks are counted as they are, F G = Q
       diag(lambda) Q' is the Gram matrix of z; s is `shift` times the spectral norm of the noise in
       F G, V the variance of noise and sampling in a coordinate of z, and theta_0 the mean of the
       parameters behind the predictions in z. From residuals::

           theta = theta_0 + Q diag(l / (l^2 + V / step^2)) Q' z,      l = max(lambda, s),

       and from clicks, theta = Q diag(1 / max(lambda + s, s / 2)) Q' z.
    5. Show the m items with the largest phi . theta, the largest where most users look.

    With `positions="learned"` the weights of positions are unknown. They count as equal until,
    after nine releases or half of all, some users are shown the best m items in random order and
    their clicks are counted by position (`PositionWeights`); the released weights are used from
    then on.

    Clicked items count, not the mean over a list: with five positions the mean has the signal of
    one position for the same sensitivity, clicked items have the signal of up to five. Residuals
    help because the noise of G is multiplied by theta - theta_0, which becomes small. If users
    rarely look far down a list, that noise is small, and clicks are less sensitive.

    Guarantee:
        (epsilon, delta)-joint DP: lists are functions of releases, public numbers and the current
        user's tastes; a user enters one mechanism, mu-GDP exactly. Predictions are functions of
        earlier releases. Position weights are public or released; a user who is counted for them
        enters no other sum.

    Differs from the paper:
        It is this project's own. Limits: greedy play after batch 1, and no worst-case bound.
    """

    epsilon: float = 1.0
    """target, > 0; inf adds no noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    counted: Literal["auto", "residuals", "clicks", "squares", "mean"] = "auto"
    """statistic of a user; "residuals" are clicks minus predictions, "clicks" clicked items,
    "squares" clicked items with least-squares position weights, "mean" the mean over the list;
    "auto" is "residuals" if a click may end the looking, else "clicks" """
    gram_weight: Positive = 0.5
    """weight of the Gram matrix relative to the moment; at most sqrt(1/2) with "mean" counted"""
    shift: Positive = 1.0
    """floor on eigenvalues for residuals, else ridge, in units of the noise's spectral norm"""
    step: Positive = 0.25
    """assumed distance, in clicks, of the parameter from the one of predictions; for residuals"""
    fade: Chance = 0.85
    """factor of a batch's weight from one release to the next, in [0, 1]"""
    growth: Growth = 0.1
    """relative growth of a batch over the batch before it"""
    first_batch: Count | None = None
    """rounds of uniform play; if None, max(30, 16 sqrt(d) / mu) for d features, at most T / 10"""
    forgetting: Chance = 0.7
    """factor of earlier releases' weights at each new release; 0 uses the latest alone, 1 never
    retries items that noise has ruled out, so that some runs stay stuck"""
    diversity: Least0 = 0.0
    """penalty in clicks of an item for similarity to a listed one; 0 ranks by relevance alone"""
    positions: Literal["told", "learned"] = "told"
    """"told" if the weights of a position-based model are public, "learned" to estimate them"""
    masks = ("public", "user")
    counting: Count | None = None
    """rounds of shuffled lists; if None, max(500, 80 sqrt(m) / mu) for m positions, <= T / 10"""

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        learned = self.positions == "learned"
        if learned and self.counted not in ("auto", "clicks"):
            raise InputError(
                f"Expected counted={self.counted!r} to be 'clicks' where positions='learned'."
            )
        if not learned and self.counting is not None:
            raise InputError(
                f"Expected counting={self.counting} with positions='learned' only: weights that "
                "are public need no counts."
            )

    def start(self) -> None:
        self.places: PositionWeights | None = None
        if self.positions == "learned":
            self.places = PositionWeights(
                self.spec,
                self.streams,
                epsilon=self.epsilon,
                delta=self.delta,
                rounds=self.counting,
            )
            click_model = PositionBased((1.0,) * self.spec.length)  # weights are unknown so far
            self.spec = replace(self.spec, clicks=click_model)
        super().start()
        self.statistic = self.added()
        R, d = self.R, self.statistic.dim
        releases = FadingReleases.of(self)
        first = releases.first(self.spec, units=8 * sqrt(d))
        self.after = min(_POSITION_WARMUP_RELEASES, len(releases.ends(self.spec, first)) // 2)
        self.sums = releases.sums(self.statistic, self.spec, self.streams, first)
        self.ledger = releases.ledger(self.sums.spend)
        if self.places is not None:
            disjoint = Parallel((self.places.spend, self.sums.spend))  # a user is in one of them
            self.ledger = ledger_of(self.epsilon, disjoint)
        self.random: Callable[..., Ints] = self.spec.uniform(self.streams)
        self.round, self.end, self.users, self.done = 0, 0, 0.0, 0
        self.moment, self.gram = np.zeros((R, d)), np.zeros((R, d, d))
        self.noise, self.sampling_variance = 0.0, 0.0  # variances in z
        self.theta: Floats = np.zeros((R, d))
        self.faded, self.points, self.total = np.zeros((R, d)), np.zeros((R, d)), 0.0

    def added(self) -> ListStatistic:
        """Return the statistic that a user adds to the fading sum."""
        model, taste, weight = self.spec.clicks, self.spec.dim, self.gram_weight
        if self.positions == "learned":
            return WeightedClicks(model=model, taste=taste, gram_weight=weight)
        counted = self.counted
        if counted == "auto":
            ends = isinstance(model, Cascade | DependentClicks)
            counted = "residuals" if ends else "clicks"
        if counted == "residuals":
            return ListResiduals(model=model, taste=taste, gram_weight=weight)
        return ListClicks(model=model, taste=taste, gram_weight=weight, counted=counted)

    @property
    def shuffling(self) -> bool:
        """True if this user's clicks are counted by position, and enter no other sum."""
        return self.places is not None and not self.places.known and self.done >= self.after

    def choose(self, u: Floats) -> Ints:
        # Step 5; random lists in the first batch
        random = self.random()
        return self.best(self.predicted(u)) if self.end else random

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        random = self.random(mask=mask)
        return self.best(np.where(mask, self.predicted(u), -np.inf)) if self.end else random

    def predicted(self, u: Floats) -> Floats:
        """Return the predicted scores (R, N) of all items for users with features u (R, q)."""
        return products(self.spec, u, self.statistic.plain(self.theta))

    def best(self, scores: Floats) -> Ints:
        """Return the lists (R, m) of the largest scores (R, N), in display order."""
        lists = diverse_lists(scores, self.spec, self.diversity)
        if self.places is None:
            return lists
        return self.places.shuffled(lists) if self.shuffling else self.places.placed(lists)

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        # Step 2, and steps 3 and 4 when a batch ends
        if self.places is not None and self.shuffling:
            self.places.count(clicks)
            return
        self.round += 1
        reference = self.theta if self.places is None else self.places.values
        release = self.sums(*self.statistic.datum(reference, u, vectors, clicks))
        if release is not None:
            looks = self.gram_total()
            self.add(looks, *self.statistic.unpack(release))
            self.theta = self.fit(looks)
            self.done += 1

    def gram_total(self) -> Floats:
        """Return F of step 4 of the class, (1, 1), or (R, 1) if weights are learned."""
        if self.places is None:
            return np.full((1, 1), self.statistic.gram_total)
        return self.places.look_total

    def add(self, F: Floats, z: Floats, G: Floats) -> None:
        """Add a release, its moment z (R, d) and Gram matrix G (R, d, d), to the sums of step 4."""
        count, self.end = self.round - self.end, self.round
        fade, left, noise = self.sums.fade, self.forgetting, self.sums.stddev**2
        self.users = fade * self.users + count
        self.faded = fade * self.faded + count * self.theta
        sampling_variance = self.users / self.statistic.dim
        weight = self.users / (noise + sampling_variance)
        self.moment = left * self.moment + weight * z
        self.gram = left * self.gram + weight * F[..., None] * G
        self.points = left * self.points + weight * self.faded
        self.total = left * self.total + weight * self.users
        self.noise = left**2 * self.noise + weight**2 * noise
        self.sampling_variance = left**2 * self.sampling_variance + weight**2 * sampling_variance

    def fit(self, F: Floats) -> Floats:
        """Return the estimate theta, (R, d), by the regression in step 4 of the class."""
        noise = sqrt(self.noise) / self.gram_weight * F
        s = self.shift * sqrt(2 * self.statistic.dim) * noise
        eigenvalues, Q = np.linalg.eigh(self.gram)
        z = np.vecmat(self.moment, Q)
        if not isinstance(self.statistic, ListResiduals):
            least = np.maximum(s / 2, _LEAST_EIGENVALUE)
            return np.matvec(Q, z / np.maximum(eigenvalues + s, least))
        least = np.maximum(eigenvalues, np.maximum(s, _LEAST_EIGENVALUE))
        steps = z * least / (least**2 + (self.noise + self.sampling_variance) / self.step**2)
        return self.points / self.total + np.matvec(Q, steps)


class ListExperts(Lists):
    """Follow a ranking policy drawn uniformly from the policies that may still be the best.

    Policy j is a public direction w_j: it shows a user with tastes u the m items whose
    vectors v_i have the largest v_i . (u * w_j), the largest where most users look::

        all policies are active, counts C = 0; for batches, each twice as long as the last:
          1. each user gets the list of an active policy, drawn uniformly
          2. the policy's count grows by the reward of her clicks, at most 1; all counts of the
             batch are released with noise and added to C
          3. C_j / n_j estimates policy j's mean reward over n_j lists, with variance s_j^2 (noise
             and sampling); deactivate j if C_j / n_j + width s_j < C_i / n_i - width s_i for an i

    The n_j are exact: they depend on random draws and releases, not on data.

    Guarantee:
        (epsilon, delta)-joint DP: a user enters one batch and moves one of its counts by at most
        1, whatever the number of policies and the length of lists (`PolicyClicks`). The active
        policies are functions of releases, the drawn policy of these and random numbers, the list
        of the policy and the user's tastes. epsilon = inf uses exact counts.

    Differs from the paper:
        It is this project's own. Limits: it is never better than its best policy, and has no bound
        under drift, because inactive policies do not come back.
    """

    epsilon: float = 1.0
    """target, > 0; inf adds no noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    n_policies: Annotated[int, lambda name, value: whole(name, value, 1, _MAX_POLICIES)] | None = (
        None
    )
    """number P of policies, whose public directions are drawn uniformly; if None, 16"""
    rankers: Sequence[Sequence[float]] | None = None
    """directions of policies, a row of d numbers each for d user features; if None, random"""
    width: Least0 = 1.0
    """half the length of a confidence interval, in standard errors"""
    growth: Growth = 1.0
    """relative growth of a batch over the batch before it"""
    first_batch: Count | None = None
    """rounds of the first batch; if None, max(40 P, 10 P / mu), P policies, at most T / 10"""

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.rankers is None:
            return
        object.__setattr__(self, "rankers", _directions(self.rankers))
        if self.n_policies not in (None, len(self.rankers)):
            raise InputError(
                f"Expected n_policies={self.n_policies} to be {len(self.rankers)}, the number "
                "of rankers, or to be left out."
            )

    def start(self) -> None:
        super().start()
        if self.rankers is None:
            draw = self.streams.normals("rankers", self.n_policies or 16, self.spec.dim)
            w = draw()
        else:
            w = np.array([vector("ranker", one, self.spec.dim) for one in self.rankers])
            w = np.broadcast_to(w, (self.R, *w.shape))
        self.directions = w / np.maximum(norms(w), 1e-300)
        """directions (R, P, q) of P policies, of norm 1 unless 0"""
        R, P = w.shape[:2]
        releases = FadingReleases.of(self, fade=0.0)
        first = releases.first(self.spec, units=5 * P, least=40.0 * P)
        clicks = PolicyClicks(self.spec.clicks, P)
        self.sums = releases.sums(clicks, self.spec, self.streams, first)
        self.ledger = releases.ledger(self.sums.spend)
        self.uniforms = self.streams.uniforms("policies")
        self.active = np.ones((R, P), dtype=bool)
        self.shows, self.counts = np.zeros((2, R, P))
        self.noise = 0.0  # variance of the noise in a count
        self.displayed: Ints = np.zeros(R, np.int64)

    def choose(self, u: Floats) -> Ints:
        # Step 1
        which = (self.uniforms() * self.active.sum(axis=1)).astype(np.int64)
        self.displayed = (self.active.cumsum(axis=1) > which[:, None]).argmax(axis=1)
        directions = tastes(u) * pick(self.directions, self.displayed)
        scores = self.spec.catalogue.products(directions)
        return best_lists(scores, self.spec.clicks)

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        # Step 2, and step 3 when a batch ends
        self.shows[rows(len(u)), self.displayed] += 1
        release = self.sums(self.displayed, clicks)
        if release is None:
            return
        self.counts = self.counts + release
        self.noise += self.sums.stddev**2
        n = np.maximum(self.shows, 1e-9)  # without shows the interval is wide
        share = ((self.counts + 1) / (n + 2)).clip(0, 1)
        s = self.width * np.sqrt(self.noise + 1 / 4 + n * share * (1 - share)) / n
        rate = self.counts / n
        lowest = np.where(self.active, rate - s, -np.inf).max(axis=1, keepdims=True)
        self.active = self.active & (rate + s >= lowest)


def _directions(rankers: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    try:
        w = reals(rankers)
    except ValueError:  # a word, ragged rows
        w = np.empty(0)
    if w.ndim != 2 or w.size == 0 or not np.isfinite(w).all():
        raise InputError(
            f"Expected rankers={abbrev(rankers)} to be directions, lists of as many numbers as a "
            "context has."
        )
    return tuple(map(tuple, w.tolist()))
