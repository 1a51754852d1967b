"""Algorithm 2 of Asi, Feldman, Koren and Talwar (ICML 2023) as it is printed."""

from math import inf, log, log2
from typing import Any

import numpy as np

from dpbandit.agents.experts.calibration import paper, without_privacy
from dpbandit.agents.experts.segments import Segments
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.streams import Streams
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.spends import GaussianSpend
from dpbandit.privacy.choices.noisy_total import NoisyTotal
from dpbandit.specs.experts import ExpertsSpec


class PrintedDoubling(Segments):
    """Algorithm 1 with L* = 1, 2, 4, .., each on a share of epsilon; see the config's page.

    After every draw x of the exponential mechanism

        4. S(x) + Lap(K / eps0)  >  L* + sign * 5 K ln(1/b0) / eps0 :
           L* doubles, x is uniform, and there are K draws again

    eps0 = epsilon / (2 log2 T), b0 = beta / T. S sums all losses since round 1, the threshold of
    Algorithm 1 stays that of L* = 1. Nothing caps the restarts.
    """

    def __init__(
        self,
        spec: ExpertsSpec,
        streams: Streams,
        *,
        epsilon: float,
        failure: float,
        sign: int,
        fixed: bool,
        lag: bool,
    ) -> None:
        d, T = spec.n_actions, spec.horizon
        eps0, b0 = epsilon / (2 * max(1.0, log2(T))), failure / T
        plan = without_privacy(T)
        if epsilon < inf:
            plan = paper(d, T, epsilon=eps0, delta=0.0, failure=b0, fixed=fixed)
        super().__init__(spec, streams, plan, best_loss=1.0, lag=lag)
        self._slack = sign * 5 * plan.draws * log(1 / b0) / eps0
        self._totals = NoisyTotal(
            d, streams, "doubling test", scale=plan.draws / eps0, draws=T, uses=T
        )

    def update(self, context: Floats, action: Ints, reward: Floats) -> None:
        """Learn from all losses of a round, (R, d)."""
        before = self.drawn
        super().update(context, action, reward)
        draws = self.drawn > before
        totals: Any = self._totals(reward, self.expert, draws)
        self._begin(draws & (totals > self.best_loss + self._slack))

    def _threshold(self) -> Floats:
        return self._first_loss + np.full(len(self.drawn), self._plan.margin)

    def _draws_covered(self, horizon: int) -> int:
        return horizon

    def _promise(self) -> Ledger:
        note = "no certified guarantee: draws, tests and restarts without a cap"
        return Ledger((GaussianSpend(inf, note),))
