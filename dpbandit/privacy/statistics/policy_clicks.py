"""Which of several ranking policies earned a user's clicks, each click counted once."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandit.base.arrays import Floats, rows
from dpbandit.base.inputs import whole
from dpbandit.losses.click_models import ClickModel, PositionBased
from dpbandit.privacy.statistics.list_clicks import possible_clicks
from dpbandit.privacy.statistics.moments import added_up


@dataclass(frozen=True)
class PolicyClicks:
    """Credits (P,) of P policies, of which one, drawn uniformly among the active ones, was shown.

    A round is (active (R, P), lists of all policies for this user (R, P, m), the number (R,) of the
    policy that was shown, clicks (R, m)). A click at place k is shared equally by the policies A_k
    that are active and would have been clicked there just as likely: in a position-based model
    those with the same item at k, in others those with the same items at 1, .., k. With w_k what a
    click at k earns (`ClickModel.worth`)::

        credit = sum_k w_k click_k 1[A_k] / |A_k|  /  max(1, sum_k w_k click_k)

    But for the divisor its mean is the policies' expected reward over the number of active ones:
    of |A_k| policies that are drawn and click there, each shares with the same |A_k|.

    Guarantee:
        Replacing one user moves the credits by at most 1 in L2, however many policies there are and
        however long a list is. Who is shown and who is active are coins and releases, the same for
        both users, and whoever is shown, e, is in every A_k. So credits are convex combinations of
        0 and of points x = 1[A] / |A| with e in A, and it is enough that two of those are no more
        than 1 apart: |x| <= 1, and with a = |A|, b = |A'| and x . x' >= 1 / (a b)::

            |x - x'|^2 <= 1 / a + 1 / b - 2 / (a b) = 1 - (a - 1)(b - 1) / (a b) - 1 / (a b)  <  1.

        It is attained by a click on what she alone shows, and none.
    """

    model: ClickModel
    n_policies: int
    units: ClassVar[float] = 1.0
    sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_policies", self.n_policies, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """(P,)."""
        return (self.n_policies,)

    def total(self, *batch: Any) -> Floats:
        """Active ones (n, R, P), lists (n, R, P, m), shown (n, R), clicks (n, R, m) -> (R, P)."""
        active, lists, shown, said = batch
        n, R = shown.shape
        own = lists[rows(n)[:, None], rows(R), shown.astype(np.int64)]
        alike = lists == own[:, :, None]  # (n, R, P, m)
        if not isinstance(self.model, PositionBased):
            alike = np.logical_and.accumulate(alike, axis=-1)
        alike = alike * active[..., None]
        earned = self.model.worth * possible_clicks(self.model, said)
        earned = earned / np.maximum(1, earned.sum(axis=-1, keepdims=True))
        return added_up(np.matvec(_shared(alike), earned))


def _shared(alike: Floats) -> Floats:
    """A click at each place (n, R, P, m) in equal parts for those who are alike there."""
    return alike / np.maximum(1, alike.sum(axis=2, keepdims=True))
