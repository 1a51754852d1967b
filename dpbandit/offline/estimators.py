"""Estimators of a policy's mean reward, as the mean of one term for each row of a log.

From a log of finitely many arms, with reward r of arm a at context x, the arm's propensity p and
weight w = pi(a | x) / p under the policy pi, q a model of the reward, q_pi = sum_a pi(a | x)
q(x, a), e a feature of arms and M = `clip`; "support" means that p > 0 where pi(a | x) > 0::

    ips          w r                                      unbiased with support
    clipped-ips  min(w, M) r                              biased by -E[(w - M)+ r]
    snips        w r / mean(w)                            consistent
    dm           q_pi                                     unbiased if q is right
    dr           q_pi + w (r - q)                         unbiased with support
    clipped-dr   q_pi + min(w, M) (r - q)                 biased where w > M by q's error
    sndr         q_pi + w (r - q) / mean(w)               consistent
    switch-dr    q_pi + w 1(w <= M) (r - q)               biased where w > M by q's error
    dros         q_pi + l w / (w^2 + l) (r - q)           l = `shrinkage`; dr if l is infinite
    mips         r P_pi(e | x) / P_log(e | x)             unbiased if r depends on a through e alone

ips: Horvitz and Thompson, 1952. dr: Dudik, Langford and Li, ICML 2011. snips: Swaminathan and
Joachims, NeurIPS 2015. switch: Wang, Agarwal and Dudik, ICML 2017. dros: Su, Dimakopoulou,
Krishnamurthy and Dudik, ICML 2020. mips: Saito and Joachims, ICML 2022.

From a log of lists, the mean number of clicks, unbiased if clicks are as the right column says. r_k
is the click at position k of m, w_k is pi / p of items 1..k, q_k is a model of clicks::

    ips              w_m sum_k r_k                              always
    independent-ips  sum_k r_k pi(a_k at k) / p(a_k at k)       r_k depends on item k alone
    interaction-ips  sum_k w_k r_k                              r_k depends on items 1..k
    cascade-dr       sum_k w_k (r_k - q_k(a_k)) + w_{k-1} sum_a pi(a | a_<k) q_k(a)      the same

Li et al., KDD 2018 (independent); McInerney et al., KDD 2020 (interaction); Kiyohara et al., WSDM
2022 (cascade-dr). In cascade-dr q_k may model the click at position k or all clicks from k on:
given the items above, the second term of position k has the mean of w_k q_k(a_k) either way.

From a log of prices b drawn from a density p, with weight k = K((pi(x) - b) / h) / (h p), K a
kernel and h a bandwidth in dollars::

    ips     k r                                    bias of order h^2
    snips   k r / mean(k)                          the same
    dr      q(x, pi(x)) + k (r - q(x, b))          bias of order h^2, in the error of q alone

Kallus and Zhou, "Policy evaluation and optimization with continuous treatments", AISTATS 2018. If a
policy draws its price, terms are means over its draws.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError, Ints, Streams, positive
from dpbandit.offline.policies import ListLaw


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of an estimate, mean(base) + sum(excess) / N, with N the number of rows.

    If `normalised`, N is the sum of weights, whose randomness `errors` take into account.
    """

    base: Floats
    """unweighted parts of the terms, (n,), such as a model's value of the policy"""
    excess: Floats
    """weighted parts of the terms, (n,), multiplied by their weights"""
    weight: Floats
    """weights, (n,), of mean 1 if the log's probabilities are true"""
    normalised: bool = False

    @property
    def values(self) -> Floats:
        """Terms (n,) whose mean is the estimate."""
        return self.base + self.excess / self._normaliser

    @property
    def estimate(self) -> float:
        """Estimate of the mean reward; NaN if `normalised` and all weights are 0."""
        return float(self.values.mean())

    @property
    def errors(self) -> Floats:
        """Contributions (n,) of rows to the estimate's error, to first order; their mean is 0."""
        if not self.normalised:
            return self.values - self.estimate
        ratio = self.excess.sum() / (self.weight.sum() or np.nan)
        drift = (self.excess - self.weight * ratio) / self._normaliser
        return np.asarray(self.base - self.base.mean() + drift)

    @property
    def effective(self) -> float:
        """Effective sample size, (sum w)^2 / sum w^2 of the weights w."""
        squares = float(np.square(self.weight).sum())
        return float(self.weight.sum()) ** 2 / squares if squares else 0.0

    @property
    def matches(self) -> int:
        """Number of rows whose weight is not 0."""
        return int(np.count_nonzero(self.weight))

    @property
    def weights_are_off(self) -> bool:
        """True if the mean weight is > 4 standard errors from 1, with 10 or more weights > 0."""
        n = len(self.weight)
        room = 4 * float(self.weight.std()) / n**0.5 + 1e-6
        return self.matches >= 10 and abs(float(self.weight.mean()) - 1) > room

    @property
    def _normaliser(self) -> float:
        mean = float(self.weight.mean()) if self.normalised else 1.0
        return mean or np.nan


_MAX_PARTS = 60
"""Largest number of blocks of an adaptive log, each predicted by a model of the earlier blocks."""


class Parts(NamedTuple):
    """Split of n rows into parts; the model of a part does not learn from the part's rows."""

    part: Ints
    """number of the part of each row, (n,)"""
    number: int
    earlier: bool
    """True if the model of a part learns from earlier parts only, False if from all other parts"""


def folds_of(n: int, folds: int, seed: int) -> Parts:
    """Split n independent rows into random folds."""
    order = Streams([seed]).uniforms("folds", n)()[0].argsort(kind="stable")
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) % folds
    return Parts(part, folds, earlier=False)


def blocks_of(n: int) -> Parts:
    """Split n rows, in order of collection, into blocks of growing length: 1, 1, 2, ... rows."""
    ends = np.unique(np.geomspace(1, max(n, 2), _MAX_PARTS).astype(np.int64))
    return Parts(np.searchsorted(ends, np.arange(n), side="right"), len(ends) + 1, earlier=True)


def ridge(features: Floats, group: Ints, groups: int, target: Floats, parts: Parts) -> Floats:
    """Fit ridge regressions with penalty 1; return their coefficients, (parts, groups, d)."""
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
    G = _training_sums(gram.reshape(parts.number, groups, d, d), parts.earlier)
    b = _training_sums(correlation.reshape(parts.number, groups, d), parts.earlier)
    return np.linalg.solve(G + np.eye(d), b[..., None])[..., 0]


def _training_sums(sums: Floats, earlier: bool) -> Floats:
    """Add up, for each part of the rows, `sums` (parts, ...) of the parts that train its model."""
    whole: Floats = np.cumsum(sums, axis=0) if earlier else sums.sum(axis=0)
    return np.asarray(whole - sums)


def arm_model(context: Floats, action: Ints, reward: Floats, K: int, parts: Parts) -> Floats:
    """Predict the rewards (n, K) of all arms by cross-fitted ridge regressions.

    Contexts x (n, d) have a regression on (1, x) for each arm; contexts (n, K, d) of arms have one
    regression for all arms.
    """
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
    """Cross-fitted model of rewards, quadratic in prices, with coefficients linear in contexts."""

    def __init__(
        self, context: Floats, price: Floats, reward: Floats, ends: Floats, parts: Parts
    ) -> None:
        self._x = np.column_stack([np.ones(len(context)), context])
        self._ends, self._part = ends, parts.part
        zero = np.zeros(len(price), dtype=np.int64)
        self._theta = ridge(self._features(price), zero, 1, reward, parts)[:, 0]

    def __call__(self, price: Floats) -> Floats:
        """Predict the rewards (n,) at prices (n,), one for each row."""
        return np.vecdot(self._features(price), self._theta[self._part])

    def _features(self, price: Floats) -> Floats:
        low, high = self._ends
        b = (2 * price - low - high) / (high - low)  # on [-1, 1]
        powers = np.stack([np.ones_like(b), b, b * b], axis=1)
        return np.asarray((self._x[:, :, None] * powers[:, None]).reshape(len(b), -1))


@dataclass(frozen=True, eq=False)
class Embedding:
    """Features of arms, for the estimator mips; an arm's feature is one of E, drawn at random."""

    logged: Ints
    """feature of each row's logged arm, from 0 to E - 1, (n,)"""
    law: Floats
    """probability of each feature, given the arm, (K, E)"""


@dataclass(eq=False)
class ArmRows:
    """Data of n rows with arms, for the estimators `ARMS`; a model is fitted if needed."""

    action: Ints
    reward: Floats
    propensity: Floats
    policy: Floats
    """probabilities of arms under the policy, (n, K)"""
    model: Callable[[], Floats]
    """function that returns the predicted rewards of all arms, (n, K)"""
    clip: float | None = None
    shrinkage: float | None = None
    probabilities: Floats | None = None
    embedding: Embedding | None = None

    @cached_property
    def weight(self) -> Floats:
        """Weights of the logged arms, probability under the policy / propensity, (n,)."""
        return self._at_action(self.policy) / self.propensity

    @cached_property
    def q(self) -> Floats:
        """Predicted rewards of all arms, (n, K)."""
        return self.model()

    @cached_property
    def value(self) -> Floats:
        """Predicted reward of the policy in each row, (n,)."""
        return np.vecdot(self.policy, self.q)

    @cached_property
    def surprise(self) -> Floats:
        """Residuals of the logged arms, reward - predicted reward, (n,)."""
        return self.reward - self._at_action(self.q)

    def max_weight(self, name: str) -> float:
        """Return the bound on weights, `clip`; raise `InputError` if there is none."""
        if self.clip is None:
            raise InputError(f"Expected clip=None to be a number > 0 for {name!r}.")
        positive("clip", self.clip)
        return self.clip

    def _at_action(self, table: Floats) -> Floats:
        return np.take_along_axis(table, self.action[:, None], axis=1)[:, 0]


def _dros(rows: ArmRows) -> Terms:
    w, shrinkage = rows.weight, rows.shrinkage
    if shrinkage is None:
        raise InputError("Expected shrinkage=None to be a number > 0 for 'dros'.")
    positive("shrinkage", shrinkage)
    return _corrected(rows, shrinkage * w / (w * w + shrinkage))


def _mips(rows: ArmRows) -> Terms:
    if rows.embedding is None or rows.probabilities is None:
        raise InputError(
            "Expected features=, feature_law= and a log with `probabilities` for 'mips': its "
            "weights are those of what the arms are like, summed over all arms."
        )
    chance = rows.embedding.law[:, rows.embedding.logged].T  # (n, K), P(e_i | a)
    w = np.vecdot(rows.policy, chance) / np.vecdot(rows.probabilities, chance)
    return Terms(np.zeros_like(w), w * rows.reward, w)


def _weighted(rows: ArmRows, w: Floats, *, normalised: bool = False) -> Terms:
    return Terms(np.zeros_like(w), w * rows.reward, rows.weight, normalised)


def _corrected(rows: ArmRows, w: Floats, *, normalised: bool = False) -> Terms:
    return Terms(rows.value, w * rows.surprise, rows.weight, normalised)


def _cut(rows: ArmRows, name: str) -> Floats:
    return np.minimum(rows.weight, rows.max_weight(name))


ARMS: dict[str, Callable[[ArmRows], Terms]] = {  # estimators for logs of arms
    "ips": lambda rows: _weighted(rows, rows.weight),
    "clipped-ips": lambda rows: _weighted(rows, _cut(rows, "clipped-ips")),
    "snips": lambda rows: _weighted(rows, rows.weight, normalised=True),
    "dm": lambda rows: Terms(rows.value, np.zeros_like(rows.reward), rows.weight),
    "dr": lambda rows: _corrected(rows, rows.weight),
    "clipped-dr": lambda rows: _corrected(rows, _cut(rows, "clipped-dr")),
    "sndr": lambda rows: _corrected(rows, rows.weight, normalised=True),
    "switch-dr": lambda rows: _corrected(
        rows, np.where(rows.weight <= rows.max_weight("switch-dr"), rows.weight, 0.0)
    ),
    "dros": _dros,
    "mips": _mips,
}


@dataclass(eq=False)
class ListRows:
    """Data of n rows with lists of m of N items, for the estimators `LISTS`."""

    items: Ints
    clicks: Floats
    prefix: Floats
    marginal: Floats | None
    policy: ListLaw
    q: Floats | None
    """predicted clicks at each position for each item, (n, m, N)"""

    @cached_property
    def prefix_weight(self) -> Floats:
        """Weights of items 1..k, policy / logged probability, for each position k, (n, m)."""
        return self.policy.prefix / self.prefix

    @property
    def weight(self) -> Floats:
        """Weight of the whole list, policy / logged probability, at every position, (n, m)."""
        return np.broadcast_to(self.prefix_weight[:, -1:], self.clicks.shape)

    @cached_property
    def marginal_weight(self) -> Floats:
        """Weights of single items at their positions, policy / logged probability, (n, m)."""
        if self.marginal is None or self.policy.marginal is None:
            raise InputError(
                "Expected `marginal` probabilities in the log and the policy for 'independent-ips'."
            )
        return self.policy.marginal / self.marginal


def weights_of(name: str, rows: ListRows) -> Floats:
    """Return the weights of clicks at each position that an estimator of `LISTS` uses, (n, m)."""
    if name == "ips":
        return rows.weight
    return rows.marginal_weight if name == "independent-ips" else rows.prefix_weight


def _of_clicks(name: str) -> Callable[[ListRows], Terms]:
    def terms(rows: ListRows) -> Terms:
        w = weights_of(name, rows)
        return Terms(np.zeros(len(w)), np.vecdot(w, rows.clicks), w.mean(axis=1))

    return terms


def _cascade_dr(rows: ListRows) -> Terms:
    law, q, w = rows.policy.conditional, rows.q, rows.prefix_weight
    if law is None or q is None:
        raise InputError(
            "Expected q=, (n, m, N), and a policy with a `conditional` law for 'cascade-dr'."
        )
    before = np.column_stack([np.ones(len(w)), w[:, :-1]])
    predicted = np.take_along_axis(q, rows.items[..., None], axis=2)[..., 0]
    base = np.vecdot(before, np.vecdot(law, q))
    return Terms(base, np.vecdot(w, rows.clicks - predicted), w.mean(axis=1))


LISTS: dict[str, Callable[[ListRows], Terms]] = {  # estimators for logs of lists
    **{name: _of_clicks(name) for name in ("ips", "independent-ips", "interaction-ips")},
    "cascade-dr": _cascade_dr,
}


KERNELS: dict[str, Callable[[Floats], Floats]] = {  # kernels that weight prices
    "gaussian": lambda u: np.exp(-u * u / 2) / sqrt(2 * pi),
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u * u, 0),
}


@dataclass(eq=False)
class PriceRows:
    """Data of n rows with prices, for the estimators `PRICES`."""

    price: Floats
    reward: Floats
    density: Floats
    policy: Floats
    """draws of the policy's prices in dollars, (draws, n)"""
    model: Callable[[], Callable[[Floats], Floats]]
    """function that fits and returns a reward model, which maps prices (n,) to rewards (n,)"""
    bandwidth: float
    kernel: str

    @cached_property
    def weight(self) -> Floats:
        """Kernel weights of the logged prices, large near the policy's price, (n,)."""
        K, h = KERNELS[self.kernel], self.bandwidth
        near = [K((price - self.price) / h) for price in self.policy]
        return np.asarray(sum(near) / (len(near) * h * self.density))

    @cached_property
    def q(self) -> Callable[[Floats], Floats]:
        """Model of the reward, a function from prices (n,) to rewards (n,)."""
        return self.model()


def _price_dr(rows: PriceRows) -> Terms:
    value = np.mean([rows.q(price) for price in rows.policy], axis=0)
    return Terms(value, rows.weight * (rows.reward - rows.q(rows.price)), rows.weight)


PRICES: dict[str, Callable[[PriceRows], Terms]] = {  # estimators for logs of prices
    "ips": lambda rows: Terms(np.zeros_like(rows.weight), rows.weight * rows.reward, rows.weight),
    "snips": lambda rows: replace(PRICES["ips"](rows), normalised=True),
    "dr": _price_dr,
}
