"""People who return, each with a taste of her own beside the population's."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpbandit.base import AnyArray, Floats, Ints, Streams, at_least, norms, one_of, pick, rows
from dpbandit.envs.arrivals import Visitors
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.specs import ContextualSpec, Step
from dpbandit.specs.people import NOBODY

_TAIL = 4.0
_FAR = 2.0
"""Tastes lie within `_FAR * tastes` of the population, noise within `_TAIL * noise`."""
_VALUES_AHEAD = 1 << 17


@dataclass(kw_only=True, eq=False)
class ReturningUsers:
    """A contextual bandit whose users come back, with tastes that persist.

    Description:
        Person i has the parameter theta_i = theta_0 + tastes * N(0, I/d), with one theta_0 of norm
        1 for all, drawn anew for every episode; the deviation is cut off at norm 2 tastes. Every
        slot of a public clock has one candidate, fixed beforehand; she comes, or the slot stays
        empty. A visit shows K fresh rows of features, uniform on the unit sphere; row X_a has mean
        reward X_a . theta_i, or logistic(4 X_a . theta_i).

    Action space:
        `Discrete(n_actions)`: the arm.

    Observation space:
        `Box`, shape (1 + n_actions * dim,): the person's number in [0, people), or -1 for an empty
        slot; then the rows of features, one after the other.

    Rewards:
        Identity: mean + Gaussian noise of stddev `noise`, cut off at 4. Logistic: 0 or 1. In an
        empty slot 0, and so is its regret. Regret is measured against each person's own best arm.

    Starting state:
        New tastes and the first slot.

    Arguments:
        * `people`, `visits`: N, and the cap k on how often one of them comes.
        * `n_actions`, `dim`, `horizon`: arms, features, slots.
        * `tastes`: how far tastes are from the population's; 0 makes all alike.
        * `noise`, `link`: above.
        * `arrivals`: "exactly" k slots each in uniformly random order (those beyond the horizon
          never come); "robin" by turns, so that visits are `people` slots apart; "poisson" rates,
          exponential variables, beyond the cap, too; "loyal" as "exactly", but who was not pleased
          last time comes with probability 1/2 only.
        * `empty`: probability that a candidate does not come, whatever happened.

    What privacy protects here is a person, in all that she shows, says and does, and in when she
    comes (`Visits`). `spec.visits` has the cap; "poisson" arrivals may break it, and whoever
    promises something drops what is beyond.
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
        most = 1 + _FAR * self.tastes + _TAIL * self.noise
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
        personal *= np.minimum(1.0, _FAR / norms(personal))
        self._theta = (common / norms(common))[:, None] + self.tastes * personal  # (R, N, d)
        self._totals = np.zeros((R, self.n_actions))
        self._slot, self._ready = 0, False
        self._many = max(1, _VALUES_AHEAD // (R * self.n_actions * self.dim))

    def context(self) -> Floats:
        # Who comes and what her visit shows, (R, 1 + K d)
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
        """Prepare what visits show."""
        self._normals = streams.normals("contexts", self.n_actions, self.dim)

    def _visits(self, count: int) -> Floats:
        """What the next visits show, (count, R, K, d)."""
        z = self._normals.take(count)
        z /= norms(z)
        return z

    def _invite(self) -> None:
        """The candidates of this slot come, or do not."""
        at = self._slot % self._many
        if at == 0:
            self._ahead = self._visits(self._many)
        self._person = self._visitors.next()
        self._rows = self._ahead[at] * (self._person != NOBODY)[:, None, None]
        self._context, self._ready = self.spec.context(self._person, self._rows), True

    def _reward(self, mean: Floats, uniforms: Floats) -> Floats:
        if self.link == "logistic":
            return 1.0 * (uniforms < mean)
        low, high = ndtr(-_TAIL), ndtr(_TAIL)
        z = ndtri(low + uniforms * (high - low)).clip(-_TAIL, _TAIL)
        return np.asarray(mean + self.noise * z)
