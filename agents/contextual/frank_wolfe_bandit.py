"""Greedy bandits that learn each arm's parameter by online Frank-Wolfe on the l_1 ball.

One agent serves the private algorithm and its non-private counterpart: it sees nothing but what a
mechanism releases, noisy gradient sums or chosen vertices, so without noise they are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Self

import numpy as np

from dpbandit.agents.contextual.frank_wolfe import FrankWolfe, Schedule
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, inside, one_of, positive, whole
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.statistics.gradients import RecursiveGradients
from dpbandit.specs.links import LINKS, Link, LinkName, link_of
from dpbandit.specs.protocols import ContextualSpec


@dataclass(frozen=True, kw_only=True)
class FrankWolfeSettings:
    """What the private and the non-private config share: the model and the walk, no privacy."""

    radius: float | None = None
    """R of the l_1 ball in which parameters are sought; if None, 1, with the identity link in units
    of the largest reward over the bound of contexts. Behind `Priced` it is that of the logits'
    parameter: steep demand needs more than 1"""
    step: float = 1.0
    """c in (0, 1]; smaller where the parameters lie inside the ball"""
    warm_up: int | None = None
    """t_0, rounds that every arm is pulled first (for a shared parameter, rounds in all)"""
    subset_gap: float = inf
    """h_sub, in units of the reward; arms that are worse than the best by at least this are told
    apart by the warm-up alone; inf: unknown"""
    residual_clip: float | None = None
    """bound of `|residual|`; if None, the natural one"""
    link: LinkName | None = None
    """if None, the environment's, identity where it has another"""

    def __post_init__(self) -> None:
        inside("step", self.step, 0, 1, ends=True)
        positive("step", self.step)
        if self.warm_up is not None:
            whole("warm_up", self.warm_up, 1)
        inside("subset_gap", self.subset_gap, 0, inf, ends=True)
        if self.subset_gap < inf:
            positive("subset_gap", self.subset_gap)
        for name in ("radius", "residual_clip"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.link is not None:
            one_of("link", self.link, LINKS)

    def for_demand(self) -> Self:
        """The same: raises `InputError` for candidates, since prices differ in margins, too."""
        if self.subset_gap < inf:
            raise InputError(
                f"Expected subset_gap={self.subset_gap!r} to be inf for a model of demand: prices "
                "are told apart by margins too."
            )
        return self

    def link_for(self, spec: ContextualSpec) -> Link:
        """zeta."""
        return link_of(self.link or spec.link)

    def radius_for(self, spec: ContextualSpec) -> float:
        """R."""
        if self.radius is not None:
            return self.radius
        identity = self.link_for(spec).name == "identity"
        return spec.reward_bound / spec.context_bound if identity else 1.0

    def schedule(self, spec: ContextualSpec, default: int) -> Schedule:
        """The warm-up; raises `InputError` if nothing is left of the horizon after it."""
        warm_up = default if self.warm_up is None else self.warm_up
        schedule = Schedule(spec.n_actions, spec.shared, warm_up)
        if spec.horizon <= schedule.rounds:
            raise InputError(
                f"Expected horizon={spec.horizon} > {schedule.rounds} rounds of warm-up, "
                f"warm_up={warm_up}: choose a longer horizon or a smaller warm_up."
            )
        return schedule

    def gradients(
        self, spec: ContextualSpec, *, bound: str = "exact", gradient_clip: float | None = None
    ) -> RecursiveGradients:
        """The clipped statistic.

        Its residuals are naturally at most::

            printed  (beta D + L) / M,  beta = M^2 max zeta', D = 2R, L = M max |zeta - r|
            exact    1.5 M R + B with the identity link, else (c beta D + L) / M
        """
        link, M = self.link_for(spec), spec.context_bound
        reach = M * self.radius_for(spec)
        lipschitz = link.lipschitz(reach, spec.reward_low, spec.reward_high)
        travel = self.step if bound == "exact" else 1.0
        natural = 2 * travel * link.largest_slope * reach + lipschitz
        if bound == "exact" and link.name == "identity":
            natural = 1.5 * reach + spec.reward_bound
        return RecursiveGradients(
            n_actions=spec.n_actions,
            dim=spec.dim,
            shared=spec.shared,
            mean=link.mean,
            context_bound=M,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            residual_clip=min(self.residual_clip or inf, natural),
            gradient_clip=gradient_clip,
        )


class FrankWolfeAgent:
    """Warms up, then plays the candidate with the largest zeta(x . theta).

    Candidates are the arms whose zeta(x . theta_frozen) is within h_sub / 2 of the largest, where
    theta_frozen is what the warm-up left. With delayed rewards the first `delay` users, whom the
    schedule has pulled arm 0 for on top of its turn, are not learned from.
    """

    def __init__(
        self,
        settings: FrankWolfeSettings,
        spec: ContextualSpec,
        replicas: int,
        schedule: Schedule,
        mechanism: Mechanism,
        choose: Callable[[Any], Ints],
        ledger: Ledger,
    ) -> None:
        self.ledger = ledger
        self._mean, self._gap = settings.link_for(spec).mean, settings.subset_gap
        self._spec, self._schedule = spec, schedule
        self._mechanism, self._choose = mechanism, choose
        shape, radius = settings.gradients(spec).shape, settings.radius_for(spec)
        self._walk = FrankWolfe(replicas, shape, radius=radius, step=settings.step)
        self._round, self._frozen = 0, self._walk.theta

    @property
    def theta(self) -> Floats:
        """The estimated parameters, one for all arms if shared, (R, K or 1, d)."""
        return self._walk.theta

    def act(self, context: Floats) -> Ints:
        """Arms (R,), ties to the lowest."""
        arm = self._schedule.pull(self._round)
        if arm is not None:
            return np.full(len(context), arm)
        score = self.scores(context)
        if self._gap < inf:
            frozen = self._means(self._frozen, context)
            candidate = frozen > frozen.max(axis=1, keepdims=True) - self._gap / 2
            score = np.where(candidate, score, -inf)
        return score.argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        """Estimated mean rewards zeta(x . theta_a), (R, K)."""
        return self._means(self._walk.theta, context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism, then move every arm that is due towards its vertex."""
        walk, n = self._walk, self._round - self._spec.delay
        self._round += 1
        if n < 0:
            return
        moving = self._schedule.moving(n)
        steps = walk.next_steps(moving)
        release = self._mechanism(walk.theta, walk.previous, steps, context, action, feedback)
        if release is None:
            return
        walk.move(self._choose(release), moving)
        if n < self._schedule.rounds:
            self._frozen = walk.theta

    def _means(self, theta: Floats, context: Floats) -> Floats:
        if self._spec.shared:
            return self._mean(np.matvec(context, theta[:, 0]))
        return self._mean(np.matvec(theta, context))
