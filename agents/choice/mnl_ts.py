"""MNL-TS: a parameter drawn around the fit, and the best set for it."""

from dataclasses import dataclass

import numpy as np

from dpbandit.agents.choice.refits import MNLRefits
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.losses.multinomial import weights
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.best_sets import best_levels
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.protocols import Agent, Spec, fits


@dataclass(frozen=True, kw_only=True)
class MNLTS:
    """Offer the best set of a multinomial logit whose parameter is drawn anew for every user.

    After Oh and Iyengar, "Thompson sampling for multinomial logit contextual bandits", NeurIPS
    2019::

        1. random sets for `first_batch` users
        2. theta maximises the likelihood of all choices so far
        3. theta~ = theta + alpha H^{-1/2} xi, xi standard normal, H the information so far
        4. offer the set (and the prices) of the largest expected margin under theta~, exactly

    Code:
        Step 2 is `MNLRefits` (refits.py), on what `offer_of` (offers.py) cuts out of a round; steps
        1 and 3 are `MNLTSAgent.act`, step 4 `best_levels` of
        `dpbandit.specs.best_sets`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. A ridge, and fits only when data have grown by a tenth, by three Newton steps.
        2. One draw a user, not the largest utilities of several; `alpha` is a number.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/AssortmentBandit-v0", {"MNLTS": MNLTS()}, horizon=300,
    ...                   replicas=2, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["MNLTS"] < mean["Uniform"] / 2)
    True
    """

    alpha: float = 0.5
    """standard deviation of a draw, in that of the estimate; 0 is greedy"""
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
        return MNLTSAgent(self, fits(self, spec, AssortmentSpec), streams)


class MNLTSAgent:
    """See `MNLTS`."""

    def __init__(self, config: MNLTS, spec: AssortmentSpec, streams: Streams) -> None:
        self.ledger = no_privacy("exact choices")
        self._spec, self._alpha, self._random = spec, config.alpha, spec.uniform(streams)
        self._normals = streams.normals("posterior", spec.row_dim)
        self._fit = MNLRefits(
            spec,
            len(streams),
            regularization=config.regularization,
            first=config.first_batch,
        )

    def act(self, context: Floats) -> Ints:
        """The best set (R, N) of a draw; random ones before the first fit."""
        if not self._fit.fitted:
            random: Ints = self._random()
            return random
        drawn = self._fit.theta + self._alpha * np.vecmat(self._normals(), self._fit.root)
        utility = np.vecdot(self._spec.rows(context), drawn[:, None, None])
        return best_levels(weights(utility), self._spec.margin_table, self._spec.at_most)[0]

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Keep the round, and refit where it is due."""
        self._fit.learn(context, action, feedback)
