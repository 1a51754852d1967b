"""Which of several ranking policies was shown to a user, and whether she clicked."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import whole
from dpbandit.losses.click_models import ClickModel
from dpbandit.privacy.statistics.list_clicks import possible_clicks
from dpbandit.privacy.statistics.moments import added_up


@dataclass(frozen=True)
class PolicyClicks:
    """What her clicks are expected to have earned, at most 1, to the policy that she was shown.

    A round is (the number (R,) of a policy, clicks (R, m)). With w_k what a click at k earns
    (`ClickModel.worth`), the policy's count grows by min(1, sum_k w_k click_k).

    Guarantee:
        Who is shown is a coin, the same for both of two users, so that replacing one moves one
        count, by at most 1: in every norm, however many policies there are and however long a list
        is. It is attained by a click and none.

    >>> from dpbandit.losses.click_models import Cascade
    >>> PolicyClicks(Cascade(2), 3).total(np.array([[1], [1]]), np.array([[[0, 1]], [[0, 0]]]))
    array([[0., 1., 0.]])
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
        """Policies (n, R), clicks (n, R, m) -> (R, P)."""
        shown, said = batch
        earned = np.vecdot(possible_clicks(self.model, said), self.model.worth)
        ones = shown[..., None] == np.arange(self.n_policies)
        return added_up(np.minimum(earned, 1.0)[..., None] * ones)
