"""Epochs of MNL-Bandit over noisy counts: private in its counts, and not in when they are used."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandit.agents import MNLCounts
from dpbandit.agents.choice.mnl_counts import MNLCountsAgent


class _Epochs(MNLCountsAgent):
    """Counts as its honest parent, by the mechanism alone; a new set is offered when somebody buys
    nothing."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        played = action if self._set is None else self._set
        super().update(context, action, feedback)
        if self._set is not None:
            over = (feedback == self._spec.n_products)[:, None]
            other = np.roll(self._set, 1, axis=1)  # to an observer as good as a fresh noisy set
            self._set = np.where(over, other, played)


@dataclass(frozen=True, kw_only=True)
class EpochsOfNoisyCounts(MNLCounts):
    def make(self, spec: Any, streams: Any) -> Any:
        return _Epochs(self, spec, streams)
