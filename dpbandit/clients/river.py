"""river: its policies in `compare`, and logs as histories for its `bandit.evaluate_offline`.

Nothing here imports river: policies are handed in, and a history is a list of plain tuples.

The other way round needs no help: every environment here whose actions are `Discrete` runs in
`river.bandit.evaluate`, which gives all policies copies of one environment, so they meet the same
users. It shows policies no context and therefore cannot run river's contextual ones (they fail on
the missing context); `river_policy` can. Leave `delay` at 0 there: it pairs every reward with the
action just played.
"""

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any, TypeAlias

from dpbandit.base.arrays import Floats
from dpbandit.base.fields import of_kind, takes
from dpbandit.base.inputs import InputError, shown
from dpbandit.base.random_streams import Streams
from dpbandit.clients.foreign import Foreign, Wrapped
from dpbandit.offline.logs import Logged
from dpbandit.specs.protocols import ContextualSpec

History: TypeAlias = list[tuple[list[Any], dict[str, float], Any, float]]


def river_policy(make: Callable[[int], Any]) -> Foreign:
    """A river bandit policy as an agent: `make(seed)` returns a new one::

        river_policy(lambda seed: bandit.UCB(delta=1, seed=seed))
        river_policy(lambda seed: bandit.LinUCBDisjoint(alpha=1, seed=seed))

    A policy whose `pull` takes a context is shown {"x0": ..., "x1": ...}; others are shown none.

    Raises:
        InputError: a policy in place of a function; once made for arms that have rows of
            features, if the policy is contextual.
    """
    if not callable(make):
        raise InputError(
            f"Expected make={shown(make)} to be a function that returns a new policy: lambda seed: "
            f"{type(make).__name__}(..., seed=seed)."
        )
    takes("make", make, "seed")
    return Foreign(policy=partial(RiverPolicy, make))


class RiverPolicy(Wrapped):
    """`act` and `update` by way of river's `pull` and `update`."""

    def __init__(self, make: Callable[[int], Any], spec: ContextualSpec, seed: int) -> None:
        self.inner, self._arms = make(seed), list(range(spec.n_actions))
        if not hasattr(self.inner, "pull"):
            raise InputError(f"Expected make to return a policy, got {of_kind(self.inner)}.")
        self._contextual = "context" in signature(self.inner.pull).parameters
        if self._contextual and spec.shared:
            raise InputError(
                f"{type(self.inner).__name__} has a model for each arm and plays one context for "
                "all arms: choose another policy or environment."
            )
        self._names = tuple(f"x{j}" for j in range(spec.dim))

    def act(self, context: Floats) -> Any:
        """The arm that the policy pulls."""
        if not self._contextual:
            return self.inner.pull(self._arms)
        return self.inner.pull(self._arms, context=self._named(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn one reward."""
        shown = (self._named(context),) if self._contextual else ()
        self.inner.update(action, *shown, reward)

    def _named(self, context: Floats) -> dict[str, float]:
        return dict(zip(self._names, context.tolist(), strict=True))


def river_history(logged: Logged, *, arms: Sequence[Any] | None = None, seed: int = 0) -> History:
    """A log as a list of (arms, context, arm, reward), for river's `evaluate_offline`.

    river replays a log as Li, Chu, Langford and Wang (WSDM 2011) do: rounds count in which the
    policy agrees with it. That is unbiased for logs of uniformly random actions only, and river
    reads no propensities. So rounds are thinned before, as in `dpbandit.offline.replay`, each stays
    with probability lowest / propensity, after which all arms are equally likely in every context.
    A uniform log stays as it is. Contexts are {"x0": ..., "x1": ...}, in a row where arms have
    rows.

    Args:
        logged: rounds and propensities: `read_log` makes it of a table, `record` of an environment.
        arms: what river shall call them; None: 0, 1, ...
        seed: of the thinning.

    >>> from dpbandit.clients.logged import read_log
    >>> table = {"a": [0, 1], "r": [0, 1]}
    >>> logged = read_log(table, action="a", reward="r", reward_range=(0, 1))
    >>> river_history(logged)[1]
    ([0, 1], {'x0': 1.0}, 1, 1.0)
    """
    names = list(range(logged.spec.n_actions)) if arms is None else list(arms)
    if len(names) != logged.spec.n_actions:
        raise InputError(f"Expected {logged.spec.n_actions} arms, got {len(names)}.")
    n = len(logged.action)
    luck = Streams([seed]).uniforms("thinning").take(n)[:, 0]
    kept = luck * logged.propensity < logged.uniform_share
    features = [f"x{j}" for j in range(logged.context[0].size)]
    contexts = logged.context.reshape(n, -1)[kept].tolist()
    rounds = zip(contexts, logged.action[kept].tolist(), logged.reward[kept].tolist(), strict=True)
    return [(names, dict(zip(features, x, strict=True)), names[a], r) for x, a, r in rounds]
