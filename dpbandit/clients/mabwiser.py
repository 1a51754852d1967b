"""mabwiser: its bandits in `compare`. Nothing here imports it: they are handed in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from dpbandit.base.arrays import Floats
from dpbandit.base.fields import of_kind, takes
from dpbandit.base.inputs import InputError, shown
from dpbandit.clients.foreign import Foreign, Wrapped
from dpbandit.specs.protocols import ContextualSpec


def mabwiser_policy(make: Callable[[list[int], int], Any]) -> Foreign:
    """A mabwiser bandit as an agent: `make(arms, seed)` returns a new `MAB`::

        mabwiser_policy(lambda arms, seed: MAB(arms, LearningPolicy.LinUCB(alpha=1), seed=seed))

    mabwiser predicts nothing before it is fitted, so arms take turns in the first K rounds, each
    fed as it comes: `fit` on the first, `partial_fit` afterwards. Bandits that are contextual are
    shown contexts, others are not.

    Raises:
        InputError: a bandit in place of a function; once made for arms that have rows of
            features, if the bandit is contextual.
    """
    if not callable(make):
        raise InputError(
            f"Expected make={shown(make)} to be a function that returns a new bandit: lambda arms, "
            "seed: MAB(arms, ...)."
        )
    takes("make", make, "arms", "seed")
    return Foreign(policy=partial(MabwiserPolicy, make))


class MabwiserPolicy(Wrapped):
    """`act` and `update` by way of mabwiser's `predict`, `fit` and `partial_fit`."""

    def __init__(
        self, make: Callable[[list[int], int], Any], spec: ContextualSpec, seed: int
    ) -> None:
        self._n_actions, self._told = spec.n_actions, 0
        self.inner = make(list(range(spec.n_actions)), seed)
        if not hasattr(self.inner, "is_contextual"):
            raise InputError(f"Expected make to return a MAB, got {of_kind(self.inner)}.")
        if self.inner.is_contextual and spec.shared:
            raise InputError(
                "Contextual bandits of mabwiser have a model for each arm and play one context for "
                "all arms: choose another bandit or environment."
            )

    def act(self, context: Floats) -> Any:
        """The arm it predicts; in the first K rounds the next one that was not played."""
        if self._told < self._n_actions:
            return self._told
        return self.inner.predict(*self._shown(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn one reward."""
        learn = self.inner.partial_fit if self._told else self.inner.fit
        learn([action], [reward], *self._shown(context))
        self._told += 1

    def _shown(self, context: Floats) -> tuple[Floats, ...]:
        return (context[None],) if self.inner.is_contextual else ()
