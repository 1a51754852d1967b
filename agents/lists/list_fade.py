"""FADE for lists: clicked items are counted, not lists, and released as fading sums."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.agents.lists.position_weights import PositionWeights
from dpbandit.agents.lists.ranking import ListPlayer, diverse_lists, products
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import (
    InputError,
    at_least,
    gaussian_target,
    inside,
    one_of,
    positive,
    whole,
)
from dpbandit.base.random_streams import Streams
from dpbandit.losses.click_models import Cascade, DependentClicks, PositionBased
from dpbandit.privacy.clicks import ListClicks, ListResiduals, ListStatistic, WeightedClicks
from dpbandit.privacy.ledger import ledger_of
from dpbandit.privacy.spends import Parallel
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits

_LEAST_EIGENVALUE = 1e-3
_AFTER = 9
"""Releases before positions are counted, on lists that are clicked more often by then."""


@dataclass(frozen=True, kw_only=True)
class ListFADE:
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

    Code:
        Played by `ListFADEAgent` with `diverse_lists` (ranking.py); the statistics are
        `dpbandit.privacy.clicks.ListResiduals` and
        `dpbandit.privacy.clicks.ListClicks`, the noise `FadingSum`. Weights that
        are not told are learned by `PositionWeights` (position_weights.py), and clicks counted by
        `dpbandit.privacy.clicks.WeightedClicks`.

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
    gram_weight: float = 0.5
    """g, of the Gram matrix beside the moment; with "mean" at most sqrt(1/2)"""
    shift: float = 1.0
    """least eigenvalue, or what is added to all, in spectral norms of their noise"""
    step: float = 0.25
    """how far theta is expected to be from the predictions, in clicks; for residuals"""
    fade: float = 0.85
    """what is left of a batch at the next release, in [0, 1]"""
    growth: float = 0.1
    """how much longer each batch is"""
    first_batch: int | None = None
    """rounds of uniform play; if None, step 1"""
    forgetting: float = 0.7
    """what is left, at a release, of all before it; 0 plays on the latest alone, 1 never tries anew
    what noise has ruled out, and some runs stay there"""
    diversity: float = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""
    positions: Literal["told", "learned"] = "told"
    """whether the weights of a position-based model are told, or learned"""
    counting: int | None = None
    """rounds of shuffled lists to learn them; if None, max(500, 80 sqrt(m) / mu), at most T / 10"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("counted", self.counted, ("auto", "residuals", "clicks", "squares", "mean"))
        positive("shift", self.shift)
        positive("step", self.step)
        inside("fade", self.fade, 0, 1, ends=True)
        inside("growth", self.growth, 0, 100, ends=True)
        at_least("diversity", self.diversity, 0)
        inside("forgetting", self.forgetting, 0, 1, ends=True)
        positive("gram_weight", self.gram_weight)
        one_of("positions", self.positions, ("told", "learned"))
        for name in ("first_batch", "counting"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
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

    def statistic(self, spec: ListSpec) -> ListStatistic:
        """What a user adds."""
        model, taste, weight = spec.clicks, spec.dim, self.gram_weight
        if self.positions == "learned":
            return WeightedClicks(model=model, taste=taste, gram_weight=weight)
        counted = self.counted
        if counted == "auto":
            ends = isinstance(model, Cascade | DependentClicks)
            counted = "residuals" if ends else "clicks"
        if counted == "residuals":
            return ListResiduals(model=model, taste=taste, gram_weight=weight)
        return ListClicks(model=model, taste=taste, gram_weight=weight, counted=counted)

    def make(self, spec: Spec, streams: Streams) -> "ListFADEAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return ListFADEAgent(self, fits(self, spec, ListSpec), streams)


class ListFADEAgent(ListPlayer):
    """See `ListFADE`."""

    def __init__(self, config: ListFADE, spec: ListSpec, streams: Streams) -> None:
        self._config, self._places = config, None
        if config.positions == "learned":
            self._places = PositionWeights(
                spec,
                streams,
                epsilon=config.epsilon,
                delta=config.delta,
                rounds=config.counting,
            )
            spec = replace(spec, clicks=PositionBased((1.0,) * spec.length))  # all that is told
        self._statistic = config.statistic(spec)
        d = self._statistic.dim
        releases = FadingReleases(
            epsilon=config.epsilon,
            delta=config.delta,
            first_batch=config.first_batch,
            growth=config.growth,
            fade=config.fade,
        )
        first = releases.first(spec, units=8 * sqrt(d))
        self._after = min(_AFTER, len(releases.ends(spec, first)) // 2)
        self._sums = releases.sums(self._statistic, spec, streams, first)
        ledger = releases.ledger(self._sums)
        if self._places is not None:
            both = Parallel((self._places.spend, self._sums.spend))
            ledger = ledger_of(config.epsilon, both)
        super().__init__(spec, ledger)
        self._random = spec.uniform(streams)
        self._round, self._end, self._users, self._done = 0, 0, 0.0, 0
        R = len(streams)
        self._moment, self._gram = np.zeros((R, d)), np.zeros((R, d, d))
        self._noise, self._luck = 0.0, 0.0
        self._theta: Floats = np.zeros((R, d))
        self._faded, self._points, self._total = np.zeros((R, d)), np.zeros((R, d)), 0.0

    def _choose(self, u: Floats) -> Ints:
        random = self._random()
        if not self._end:
            return random
        scores = products(self._spec, u, self._statistic.plain(self._theta))
        lists = diverse_lists(scores, self._spec, self._config.diversity)
        if self._places is None:
            return lists
        return self._places.shuffled(lists) if self._counting else self._places.placed(lists)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        if self._places is not None and self._counting:
            self._places.count(clicks)
            return
        self._round += 1
        reference = self._theta if self._places is None else self._places.values
        release = self._sums(*self._statistic.datum(reference, u, vectors, clicks))
        if release is not None:
            self._add(*self._statistic.unpack(release))
            self._theta = self._fit()
            self._done += 1

    @property
    def _counting(self) -> bool:
        """Whether this user's clicks are counted by position, and nothing else."""
        return self._places is not None and not self._places.known and self._done >= self._after

    @property
    def _gram_total(self) -> Floats:
        """F, (1, 1), or (R, 1) where it is learned."""
        if self._places is None:
            return np.full((1, 1), self._statistic.gram_total)
        return self._places.look_total

    def _add(self, z: Floats, G: Floats) -> None:
        """Step 4's sums: of z, G, the predictions met and the variances of noise and luck in z."""
        count, self._end = self._round - self._end, self._round
        fade, left, noise = self._sums.fade, self._config.forgetting, self._sums.stddev**2
        self._users = fade * self._users + count
        self._faded = fade * self._faded + count * self._theta
        luck = self._users / self._statistic.dim
        weight = self._users / (noise + luck)
        self._moment = left * self._moment + weight * z
        self._gram = left * self._gram + weight * self._gram_total[..., None] * G
        self._points = left * self._points + weight * self._faded
        self._total = left * self._total + weight * self._users
        self._noise = left**2 * self._noise + weight**2 * noise
        self._luck = left**2 * self._luck + weight**2 * luck

    def _fit(self) -> Floats:
        """Step 4's theta."""
        d, config = self._statistic.dim, self._config
        noise = sqrt(self._noise) / config.gram_weight * self._gram_total
        s = config.shift * sqrt(2 * d) * noise
        eigenvalues, Q = np.linalg.eigh(self._gram)
        z = np.vecmat(self._moment, Q)
        if not isinstance(self._statistic, ListResiduals):
            least = np.maximum(s / 2, _LEAST_EIGENVALUE)
            return np.matvec(Q, z / np.maximum(eigenvalues + s, least))
        least = np.maximum(eigenvalues, np.maximum(s, _LEAST_EIGENVALUE))
        steps = z * least / (least**2 + (self._noise + self._luck) / config.step**2)
        return self._points / self._total + np.matvec(Q, steps)
