"""Lists that are best: for one user by partial sorting, for all by sorting or greedily."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.losses.click_models import ClickModel, PositionBased


def best_value(model: ClickModel, attraction: Floats) -> Floats:
    """Of the best list for attractions (R, N), (R,): their m largest, in the order of weights."""
    m = model.length
    largest = np.partition(attraction, -m, axis=1)[:, -m:]
    placed = np.empty_like(largest)
    placed[:, model.order] = np.flip(np.sort(largest, axis=1), 1)
    return model.expected(placed)


def best_fixed_list(model: ClickModel, attraction: Floats) -> Ints:
    """One list (m,) for users of types s that are as likely as each other, attractions (S, N).

    Where expectations are linear in attractions (position-based), the m items of the largest means:
    exact. Else item by item, each the one that adds most: for a cascade at least 1 - 1/e of what
    the best list has (a submodular function), for others a heuristic.
    """
    if isinstance(model, PositionBased):
        chosen = np.argsort(-attraction.mean(axis=0), kind="stable")[: model.length]
    else:
        chosen = _greedy(model.weights[model.order], attraction)
    best = np.empty_like(chosen)
    best[model.order] = chosen
    return best


def _greedy(weights: Floats, attraction: Floats) -> Ints:
    """Item after item what adds most to the mean of 1 - prod (1 - w_k a)."""
    left, chosen = np.ones(len(attraction)), np.empty(len(weights), np.int64)
    free = np.ones(attraction.shape[1], np.bool_)
    for k, weight in enumerate(weights):
        gain = np.where(free, left @ attraction, -1.0)
        chosen[k] = gain.argmax()
        free[chosen[k]] = False
        left = left * (1 - weight * attraction[:, chosen[k]])
    return chosen


def user_types(taste: int, common: int) -> Floats:
    """All users, (2^(taste - common), taste): 1 in the common places, -1 or 1 in the others."""
    free = taste - common
    signs = 2.0 * (rows(2**free)[:, None] >> rows(free)[None, :] & 1) - 1
    return np.concatenate([np.ones((len(signs), common)), signs], axis=1)
