"""People who return, each with a taste that deviates from the population's."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpbandit.base import AnyArray, Floats, Ints, Streams, at_least, norms, one_of, pick, rows
from dpbandit.envs.arrivals import Visitors
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.specs import ContextualSpec, Step
from dpbandit.specs.people import NOBODY

_MAX_NOISE = 4.0  # largest absolute value of noise, in units of `noise`
_MAX_TASTE_NORM = 2.0
"""Largest norm of a person's deviation from the population's parameter, in units of `tastes`"""
_VALUES_AHEAD = 1 << 17  # number of features drawn at once; changes speed, never values


@dataclass(kw_only=True, eq=False)
class ReturningUsers:
    """A contextual bandit whose users come back, with tastes that persist.

    Description:
        Person i has the parameter theta_i = theta_0 + tastes * N(0, I/d), with one theta_0 of norm
        1 for all, drawn anew for every episode; the deviation has norm at most 2 tastes. Every slot
        (round) has one candidate, fixed beforehand; she comes, or the slot stays empty. A
        visit has K fresh rows of features, uniform on the unit sphere; arm a has mean reward X_a .
        theta_i, or logistic(4 X_a . theta_i).

    Action space:
        `Discrete(n_actions)`: the arm.

    Observation space:
        `Box`, shape (1 + n_actions * dim,): the person's number in [0, people), or -1 for an empty
        slot; then the rows of features, one after the other.

    Rewards:
        Identity: mean + Gaussian noise of stddev `noise`, cut off at 4 stddevs. Logistic: 0 or 1.
        Regret is measured against each person's own best arm. Both are 0 in an empty slot.

    Starting state:
        New tastes and the first slot.

    Arguments:
        * `people`, `visits`: number of people, and largest number of visits of one person.
        * `n_actions`, `dim`, `horizon`: arms, features, slots.
        * `tastes`: scale of people's deviations from theta_0; 0 makes all alike.
        * `noise`, `link`: see Rewards.
        * `arrivals`: "exactly" `visits` slots each in uniformly random order (slots beyond the
          horizon are dropped); "robin" in turns, so that visits are `people` slots apart; "poisson"
          with rates that are exponential variables, also more than `visits` times; "loyal" as
          "exactly", but only with probability 1/2 after a low reward.
        * `empty`: probability that a slot's candidate does not come, whatever happened before.

    Privacy protects a person: her contexts, rewards and times of all her visits (`Visits`).
    `spec.visits` has the largest number of visits; "poisson" arrivals may exceed it, and private
    agents do not learn from visits beyond it.
    """

    people: int = 500
    visits: int = 20
    n_actions: int = 5
    dim: int = 10
    horizon: int = 10_000
    tastes: float = 0.5
    noise: float = 0.5
    link: Literal["identity", "logistic"] = "identity"
    arrivals: Arrivals = "exactly"
    empty: float = 0.0

    def __post_init__(self) -> None:
        one_of("link", self.link, ("identity", "logistic"))
        at_least("tastes", self.tastes, 0)
        at_least("noise", self.noise, 0)
        self._visitors = Visitors(self)
        most = 1 + _MAX_TASTE_NORM * self.tastes + _MAX_NOISE * self.noise
        low, high = (0.0, 1.0) if self.link == "logistic" else (-most, most)
        visit = ContextualSpec(
            n_actions=self.n_actions,
            dim=self.dim,
            horizon=self.horizon,
            shared=True,
            reward_low=low,
            reward_high=high,
            link=self.link,
        )
        self.spec = self._visitors.spec(visit)

    def reset(self, streams: Streams) -> None:
        R, N = len(streams), self.people
        self._visitors.start(streams)
        self._start(streams)
        self._uniforms = streams.uniforms("rewards")
        common = streams.world.normals("parameters", self.dim)()
        personal = streams.world.normals("tastes", N, self.dim)() / np.sqrt(self.dim)
        personal *= np.minimum(1.0, _MAX_TASTE_NORM / norms(personal))
        self._theta = (common / norms(common))[:, None] + self.tastes * personal  # (R, N, d)
        self._totals = np.zeros((R, self.n_actions))
        self._slot, self._ready = 0, False
        self._block = max(1, _VALUES_AHEAD // (R * self.n_actions * self.dim))

    def context(self) -> Floats:
        # the visitor's number and her features, (R, 1 + K d)
        if not self._ready:
            self._invite()
        return self._context

    def step(self, action: AnyArray) -> Step:
        self.context()
        here, R = self._person != NOBODY, len(self._person)
        action = self.spec.validate(action, R)
        i = np.maximum(self._person, 0)
        mean = np.matvec(self._rows, self._theta[rows(R), i]) * here[:, None]
        if self.link == "logistic":
            mean = expit(4 * mean) * here[:, None]
        self._totals += mean
        expected, oracle = pick(mean, action), mean.max(axis=1)
        reward = self._reward(expected, self._uniforms()) * here
        self._visitors.rewarded(reward, (self.spec.reward_low + self.spec.reward_high) / 2)
        self._ready, self._slot = False, self._slot + 1
        return Step(reward, expected, oracle, oracle - expected)

    def best_fixed(self) -> Ints:
        return self._totals.argmax(axis=1)

    def hindsight(self) -> float:
        return 0.0

    def _start(self, streams: Streams) -> None:
        """Prepare the random stream of features."""
        self._normals = streams.normals("contexts", self.n_actions, self.dim)

    def _visits(self, count: int) -> Floats:
        """Draw features of the next `count` visits, (count, R, K, d)."""
        z = self._normals.take(count)
        z /= norms(z)
        return z

    def _invite(self) -> None:
        """Draw the visitors of this slot (round) and their features."""
        at = self._slot % self._block
        if at == 0:
            self._ahead = self._visits(self._block)
        self._person = self._visitors.next()
        self._rows = self._ahead[at] * (self._person != NOBODY)[:, None, None]
        self._context, self._ready = self.spec.context(self._person, self._rows), True

    def _reward(self, mean: Floats, uniforms: Floats) -> Floats:
        if self.link == "logistic":
            return 1.0 * (uniforms < mean)
        low, high = ndtr(-_MAX_NOISE), ndtr(_MAX_NOISE)
        z = ndtri(low + uniforms * (high - low)).clip(-_MAX_NOISE, _MAX_NOISE)
        return np.asarray(mean + self.noise * z)
