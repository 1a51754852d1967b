"""Agents for lists without privacy: LinUCB, Thompson sampling and epsilon-greedy.

What an agent of lists is stands first, and how scores become a list, for all of them.
"""

from math import sqrt

import numpy as np

from dpbandit.agent import Agent, Chance, Least0, Positive
from dpbandit.base import Bools, Floats, Ints, rows
from dpbandit.losses.click_models import ClickModel
from dpbandit.privacy import no_privacy
from dpbandit.privacy.clicks import features, possible_clicks
from dpbandit.specs import ListSpec

_TOGETHER = 5000
"""Items whose widths are computed at a time, to stay in the processor's cache."""


class Lists(Agent[ListSpec]):
    """Show lists and learn from clicks on them.

    Vectors of the items shown are those of the catalogue when they were shown, although a place may
    have got a new item by the time that the clicks are known.
    """

    plays = ListSpec
    clock = 0

    def start(self) -> None:
        """Refuse click models whose weights nobody is told."""
        _ = self.spec.clicks.weights

    def act(self, context: Floats) -> Ints:
        """Lists (R, m) for users (R, q)."""
        self.clock = self.spec.catalogue.clock
        return self.choose(context)

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        """Lists (R, m) of items that are there, by masks (R, N)."""
        self.clock = self.spec.catalogue.clock
        return self.choose_among(context, mask)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from clicks (R, m)."""
        vectors = self.spec.catalogue.vectors(action, self.clock)
        self.learn(context, action, vectors, feedback)

    def choose(self, u: Floats) -> Ints:
        """Lists (R, m) for users (R, q)."""
        raise NotImplementedError

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        """Lists of items that are there."""
        raise NotImplementedError

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        """Take in users, their lists (R, m), vectors of these (R, m, q) and clicks (R, m)."""
        raise NotImplementedError


def products(spec: ListSpec, u: Floats, theta: Floats) -> Floats:
    """phi . theta of every item, (R, N), for users u (R, q) and parameters theta (R, 1 + q)."""
    mine = np.where(np.isfinite(u), u, 0.0).clip(-1, 1) * theta[:, 1:]
    return (theta[:, :1] + spec.catalogue.products(mine)) / np.sqrt(2)


def best_lists(scores: Floats, model: ClickModel) -> Ints:
    """The m largest scores (R, N) of each replica in the order in which they are shown, (R, m).

    Of equal scores the lowest items; what is looked at most gets the best of the list.
    """
    m = model.length
    least = np.partition(scores, -m, axis=1)[:, -m, None]
    found = scores >= least
    tied = np.count_nonzero(found, axis=1) > m
    if tied.any():
        last, better = scores[tied] == least[tied], scores[tied] > least[tied]
        left = m - np.count_nonzero(better, axis=1, keepdims=True)
        found[tied] = better | (last & (np.cumsum(last, axis=1) <= left))
    chosen = (np.flatnonzero(found) % scores.shape[1]).reshape(-1, m)
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    best = np.take_along_axis(chosen, order, axis=1)
    return placed(best, model)


def diverse_lists(scores: Floats, spec: ListSpec, weight: float) -> Ints:
    """Item by item the largest score - `weight` times its largest v_i . v_j with one before it.

    With weight 0 that is `best_lists`.
    """
    if weight == 0:
        return best_lists(scores, spec.clicks)
    R, r = len(scores), rows(len(scores))
    lists = np.empty((R, spec.length), np.int64)
    likeness: Floats = np.zeros(scores.shape)
    left = scores.copy()
    for k in range(spec.length):
        lists[:, k] = (left - weight * likeness).argmax(axis=1)
        left[r, lists[:, k]] = -np.inf
        alike = spec.catalogue.products(spec.catalogue.vectors(lists[:, k : k + 1])[:, 0])
        likeness = np.maximum(likeness, alike) if k else alike
    return placed(lists, spec.clicks)


def placed(lists: Ints, model: ClickModel) -> Ints:
    """Lists (R, m), best first, with the best where most look."""
    if (np.diff(model.weights) <= 0).all():
        return lists
    found = np.empty_like(lists)
    found[:, model.order] = lists
    return found


class ClickRegression(Lists):
    """Least squares of clicks on f phi, f what an item's position is known to have been worth::

        V = I + sum f^2 phi phi',      b = sum f click phi,      theta = V^-1 b.

    For a position-based model that is unbiased, and of less variance than dividing clicks by f.
    """

    regularization = 1.0

    def start(self) -> None:
        """Start without a fit."""
        super().start()
        self.ledger = no_privacy("an exact regression of clicks")
        R, d, ridge = self.R, self.spec.features, self.regularization
        self.gram = np.tile(ridge * np.eye(d), (R, 1, 1))
        self.moment = np.zeros((R, d))
        self.root = np.tile(np.eye(d) / sqrt(ridge), (R, 1, 1))
        """B with B' B = V^-1, (R, d, d)"""
        self.theta: Floats = np.zeros((R, d))

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        """Add the positions that were looked at, and fit."""
        phi = features(u, vectors)
        clicks = possible_clicks(self.spec.clicks, clicks)
        f = self.spec.clicks.looked_at(clicks)
        seen = f[..., None] * phi
        self.gram += seen.swapaxes(1, 2) @ seen
        self.moment += np.vecmat(clicks, seen)
        eigenvalues, Q = np.linalg.eigh(self.gram)
        eigenvalues = np.maximum(eigenvalues, self.regularization)  # but for rounding they are
        self.root = (Q / np.sqrt(eigenvalues)[:, None]).swapaxes(1, 2)
        self.theta = np.vecmat(np.matvec(self.root, self.moment), self.root)


class RankedLinUCB(ClickRegression):
    """Show the m items with the largest upper bounds phi . theta + alpha sqrt(phi' V^-1 phi).

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinUCB, where users follow a cascade; for the other click models the same
    regression on what is known to have been looked at::

        1. theta, V = the regression of clicks on f phi
        2. list the m largest bounds, the largest where most look
        3. learn from the positions that were looked at

    Guarantee:
        None: exact data reaches later lists.

    Differs from the paper:
        1. Position weights f enter the regression; in a cascade they are 1.
        2. Ties go to the lowest items.
    """

    alpha: Least0 = 0.2
    """width of the bounds, in clicks; 0 is greedy"""
    regularization: Positive = 1.0
    """ridge of the regression"""
    diversity: Least0 = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""
    masks = ("public", "user")

    def choose(self, u: Floats) -> Ints:
        """Step 2."""
        return diverse_lists(self.upper(u), self.spec, self.diversity)

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        """Step 2 without the items that are not there."""
        scores = np.where(mask, self.upper(u), -np.inf)
        return diverse_lists(scores, self.spec, self.diversity)

    def upper(self, u: Floats) -> Floats:
        """Upper bounds of all items, (R, N)."""
        scores = products(self.spec, u, self.theta)
        if self.alpha:
            scores += self.alpha * self.widths(u)
        return scores

    def widths(self, u: Floats) -> Floats:
        """`|B phi|` of every item, phi = (1, u v) / sqrt(2), (R, N), some thousands at a time."""
        u = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
        root = self.root / sqrt(2)
        items = self.spec.catalogue.items
        square = np.empty((len(u), items.shape[1]))
        for r, B in enumerate(root):
            first, own, v = B[:, :1], B[:, 1:] * u[r], items[r if len(items) > 1 else 0]
            for start in range(0, len(v), _TOGETHER):
                some = slice(start, start + _TOGETHER)
                found = first + own @ v[some].T
                np.einsum("dn,dn->n", found, found, out=square[r, some])
        return np.sqrt(square)


class RankedLinTS(ClickRegression):
    """Draw theta from N(V^-1 b, alpha^2 V^-1) and show the m items with the largest phi . theta.

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinTS, where users follow a cascade; for the other click models as
    `RankedLinUCB` is.

    Guarantee:
        None: exact data reaches later lists.
    """

    alpha: Least0 = 0.2
    """standard deviations of the posterior, in clicks"""
    regularization: Positive = 1.0
    """ridge of the regression"""

    def start(self) -> None:
        """Start without a fit, and open the stream of draws."""
        super().start()
        self.luck = self.streams.normals("posterior", self.spec.features)

    def choose(self, u: Floats) -> Ints:
        """The best list of a drawn parameter."""
        theta = self.theta + self.alpha * np.vecmat(self.luck(), self.root)
        return best_lists(products(self.spec, u, theta), self.spec.clicks)


class RankedEpsilonGreedy(ClickRegression):
    """Show the list of best predicted clicks; with probability `exploration` a random one.

    Sutton and Barto, "Reinforcement learning", 2nd ed. 2018, section 2.4, on a regression of
    clicks.

    Guarantee:
        None: exact data reaches later lists.
    """

    exploration: Chance = 0.05
    """probability of a random list, in [0, 1]"""
    regularization: Positive = 1.0
    """ridge of the regression"""

    def start(self) -> None:
        """Start without a fit, and open the stream of coins."""
        super().start()
        self.coin, self.random = self.streams.uniforms("coin"), self.spec.uniform(self.streams)

    def choose(self, u: Floats) -> Ints:
        """The best list, or a random one."""
        best = best_lists(products(self.spec, u, self.theta), self.spec.clicks)
        return np.where((self.coin() < self.exploration)[:, None], self.random(), best)
