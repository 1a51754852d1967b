"""LinUCB for lists: optimism about every item, the most hopeful ones on the list."""

from dataclasses import dataclass

from dpbandit.agents.lists.click_regression import ClickRegression
from dpbandit.agents.lists.ranking import ListPlayer, diverse_lists, products
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class RankedLinUCB:
    """Show the m items with the largest phi . theta + alpha `|phi|` in the norm of V^-1.

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinUCB, where users follow a cascade; for the other click models the same
    regression on what is known to have been looked at::

        1. theta, V = the regression of clicks on f phi
        2. list the m largest bounds, the largest where most look
        3. learn from the positions that were looked at

    Code:
        Step 1 is `ClickRegression.learn` (click_regression.py), step 2 `diverse_lists`
        (ranking.py).

    Guarantee:
        None: exact data reaches later lists.

    Differs from the paper:
        1. Position weights f enter the regression; in a cascade they are 1.
        2. Ties go to the lowest items.
    """

    alpha: float = 0.2
    """width of the bounds, in clicks; 0 is greedy"""
    regularization: float = 1.0
    """of the regression"""
    diversity: float = 0.0
    """what an item loses for one that is like it on the list, in clicks; 0 is relevance alone"""

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 0)
        positive("regularization", self.regularization)
        at_least("diversity", self.diversity, 0)

    def make(self, spec: Spec, streams: Streams) -> "RankedLinUCBAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return RankedLinUCBAgent(self, fits(self, spec, ListSpec), len(streams))


class RankedLinUCBAgent(ListPlayer):
    """See `RankedLinUCB`."""

    def __init__(self, config: RankedLinUCB, spec: ListSpec, replicas: int) -> None:
        super().__init__(spec, no_privacy("an exact regression of clicks"))
        self._config = config
        self._model = ClickRegression(spec, replicas, config.regularization)

    def _choose(self, u: Floats) -> Ints:
        scores = products(self._spec, u, self._model.theta)
        if self._config.alpha:
            scores += self._config.alpha * self._model.widths(u)
        return diverse_lists(scores, self._spec, self._config.diversity)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        self._model.learn(u, vectors, clicks)
