"""Exact log-ratios for audits of private hard thresholding: of coordinates and of their values.

The privacy proof counts every iterate as released, so an auditor may look at all of them, though an
agent receives the last one only. Given the previous iterate and the data of all other users, the
vector v to be thresholded is known for both data sets, and so are two log-ratios::

    chosen   the set S of the s largest |v_i| + Gumbel noise of scale c: as if coordinate i arrived
             after an exponential time of rate w_i = e^(|v_i| / c), S comes first with probability
             int e^-t prod_{i in S} (1 - e^(-t w_i / W)) dt,  W the sum of w outside S
    values   Gaussian or Laplace noise on v_i, i in S

The laws are those of the mechanism's privacy cost. For sets S chosen by Laplace noise there is no
such formula; they are scored by the ratio for Gumbel noise of the same epsilon.
"""

from math import inf
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dpbandit.auditing.users import twin
from dpbandit.auditing.witness import LISTENERS, Listener
from dpbandit.base import Floats
from dpbandit.privacy import Mechanism, PureSpend
from dpbandit.privacy.peeling import NoisyHardThresholding, Peeled
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import Spend

_LOG_TIME_STEP = 0.25  # step in log t of the trapezoid rule
_TIMES = np.exp(np.arange(-20.0, 4.0, _LOG_TIME_STEP))
"""Points t of the trapezoid rule in log t, exact to 1e-8 for the integrals of this module."""
_TIME_WEIGHTS = _LOG_TIME_STEP * _TIMES * np.exp(-_TIMES)  # weights of the points t, times e^-t


class Peelings:
    """Score of private hard thresholding, from the episode with the differing user's round."""

    def __init__(self, mechanism: NoisyHardThresholding) -> None:
        self._now: list[Peeled] = []
        self._mechanism, mechanism.on_peeled = mechanism, self._now.append
        self._differing_datum: Any = None
        self._found: Floats | None = None

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        if differs:
            self._differing_datum = datum
        if release is not None:
            if self._differing_datum is not None and self._found is None:
                self._found = np.sum([self._log_ratios(peeled) for peeled in self._now], axis=0)
            self._now.clear()

    def ratios(self) -> Floats | None:
        return self._found

    def _log_ratios(self, peeled: Peeled) -> Floats:
        """Return the log-ratios (2 R, 2) of the coordinates that are kept, and of their values."""
        chosen, released = self._mechanism.spend.parts
        shift = self._mechanism.term(peeled.beta, *map(twin, self._differing_datum))
        shift = shift - self._mechanism.term(peeled.beta, *self._differing_datum)
        here, selected = peeled.v, peeled.retained != 0
        there = here + peeled.move / self._mechanism.sensitivity * shift.reshape(here.shape)
        scale = 2 / _epsilon_of_last_pick(chosen) * peeled.move
        picks = [log_chosen(abs(v) / scale, selected).sum(axis=-1) for v in (there, here)]
        misses = [np.where(selected, peeled.retained - v, 0.0) for v in (here, there)]
        if isinstance(released, LaplaceSpend):
            sizes = [abs(miss) * released.epsilon / peeled.move for miss in misses]
        else:  # one peeling's share of mu
            mu = (released.mu or 0.0) / len(self._now) ** 0.5
            sizes = [(miss * mu / peeled.move_2) ** 2 / 2 for miss in misses]
        return np.stack([np.subtract(*picks), np.subtract(*sizes).sum(axis=(-2, -1))], axis=-1)


def _epsilon_of_last_pick(spend: Spend) -> float:
    return spend.groups[-1][0] if isinstance(spend, PureSpend) and spend.groups else 0.0


def log_chosen(scores: Floats, chosen: Any) -> Floats:
    """Return the log-probability that the largest noisy scores are the `chosen`, a mask (..., D).

    The noise is Gumbel noise. All rows have the same number of chosen entries.

    >>> scores, chosen = np.log([1.0, 2.0, 3.0]), np.array([True, False, False])
    >>> np.exp(log_chosen(scores, chosen)).round(6).item()
    0.166667
    """
    rest = logsumexp(np.where(chosen, -np.inf, scores), axis=-1, keepdims=True)
    taken = np.argsort(~chosen, axis=-1, kind="stable")[..., : chosen.sum(axis=-1).max()]
    with np.errstate(over="ignore", divide="ignore"):
        rate = np.exp(np.take_along_axis(scores, taken, axis=-1) - rest)  # w_i / W, inf if W = 0
        first = -np.expm1(-rate[..., None] * _TIMES)  # (..., s, times)
        found: Floats = np.log(first.prod(axis=-2) @ _TIME_WEIGHTS)
    return np.where(np.isneginf(rest[..., 0]), 0.0, found)


def listener(mechanism: Mechanism, runs: int) -> Listener | None:
    """Make the `Listener` that scores noisy private hard thresholding; None for others."""
    if not isinstance(mechanism, NoisyHardThresholding):
        return None
    return Peelings(mechanism) if 0 < mechanism.spend.parts[0].pure < inf else None


LISTENERS.append(listener)
