"""Agents for sets of products without privacy: MNL-UCB, MNL-TS and MNL-Bandit.

`Offer` and its helpers come first; private agents (private_mnl.py) use them, too.
"""

from dataclasses import InitVar
from math import ceil, inf, sqrt
from typing import NamedTuple

import numpy as np

from dpbandit.agent import Agent, Count, Least0, Positive
from dpbandit.base import Bools, Floats, InputError, Ints, abbrev, norms, rows
from dpbandit.privacy import no_privacy
from dpbandit.specs.choice import AssortmentSpec, best_levels, chances, weights

_FIT_GROWTH = 1.1
"""Factor of the number of rounds from one fit to the next, so that there are O(log T) fits."""
_NEWTON_STEPS = 3
"""Number of Newton steps of a fit, which starts at the previous estimate."""
_WINDOW_ROUNDS = 512
"""Largest number of rounds stored exactly; earlier ones enter by a quadratic approximation."""
_FIT_CHUNK = 1 << 18
"""Number of entries added up at once; fixed, as results must not vary with the replica count."""
_CACHE_ENTRIES = 1 << 17
"""Number of entries of the replicas that are added up together; affects only the speed."""
NOT_PRIVATE = (  # reason why MNLBandit has no guarantee
    "an epoch ends when somebody buys nothing, so the next user's set shows whether the last one "
    "bought, whatever noise is added to counts: delta >= 1 - p at every epsilon, p the chance that "
    "the next epoch's set is the same"
)


class Offer(NamedTuple):
    """Offers to users of at most S products, with D features each, and the purchases."""

    rows: Floats
    """features of the offered products, (..., S, D); 0 in empty slots"""
    there: Bools
    """mask of the slots with a product, (..., S)"""
    bought: Ints
    """slot of the purchased product, (...,); S if no offered product was bought"""


def offer_of(spec: AssortmentSpec, context: Floats, action: Ints, choice: Floats) -> Offer:
    """Return the `Offer` for contexts `(..., *context_shape)`, sets (..., N) and choices (...)."""
    S = spec.at_most
    product = np.argsort(action == 0, axis=-1, kind="stable")[..., :S]  # offered ones first
    level = np.take_along_axis(action, product, axis=-1)
    there = level > 0
    flat = spec.rows(context).reshape(-1, spec.row_dim)  # of all products at all prices
    first = rows(choice.size).reshape(*choice.shape, 1) * (spec.n_products * spec.levels)
    x = flat[first + product * spec.levels + np.maximum(level - 1, 0)] * there[..., None]
    bought_row = (product == choice[..., None]) & there
    return Offer(x, there, np.where(bought_row, rows(S), S).min(axis=-1))


def items_of(spec: AssortmentSpec, action: Ints) -> Bools:
    """Return masks (..., N P) of items, N products at P prices, for sets (..., N) of prices."""
    chosen = action[..., None] == np.arange(1, spec.levels + 1)
    return chosen.reshape(*action.shape[:-1], -1)


def item_bought(spec: AssortmentSpec, action: Ints, choice: Floats) -> Ints:
    """Return the bought item's number (...) among N products x P prices, from 0; N P for none."""
    known = (choice >= 0) & (choice < spec.n_products) & (choice == np.floor(choice))
    product = np.where(known, choice, 0).astype(np.int64)
    level = np.take_along_axis(action, product[..., None], axis=-1)[..., 0]
    item = product * spec.levels + level - 1
    return np.where(known & (level > 0), item, spec.n_products * spec.levels)


class Assortments(Agent[AssortmentSpec]):
    """Base class of agents that offer random sets while `exploring`, then the best known set."""

    plays = AssortmentSpec
    exploring = True

    def act(self, context: Floats) -> Ints:
        if self.exploring:
            return self.random()
        return self.best(weights(self.utility(context)))

    def explore(self) -> None:
        """Prepare the random sets of the exploration."""
        self.random = self.spec.uniform(self.streams)

    def utility(self, context: Floats) -> Floats:
        """Return the utilities (R, N, P) of N products at P prices."""
        raise NotImplementedError

    def best(self, v: Floats) -> Ints:
        """Return the sets (R, N) with the largest expected margin for weights v = exp(utility)."""
        table = self.spec.margin_table
        return best_levels(v.reshape(-1, *table.shape), table, self.spec.at_most)[0]


class LikelihoodFits(Assortments):
    """Base class of agents that refit a logit to all choices, in memory that does not grow.

    Up to 512 recent rounds are stored and enter every Newton step exactly. When 512 are stored,
    m and G add up their log-likelihood's expansion at the fitted theta, with information H::

        m += score + H theta,  G += H          log-likelihood = m . theta - theta' G theta / 2
    """

    alpha: Least0 = 0.5
    """width of exploration, in standard deviations of the estimate; 0 is greedy"""
    first_batch: Count = 30
    """rounds of random sets at the start"""
    regularization: Positive = 1.0
    """ridge of the likelihood, > 0"""

    def start(self) -> None:
        self.ledger = no_privacy("exact choices")
        self.explore()
        R, S, D = self.R, self.spec.at_most, self.spec.row_dim
        # Rounds are the last axis, as sums run over rounds
        n = min(_WINDOW_ROUNDS, self.spec.horizon)
        self.offers = Offer(
            np.zeros((R, S, D, n)), np.zeros((R, S, n), bool), np.zeros((R, n), int)
        )
        self.seen, self.round, self.next_release = 0, 0, self.first_batch
        self.G: Floats = np.tile(self.regularization * np.eye(D), (self.R, 1, 1))
        self.m: Floats = np.zeros((self.R, D))
        self.theta: Floats = np.zeros((self.R, D))
        self.root = np.tile(np.eye(D) / np.sqrt(self.regularization), (self.R, 1, 1))
        """inverse of the Cholesky factor of the information matrix, for widths |root x|"""

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        k, full = self.seen, self.offers.bought.shape[1]
        for stored, new in zip(
            self.offers, offer_of(self.spec, context, action, feedback), strict=True
        ):
            stored[..., k] = new
        self.seen, self.round = k + 1, self.round + 1
        if self.round < self.next_release and self.seen < full:
            return
        for _ in range(_NEWTON_STEPS):
            self.newton()
        score, H = self.derivatives()
        self.root = np.linalg.inv(np.linalg.cholesky(H))
        if self.seen == full:
            self.m, self.G, self.seen = score + np.matvec(H, self.theta), H, 0
        if self.round >= self.next_release:
            self.next_release, self.exploring = ceil(_FIT_GROWTH * self.next_release), False

    def newton(self) -> None:
        """Move the estimate theta by one Newton step."""
        score, H = self.derivatives()
        self.theta = self.theta + np.linalg.solve(H, score[..., None])[..., 0]

    def derivatives(self) -> tuple[Floats, Floats]:
        """Return the gradient (R, D) of the log-likelihood and minus its Hessian, with ridge."""
        score, H = self.m - np.matvec(self.G, self.theta), self.G.copy()
        many = max(1, _FIT_CHUNK // (self.spec.at_most * self.spec.row_dim))
        for first in range(0, self.seen, many):
            last = min(first + many, self.seen)
            size = (last - first) * self.spec.at_most * self.spec.row_dim
            together = max(1, _CACHE_ENTRIES // size)
            for r in range(0, self.R, together):
                few = slice(r, r + together)
                some = Offer._make(stored[few, ..., first:last] for stored in self.offers)
                gradient, information = derivatives_of(self.theta[few], some)
                score[few] += gradient
                H[few] += information
        return score, H


def derivatives_of(theta: Floats, offers: Offer) -> tuple[Floats, Floats]:
    """Return score (R, D) and information (R, D, D) at theta (R, D), summed over the offers."""
    x, there, bought = offers  # (R, S, D, n), (R, S, n), (R, n)
    p = chances(weights(np.vecmat(theta[:, None], x)), there, axis=1)
    bought_row = bought[:, None] == rows(x.shape[1])[:, None]
    score = np.matvec(x, bought_row - p).sum(axis=1)
    weighted = x * p[:, :, None]
    information = (x @ weighted.swapaxes(2, 3)).sum(axis=1)
    xbar = weighted.sum(axis=1)
    information -= xbar @ xbar.swapaxes(1, 2)
    return score, information


class MNLUCB(LikelihoodFits):
    """Offer the best set under a multinomial logit with optimistic utilities.

    After Oh and Iyengar, "Multinomial logit contextual bandits: provable optimality and
    practicality", AAAI 2021::

        1. random sets for `first_batch` users
        2. theta maximises the likelihood of all choices so far
        3. u_j = x_j . theta + alpha |x_j|_{H^-1}, x_j features of j, H the information so far
        4. offer the set (and the prices) of the largest expected margin under u, exactly

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. There is a ridge; a fit has three Newton steps, and is made when data have grown by a
           tenth; at most the last 512 users are stored (`LikelihoodFits`).
        2. `alpha` is a number, not a confidence radius that grows with t.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"MNLUCB": MNLUCB()}, horizon=300,
    ...                   replicas=2, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["MNLUCB"] < mean["Uniform"] / 2)
    True
    """

    def utility(self, context: Floats) -> Floats:
        # Step 3
        x = self.spec.rows(context)  # (R, N, P, D)
        wide = norms(np.matvec(self.root[:, None, None], x))[..., 0]
        return np.vecdot(x, self.theta[:, None, None]) + self.alpha * wide


class MNLTS(LikelihoodFits):
    """Offer the best set under a multinomial logit whose parameter is drawn for every user.

    After Oh and Iyengar, "Thompson sampling for multinomial logit contextual bandits", NeurIPS
    2019::

        1. random sets for `first_batch` users
        2. theta maximises the likelihood of all choices so far
        3. theta~ = theta + alpha H^{-1/2} xi, xi standard normal, H the information so far
        4. offer the set (and the prices) of the largest expected margin under theta~, exactly

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. There is a ridge; a fit has three Newton steps, and is made when data have grown by a
           tenth; at most the last 512 users are stored (`LikelihoodFits`).
        2. There is one draw for each user, not several; `alpha` is a number.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"MNLTS": MNLTS()}, horizon=300,
    ...                   replicas=2, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["MNLTS"] < mean["Uniform"] / 2)
    True
    """

    def start(self) -> None:
        super().start()
        self.normals = self.streams.normals("posterior", self.spec.row_dim)

    def utility(self, context: Floats) -> Floats:
        # Under step 3's parameter
        drawn = self.theta + self.alpha * np.vecmat(self.normals(), self.root)
        return np.vecdot(self.spec.rows(context), drawn[:, None, None])


class MNLBandit(Assortments):
    """Offer an optimistic set until a user buys nothing, then choose a new one.

    Agrawal, Avadhanula, Goyal and Zeevi, "MNL-Bandit: a dynamic learning approach to assortment
    selection", Operations Research 2019, Algorithm 1, for products with weights v_j <= 1
    (buying nothing has 1), without contexts::

        epoch l = 1, 2, ..., with v_j = 1 before the first epoch with j
          1. offer the best set A for v, exactly, until somebody buys nothing
          2. of each j in A count the purchases in the epoch; their mean over the T_j epochs with
             j, vbar_j, is unbiased for v_j
          3. v_j = vbar_j + sqrt(C vbar_j L / T_j) + C L / T_j, L = ln(sqrt(N) l + 1), N products

    Guarantee:
        None, and no noise on counts would help. Suppose that the next epoch's set differs from A_t,
        the set of user t, with probability 1 - p whatever was counted, and that user t - 1 bought,
        so that A_t = A_{t-1}. Then A_{t+1} != A_{t-1}, which user t + 1 sees, has probability 0 if
        user t buys and 1 - p if she does not: delta >= 1 - p at every epsilon. A finite `epsilon`
        is refused; `MNLCounts` has public batches in place of epochs. With noise on the END of an
        epoch it would be another algorithm.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"epochs": MNLBandit(confidence=1.0)},
    ...                   horizon=600, replicas=2, progress=False,
    ...                   env_kwargs={"contexts": "constant"})
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["epochs"] < mean["Uniform"] / 4)
    True
    """

    confidence: Positive = 48.0
    """constant C of the confidence bounds, by default the paper's; 1 learns much faster"""
    epsilon: InitVar[float] = inf
    """always inf; other values are refused, because epochs are not private"""

    def __post_init__(self, epsilon: float) -> None:
        super().__post_init__()
        if not (isinstance(epsilon, float) and epsilon == inf):
            raise InputError(
                f"Expected epsilon={abbrev(epsilon)} of MNLBandit to be inf: {NOT_PRIVATE}. "
                "Use MNLCounts."
            )

    def start(self) -> None:
        # Optimistic start: all v = 1
        self.ledger = no_privacy(NOT_PRIVATE)
        items = self.spec.n_products * self.spec.levels
        self.purchases, self.epochs = np.zeros((2, self.R, items))
        self.here = np.zeros((self.R, items))  # purchases in this epoch
        self.epoch = np.ones(self.R)
        self.sets = self.best(np.ones((self.R, items)))

    def act(self, context: Floats) -> Ints:
        return self.sets.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        items = self.here.shape[1]
        bought = item_bought(self.spec, action, feedback)
        sold, over = np.flatnonzero(bought < items), np.flatnonzero(bought == items)
        self.here[sold, bought[sold]] += 1
        if not over.size:
            return
        self.epochs[over] += items_of(self.spec, action[over])
        self.purchases[over] += self.here[over]
        self.here[over] = 0
        self.epoch[over] += 1
        T, L = np.maximum(self.epochs[over], 1), np.log(sqrt(items) * self.epoch[over] + 1)[:, None]
        v, C = self.purchases[over] / T, self.confidence
        hopeful = v + np.sqrt(C * v * L / T) + C * L / T
        self.sets[over] = self.best(np.where(self.epochs[over] > 0, hopeful, 1.0))
