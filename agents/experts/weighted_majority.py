"""Follow an expert drawn by exponential weights of running sums of losses, exact or noisy."""

from math import log, sqrt

import numpy as np
import numpy.typing as npt

from dpbandit.agents.experts.draws import drawn, soft
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import shaped
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.specs.experts import ExpertsSpec


class WeightedMajority:
    """Each round a fresh expert, with probability proportional to exp(-eta S).

    Args:
        spec: the public facts.
        streams: the random streams of the replicas.
        sums: the mechanism through which losses become S, (R, d).
        rate: eta.
        ledger: what `sums` costs.
    """

    def __init__(
        self, spec: ExpertsSpec, streams: Streams, *, sums: PrefixSum, rate: float, ledger: Ledger
    ) -> None:
        self.ledger = ledger
        self._sums, self._rate = sums, rate
        self._luck = streams.uniforms("experts")
        self._shape = (len(streams), spec.n_actions)
        self._total: Floats = np.zeros(self._shape)

    def weights(self) -> Floats:
        """exp(-eta (S - min S)), (R, d)."""
        return soft(-self._rate * self._total)

    def act(self, context: Floats) -> Ints:
        """An expert for each replica, (R,)."""
        return drawn(self.weights(), self._luck())

    def update(self, context: Floats, action: npt.NDArray[np.int64], feedback: Floats) -> None:
        """Learn from the losses of all experts, `feedback` (R, d)."""
        shaped("losses", feedback, self._shape)
        total = self._sums(feedback)
        if total is not None:
            self._total = total


def hedge_rate(n_experts: int, horizon: int) -> float:
    """sqrt(8 ln d / T), whose regret is at most sqrt(T ln(d) / 2)."""
    return sqrt(8 * log(n_experts) / horizon)
