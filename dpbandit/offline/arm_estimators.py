"""Estimators of a policy's mean reward from a log of finitely many arms.

With w = pi(a | x) / p, q a model of the reward, q_pi = sum_a pi(a | x) q(x, a) and M = `clip`::

    ips          w r                                      support
    clipped-ips  min(w, M) r                              biased by -E[(w - M)+ r]
    snips        w r / mean(w)                            consistent
    dm           q_pi                                     q right
    dr           q_pi + w (r - q)                         support
    clipped-dr   q_pi + min(w, M) (r - q)                 biased where w > M by q's error
    sndr         q_pi + w (r - q) / mean(w)               consistent
    switch-dr    q_pi + w 1(w <= M) (r - q)               biased where w > M by q's error
    dros         q_pi + l w / (w^2 + l) (r - q)           l = `shrinkage`; to infinity it is dr
    mips         r P_pi(e | x) / P_log(e | x)             r depends on the arm through e alone

ips: Horvitz and Thompson, 1952. dr: Dudik, Langford and Li, ICML 2011. snips: Swaminathan and
Joachims, NeurIPS 2015. switch: Wang, Agarwal and Dudik, ICML 2017. dros: Su, Dimakopoulou,
Krishnamurthy and Dudik, ICML 2020. mips: Saito and Joachims, ICML 2022.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, positive
from dpbandit.offline.terms import Terms


@dataclass(frozen=True, eq=False)
class Embedding:
    """What an arm is like, for mips."""

    logged: Ints
    """(n,), e of the logged arm"""
    law: Floats
    """(K, E), P(e | a)"""


@dataclass(eq=False)
class ArmRows:
    """What estimators need of n rows; a model is asked for only by those that use it."""

    action: Ints
    reward: Floats
    propensity: Floats
    policy: Floats
    """(n, K)"""
    model: Callable[[], Floats]
    """gives q, (n, K)"""
    clip: float | None = None
    shrinkage: float | None = None
    probabilities: Floats | None = None
    embedding: Embedding | None = None

    @cached_property
    def weight(self) -> Floats:
        """w, (n,)."""
        return self._at_action(self.policy) / self.propensity

    @cached_property
    def q(self) -> Floats:
        """(n, K)."""
        return self.model()

    @cached_property
    def value(self) -> Floats:
        """q_pi, (n,)."""
        return np.vecdot(self.policy, self.q)

    @cached_property
    def surprise(self) -> Floats:
        """r - q, (n,)."""
        return self.reward - self._at_action(self.q)

    def most(self, name: str) -> float:
        """M."""
        if self.clip is None:
            raise InputError(f"Expected clip=None to be a number > 0 for {name!r}.")
        positive("clip", self.clip)
        return self.clip

    def _at_action(self, table: Floats) -> Floats:
        return np.take_along_axis(table, self.action[:, None], axis=1)[:, 0]


def _ips(rows: ArmRows) -> Terms:
    return _weighted(rows, rows.weight)


def _clipped_ips(rows: ArmRows) -> Terms:
    return _weighted(rows, np.minimum(rows.weight, rows.most("clipped-ips")))


def _snips(rows: ArmRows) -> Terms:
    return _weighted(rows, rows.weight, normalised=True)


def _dm(rows: ArmRows) -> Terms:
    return Terms(rows.value, np.zeros_like(rows.reward), rows.weight)


def _dr(rows: ArmRows) -> Terms:
    return _corrected(rows, rows.weight)


def _clipped_dr(rows: ArmRows) -> Terms:
    return _corrected(rows, np.minimum(rows.weight, rows.most("clipped-dr")))


def _sndr(rows: ArmRows) -> Terms:
    return _corrected(rows, rows.weight, normalised=True)


def _switch_dr(rows: ArmRows) -> Terms:
    w = rows.weight
    return _corrected(rows, np.where(w <= rows.most("switch-dr"), w, 0.0))


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


ARMS: dict[str, Callable[[ArmRows], Terms]] = {
    "ips": _ips,
    "clipped-ips": _clipped_ips,
    "snips": _snips,
    "dm": _dm,
    "dr": _dr,
    "clipped-dr": _clipped_dr,
    "sndr": _sndr,
    "switch-dr": _switch_dr,
    "dros": _dros,
    "mips": _mips,
}
