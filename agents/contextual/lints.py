"""Linear Thompson sampling."""

from dataclasses import dataclass

from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class LinTS:
    """Play the arm that is best under a parameter drawn from N(V^-1 u, v^2 V^-1).

    Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013,
    Algorithm 1. For disjoint arms the sampled rewards of different arms are independent normals
    with the predicted mean and variance v^2 x' V^-1 x, so they are drawn directly; a shared
    parameter is drawn through a Cholesky factor of V^-1.

    v is 2 R times `scale`, R = `reward_noise` the sub-Gaussian parameter of rewards, by default
    half their public range: with rewards in dollars or in cents the same arms are played.

    Code:
        The draw is `LinTSAgent.scores` with `OnlineRidge.sampled` (ridge.py), the regression
        `OnlineRidge.learn`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. v = 2 R `scale`, where its analysis has R times a function of T, d and its confidence.
        2. Disjoint arms have regressions of their own.
        3. `regularization` in place of the identity matrix.
    """

    scale: float = 0.2
    """standard deviation of the posterior in units of V^-1/2 and of ranges of the reward (2 R)"""
    reward_noise: float | None = None
    """R, the sub-Gaussian parameter of rewards; if None, half their range"""
    regularization: float = 1.0
    """the ridge, added to the diagonal of Gram matrices"""

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)
        if self.reward_noise is not None:
            at_least("reward_noise", self.reward_noise, 0)
        positive("regularization", self.regularization)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return LinTSAgent(self, fits(self, spec, ContextualSpec), streams)


class LinTSAgent:
    """See `LinTS`."""

    def __init__(self, config: LinTS, spec: ContextualSpec, streams: Streams) -> None:
        self.ledger = no_privacy("exact ridge regressions")
        noise = spec.half_range if config.reward_noise is None else config.reward_noise
        self._scale = 2 * config.scale * noise
        self._normals = streams.normals("exploration", spec.dim if spec.shared else spec.n_actions)
        self._ridge = OnlineRidge(spec, len(streams), regularization=config.regularization)

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Mean rewards under a parameter drawn afresh, (R, K)."""
        return self._ridge.sampled(context, self._scale, self._normals())

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One rank-one step."""
        self._ridge.learn(context, action, feedback)
