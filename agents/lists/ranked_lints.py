"""Thompson sampling for lists: a drawn parameter, and its best list."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.lists.click_regression import ClickRegression
from dpbandit.agents.lists.ranking import ListPlayer, best_lists, products
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class RankedLinTS:
    """Draw theta from N(V^-1 b, alpha^2 V^-1) and show the m items with the largest phi . theta.

    Zong, Ni, Sung, Ke, Wen and Kveton, "Cascading bandits for large-scale recommendation problems",
    UAI 2016, CascadeLinTS, where users follow a cascade; for the other click models as
    `RankedLinUCB` is.

    Code:
        V and b are `ClickRegression.learn` (click_regression.py), the list `best_lists`
        (ranking.py).

    Guarantee:
        None: exact data reaches later lists.
    """

    alpha: float = 0.2
    """standard deviations of the posterior, in clicks"""
    regularization: float = 1.0
    """of the regression"""

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 0)
        positive("regularization", self.regularization)

    def make(self, spec: Spec, streams: Streams) -> "RankedLinTSAgent":
        """A running agent; raises `InputError` for anything but lists."""
        return RankedLinTSAgent(self, fits(self, spec, ListSpec), streams)


class RankedLinTSAgent(ListPlayer):
    """See `RankedLinTS`."""

    def __init__(self, config: RankedLinTS, spec: ListSpec, streams: Streams) -> None:
        super().__init__(spec, no_privacy("an exact regression of clicks"))
        self._alpha = config.alpha
        self._model = ClickRegression(spec, len(streams), config.regularization)
        self._luck = streams.normals("posterior", spec.features)

    def _choose(self, u: Floats) -> Ints:
        theta = self._model.theta + self._alpha * np.vecmat(self._luck(), self._model.root)
        return best_lists(products(self._spec, u, theta), self._spec.clicks)

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        self._model.learn(u, vectors, clicks)
