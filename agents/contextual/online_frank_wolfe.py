"""Online Frank-Wolfe: greedy play on recursive gradients in the l_1 ball, without privacy."""

from dataclasses import dataclass

from dpbandit.agents.contextual.frank_wolfe import default_warm_up
from dpbandit.agents.contextual.frank_wolfe_bandit import FrankWolfeAgent, FrankWolfeSettings
from dpbandit.base.inputs import positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.privacy.choices.noisy_vertex import best_vertices
from dpbandit.privacy.sums.calibrated import exact_prefix_sum
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits


@dataclass(frozen=True, kw_only=True)
class OnlineFrankWolfe(FrankWolfeSettings):
    """DP-HDB without the noise, for sparse parameters in many dimensions.

    Algorithm 3 of Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization:
    optimal algorithms in l_p-geometry and high dimensional contextual bandits" (2022), at epsilon
    = inf; the recursion is that of Xie, Shen, Zhang, Wang and Qian, AAAI 2020::

        1. warm-up: pull every arm t_0 times, one after the other
        2. then play argmax_a zeta(x . theta_a) among the candidates of the warm-up
        3. played arm: G_a += g_i, the recursive gradient (see `RecursiveGradients`);
           every arm:  v = argmin <G_a, v> over +-R e_j,   theta_a += c/(i+1) (v - theta_a)

    Code:
        Steps 1 and 2 are `FrankWolfeAgent.act` (frank_wolfe_bandit.py) with `Schedule.pull`
        (frank_wolfe.py), step 3 is `FrankWolfeAgent.update` and `FrankWolfe.move`.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        As `DPHDBChoices`. `warm_up=None` is ln(d T) ln T, at most T / 10 in all.

    >>> from dpbandit import compare
    >>> sparse = {"dim": 30, "n_actions": 2, "context_order": float("inf"),
    ...           "contexts": "signs", "parameters": "sparse-signs"}
    >>> results = compare("dpbandit/GLMBandit-v0", {"OFW": OnlineFrankWolfe()}, horizon=1000,
    ...                   replicas=4, env_kwargs=sparse, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["OFW"] < mean["Uniform"] / 2)
    True
    """

    gradient_clip: float | None = None
    """Euclidean norm a gradient is clipped to"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gradient_clip is not None:
            positive("gradient_clip", self.gradient_clip)

    def make(self, spec: BanditSpec, streams: Streams) -> FrankWolfeAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        schedule = self.schedule(spec, default_warm_up(spec, share=0.1))
        gradients = self.gradients(spec, gradient_clip=self.gradient_clip)
        sums = exact_prefix_sum(gradients, horizon=spec.horizon, refresh_every=1)
        ledger = no_privacy("exact gradient sums")
        return FrankWolfeAgent(self, spec, len(streams), schedule, sums, best_vertices, ledger)
