"""Estimators of a policy's mean number of clicks from a log of lists.

r_k is the click at position k; w_k is pi / p of items 1..k, of the whole list or of item k alone::

    ips              w_m sum_k r_k                              always
    independent-ips  sum_k r_k pi(a_k at k) / p(a_k at k)       r_k depends on item k alone
    interaction-ips  sum_k w_k r_k                              r_k depends on items 1..k
    cascade-dr       sum_k w_k (r_k - q_k(a_k)) + w_{k-1} sum_a pi(a | a_<k) q_k(a)      the same

Li et al., KDD 2018 (independent); McInerney et al., KDD 2020 (interaction); Kiyohara et al., WSDM
2022 (cascade-dr). There q_k may be the model of slot k's own reward or of the rest of the list's:
given what stands above, w_k q_k(a_k) has the mean of what is added, either way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.offline.list_policies import ListLaw
from dpbandit.offline.terms import Terms


@dataclass(eq=False)
class ListRows:
    """What estimators need of n rows."""

    items: Ints
    clicks: Floats
    prefix: Floats
    marginal: Floats | None
    policy: ListLaw
    q: Floats | None
    """(n, m, N)"""

    @cached_property
    def prefix_weight(self) -> Floats:
        """w of items 1..k, (n, m)."""
        return self.policy.prefix / self.prefix

    @property
    def weight(self) -> Floats:
        """w of the whole list at every position, (n, m)."""
        return np.broadcast_to(self.prefix_weight[:, -1:], self.clicks.shape)

    @cached_property
    def marginal_weight(self) -> Floats:
        """w of item k alone, (n, m)."""
        if self.marginal is None or self.policy.marginal is None:
            raise InputError(
                "Expected `marginal` probabilities in the log and the policy for 'independent-ips'."
            )
        return self.policy.marginal / self.marginal


def weights_of(name: str, rows: ListRows) -> Floats:
    """What a click at each position counts, (n, m)."""
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


LISTS: dict[str, Callable[[ListRows], Terms]] = {
    **{name: _of_clicks(name) for name in ("ips", "independent-ips", "interaction-ips")},
    "cascade-dr": _cascade_dr,
}
