"""Recommendation: users and items with features, a fresh slate each round, logistic clicks."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_DIM,
    Floats,
    Streams,
    inside,
    norms,
    positive,
    rows,
    whole,
)
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.specs.protocols import ContextualSpec


@dataclass(kw_only=True, eq=False)
class Recommendation(ContextualProblem):
    """Choose one of K candidate items for each arriving user; the reward is a click.

    Description:
        An episode has a catalogue of `n_items` items, unit vectors v_i in R^taste. A user arrives
        with tastes u, uniform on the sphere of radius sqrt(taste), and a slate of K distinct items
        drawn from the catalogue. The features of item i for user u are::

            phi = (1, v_i, u * v_i) / |(1, v_i, u * v_i)|             (dim = 1 + 2 taste, |phi| = 1)

        and she clicks with probability logistic(logit(base_rate) + appeal sqrt(dim) phi . theta),
        theta drawn uniformly on the unit sphere for every episode: some items are popular with all,
        some only with users of the right taste. Synthetic: no click log with usable signal can be
        shipped without a download under a clean licence.

    Action space:
        `Discrete(n_actions)`: the place on the slate.

    Observation space:
        `Box`, shape (n_actions, dim): the features phi of every candidate.

    Rewards:
        1 for a click, else 0.

    Starting state:
        A new catalogue, a new theta, the first user and her slate.

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `n_actions`: candidates on a slate. `n_items`: catalogue size, at least `n_actions`.
        * `taste`: features of users and items. `horizon`: rounds.
        * `base_rate`: clicks at phi . theta = 0. `appeal`: standard deviation of the click logit.
        * `delay`: rounds until a click is seen; 0 is handed out before.

    Version history:
        * v0: first release.
    """

    n_actions: int = 10
    taste: int = 4
    n_items: int = 200
    horizon: int = 10_000
    base_rate: float = 0.2
    appeal: float = 1.0
    delay: int = 0

    def __post_init__(self) -> None:
        whole("taste", self.taste, 1, MOST_DIM // 2 - 1)
        positive("appeal", self.appeal)
        inside("base_rate", self.base_rate, 0, 1, ends=False)
        self.spec = ContextualSpec(
            n_actions=self.n_actions,
            dim=1 + 2 * self.taste,
            horizon=self.horizon,
            shared=True,
            link="logistic",
            delay=self.delay,
            reward_unit="clicks",
        )
        whole("n_items", self.n_items, self.n_actions, MOST_ACTIONS)

    def _start(self, streams: Streams) -> None:
        self._items = _unit(streams.world.normals("catalogue", self.n_items, self.taste)())
        self._theta = _unit(streams.world.normals("theta", self.spec.dim)())  # (R, d)
        self._tastes = streams.normals("tastes", self.taste)
        self._slates = streams.uniforms("slates", self.n_items)
        self._luck = streams.uniforms("clicks")

    def _users(self, count: int) -> Users:
        u = np.sqrt(self.taste) * _unit(self._tastes.take(count))[:, :, None]  # (n, R, 1, taste)
        order = self._slates.take(count).argpartition(self.n_actions - 1, axis=-1)
        slate = order[..., : self.n_actions]  # (n, R, K)
        v = self._items[rows(self._items.shape[0])[:, None], slate]  # (n, R, K, taste)
        phi = _unit(np.concatenate([np.ones((*slate.shape, 1)), v, u * v], axis=-1))
        signal = self.appeal * np.sqrt(self.spec.dim) * np.matvec(phi, self._theta)
        click = np.asarray(expit(logit(self.base_rate) + signal))
        return Users(phi, click, 1.0 * (self._luck.take(count)[..., None] < click))

    def _values_per_user(self) -> int:
        return super()._values_per_user() + self.n_items


def _unit(x: Floats) -> Floats:
    return x / norms(x)
