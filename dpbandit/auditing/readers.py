"""Users who are shown lists, and click so that mechanisms are pushed to their bounds."""

import numpy as np

from dpbandit.auditing.contexts import ContextUsers
from dpbandit.auditing.worlds import Always, Answer
from dpbandit.base.arrays import Floats
from dpbandit.specs.lists import ListSpec


class Readers(ContextUsers):
    """A user is her tastes and the positions that she would click, whatever is there."""

    _spec: ListSpec

    def _extremes(self) -> dict[str, Answer]:
        places = np.eye(self._spec.length)
        return {
            "the first item": Always(places[0]),
            "nothing": Always(self._silence()),
            "the last item": Always(places[-1]),
            "everything": Always(np.ones(self._spec.length)),
        }

    def _silence(self) -> Floats:
        return np.zeros(self._spec.length)

    def _ordinary_answer(self, rng: np.random.Generator) -> Answer:
        return Always(1.0 * (rng.random(self._spec.length) < 0.3))
