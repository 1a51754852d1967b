"""DP-HDB as it is printed, on noisy choices: private online Frank-Wolfe for each arm."""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from dpbandit.agents.contextual.frank_wolfe import as_chosen, default_warm_up
from dpbandit.agents.contextual.frank_wolfe_bandit import FrankWolfeAgent, FrankWolfeSettings
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, flag, gaussian_target, one_of, privacy_target
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.choices.noisy_vertex import NoisyVertex, SelectionNoise
from dpbandit.privacy.choices.step_budgets import Profile, certified_budgets, paper_budgets
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, fits

_VALID = 5.0
"""The advanced composition behind the printed noise reaches its claim up to this epsilon."""


@dataclass(frozen=True, kw_only=True)
class DPHDBChoices(FrankWolfeSettings):
    """High-dimensional bandit: every arm moves towards a noisily chosen vertex in every round.

    Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal
    algorithms in l_p-geometry and high dimensional contextual bandits" (2022), Algorithms 2 and 3::

        1. warm-up: pull every arm t_0 times, one after the other, whoever comes
        2. then play argmax_a zeta(x . theta_a) among the candidates of the warm-up
        3. the played arm's gradient joins its sum d_a, clipped (see `RecursiveGradients`)
        4. every arm takes a step, the others with the record (0, zeta(0)), whose gradient is 0:
              v = argmin <d_a, v> + noise over the 2d vertices +-R e_j, all that is released
              theta_a += c/(i+1) (v - theta_a)

    Code:
        Steps 1 and 2 are `FrankWolfeAgent.act` (frank_wolfe_bandit.py) with `Schedule.pull`
        (frank_wolfe.py), step 3 is `FrankWolfeAgent.update`, step 4 `FrankWolfe.move`.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, with
        the epsilon of the certificate: step 2 reads the current user's context and writes nothing;
        step 3 is the only use of (x, r), and vertices are released through one mechanism, whose
        class proves that all arms together cost what one arm does. Everybody else's action is
        post-processing. Without a step of every arm in every round, counters would tell who got
        which arm.

    Fields left None follow the calibration::

        field       "paper", as printed                     "certified"
        selection   laplace                                 gumbel
        noise       4 D k M sqrt(ln n ln(1/delta) / t) / e  least with certificate <= claim
        profile     inverse-sqrt                            uniform
        bound       printed: k = (beta D + L) / M           exact: k = 1.5 M R + B (identity link)
        warm_up     int(ln(d T) ln T / epsilon^2)           the same, at most T / 10 in all

    Differs from the paper:
        "certified"; "paper" keeps 1-2.

        1. Exact composition: 1.9 times less Laplace noise, 3.4 times less with Gumbel noise at
           equal bounds.
        2. The exact bound of a gradient of the identity link.
        3. In both: d_0 = 0 in the recursion, because starting with the first gradient counts user 1
           twice.
        4. the arms' own counters weigh their gradients.
        5. warm-up data goes to the arm that was pulled (printed: to the next one).
        6. x, r and the residual are clipped.
        7. ties go to the lowest index.
        8. one step's noise (ln n = 0) and epsilon > 5 are refused in "paper", the latter unless
           `beyond_validity`. The printed `subset_gap` is stated for x . theta and used, as here,
           for zeta(x . theta).

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=50, horizon=1000, context_order=inf)
    >>> round(certify(DPHDBChoices(epsilon=1.0, calibration="paper"), spec).epsilon, 2)
    0.47
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1); 0 is possible if certified"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    selection: Literal["gumbel", "laplace"] | None = None
    """law of the noise on the scores"""
    profile: Profile | None = None
    """budgets of the steps, c / sqrt t or all alike"""
    bound: Literal["exact", "printed"] | None = None
    """which natural bound of a residual"""
    scale: Literal["fixed", "adaptive"] = "fixed"
    """adaptive lets the noise of a choice follow the largest bound of a residual so far (identity
    link); at c = 1 that is the exact bound from the second step on, it gains where c is smaller"""
    beyond_validity: bool = False
    """(paper) run at epsilon > 5 too; the certificate tells what that is worth"""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("calibration", self.calibration, ("certified", "paper"))
        one_of("selection", self._selection, ("gumbel", "laplace"))
        one_of("profile", self._profile, ("inverse-sqrt", "uniform"))
        one_of("bound", self._bound, ("exact", "printed"))
        one_of("scale", self.scale, ("fixed", "adaptive"))
        flag("beyond_validity", self.beyond_validity)
        privacy_target(self.epsilon, self.delta)
        if not self._paper:
            return
        gaussian_target(self.epsilon, self.delta)
        if (self._selection, self._profile, self.scale) != ("laplace", "inverse-sqrt", "fixed"):
            raise InputError(
                "Expected calibration='paper' with selection='laplace', profile='inverse-sqrt', "
                "scale='fixed'."
            )
        if _VALID < self.epsilon < inf and not self.beyond_validity:
            raise InputError(
                f"Expected epsilon={self.epsilon!r} <= {_VALID:g} with calibration='paper': its "
                "proof ends there. Set beyond_validity to run it and see the certificate."
            )

    def make(self, spec: BanditSpec, streams: Streams) -> FrankWolfeAgent:
        """A running agent; raises `InputError` for anything but finitely many arms."""
        spec = fits(self, spec, ContextualSpec)
        link, share = self.link_for(spec).name, inf if self._paper else 0.1
        if self.scale == "adaptive" and link != "identity":
            raise InputError(f"Expected scale='adaptive' with the identity link, got {link!r}.")
        schedule = self.schedule(spec, default_warm_up(spec, epsilon=self.epsilon, share=share))
        choices = NoisyVertex(
            self.gradients(spec, bound=self._bound),
            streams,
            "vertices",
            noise=self._selection,
            budgets=self._budgets(schedule.steps(spec.horizon)),
            horizon=spec.horizon,
            adaptive=self.scale == "adaptive",
        )
        ledger = ledger_of(self.epsilon, choices.spend, without="choices without noise")
        return FrankWolfeAgent(self, spec, len(streams), schedule, choices, as_chosen, ledger)

    def _budgets(self, n: int) -> Floats:
        if self.epsilon == inf:
            return np.full(n, inf)
        target = {"epsilon": self.epsilon, "delta": self.delta}
        if self._paper:
            return paper_budgets(n, **target)
        return certified_budgets(n, noise=self._selection, profile=self._profile, **target)

    @property
    def _paper(self) -> bool:
        return self.calibration == "paper"

    @property
    def _selection(self) -> SelectionNoise:
        usual: SelectionNoise = "laplace" if self._paper else "gumbel"
        return usual if self.selection is None else self.selection

    @property
    def _profile(self) -> Profile:
        usual: Profile = "inverse-sqrt" if self._paper else "uniform"
        return usual if self.profile is None else self.profile

    @property
    def _bound(self) -> str:
        usual = "printed" if self._paper else "exact"
        return usual if self.bound is None else self.bound
