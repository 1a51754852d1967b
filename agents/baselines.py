"""Baselines of every comparison: uniform play, and the best fixed action in hindsight."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dpbandit.agent import Agent
from dpbandit.base import AnyArray, Bools, Floats
from dpbandit.privacy import no_data, no_privacy
from dpbandit.specs import AgentConfig, Hindsight, Spec


class Constant(Agent[Spec]):
    """Base class of agents that learn nothing: the policy is the same in all rounds."""

    rounds_to_release = int(np.iinfo(np.int64).max)
    """number of rounds until the policy changes; the largest integer, because it never changes"""
    chances = cast(Floats, None)
    """probability of every arm, (R, K), if actions are arms, else None"""
    masks = ("public", "user")

    def lead(self, context: Floats) -> tuple[int, ...]:
        """Return the leading shape of `context`, which is (R,), or (n, R) for n rounds of arms."""
        axes = len(self.spec.context_shape)
        return context.shape[: 1 if self.spec.n_arms is None else context.ndim - axes]

    def count_block(self, counts: Floats, rounds: int) -> None:
        """Ignore a block of plays: no sums are released."""

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        pass


class Uniform(Constant):
    """Play uniformly random actions.

    Actions are arms, experts, prices, or points of a convex domain. If some are unavailable, the
    draw is uniform over the available ones.

    Guarantee:
        Epsilon 0: no user's data is looked at.

    >>> from dpbandit import compare
    >>> results = compare("dpbandit/OJPricing-v0", {}, horizon=200, replicas=2, progress=False)
    >>> list(results.summary()["agent"])
    ['Uniform', 'BestFixed']
    """

    def start(self) -> None:
        self.ledger = no_data()
        self.draw: Callable[..., AnyArray] = self.spec.uniform(self.streams)
        if self.spec.n_arms is not None:
            self.chances = np.full((self.R, self.spec.n_arms), 1 / self.spec.n_arms)

    def act(self, context: Floats) -> AnyArray:
        lead = self.lead(context)
        return self.draw(lead) if len(lead) > 1 else self.draw()

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        return self.draw(mask=mask)


class OneAction(Constant):
    """Base class of agents that play one fixed action, or a random one while it is unavailable."""

    def one_action(self) -> AnyArray:
        """Return the fixed action of every replica, (R, ...)."""
        raise NotImplementedError

    def start(self) -> None:
        self.ledger = no_privacy("an action chosen with all data in hand")
        self.action = self.one_action()
        self.draw: Callable[..., AnyArray] = self.spec.uniform(self.streams)
        if self.spec.n_arms is not None:
            self.chances = np.eye(self.spec.n_arms)[self.action]

    def act(self, context: Floats) -> AnyArray:
        lead = self.lead(context)
        return np.broadcast_to(self.action, lead) if len(lead) > 1 else self.action

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        random = self.draw(mask=mask)
        return self.spec.stand_in(np.broadcast_to(self.action, random.shape), mask, random)


class Fixed(OneAction):
    """Play `answer`, the best fixed action in hindsight."""

    answer: tuple[Any, ...]

    def one_action(self) -> AnyArray:
        return np.array(self.answer)


class BestFixed(Hindsight, OneAction):
    """Play the best single action in hindsight from the first round on; an oracle.

    The oracle knows which action has the largest expected total reward over the users of the run.
    A learning agent that does not beat it has learned nothing from contexts. While that action is
    unavailable a random one is played; in a list, random items replace the missing ones.

    Guarantee:
        None.
    """

    def with_answer(self, action: AnyArray) -> AgentConfig:
        points = action.tolist() if action.ndim == 1 else map(tuple, action.tolist())
        return Fixed(answer=tuple(points))  # tuples can be hashed

    def one_action(self) -> AnyArray:
        # Without an answer, which `compare` supplies: the first arm, lowest price or centre
        return np.array([self.spec.default_action] * self.R)
