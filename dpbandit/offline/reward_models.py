"""Models of the reward that have not seen the row they are used on: ridge regressions, in parts."""

from typing import NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Streams

_MOST_PARTS = 60
"""Of an adaptive log, each with a model of all rows before it."""


class Parts(NamedTuple):
    """Which rows share a model, and what it may learn from."""

    part: Ints
    """(n,)"""
    number: int
    earlier: bool
    """a part's model learns from the parts before it, or else from all others"""


def folds_of(n: int, folds: int, seed: int) -> Parts:
    """Random folds of a log whose rows are independent."""
    order = Streams([seed]).uniforms("folds", n)()[0].argsort(kind="stable")
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) % folds
    return Parts(part, folds, earlier=False)


def blocks_of(n: int) -> Parts:
    """Blocks in order of collection, each longer than the last: 1, 1, 2, ... rows."""
    ends = np.unique(np.geomspace(1, max(n, 2), _MOST_PARTS).astype(np.int64))
    return Parts(np.searchsorted(ends, np.arange(n), side="right"), len(ends) + 1, earlier=True)


def ridge(features: Floats, group: Ints, groups: int, target: Floats, parts: Parts) -> Floats:
    """Coefficients (parts, groups, d) of ridge regressions of `target` on `features` (n, d), one
    for each part and each group of rows, with a penalty of 1."""
    d = features.shape[1]
    gram, correlation = (
        np.zeros((parts.number * groups, d, d)),
        np.zeros((parts.number * groups, d)),
    )
    cell = parts.part * groups + group
    order = cell.argsort(kind="stable")
    cells, first = np.unique(cell[order], return_index=True)
    for name, rows in zip(cells.tolist(), np.split(order, first[1:]), strict=True):
        x = features[rows]
        gram[name], correlation[name] = x.T @ x, x.T @ target[rows]
    G = _told(gram.reshape(parts.number, groups, d, d), parts.earlier)
    b = _told(correlation.reshape(parts.number, groups, d), parts.earlier)
    theta: Floats = np.linalg.solve(G + np.eye(d), b[..., None])[..., 0]
    return theta


def _told(sums: Floats, earlier: bool) -> Floats:
    """What each part's model learns from, of what the parts hold."""
    whole: Floats = np.cumsum(sums, axis=0) if earlier else sums.sum(axis=0)
    return np.asarray(whole - sums)


def arm_model(context: Floats, action: Ints, reward: Floats, K: int, parts: Parts) -> Floats:
    """Rewards (n, K) predicted for every arm: contexts (n, d), a regression for each arm on (1, x);
    contexts (n, K, d), one on (1, x_a)."""
    x = np.concatenate([np.ones((*context.shape[:-1], 1)), context], axis=-1)
    shared = x.ndim == 3
    played = x[np.arange(len(x)), action] if shared else x
    group = np.zeros_like(action) if shared else action
    theta = ridge(played, group, 1 if shared else K, reward, parts)
    predicted = np.empty((len(x), K))
    for part in range(parts.number):
        rows = parts.part == part
        predicted[rows] = x[rows] @ (theta[part, 0] if shared else theta[part].T)
    return predicted


class PriceModel:
    """Rewards by a quadratic in the price whose coefficients are linear in the context."""

    def __init__(
        self, context: Floats, price: Floats, reward: Floats, ends: Floats, parts: Parts
    ) -> None:
        self._x = np.column_stack([np.ones(len(context)), context])
        self._ends, self._part = ends, parts.part
        zero = np.zeros(len(price), dtype=np.int64)
        self._theta = ridge(self._features(price), zero, 1, reward, parts)[:, 0]

    def __call__(self, price: Floats) -> Floats:
        """(n,) at one price for each row."""
        return np.vecdot(self._features(price), self._theta[self._part])

    def _features(self, price: Floats) -> Floats:
        low, high = self._ends
        b = (2 * price - low - high) / (high - low)  # on [-1, 1]
        powers = np.stack([np.ones_like(b), b, b * b], axis=1)
        return np.asarray((self._x[:, :, None] * powers[:, None]).reshape(len(b), -1))
