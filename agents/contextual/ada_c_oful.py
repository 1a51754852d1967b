"""AdaC-OFUL: optimism on episodes, each released once."""

from dataclasses import dataclass
from typing import Literal

from dpbandit.agents.contextual.epochs import EpochSettings, Regression, SummedEpochs
from dpbandit.agents.contextual.public_contexts import PublicContexts
from dpbandit.base import Floats, Streams, at_least, one_of
from dpbandit.specs import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class AdaCOFUL(EpochSettings):
    """LinUCB on episodes, after each of which one noisy moment is released.

    RECONSTRUCTED from the abstract of Azize and Basu, "Interactive and concentrated differential
    privacy for bandits", arXiv 2309.00557; details may differ::

        1. play argmax_a  x . theta_a + alpha h |x|_{A_a^-1},   h half the range of rewards
        2. at the end of an episode release the sum of its r x, r from the middle of the range, with
           noise; u is the sum of all that was released
        3. theta = A^-1 u

    calibration    A                                       an episode ends               alpha
    certified      released Gram matrices + Gamma I        after first, 2 first, ...     1
    paper          I + the exact sum of x x'               when det A has doubled        0.3

    The first episode of "certified" is played uniformly at random.

    Code:
        Step 1 is `Optimistic` with `Regression.widths` (epochs.py), certified steps 2 and 3 are
        `SummedEpochs._learn` (epochs.py), printed ones `PublicContexts.update`
        (public_contexts.py).

    Guarantee:
        (epsilon, delta)-joint DP for replacing one user's round, exactly mu-GDP, as `EpochPlayer`
        proves: she is in one release. "paper" promises that for her reward alone, and the ledger
        says so: contexts are public, Gram matrices exact, and episodes end when contexts say so.

    Differs from the paper:
        1. "certified": noise on Gram matrices, public ends of episodes in place of doubled
           determinants, which are a leak of contexts.
        2. exact mu in place of rho-zCDP, rho = mu^2 / 2.
        3. the width is a setting in place of the theory's.
        4. contexts and rewards are clipped.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=20, dim=3, horizon=5000, shared=True)
    >>> certify(AdaCOFUL(calibration="paper"), spec).ledger.brief
    'contexts public'
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    alpha: float | None = None
    """width in half ranges of the reward, 0 is greedy; if None, 1, "paper" 0.3"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calibration", self.calibration, ("certified", "paper"))
        if self.alpha is not None:
            at_least("alpha", self.alpha, 0)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        paper = self.calibration == "paper"
        alpha = (0.3 if paper else 1.0) if self.alpha is None else self.alpha
        worth = Optimistic(alpha * spec.half_range)
        player = PublicContexts if paper else SummedEpochs
        return player(self, spec, streams, worth)


@dataclass(frozen=True)
class Optimistic:
    """An upper confidence bound of radius `width`."""

    width: float

    def __call__(self, context: Floats, regression: Regression) -> Floats:
        """(R, K)."""
        return regression.means(context) + self.width * regression.widths(context)
