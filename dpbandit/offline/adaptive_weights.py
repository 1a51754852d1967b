"""An interval for adaptive logs that gives less to rows whose terms vary much.

Hadad, Hirshberg, Zhan, Wager and Athey, PNAS 2021; Zhan, Hadad, Hirshberg and Athey, KDD 2021::

    h_i = (mean over earlier contexts of sum_a pi(a | x)^2 / e_i(a | x))^(-1/2)      "weighted"
    h_i^2                                                                      "weighted-minvar"
    v   = sum h G / sum h,   se = sqrt(sum h^2 (G - v)^2) / sum h,   G the terms of dr

Asymptotic, and short where a rare large weight has not come yet: see `dpbandit.offline.betting`.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, shaped, shown
from dpbandit.offline.rows import is_law, numbers_in, refuse_row


class TypeLaw(NamedTuple):
    """The logging policy of every row, where users are of S public types."""

    types: Ints
    """(n,)"""
    probabilities: Floats
    """(n, S, K), those of row i for a user of each type"""
    policy: Floats
    """(S, K), that is evaluated"""


Law: TypeAlias = TypeLaw | Callable[[int, Floats], Floats]
"""Types, or a function of i and contexts (s, d) that gives (s, K), the law of row i at them."""


class Weighted(NamedTuple):
    """An estimate of its own, with its interval."""

    estimate: float
    low: float
    high: float
    se: float


def stable(law: Law, context: Floats, policy: Floats) -> Floats:
    """h, (n,), each from the contexts of earlier rows; without any 1 / sqrt(K)."""
    if isinstance(law, TypeLaw):
        return _of_types(law, policy.shape)
    if not callable(law):
        raise InputError(
            f"Expected law={shown(law)} to be a function of i and contexts, or a TypeLaw."
        )
    n, K = policy.shape
    h = np.full(n, K**-0.5)
    for i in range(1, n):
        e = numbers_in("law", law(i, context[:i]))
        shaped(f"law({i}, ...)", e, (i, K))
        refuse_row("probabilities that sum to 1", is_law(e), f"law({i}, ...)")
        h[i] = _ratio(policy[:i], e).mean() ** -0.5
    return _finite(h)


def _of_types(law: TypeLaw, shape: tuple[int, ...]) -> Floats:
    (n, K), kind = shape, numbers_in("types", law.types)
    e, pi = numbers_in("law", law.probabilities), numbers_in("the types' policy", law.policy)
    shaped("types", kind, (n,))
    S = len(pi)
    shaped("the law of types", e, (n, S, K))
    shaped("the types' policy", pi, (S, K))
    refuse_row(f"types that are whole numbers below {S}", np.isin(kind, np.arange(S)))
    refuse_row("laws of types that sum to 1", is_law(e.reshape(n * S, K)).reshape(n, S).all(1))
    met = np.eye(S)[kind.astype(np.int64)]
    share = np.cumsum(met, axis=0) - met + 1  # N_s + 1, of earlier rows
    return _finite((np.vecdot(share, _ratio(pi, e)) / share.sum(axis=1)) ** -0.5)


def _ratio(policy: Floats, e: Floats) -> Floats:
    """sum_a pi^2 / e, infinite where an arm of the policy could not be drawn."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(policy > 0, policy**2 / e, 0.0).sum(axis=-1))


def _finite(h: Floats) -> Floats:
    if not (np.isfinite(h) & (h > 0)).all():
        raise InputError("Expected the law to give every arm of the policy a chance in every row.")
    return h


def weighted(values: Floats, h: Floats, alpha: float) -> Weighted:
    """Of terms (n,)."""
    v = float(h @ values / h.sum())
    se = float(np.sqrt(np.square(h * (values - v)).sum()) / h.sum())
    room = float(ndtri(1 - alpha / 2)) * se
    return Weighted(v, v - room, v + room, se)
