"""Epochs of MNL-Bandit over noisy counts: private in its counts, and not in when they are used."""

from typing import Any

import numpy as np

from dpbandit.agents import MNLCounts


class EpochsOfNoisyCounts(MNLCounts):
    """Counts as its honest parent, by the mechanism alone; a new set is offered when somebody buys
    nothing."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        played = action if self.exploring else self.sets
        super().update(context, action, feedback)
        if not self.exploring:
            over = (feedback == self.spec.n_products)[:, None]
            other = np.roll(self.sets, 1, axis=1)  # to an observer as good as a fresh noisy set
            self.sets = np.where(over, other, played)
