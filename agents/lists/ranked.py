"""Agents for lists without privacy: LinUCB, Thompson sampling and epsilon-greedy.

What an agent of lists is stands first, and how scores become a list, for all of them.
"""

from math import sqrt

import numpy as np

from dpbandit.agent import Agent, Chance, Least0, Positive
from dpbandit.base import Bools, Floats, Ints, rows
from dpbandit.losses.click_models import ClickModel
from dpbandit.privacy import no_privacy
from dpbandit.privacy.clicks import features, possible_clicks, tastes
from dpbandit.specs.lists import ListSpec

_TOGETHER = 5000
"""Items whose widths are computed at a time, to stay in the processor's cache."""
_LIKELY = 128
"""Items with the largest means, of which it is tried first whether others matter."""
_ROUNDING = 1e-10
"""Of what squares add up to, at least, is a ridge."""


class Lists(Agent[ListSpec]):
    """Show lists and learn from clicks on them.

    Vectors of the items shown are those of the catalogue when they were shown, although a place may
    have got a new item by the time that the clicks are known.
    """

    plays = ListSpec
    clock = 0

    def start(self) -> None:
        _ = self.spec.clicks.weights

    def act(self, context: Floats) -> Ints:
        self.clock = self.spec.catalogue.clock
        return self.choose(context)

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        self.clock = self.spec.catalogue.clock
        return self.choose_among(context, mask)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
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
    theta = theta / sqrt(2)
    scores = spec.catalogue.products(tastes(u) * theta[:, 1:])
    scores += theta[:, :1]
    return scores


def best_lists(scores: Floats, model: ClickModel) -> Ints:
    """The m largest scores (R, N) of each replica in the order in which they are shown, (R, m).

    Of equal scores the lowest items; what is looked at most gets the best of the list.
    """
    left, r = scores.copy(), rows(len(scores))
    lists = np.empty((len(scores), model.length), np.int64)
    for k in range(model.length):
        lists[:, k] = left.argmax(axis=1)
        left[r, lists[:, k]] = -np.inf
    return placed(lists, model)


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

        V = ridge I + sum f^2 phi phi',      b = sum f click phi,      theta = V^-1 b.

    For a position-based model that is unbiased, and of less variance than dividing clicks by f. The
    ridge is at least 1e-10 of all that V can add up to, so that rounding never makes it singular.
    """

    regularization = 1.0

    def start(self) -> None:
        super().start()
        self.ledger = no_privacy("an exact regression of clicks")
        least = _ROUNDING * self.spec.horizon * self.spec.length
        ridge = max(self.regularization, least) * np.eye(self.spec.features)
        self.gram = np.tile(ridge, (self.R, 1, 1))
        self.moment = np.zeros((self.R, self.spec.features))

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        clicks = possible_clicks(self.spec.clicks, clicks)
        f = self.spec.clicks.looked_at(clicks)
        seen = f[..., None] * features(u, vectors)
        self.gram += seen.swapaxes(1, 2) @ seen
        self.moment += np.vecmat(clicks, seen)

    def fitted(self, moment: Floats) -> Floats:
        """V^-1 b of moments b (R, d)."""
        return np.linalg.solve(self.gram, moment[..., None])[..., 0]


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
    """ridge of the regression; less than rounding of its sums is raised to that"""
    diversity: Least0 = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""
    masks = ("public", "user")

    def start(self) -> None:
        super().start()
        self.fit()

    def choose(self, u: Floats) -> Ints:
        # Step 2
        return self.listed(u, products(self.spec, u, self.theta))

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        # Step 2 without the items that are not there
        return self.listed(u, np.where(mask, products(self.spec, u, self.theta), -np.inf))

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        # Step 3, and step 1
        super().learn(u, lists, vectors, clicks)
        self.fit()

    def fit(self) -> None:
        """B with B' B = V^-1, (R, d, d), whose first column is 0 below its first row; theta."""
        backwards = self.gram[:, ::-1, ::-1]
        self.root: Floats = np.linalg.inv(np.linalg.cholesky(backwards))[:, ::-1, ::-1]
        self.theta: Floats = np.vecmat(np.matvec(self.root, self.moment), self.root)

    def listed(self, u: Floats, means: Floats) -> Ints:
        """Lists of the largest bounds, by means (R, N).

        No width is more than the norm of B. So of items whose means are not among the largest it is
        mostly known without their widths that their bounds are less than those of a list.
        """
        spec, N, alpha = self.spec, means.shape[1], self.alpha
        columns = spec.catalogue.items.swapaxes(1, 2)  # (R, q, N) or (1, q, N), as in memory
        if self.diversity or N <= 2 * _LIKELY:
            bounds = means + alpha * widths(self.root, u, columns)
            return diverse_lists(bounds, spec, self.diversity)
        likely = np.sort(np.argpartition(means, N - _LIKELY, axis=1)[:, -_LIKELY:], axis=1)
        mean = np.take_along_axis(means, likely, axis=1)
        bound = mean + alpha * widths(self.root, u, spec.catalogue.vectors(likely).swapaxes(1, 2))
        place = best_lists(bound, spec.clicks)
        lists = np.take_along_axis(likely, place, axis=1)
        longest = np.sqrt(np.linalg.norm(self.root @ self.root.swapaxes(1, 2), axis=(1, 2)))
        others = mean.min(axis=1) + 1.001 * alpha * longest
        doubtful = np.take_along_axis(bound, place, axis=1).min(axis=1) <= others
        if doubtful.any():
            row = columns[doubtful] if len(columns) > 1 else columns
            bounds = means[doubtful] + alpha * widths(self.root[doubtful], u[doubtful], row)
            lists[doubtful] = best_lists(bounds, spec.clicks)
        return lists


def widths(root: Floats, u: Floats, columns: Floats) -> Floats:
    """`|B phi|`, (R, n), of B (R, d, d), phi = (1, u v) / sqrt(2), v from (R, q, n) or (1, q, n).

    In the first column of B only the first entry counts.
    """
    root = root / sqrt(2)
    root[:, :, 1:] *= tastes(u)[:, None]
    square = np.empty((len(u), columns.shape[2]))
    many = max(1, _TOGETHER // square.shape[1])
    scratch = np.empty((many, root.shape[1], square.shape[1]))
    for first in range(0, len(u), many):
        some = slice(first, first + many)
        v = columns[some] if len(columns) > 1 else columns
        found = np.matmul(root[some, :, 1:], v, out=scratch[: len(root[some])])
        found[:, 0] += root[some, 0, :1]
        np.einsum("rdn,rdn->rn", found, found, out=square[some])
    return np.sqrt(square, out=square)


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
    """ridge of the regression; less than rounding of its sums is raised to that"""

    def start(self) -> None:
        super().start()
        self.normals = self.streams.normals("posterior", self.spec.features)

    def choose(self, u: Floats) -> Ints:
        noise = np.matvec(np.linalg.cholesky(self.gram), self.normals())  # of covariance V
        theta = self.fitted(self.moment + self.alpha * noise)
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
    """ridge of the regression; less than rounding of its sums is raised to that"""

    def start(self) -> None:
        super().start()
        self.coin, self.random = self.streams.uniforms("coin"), self.spec.uniform(self.streams)

    def choose(self, u: Floats) -> Ints:
        theta = self.fitted(self.moment)
        best = best_lists(products(self.spec, u, theta), self.spec.clicks)
        return np.where((self.coin() < self.exploration)[:, None], self.random(), best)
