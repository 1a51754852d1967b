"""Lists of real items, with tastes and items fitted once to your file of ratings."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.base import Floats, Ints, Streams, inside, norms, whole
from dpbandit.envs.contextual.recommendation import Rated
from dpbandit.envs.lists.list_recommendation import ListProblem, best_fixed_list, click_model
from dpbandit.specs.lists import MOST_ITEMS, Catalogue, ListSpec


@dataclass(kw_only=True, eq=False)
class RatingsLists(Rated, ListProblem):
    """Show every user an ordered list of the most rated items of a ratings file.

    Description:
        A simulator is fitted to the file as for `RatingsBandit`: item i has b_i + w_i . taste stars
        for a user, clipped to the scale of ratings. The catalogue is public: vectors v_i = (b_i -
        mean of b, w_i), divided by the largest norm of all. A user, drawn with replacement, has the
        context u = (1, taste). If she looks at item i she clicks with probability click_rate (stars
        - low) / (high - low), which is linear in phi = (1, u * v_i) / sqrt(2), except for the
        clipping. Agents learn how clicks depend on phi. The fit counts as public; certificates
        protect the simulated users. Ratings have no positions: the click model is an assumption. No
        file is shipped.

    Action space:
        `MultiDiscrete([n_items] * length)`: an ordered list, as in `ListRecommendation`.
        `env.unwrapped.items` has the file's names of the items.

    Observation space:
        `Box`, shape (1 + rank,): context u. The catalogue is `env.unwrapped.spec.catalogue.items`.

    Rewards:
        As in `ListRecommendation`, with the clicks in `info["clicks"]`.

    Arguments:
        * `path`: the file, required. `low`, `high`: the public scale of ratings. `rank`: features
          of a taste. `ridge`: penalty of an item's coefficients. All as for `RatingsBandit`.
        * `n_items`, `length`, `horizon`: N, m, rounds.
        * `clicks`: `"position"`, `"cascade"`, `"dependent"` or `"browsing"`, with `decay` as for
          `ListRecommendation`.
        * `click_rate`: click probability of an item with the highest possible rating.
    """

    n_items: int = 100
    length: int = 5
    clicks: Literal["position", "cascade", "dependent", "browsing"] = "cascade"
    click_rate: float = 0.2
    decay: float = 1.0
    horizon: int = 20_000

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 2, MOST_ITEMS)
        inside("click_rate", self.click_rate, 0, 1, ends=True)
        self._model = click_model(self.clicks, self.length, self.n_items, self.decay)
        stars = self._fit(n_items=self.n_items).model
        self._mean = float(stars[:, 0].mean())
        centred = np.column_stack([stars[:, 0] - self._mean, stars[:, 1:]])
        self._longest = float(norms(centred).max())
        self.spec = self._lists = ListSpec(
            catalogue=Catalogue.of(centred / self._longest),
            clicks=self._model,
            horizon=self.horizon,
            reward_unit=self._model.reward_unit,
        )

    def reset(self, streams: Streams) -> None:
        self._lists.catalogue.start(streams, churn=False)
        self._rows = streams.uniforms("users")
        self._start(streams)

    def best_fixed(self) -> Ints:
        # over all users of the file, which are equally likely; how exact, see `best_fixed_list`
        best = best_fixed_list(self._model, self._attracts(self.click_rate * self._fitted.like))
        return np.tile(best, (self._ahead.shape[1], 1))

    def _users(self, count: int) -> Floats:
        row = (self._rows.take(count) * len(self._fitted.context)).astype(np.int64)
        return self._fitted.context[row] * np.sqrt(2)

    def _scores(self, u: Floats) -> Floats:
        return self._lists.catalogue.products(u)

    def _chance(self, scores: Floats) -> Floats:
        low, high = self.scale
        stars = self._mean + self._longest * scores
        return np.asarray(self.click_rate * (stars.clip(low, high) - low) / (high - low))
