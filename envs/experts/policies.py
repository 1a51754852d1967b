"""Recommendation policies as experts: a user's click tells which of them would have been right."""

import numpy as np

from dpbandit.base.arrays import Floats, norms, rows
from dpbandit.envs.experts.tables import Luck

_ITEMS = 200
"""The catalogue's size."""
_TASTE = 4
"""Features of users and items."""
_SLATE = 5
"""Items that a user is shown."""


class Policies:
    """Every expert is a ranker of a slate; she loses 1 if the user's favourite is not her first.

    An episode has a catalogue of 200 unit vectors v_i in R^4 and weights theta of their features::

        phi = (v_i, u * v_i)                                                  in R^8

    for a user with tastes u, uniform on the sphere of radius 2. A user sees 5 items of the
    catalogue and clicks on the one with the largest phi . theta, or, with probability `whims`, on
    any of the five. Policy i ranks by theta + s_i g_i, g_i uniform on the unit sphere, so that one,
    with s = 0, knows everybody's favourite and the others, s from 0.2 to 3, are ever more ignorant;
    which is which is drawn. A policy that guesses loses 4/5.
    """

    def __init__(self, luck: Luck, n: int, *, whims: float) -> None:
        self.values = luck.replicas * (n + _ITEMS + _SLATE * 2 * _TASTE)
        self._items = _unit(luck.world.normals("catalogue", _ITEMS, _TASTE).take(1)[0])
        theta = _unit(luck.world.normals("theta", 1, 2 * _TASTE).take(1)[0])
        ignorance = _unit(luck.world.normals("ignorance", n, 2 * _TASTE).take(1)[0])
        ranks = luck.world.order(n)[..., None]  # (replicas, d, 1)
        steps = np.concatenate([[0.0], np.geomspace(0.2, 3.0, n)[: n - 1]])
        self._theta, self._whims = theta, whims
        self._rankers = np.swapaxes(theta + steps[ranks] * ignorance, 1, 2)  # (replicas, 8, d)
        self._tastes = luck.normals("tastes", _TASTE)
        self._slates = luck.uniforms("slates", _ITEMS)
        self._moods = luck.uniforms("whims", 2)

    def __call__(self, first: int, count: int) -> Floats:
        """[policy's first item != the click], (count, replicas, d)."""
        u = 2 * _unit(self._tastes.take(count))[:, :, None]  # (n, replicas, 1, taste)
        slate = self._slates.take(count).argpartition(_SLATE - 1, axis=-1)[..., :_SLATE]
        v = self._items[rows(self._items.shape[0])[:, None], slate]  # (n, replicas, slate, taste)
        phi = np.concatenate([v, u * v], axis=-1)
        favourite = np.matvec(phi, self._theta[:, 0]).argmax(axis=-1)
        whim, wish = np.moveaxis(self._moods.take(count), -1, 0)
        click = np.where(whim < self._whims, (wish * _SLATE).astype(np.int64), favourite)
        firsts = (phi @ self._rankers).argmax(axis=2)  # (n, replicas, d)
        return 1.0 * (firsts != click[..., None])


def _unit(x: Floats) -> Floats:
    return x / norms(x)
