"""Agents that are honest in single rounds, and not in blocks of them."""

from typing import Any

import numpy as np

from dpbandit.agents import DPUCB, KLUCBSums
from dpbandit.base import record_counts


class PeeksAhead(DPUCB):
    """Lets each user of a block play by the context of the next one."""

    def act(self, context: Any) -> Any:
        if context.ndim > 1 + len(self.spec.context_shape):  # n rounds
            context = np.concatenate([context[1:], context[-1:]])
        return super().act(context)


class RemembersBlocks(DPUCB):
    """Keeps the mean of the rewards of its latest block."""

    _mean = 0.0

    def learn(self, context: Any, action: Any, feedback: Any) -> None:
        super().learn(context, action, feedback)
        if action.ndim > 1:
            self._mean = np.nan_to_num(feedback).clip(0, 1).mean(axis=0)


class SumsBlocks(DPUCB):
    """Feeds the rewards of a block in another order than the contexts."""

    def learn(self, context: Any, action: Any, feedback: Any) -> None:
        super().learn(context, action, feedback[::-1] if action.ndim > 1 else feedback)


class CountsRecords(DPUCB):
    """Takes every record of counted users for one round."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self.round += len(action) if action.ndim > 1 else 1
        self.learn(context, action, feedback)

    def scores(self, context: Any) -> Any:
        return super().scores(context) * (-1) ** self.round


class ReadsCounts(DPUCB):
    """Keeps how many users a record stands for, which mechanisms alone may know."""

    def learn(self, context: Any, action: Any, feedback: Any) -> None:
        super().learn(context, action, feedback)
        if (counts := record_counts()) is not None:
            self._counts = counts


class FeedsTwice(DPUCB):
    """Feeds its sums every block or batch of counted users twice."""

    def learn(self, context: Any, action: Any, feedback: Any) -> None:
        if action.ndim > 1:
            self.sums.several(context, action, feedback)
        super().learn(context, action, feedback)


class KeepsTotals(KLUCBSums):
    """Keeps what its arms brought in all in blocks, where these totals are handed to the agent."""

    def reset(self) -> None:
        super().reset()
        self.kept = np.zeros((self.R, self.K))

    def learn_block(self, totals: Any, counts: Any, rounds: int) -> None:
        self.kept = self.kept + totals
        self.t += rounds
        self.pending += counts
        at_release = self.at_release()
        release = self.sums(totals, counts, at_release)
        if release is not None:
            self.take(release, np.where(at_release, self.pending, 0.0), at_release)
            self.pending[at_release] = 0.0
