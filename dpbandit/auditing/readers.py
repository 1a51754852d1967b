"""Users for audits of list problems, who click on the items of a list."""

import numpy as np

from dpbandit.auditing.small_problems import SMALL_PROBLEMS
from dpbandit.auditing.users import Always, Answer, ContextUsers, users_by_spec
from dpbandit.base import Floats
from dpbandit.losses.click_models import Cascade
from dpbandit.specs.lists import Catalogue, ListSpec


class Readers(ContextUsers):
    """Users of list problems, each with a context and the positions she clicks on every list."""

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


users_by_spec.register(ListSpec, Readers)
SMALL_PROBLEMS.append(ListSpec(catalogue=Catalogue(5, 2), clicks=Cascade(2), horizon=24))
