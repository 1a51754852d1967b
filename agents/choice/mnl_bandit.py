"""MNL-Bandit: a set is offered until somebody buys nothing."""

from dataclasses import InitVar, dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from dpbandit.agents.choice.offers import item_bought, items_of
from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import InputError, positive, shown
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.best_sets import best_levels
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.protocols import Agent, Spec, fits

NOT_PRIVATE = (
    "an epoch ends when somebody buys nothing, so the next user's set shows whether the last one "
    "bought, whatever noise is added to counts: delta >= 1 - p at every epsilon, p the chance that "
    "the next epoch's set is the same"
)


@dataclass(frozen=True, kw_only=True)
class MNLBandit:
    """Offer an optimistic set until somebody buys nothing; then another.

    Agrawal, Avadhanula, Goyal and Zeevi, "MNL-Bandit: a dynamic learning approach to assortment
    selection", Operations Research 2019, Algorithm 1, for products of v_j <= 1 and no contexts
    (which it does not look at)::

        epoch l = 1, 2, ...
          1. offer the best set A for v, exactly, until somebody buys nothing
          2. of each j in A count the purchases in the epoch; their mean over the T_j epochs with
             j, vbar_j, is unbiased for v_j
          3. v_j = vbar_j + sqrt(C vbar_j L / T_j) + C L / T_j, L = ln(sqrt(N) l + 1); 1 before

    Code:
        Steps 2 and 3 are `MNLBanditAgent.update`, with `items_of` and `item_bought` (offers.py);
        step 1 is `best_levels` of `dpbandit.specs.best_sets`.

    Guarantee:
        None, and no noise on counts would help. Say the next epoch's set differs from A_t with
        probability 1 - p, whatever was counted, and let user t - 1 have bought, so that
        A_t = A_{t-1} is in others' view. Then A_{t+1} != A_{t-1}, which user t + 1 sees, has
        probability 0 if user t buys and 1 - p if she does not: delta >= 1 - p at every epsilon. An
        `epsilon` is refused; `MNLCounts` has public batches in place of epochs. Noise on the END of
        an epoch is another algorithm.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"epochs": MNLBandit(confidence=1.0)},
    ...                   horizon=2000, replicas=2, progress=False,
    ...                   env_kwargs={"contexts": "constant"})
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["epochs"] < mean["Uniform"] / 4)
    True
    """

    confidence: float = 48.0
    """C, as printed; 1 learns much faster"""
    epsilon: InitVar[float] = inf
    """no setting; any other is refused, for epochs are not private"""

    def __post_init__(self, epsilon: float) -> None:
        positive("confidence", self.confidence)
        if not (isinstance(epsilon, float) and epsilon == inf):
            raise InputError(
                f"Expected epsilon={shown(epsilon)} of MNLBandit to be inf: {NOT_PRIVATE}. "
                "Use MNLCounts."
            )

    def make(self, spec: Spec, streams: Streams) -> Agent:
        """A running agent; raises `InputError` for anything but assortments."""
        return MNLBanditAgent(self, fits(self, spec, AssortmentSpec), len(streams))


class MNLBanditAgent:
    """See `MNLBandit`."""

    def __init__(self, config: MNLBandit, spec: AssortmentSpec, replicas: int) -> None:
        self.ledger: Any = no_privacy(NOT_PRIVATE)
        self._spec, self._C = spec, config.confidence
        items = spec.n_products * spec.levels
        self._purchases, self._epochs = np.zeros((2, replicas, items))
        self._here = np.zeros((replicas, items))  # purchases in this epoch
        self._epoch = np.ones(replicas)
        self._sets = self._best(np.ones((replicas, items)))

    def act(self, context: Floats) -> Ints:
        """The set of the epoch, (R, N)."""
        return self._sets.copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Count a purchase, or end the epoch of a replica."""
        items = self._here.shape[1]
        bought = item_bought(self._spec, action, feedback)
        self._here += bought[:, None] == rows(items)
        over = (bought == items)[:, None]
        if not over.any():
            return
        self._epochs += over & items_of(self._spec, action)
        self._purchases += np.where(over, self._here, 0.0)
        self._here = np.where(over, 0.0, self._here)
        self._epoch += over[:, 0]
        T, L = np.maximum(self._epochs, 1), np.log(sqrt(items) * self._epoch + 1)[:, None]
        v = self._purchases / T
        hopeful = v + np.sqrt(self._C * v * L / T) + self._C * L / T
        self._sets = np.where(
            over, self._best(np.where(self._epochs > 0, hopeful, 1.0)), self._sets
        )

    def _best(self, v: Floats) -> Ints:
        table = self._spec.margin_table
        return best_levels(v.reshape(-1, *table.shape), table, self._spec.at_most)[0]
