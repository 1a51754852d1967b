"""Recommendation of ordered lists to people who come back."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpbandit.base import Floats, Ints, Streams, at_least, norms, rows
from dpbandit.envs.arrivals import Visitors
from dpbandit.envs.lists.list_recommendation import ListRecommendation, best_fixed_list
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.specs import Step
from dpbandit.specs.people import NOBODY

_MAX_TASTE_NORM = 2.0
"""Largest norm of a person's deviation from the population's parameter, in units of `tastes`"""


@dataclass(kw_only=True, eq=False)
class ReturningLists(ListRecommendation):
    """Show ordered lists to people who come back and click by one of four click models.

    Description:
        The problem of `ListRecommendation`, where a user is one of N people, as in
        `ReturningUsers`. A person has the same context u at all her visits, and the parameter theta
        + tastes N(0, I/taste) in place of theta, with a deviation of norm at most 2 tastes. Agents
        observe u, not the deviation. Every slot (round) has one candidate, fixed
        beforehand; she comes, or the slot stays empty.

    Action space:
        `MultiDiscrete([n_items] * length)`: an ordered list, as in `ListRecommendation`.

    Observation space:
        `Box`, shape (1 + taste,): the person's number in [0, people), or -1 for an empty slot; then
        u, zeros in an empty slot. The catalogue is `env.unwrapped.spec.visit.catalogue.items`.

    Rewards:
        As in `ListRecommendation`, with the clicks in `info["clicks"]`. Regret is measured against
        each person's own best list. Reward and regret of an empty slot are 0.

    Starting state:
        A new catalogue (unless shared), new people, and the first slot.

    Arguments:
        Those of `ListRecommendation`, and
        * `people`, `visits`: number N of people, and largest number of visits of one person.
        * `tastes`: scale of people's deviations; 0 makes people with equal u alike.
        * `arrivals`, `empty`: as in `ReturningUsers`; "loyal" people are pleased by a click.

    Privacy protects a person: her contexts, clicks and times of all her visits (`Visits`). Agents
    for lists play this problem behind `per-person:`.
    """

    people: int = 500
    visits: int = 40
    tastes: float = 0.5
    arrivals: Arrivals = "exactly"
    empty: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("tastes", self.tastes, 0)
        self._visitors = Visitors(self)
        self._slots = self._visitors.spec(self._lists)
        self.spec = self._slots

    def reset(self, streams: Streams) -> None:
        N, q = self.people, self.taste
        self._visitors.start(streams)
        uniforms = streams.world.uniforms("traits", N, q - self._common)()
        shared = np.ones((*uniforms.shape[:2], self._common))
        self._contexts = np.concatenate(
            [shared, np.where(uniforms < 0.5, -1.0, 1.0)], axis=-1
        )  # (R, N, q)
        raw = streams.world.normals("tastes", N, q)() / sqrt(q)
        cut = np.minimum(1.0, _MAX_TASTE_NORM / np.maximum(norms(raw), 1e-300))
        self._personal = self.tastes * raw * cut
        super().reset(streams)

    def context(self) -> Floats:
        u = super().context()
        return self._slots.context(self._person, u)

    def step(self, action: Ints) -> Step:
        step = super().step(action)
        self._visitors.rewarded(step.reward, 0.5)
        return step

    def best_fixed(self) -> Ints:
        # over all people, which are equally likely; under drift and churn that of the last round
        found, items = [], self._lists.catalogue.items
        for r, theta in enumerate(self._tastes()):
            weighed = self._contexts[r] * (theta + self._personal[r])
            logits = sqrt(self.taste) * weighed @ items[r if len(items) > 1 else 0].T
            found.append(best_fixed_list(self._model, self._chance(logits)))
        return np.array(found)

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._block = 1  # slot by slot: with "loyal" arrivals visits follow clicks

    def _users(self, count: int) -> Floats:
        self._person = self._visitors.next()
        self._here = self._person != NOBODY
        u = self._contexts[rows(len(self._person)), np.maximum(self._person, 0)]
        return np.asarray((u * self._here[:, None])[None])

    def _scores(self, u: Floats) -> Floats:
        personal = self._personal[rows(len(u)), np.maximum(self._person, 0)]
        return self._lists.catalogue.products(sqrt(self.taste) * u * (self._tastes() + personal))
