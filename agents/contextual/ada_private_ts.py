"""AdaPrivate-TS: Thompson sampling on batches, each released once."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.epochs import EpochSettings, Regression, SummedEpochs
from dpbandit.agents.contextual.public_contexts import PublicContexts
from dpbandit.base import Floats, Streams, at_least, one_of
from dpbandit.specs import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class AdaPrivateTS(EpochSettings):
    """Thompson sampling from a posterior that is as wide as reward noise and privacy noise make it.

    RECONSTRUCTED from the abstract of Riyazat and Ukwatta, AdaPrivate-TS, PMLR 318:723-734, arXiv
    2606.21757 (2026); details may differ::

        1. draw theta ~ N(A^-1 u, v^2 h^2 A^-1 + s^2 A^-2), h half the range of rewards, s the
           standard deviation of the noise in u; play argmax_a x . theta_a
        2. at the end of a batch release the sum of its r x, r from the middle of the range, with
           noise; u is the sum of all that was released

    calibration    A                                       batches
    certified      released Gram matrices + Gamma I        first, 2 first, 4 first, ... rounds
    paper          I + the exact sum of x x'               the same

    The first batch of "certified" is played uniformly at random.

    Code:
        Step 1 is `Sampled` with `Regression.means` (epochs.py), certified step 2 is
        `SummedEpochs._learn` (epochs.py), the printed one `PublicContexts.update`
        (public_contexts.py).

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `EpochPlayer`
        proves: she is in one release. "paper" promises that for her reward alone, and the ledger
        says so: contexts are public, and Gram matrices exact.

    Differs from the paper:
        1. "certified": noise on Gram matrices.
        2. exact mu in place of zCDP.
        3. no amplification by a secret coin that drops users: it shrinks signal and cost alike.
        4. contexts and rewards are clipped.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True)
    >>> round(certify(AdaPrivateTS(epsilon=4.0), spec).epsilon, 6)
    4.0
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    scale: float = 0.1
    """v, the width of the posterior in half ranges of the reward"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calibration", self.calibration, ("certified", "paper"))
        at_least("scale", self.scale, 0)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        worth = Sampled(streams, 1 if spec.shared else spec.n_actions, spec, self.scale)
        if self.calibration == "paper":
            return PublicContexts(self, spec, streams, worth, ends=self.ends(spec))
        return SummedEpochs(self, spec, streams, worth)


class Sampled:
    """Predictions under a parameter that is drawn anew in every round."""

    def __init__(self, streams: Streams, blocks: int, spec: ContextualSpec, scale: float) -> None:
        self._normals = streams.normals("posterior", blocks, spec.dim)
        self._width = scale * spec.half_range

    def __call__(self, context: Floats, regression: Regression) -> Floats:
        """(R, K)."""
        values = regression.eigenvalues
        spread = np.sqrt(self._width**2 / values + (regression.noise / values) ** 2)
        drawn = regression.theta + np.matvec(regression.U, spread * self._normals())
        return regression._replace(theta=drawn).means(context)
