"""MNL-UCB: optimistic utilities, and the best set for them."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.choice.refits import MNLRefits
from dpbandit.base.arrays import Floats, Ints, norms
from dpbandit.base.inputs import at_least, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.losses.multinomial import weights
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.best_sets import best_levels
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.protocols import Agent, Spec, fits


@dataclass(frozen=True, kw_only=True)
class MNLUCB:
    """Offer the best set of a multinomial logit with optimistic utilities.

    After Oh and Iyengar, "Multinomial logit contextual bandits: provable optimality and
    practicality", AAAI 2021::

        1. random sets for `first_batch` users
        2. theta maximises the likelihood of all choices so far
        3. u_j = x_j . theta + alpha |x_j|_{H^-1}, H the information so far
        4. offer the set (and the prices) of the largest expected margin under u, exactly

    Code:
        Step 2 is `MNLRefits` (refits.py), on what `offer_of` (offers.py) cuts out of a round; steps
        1 and 3 are `MNLUCBAgent.act`, step 4 `best_levels` of
        `dpbandit.specs.best_sets`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. A ridge, and fits only when data have grown by a tenth, by three Newton steps.
        2. `alpha` is a number, not a confidence radius that grows with t.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"MNLUCB": MNLUCB()}, horizon=300,
    ...                   replicas=2, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["MNLUCB"] < mean["Uniform"] / 2)
    True
    """

    alpha: float = 0.5
    """width of optimism; 0 is greedy"""
    first_batch: int = 30
    """rounds of random sets"""
    regularization: float = 1.0
    """ridge, > 0"""

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 0)
        whole("first_batch", self.first_batch, 1)
        positive("regularization", self.regularization)

    def make(self, spec: Spec, streams: Streams) -> Agent:
        """A running agent; raises `InputError` for anything but assortments."""
        return MNLUCBAgent(self, fits(self, spec, AssortmentSpec), streams)


class MNLUCBAgent:
    """See `MNLUCB`."""

    def __init__(self, config: MNLUCB, spec: AssortmentSpec, streams: Streams) -> None:
        self.ledger = no_privacy("exact choices")
        self._spec, self._alpha, self._random = spec, config.alpha, spec.uniform(streams)
        self._fit = MNLRefits(
            spec,
            len(streams),
            regularization=config.regularization,
            first=config.first_batch,
        )

    def act(self, context: Floats) -> Ints:
        """The best set (R, N); random ones before the first fit."""
        if not self._fit.fitted:
            random: Ints = self._random()
            return random
        x = self._spec.rows(context)  # (R, N, P, D)
        wide = norms(np.matvec(self._fit.root[:, None, None], x))[..., 0]
        utility = np.vecdot(x, self._fit.theta[:, None, None]) + self._alpha * wide
        return best_levels(weights(utility), self._spec.margin_table, self._spec.at_most)[0]

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Keep the round, and refit where it is due."""
        self._fit.learn(context, action, feedback)
