"""Thompson sampling for logistic rewards, by a Laplace approximation."""

from dataclasses import dataclass

from dpbandit.agents.contextual.glm import OnlineGLM
from dpbandit.base import Floats, Ints, Streams, at_least, positive
from dpbandit.privacy import no_privacy
from dpbandit.specs import BanditSpec, ContextualSpec, ScoringAgent, fits


@dataclass(frozen=True, kw_only=True)
class LogisticTS:
    """Play the arm that is best under a parameter drawn from N(theta, scale^2 H^-1).

    Chapelle and Li, "An empirical evaluation of Thompson sampling", NeurIPS 2011, Algorithm 3::

        1. draw theta_a from N(theta_a, scale^2 H_a^-1)
        2. play argmax_a of the mean reward low + span / (1 + exp(-x . theta_a))
        3. theta_a becomes the mode of N(theta_a, H_a^-1) times the new row's likelihood,
           H_a += p (1 - p) x x' at the new mode

    Rewards in [0, 1] are clicks or fractions of one (a quasi-likelihood); any other public range
    is mapped there. Prices of a list are judged by their margin times the chance of a sale.

    Code:
        Steps 1 and 2 are `LogisticTSAgent.scores` with `OnlineRidge.sampled` (linear.py), step 3 is
        `OnlineGLM.learn` (glm.py).

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        1. The full H in place of its diagonal.
        2. One row is a batch.
        3. `scale` narrows the posterior by default, which did better on orange juice,
           recommendation and logistic GLMBandit problems; the paper's is 1.
        4. For disjoint arms the predictors are drawn, not the parameters: the same law for d times
           fewer numbers.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/GLMBandit-v0", {"LogisticTS": LogisticTS()}, horizon=1000,
    ...                   replicas=4, env_kwargs={"link": "logistic", "signal": 8.0},
    ...                   progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["LogisticTS"] < mean["Uniform"] / 2)
    True
    """

    scale: float = 0.5
    """standard deviation of the draws in units of the posterior's"""
    regularization: float = 0.1
    """precision of the prior N(0, I / regularization)"""

    def __post_init__(self) -> None:
        at_least("scale", self.scale, 0)
        positive("regularization", self.regularization)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        return LogisticTSAgent(self, fits(self, spec, ContextualSpec), streams)


class LogisticTSAgent:
    """See `LogisticTS`."""

    def __init__(self, config: LogisticTS, spec: ContextualSpec, streams: Streams) -> None:
        self.ledger = no_privacy("exact logistic regressions")
        self._scale = config.scale
        self._normals = streams.normals("exploration", spec.dim if spec.shared else spec.n_actions)
        self._glm = OnlineGLM(
            spec, len(streams), link="logistic", regularization=config.regularization
        )

    def act(self, context: Floats) -> Ints:
        """Arms (R,)."""
        best: Ints = self.scores(context).argmax(axis=1)
        return best

    def scores(self, context: Floats) -> Floats:
        """Mean rewards under a parameter drawn afresh, (R, K)."""
        return self._glm.rewards(self._glm.sampled(context, self._scale, self._normals()))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """One row of the regression of the arm played."""
        self._glm.learn(context, action, feedback)
