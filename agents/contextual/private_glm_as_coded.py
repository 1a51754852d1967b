"""PrivateGLMAsCoded: the authors' program for private generalised linear bandits."""

from dataclasses import dataclass
from functools import partial
from math import exp, expm1, inf, log, log2, sqrt
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpbandit.agents.contextual.descent_refits import DescentRefits
from dpbandit.agents.contextual.one_model import OneModel
from dpbandit.agents.contextual.printed_descent import dearest, descent, longest
from dpbandit.agents.contextual.printed_trees import NeighbourTree, RoutedGrams, printed_multiplier
from dpbandit.agents.contextual.private_glm import largest_ratio
from dpbandit.base import Floats, Ints, Streams, gaussian_target, inside, one_of, pick, positive
from dpbandit.privacy import PrefixSum, Tree, ledger_of
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.specs import BanditSpec, ScoringAgent


@dataclass(frozen=True, kw_only=True)
class PrivateGLMAsCoded:
    """Optimism on a generalised linear model that DP-SGD fits a few times, for the record.

    The program of Sarmasarkar, "Shuffle and joint differential privacy for generalized linear
    contextual bandits", arXiv 2602.00417 (2026), in its two revisions; the printed tables belong to
    the first. With l = ln(4 T / failure), spread = 1.5 ln(4/delta) l^2 zeta'(0) / epsilon and
    lam = 4/3 spread + 0.75 d l::

          1. V, H = lam I + sums of x x' from two trees, with (epsilon, delta) / 3 each
          2. warm-up: where an arm has |x|^2 in V^-1 above tau = 1 / (0.01 kappa S^2 d), play the
             arm with the largest;  V += x x' / (1 + |x|^2)
          3. else play argmax x . theta / 2 + beta |x|_{H'^-1}, beta = 4 sqrt(d ln(T / failure));
             H += zeta'(0) x x' / e
          4. once H has grown from H' by enough, H' = H and theta = DP-SGD of all rows so far, at
             most n_2 times, with (epsilon, delta) / (3 n_2) each

    What differs in the revisions::

        revision    enough                         n_2             tree            noise of DP-SGD
        first       the largest det H has doubled  log2(..)        `NeighbourTree` no theorem's
        second      an eigenvalue of H'^-1 H is    3 log2(..)      right           Renyi accountant
                    above 1.05 + 5 / (8 sqrt(d))

    Code:
        Rows and scales are `OneModel` (one_model.py), trees `RoutedGrams` (printed_trees.py); steps
        2 and 3 `CodedAgent.act`, step 4 `CodedAgent.update` with `largest_ratio`
        (private_glm.py) and `DescentRefits._fit` (descent_refits.py), on rows that `Refits`
        (refits.py) keeps, with calls by `descent` (printed_descent.py).

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, with the epsilon of the
        certificate: all data goes through two Gaussian mechanisms. A row is in V or in H, in
        bit_length(T) nodes that are released, so both cost sqrt(2 bit_length) / sigma together, in
        the first revision more (`NeighbourTree`). A call of DP-SGD costs 2 sqrt(epochs) / sigma, in
        the first revision as often more as its last batch of an epoch is shorter than the others.
        Certified are n_2 of the dearest calls.

    Differs from the program:
        1. kappa is 1 / zeta'(S) and kappa* 1 / zeta'(0), of the public bound S. The program takes
           the least and largest slope over all contexts at the true parameter, which the noise
           depends on: as run it has no finite epsilon.
        2. n, which sets batches and noise, is the number of all users so far; the program counts
           those who did not warm up. In the paper's experiments nobody warms up.
        3. theta_w, a fit to warm-up rows alone, therefore stays 0 and eliminates nothing.
        4. contexts and rewards are clipped.
        5. searches over epochs for noise that is larger than any here are left out.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True, link="probit")
    >>> round(certify(PrivateGLMAsCoded(epsilon=4.0, parameter_norm=2.0), spec).epsilon, 2)
    1.17
    """

    epsilon: float = 1.0
    """what the program claims, > 0; inf plays without noise"""
    delta: float = 0.02
    """the same, in (0, 1)"""
    revision: Literal["second", "first"] = "second"
    """of the authors' program"""
    parameter_norm: float = 4.0
    """S, a bound on `|theta|`, for contexts of norm 1"""
    failure: float = 0.02
    """zeta of the paper, the probability with which bounds may fail"""
    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("revision", self.revision, ("second", "first"))
        positive("parameter_norm", self.parameter_norm)
        inside("failure", self.failure, 0, 1, ends=False)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` unless all arms share a parameter."""
        return CodedAgent(self, OneModel(self, spec), streams)


class CodedAgent:
    """See `PrivateGLMAsCoded`."""

    def __init__(self, config: PrivateGLMAsCoded, model: OneModel, streams: Streams) -> None:
        spec, T, R = model.spec, model.spec.horizon, len(streams)
        self._model, self._first = model, config.revision == "first"
        third = config.epsilon / 3, config.delta / 3
        d, slope, S = spec.dim, model.link.largest_slope, config.parameter_norm
        nats = log(4 * T / config.failure)
        spread = 1.5 * log(4 / config.delta) * nats**2 * slope / config.epsilon
        self._lam = 4 / 3 * spread + 0.75 * d * nats
        self._tau = float(model.link.slope(np.array(S))) / (0.01 * d) / S / S
        self._beta = 4 * sqrt(d * log(T / config.failure))
        low, high = self._lam - spread, self._lam + spread
        n_2 = max(1, int((1 if self._first else 3) * log2(high / low + T * slope**2 / (low * d))))
        statistic, multiplier = RoutedGrams(dim=d, slope=slope), printed_multiplier(T, *third)
        self._sums: NeighbourTree | PrefixSum
        if self._first:
            self._sums = NeighbourTree(statistic, streams, horizon=T, noise_multiplier=multiplier)
        else:
            self._sums = noisy_prefix_sum(
                Tree(), statistic, streams, horizon=T, refresh_every=1, noise_multiplier=multiplier
            )
        epsilon, delta = of_each_call(*third, n_2)
        self._rows = DescentRefits(
            model.link,
            streams,
            partial(descent, config.revision, dim=d, epsilon=epsilon, delta=delta),
            mu=sqrt(n_2) * dearest(config.revision, T, d, epsilon, delta),
            longest=longest(config.revision, T, epsilon),
            dim=d,
            uses=T,
            most=n_2,
        )
        self.ledger = ledger_of(config.epsilon, self._sums.spend, self._rows.spend)
        self._statistic, self._left = statistic, np.full(R, n_2)
        self._theta: Floats = np.zeros((R, d))
        self._H_last = np.tile(self._lam * np.eye(d), (R, 1, 1))
        self._V_inverse = self._H_inverse = np.linalg.inv(self._H_last)
        self._largest = self._largest_last = np.linalg.slogdet(self._H_last)[1]

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        x = self._model.rows(context)
        length, optimism = _squares(x, self._V_inverse), self._predictors(x)
        chosen = np.where(self._warm(length)[:, None], length, optimism)
        best: Ints = chosen.argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Upper confidence bounds of the mean rewards, (R, K)."""
        return self._model.reward(self._predictors(self._model.rows(context)))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed both mechanisms; the second one fits where H has grown."""
        x = self._model.rows(context)
        length = _squares(x, self._V_inverse)
        warm, played = self._warm(length), pick(x, action)
        slope = self._model.link.largest_slope
        weight = np.where(warm, 1 / (1 + length.max(axis=1)), slope / exp(1))
        release = self._sums(played * np.sqrt(weight)[:, None], warm)
        due = np.zeros(len(x), bool)
        if release is not None:  # else it could not influence an action
            self._V_inverse, H = self._matrices(release)
            due = self._grown(H) & (self._left > 0)
            self._H_last = np.where(due[:, None, None], H, self._H_last)
            if due.any():
                self._H_inverse = np.linalg.inv(self._H_last)
                self._largest_last = np.maximum(
                    self._largest_last, np.linalg.slogdet(self._H_last)[1]
                )
        fitted = self._rows(played, self._model.share(feedback), due, self._theta)
        if fitted is not None:
            self._theta, self._left = fitted, self._left - due

    def _predictors(self, x: Floats) -> Floats:
        return np.matvec(x, self._theta) / 2 + self._beta * np.sqrt(_squares(x, self._H_inverse))

    def _warm(self, length: Floats) -> npt.NDArray[np.bool_]:
        return np.asarray(length.max(axis=1) > self._tau)

    def _matrices(self, release: Floats) -> tuple[Floats, Floats]:
        """V^-1 and H with the shift lam, no eigenvalue of either below 1e-12."""
        eigenvalues, U = np.linalg.eigh(np.stack(self._statistic.unpack(release), axis=1))
        floored = np.maximum(eigenvalues + self._lam, 1e-12)[:, :, None]
        (V, H), (left, right) = U.swapaxes(0, 1), floored.swapaxes(0, 1)
        return (V / left) @ V.swapaxes(1, 2), (H * right) @ H.swapaxes(1, 2)

    def _grown(self, H: Floats) -> npt.NDArray[np.bool_]:
        """Who is due for a fit."""
        if self._first:
            self._largest = np.maximum(self._largest, np.linalg.slogdet(H)[1])
            return self._largest >= self._largest_last + log(2)
        return largest_ratio(H, self._H_last) > 1.05 + 5 / (8 * sqrt(self._statistic.dim))


def of_each_call(epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    """By basic composition of up to ten calls, by advanced composition of more.

    >>> of_each_call(1.0, 0.01, 4)
    (0.25, 0.0025)
    """
    if calls <= 10 or epsilon == inf:
        return epsilon / calls, delta / calls
    root = sqrt(2 * calls * log(2 / delta))
    each = brentq(lambda e: root * e + calls * e * expm1(e) - epsilon, 0.0, min(epsilon, 50.0))
    return float(each), delta / (2 * calls)


def _squares(x: Floats, inverse: Floats) -> Floats:
    """`|x|^2` in the inverse of a matrix, (R, K)."""
    return np.maximum(np.vecdot(x @ inverse, x), 0.0)
