"""Private agents for lists: FADE for lists, and elimination of ranking policies."""

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

_LEAST_EIGENVALUE = 1e-3
_AFTER = 9
"""Releases before positions are counted, on lists that are clicked more often by then."""
_LEAST_LOOKS = 0.05
"""No position is taken for less looked at than this, beside the best."""
_MOST_POLICIES = 1000

Growth: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 100, ends=True)]


class PositionWeights:
    """Counts clicks for some rounds of lists in random order, and then knows weights.

    In random order every position has an item of the same mean attraction a, whatever is on the
    list, so that n users click n chi_k a times at k. Counts C are released once, with noise; the
    weights are C over its largest entry, at least 0.05. Their scale is unknown, and not needed: it
    is one of theta.

    Args:
        spec: the public facts.
        streams: the random streams of the replicas.
        epsilon, delta: what the release costs those who were counted.
        rounds: to count; None, max(500, 80 sqrt(m) / mu), at most T / 10.
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
        """f, (R, m), 1 where most look"""

    @property
    def look_total(self) -> Floats:
        """The sum of f, (R, 1)."""
        return self.values.sum(axis=1, keepdims=True)

    def count(self, clicks: Floats) -> None:
        """One more shuffled list, clicks (R, m)."""
        release = self.counts(clicks)
        if release is None:
            return
        most = np.maximum(release.max(axis=1, keepdims=True), 1e-300)
        self.values, self.known = (release / most).clip(_LEAST_LOOKS, 1), True

    def shuffled(self, lists: Ints) -> Ints:
        """Lists (R, m) in uniformly random order."""
        order = np.argsort(self.uniforms(), axis=1)
        return np.take_along_axis(lists, order, axis=1)

    def placed(self, lists: Ints) -> Ints:
        """Lists (R, m), best first, with the best where most look."""
        found = np.empty_like(lists)
        order = np.argsort(-self.values, axis=1, kind="stable")
        np.put_along_axis(found, order, lists, axis=1)
        return found


class ListFADE(Lists):
    """Show the list with the best predicted clicks, learned from private fading sums.

    1. Batch 1, of max(30, 16 sqrt(d) / mu) rounds and at most T / 10: uniformly random lists. The
       next ones are longer by `growth` each.
    2. A user's clicks become a moment z of length at most 1 and a Gram matrix G. In z is what she
       clicked beyond p_k = phi_k . theta, what the release before predicted (`ListResiduals`), or
       what she clicked (`ListClicks`).
    3. At the end of a batch the sums, faded, are released with noise (`FadingSum`).
    4. Releases k, of N_k users (faded ones count less), are added up with the public weights w_k =
       N_k / (s_z^2 + N_k / d), s_z the noise of z, and forgotten by `forgetting` at each. With F
       the sum of position weights, squared unless clicks are counted as they are, F G = Q
       diag(lambda) Q' belongs to z; s is `shift` times the spectral norm of the noise in F G, V
       what noise and luck add to a coordinate of z, and theta_0 the mean of the predictions that z
       was counted against. Of residuals::

           theta = theta_0 + Q diag(l / (l^2 + V / step^2)) Q' z,      l = max(lambda, s),

       and of clicks, theta = Q diag(1 / max(lambda + s, s / 2)) Q' z.
    5. Show the m items with the largest phi . theta, the largest where most look.

    With `positions="learned"` the weights of positions are not told, or not believed. All count as
    equal until, after nine releases or half of all, some users are shown the best m items in random
    order and their clicks counted by position (`PositionWeights`); what that releases is used from
    then on.

    Why clicks are counted and not lists: with five positions the mean over the list has the signal
    of one position for the same sensitivity, the clicked items that of up to five. Why residuals:
    the noise of G meets theta - theta_0, which becomes small, and not theta. Where few look far
    down a list that noise is small already, and clicks are less sensitive.

    Guarantee:
        (epsilon, delta)-joint DP: lists are functions of releases, public facts and the current
        user's tastes; a user enters one mechanism, mu-GDP exactly. Predictions are functions of
        earlier releases. Position weights are public, or released: who is counted for them enters
        nothing else.

    Differs from the paper:
        It is this project's own. Limits: greedy after the first batch, without a worst-case bound.
    """

    epsilon: float = 1.0
    """> 0; inf adds no noise"""
    delta: float = 1e-5
    """in (0, 1)"""
    counted: Literal["auto", "residuals", "clicks", "squares", "mean"] = "auto"
    """what a user adds, clicks beyond predictions, her clicked items, these with the weights of
    positions that least squares gives them, or the mean over her list;
    "auto" is residuals where a click ends the looking (cascade, dependent), else clicks"""
    gram_weight: Positive = 0.5
    """g, weight of the Gram matrix beside the moment; with "mean" at most sqrt(1/2)"""
    shift: Positive = 1.0
    """least eigenvalue, or what is added to all, in spectral norms of their noise"""
    step: Positive = 0.25
    """expected distance of theta from the predictions, in clicks; for residuals"""
    fade: Chance = 0.85
    """weight of a batch in the next release, in [0, 1]"""
    growth: Growth = 0.1
    """relative growth of batches"""
    first_batch: Count | None = None
    """rounds of uniform play; if None, step 1"""
    forgetting: Chance = 0.7
    """what is left, at a release, of all before it; 0 plays on the latest alone, 1 never tries anew
    what noise has ruled out, and some runs stay there"""
    diversity: Least0 = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""
    positions: Literal["told", "learned"] = "told"
    """whether the weights of a position-based model are told, or learned"""
    masks = ("public", "user")
    counting: Count | None = None
    """rounds of shuffled lists to learn them; if None, max(500, 80 sqrt(m) / mu), at most T / 10"""

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        learned = self.positions == "learned"
        if learned and self.counted not in ("auto", "clicks"):
            raise InputError(
                f"Expected counted={self.counted!r} to be 'clicks' where positions='learned'."
            )
        if not learned and self.counting is not None:
            raise InputError(
                f"Expected counting={self.counting} with positions='learned' only: nothing is "
                "counted for weights that are told."
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
            click_model = PositionBased((1.0,) * self.spec.length)  # all that is told
            self.spec = replace(self.spec, clicks=click_model)
        super().start()
        self.statistic = self.added()
        R, d = self.R, self.statistic.dim
        releases = FadingReleases.of(self)
        first = releases.first(self.spec, units=8 * sqrt(d))
        self.after = min(_AFTER, len(releases.ends(self.spec, first)) // 2)
        self.sums = releases.sums(self.statistic, self.spec, self.streams, first)
        self.ledger = releases.ledger(self.sums.spend)
        if self.places is not None:
            both = Parallel((self.places.spend, self.sums.spend))
            self.ledger = ledger_of(self.epsilon, both)
        self.random: Callable[..., Ints] = self.spec.uniform(self.streams)
        self.round, self.end, self.users, self.done = 0, 0, 0.0, 0
        self.moment, self.gram = np.zeros((R, d)), np.zeros((R, d, d))
        self.noise, self.sampling_variance = 0.0, 0.0  # variances in z
        self.theta: Floats = np.zeros((R, d))
        self.faded, self.points, self.total = np.zeros((R, d)), np.zeros((R, d)), 0.0

    def added(self) -> ListStatistic:
        """What one user adds to the sum."""
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
        """Whether this user's clicks are counted by position, and nothing else."""
        return self.places is not None and not self.places.known and self.done >= self.after

    def choose(self, u: Floats) -> Ints:
        # Step 5; random lists in the first batch
        random = self.random()
        return self.best(self.predicted(u)) if self.end else random

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        random = self.random(mask=mask)
        return self.best(np.where(mask, self.predicted(u), -np.inf)) if self.end else random

    def predicted(self, u: Floats) -> Floats:
        """phi . theta of all items, (R, N)."""
        return products(self.spec, u, self.statistic.plain(self.theta))

    def best(self, scores: Floats) -> Ints:
        """The list (R, m) of the largest scores (R, N), put in order."""
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
        """F, (1, 1), or (R, 1) where it is learned."""
        if self.places is None:
            return np.full((1, 1), self.statistic.gram_total)
        return self.places.look_total

    def add(self, F: Floats, z: Floats, G: Floats) -> None:
        """Step 4's sums: of z, F G, the predictions met and the variances of noise and sampling."""
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
        """Step 4's theta."""
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
    """Follow a ranking policy drawn uniformly from those that may still be the best.

    Policy j is a public direction w_j: it shows a user with tastes u the m items with the largest
    v_i . (u * w_j), the largest where most look::

        all policies are active, C = 0; for batches twice as long each:
          1. each user meets an active policy, drawn uniformly
          2. its count grows by what her clicks earn, at most 1; all counts of the batch are
             released with noise and added to C
          3. of shows n_j, C_j / n_j is estimated with variance s_j^2, of noise and of luck;
             dropped is j if C_j / n_j + width s_j < C_i / n_i - width s_i for some i

    Shows are counted exactly: they depend on coins and releases and on nobody's data.

    Guarantee:
        (epsilon, delta)-joint DP: a user enters one batch and moves one of its counts by at most
        1, whatever the number of policies and the length of lists (`PolicyClicks`); who is active
        is a function of releases, who is drawn of that and of coins, and lists are functions of
        the policy drawn and the tastes of whom they are shown. epsilon = inf is the same on exact
        counts.

    Differs from the paper:
        It is this project's own. Limits: never better than the best of its policies, and no bound
        under drift, for who was dropped does not come back.
    """

    epsilon: float = 1.0
    """> 0; inf adds no noise"""
    delta: float = 1e-5
    """in (0, 1)"""
    n_policies: Annotated[int, lambda name, value: whole(name, value, 1, _MOST_POLICIES)] | None = (
        None
    )
    """P, directions that are drawn uniformly, as public coins; if None, 16"""
    rankers: Sequence[Sequence[float]] | None = None
    """directions w_j, each as long as a context; if None, random ones"""
    width: Least0 = 1.0
    """half the length of an interval, in standard errors"""
    growth: Growth = 1.0
    """relative growth of batches"""
    first_batch: Count | None = None
    """rounds; if None, max(40 P, 10 P / mu), at most T / 10"""

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
        """(R, P, q), of length 1 unless 0"""
        R, P = w.shape[:2]
        releases = FadingReleases.of(self, fade=0.0)
        first = releases.first(self.spec, units=5 * P, least=40.0 * P)
        clicks = PolicyClicks(self.spec.clicks, P)
        self.sums = releases.sums(clicks, self.spec, self.streams, first)
        self.ledger = releases.ledger(self.sums.spend)
        self.uniforms = self.streams.uniforms("policies")
        self.active = np.ones((R, P), dtype=bool)
        self.shows, self.counts = np.zeros((2, R, P))
        self.noise = 0.0  # its variance in a count
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
        n = np.maximum(self.shows, 1e-9)  # who was never shown may be anything
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
