"""Agents for lists without privacy: LinUCB, Thompson sampling and epsilon-greedy.

`Lists`, the base class of agents for lists, and functions from scores to lists come first.
"""

from math import sqrt

import numpy as np

from dpbandit.agent import Agent, Chance, Least0, Positive
from dpbandit.base import Bools, Floats, Ints, rows
from dpbandit.losses.click_models import ClickModel
from dpbandit.privacy import no_privacy
from dpbandit.privacy.clicks import features, possible_clicks, tastes
from dpbandit.specs.lists import ListSpec

_WIDTHS_CHUNK = 5000
"""Number of items whose confidence widths are computed at once, so that they fit the cache."""
_CANDIDATES = 128
"""Number of items with the largest means; their bounds are always computed."""
_RIDGE_SHARE = 1e-10
"""Smallest ridge divided by the largest possible sum of squares, against rounding errors."""


class Lists(Agent[ListSpec]):
    """Base class of agents that show lists and learn from clicks.

    Items of the catalogue may be replaced before the clicks on a list arrive: an agent learns from
    the feature vectors that the items had when the list was shown.
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
        """Return lists (R, m) of m items for users with q features u, (R, q)."""
        raise NotImplementedError

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        """Return lists (R, m) of available items, a mask (R, N), for users' features u (R, q)."""
        raise NotImplementedError

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        """Learn from features (R, q), lists (R, m), item vectors (R, m, q) and clicks (R, m)."""
        raise NotImplementedError


def products(spec: ListSpec, u: Floats, theta: Floats) -> Floats:
    """Return the scores (R, N) of all items for users' features u (R, q), parameters (R, 1 + q)."""
    theta = theta / sqrt(2)
    scores = spec.catalogue.products(tastes(u) * theta[:, 1:])
    scores += theta[:, :1]
    return scores


def best_lists(scores: Floats, model: ClickModel) -> Ints:
    """Return the m items with the largest scores (R, N) in the order of display, (R, m).

    Ties go to the lowest item; the best item gets the position that most users look at.
    """
    left, r = scores.copy(), rows(len(scores))
    lists = np.empty((len(scores), model.length), np.int64)
    for k in range(model.length):
        lists[:, k] = left.argmax(axis=1)
        left[r, lists[:, k]] = -np.inf
    return placed(lists, model)


def diverse_lists(scores: Floats, spec: ListSpec, weight: float) -> Ints:
    """Return lists (R, m) chosen greedily by score minus `weight` x similarity to listed items.

    Similarity is the largest product of item vectors. Weight 0 is `best_lists`.
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
    """Return lists (R, m), given best item first, with better items where more users look."""
    if (np.diff(model.weights) <= 0).all():
        return lists
    found = np.empty_like(lists)
    found[:, model.order] = lists
    return found


class ClickRegression(Lists):
    """Base class of agents that regress clicks on f phi, with features phi of user and item::

        V = ridge I + sum f^2 phi phi',      b = sum f click phi,      theta = V^-1 b.

    f is the known weight of an item's position. In a position-based model theta is unbiased, with
    less variance than from clicks / f. The ridge is at least 1e-10 of the largest possible sum, so
    that rounding never makes V singular.
    """

    regularization = 1.0

    def start(self) -> None:
        super().start()
        self.ledger = no_privacy("an exact regression of clicks")
        least = _RIDGE_SHARE * self.spec.horizon * self.spec.length
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
        """Return the solution V^-1 b of the regression for moments b (R, d)."""
        return np.linalg.solve(self.gram, moment[..., None])[..., 0]


class RankedLinUCB(ClickRegression):
    """Show the items with the largest upper confidence bounds of a regression of clicks.

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinUCB, if users follow a cascade. For other click models it regresses on the
    positions that are known to have been looked at::

        1. theta, V = the regression of clicks on f phi, f position weights, phi item features
        2. list the m largest phi . theta + alpha sqrt(phi' V^-1 phi), the largest where most look
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
    """ridge of the regression, raised to the rounding error of the sums if it is smaller"""
    diversity: Least0 = 0.0
    """penalty in clicks of an item for similarity to a listed one; 0 ranks by relevance alone"""
    masks = ("public", "user")

    def start(self) -> None:
        super().start()
        self.fit()

    def choose(self, u: Floats) -> Ints:
        # Step 2
        return self.listed(u, products(self.spec, u, self.theta))

    def choose_among(self, u: Floats, mask: Bools) -> Ints:
        # Step 2 without unavailable items
        return self.listed(u, np.where(mask, products(self.spec, u, self.theta), -np.inf))

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        # Step 3, and step 1
        super().learn(u, lists, vectors, clicks)
        self.fit()

    def fit(self) -> None:
        """Compute theta, and a root B of the inverse Gram matrix B' B, with B[1:, 0] = 0."""
        backwards = self.gram[:, ::-1, ::-1]
        self.root: Floats = np.linalg.inv(np.linalg.cholesky(backwards))[:, ::-1, ::-1]
        self.theta: Floats = np.vecmat(np.matvec(self.root, self.moment), self.root)

    def listed(self, u: Floats, means: Floats) -> Ints:
        """Return lists (R, m) of the items with the largest bounds, for means (R, N).

        A width is at most the root's norm. So items with small means are mostly ruled out without
        computing their widths.
        """
        spec, N, alpha = self.spec, means.shape[1], self.alpha
        columns = spec.catalogue.items.swapaxes(1, 2)  # (R, q, N) or (1, q, N), as in memory
        if self.diversity or N <= 2 * _CANDIDATES:
            bounds = means + alpha * widths(self.root, u, columns)
            return diverse_lists(bounds, spec, self.diversity)
        likely = np.sort(np.argpartition(means, N - _CANDIDATES, axis=1)[:, -_CANDIDATES:], axis=1)
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
    """Return `|B phi|`, (R, n), for B (R, d, d), phi = (1, u v) / sqrt(2), v (R or 1, q, n).

    B is `root`, u users' features, v n items' vectors. B[1:, 0] is 0.
    """
    root = root / sqrt(2)
    root[:, :, 1:] *= tastes(u)[:, None]
    square = np.empty((len(u), columns.shape[2]))
    many = max(1, _WIDTHS_CHUNK // square.shape[1])
    scratch = np.empty((many, root.shape[1], square.shape[1]))
    for first in range(0, len(u), many):
        some = slice(first, first + many)
        v = columns[some] if len(columns) > 1 else columns
        found = np.matmul(root[some, :, 1:], v, out=scratch[: len(root[some])])
        found[:, 0] += root[some, 0, :1]
        np.einsum("rdn,rdn->rn", found, found, out=square[some])
    return np.sqrt(square, out=square)


class RankedLinTS(ClickRegression):
    """Draw the parameter of a click model from its posterior and show the items it scores highest.

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinTS, if users follow a cascade; for other click models it has the regression
    of `RankedLinUCB`. The posterior is N(V^-1 b, alpha^2 V^-1), see `ClickRegression`.

    Guarantee:
        None: exact data reaches later lists.
    """

    alpha: Least0 = 0.2
    """width of the posterior, in clicks; 0 is greedy"""
    regularization: Positive = 1.0
    """ridge of the regression, raised to the rounding error of the sums if it is smaller"""

    def start(self) -> None:
        super().start()
        self.normals = self.streams.normals("posterior", self.spec.features)

    def choose(self, u: Floats) -> Ints:
        noise = np.matvec(np.linalg.cholesky(self.gram), self.normals())  # of covariance V
        theta = self.fitted(self.moment + self.alpha * noise)
        return best_lists(products(self.spec, u, theta), self.spec.clicks)


class RankedEpsilonGreedy(ClickRegression):
    """Show the list with the best predicted clicks; with probability `exploration` a random one.

    Sutton and Barto, "Reinforcement learning", 2nd ed. 2018, section 2.4, on a regression of
    clicks.

    Guarantee:
        None: exact data reaches later lists.
    """

    exploration: Chance = 0.05
    """probability of a random list, in [0, 1]"""
    regularization: Positive = 1.0
    """ridge of the regression, raised to the rounding error of the sums if it is smaller"""

    def start(self) -> None:
        super().start()
        self.coin, self.random = self.streams.uniforms("coin"), self.spec.uniform(self.streams)

    def choose(self, u: Floats) -> Ints:
        theta = self.fitted(self.moment)
        best = best_lists(products(self.spec, u, theta), self.spec.clicks)
        return np.where((self.coin() < self.exploration)[:, None], self.random(), best)
