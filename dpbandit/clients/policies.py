"""Use scalar policies in `compare`, such as those of mabwiser and river.

river: its policies in `compare`, and logs as histories for its `bandit.evaluate_offline`.

Nothing here imports river: policies are handed in, and a history is a list of plain tuples.

The other way round needs no help: every environment here whose actions are `Discrete` runs in
`river.bandit.evaluate`, which gives all policies copies of one environment, so they meet the same
users. It shows policies no context and therefore cannot run river's contextual ones (they fail on
the missing context); `river_policy` can. Leave `delay` at 0 there: it pairs every reward with the
action just played.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from dpbandit.agent import Chance
from dpbandit.agents.lists.ranked import Lists, best_lists
from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    has_methods,
    of_kind,
    rows,
    takes,
)
from dpbandit.offline.logs import Logged
from dpbandit.privacy import no_privacy
from dpbandit.privacy.clicks import features
from dpbandit.running.strangers import OneByOne, _act, _update
from dpbandit.specs import BanditSpec, ContextualSpec, fits
from dpbandit.specs.lists import ListSpec


class Wrapped:
    """A policy under other names of its methods; what must not be shared is `inner`."""

    inner: Any


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Runs policies written for one user at a time, by whatever names their methods have::

        class Mine:                                    # a student's class
            def __init__(self, n_actions, seed): ...
            def act(self, context): ...                # (d,) floats -> arm, 0 to K - 1
            def update(self, context, action, reward): ...

        Foreign(policy=lambda spec, seed: Mine(spec.n_actions, seed))

    `policy` is called once for each replica, with the public facts and a seed of its own, and must
    hand out a new object every time: replicas that share one learn from each other. Context is a
    copy of that replica's, (d,), or (K, d) where arms have rows of features. Where ordered lists
    are shown (`ListSpec`) there are m item numbers and m clicks in place of an arm and a reward.
    Where actions come and go an `act` that takes `mask`, too, is told which are there, (K,), and
    others are refused. Slow by design: one Python call for each replica and round.

    Guarantee:
        None: what foreign code keeps is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: an argument that is no function; an object handed out twice; in its round, an
            answer that is no arm.

    >>> from dpbandit import compare
    >>> class Mean:
    ...     def __init__(self, n_actions):
    ...         self.total, self.count = np.ones(n_actions), np.ones(n_actions)
    ...     def act(self, context):
    ...         return (self.total / self.count).argmax()
    ...     def update(self, context, action, reward):
    ...         self.total[action] += reward
    ...         self.count[action] += 1
    >>> mine = Foreign(policy=lambda spec, seed: Mean(spec.n_actions))
    >>> results = compare("OJPricing", {"Mean": mine}, horizon=300, replicas=3, progress=False)
    >>> list(results.summary()["agent"])
    ['Mean', 'Uniform', 'BestFixed']
    """

    policy: Callable[[Any, int], Any]
    """(spec, seed) -> a new policy"""
    act: Callable[[Any, Floats], Any] = _act
    """(policy, context) -> arm, or list of items"""
    update: Callable[[Any, Floats, Any, Any], Any] = _update
    """(policy, context, arm, reward) -> anything; of lists (policy, context, items, clicks)"""

    def __post_init__(self) -> None:
        for name in ("policy", "act", "update"):
            if not callable(getattr(self, name)):
                raise InputError(f"Expected {name}={getattr(self, name)!r} to be a function.")

    def make(self, spec: BanditSpec, streams: Streams) -> OneByOne:
        kind = ListSpec if spec.feedback_name == "clicks" else ContextualSpec
        spec = fits(self, spec, kind, shared=True)
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        takes("policy", self.policy, "spec", "seed")
        policies = [self.policy(spec, seed) for seed in seeds]
        for policy in policies[:1]:
            if policy is None:
                raise InputError("Expected policy to return a new policy, got None.")
            if self.act is _act:
                act_arguments = ("context",) if spec.masks == "none" else ("context", "mask")
                has_methods("what policy returns", policy, act=act_arguments)
            if self.update is _update:
                update_arguments = ("context", "action", "reward")
                has_methods("what policy returns", policy, update=update_arguments)
        learners = [p.inner if isinstance(p, Wrapped) else p for p in policies]
        if len({id(learner) for learner in learners}) < len(seeds):
            raise InputError("Expected a new object from every call of policy, got one twice.")
        return OneByOne(policies, spec, self.act, self.update)


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
            f"Expected make={abbrev(make)} to be a function that returns a new bandit: lambda "
            "arms, seed: MAB(arms, ...)."
        )
    takes("make", make, "arms", "seed")
    return Foreign(policy=partial(MabwiserPolicy, make))


class MabwiserPolicy(Wrapped):
    """`act` and `update` by way of mabwiser's `predict`, `fit` and `partial_fit`."""

    def __init__(
        self, make: Callable[[list[int], int], Any], spec: ContextualSpec, seed: int
    ) -> None:
        self._n_actions, self._rounds = spec.n_actions, 0
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
        if self._rounds < self._n_actions:
            return self._rounds
        return self.inner.predict(*self._features(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn one reward."""
        learn = self.inner.partial_fit if self._rounds else self.inner.fit
        learn([action], [reward], *self._features(context))
        self._rounds += 1

    def _features(self, context: Floats) -> tuple[Floats, ...]:
        return (context[None],) if self.inner.is_contextual else ()


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
            f"Expected make={abbrev(make)} to be a function that returns a new policy: lambda "
            f"seed: {type(make).__name__}(..., seed=seed)."
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

    def act(self, context: Floats, mask: Bools | None = None) -> Any:
        """The arm that the policy pulls, of those that are there."""
        arms = self._arms if mask is None else np.flatnonzero(mask).tolist()
        if not self._contextual:
            return self.inner.pull(arms)
        return self.inner.pull(arms, context=self._named(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn one reward."""
        features = (self._named(context),) if self._contextual else ()
        self.inner.update(action, *features, reward)

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

    >>> from dpbandit.clients.logs import read_log
    >>> table = {"a": [0, 1], "r": [0, 1]}
    >>> logged = read_log(table, action="a", reward="r", reward_range=(0, 1))
    >>> river_history(logged)[1]
    ([0, 1], {'x0': 1.0}, 1, 1.0)
    """
    names = list(range(logged.spec.n_actions)) if arms is None else list(arms)
    if len(names) != logged.spec.n_actions:
        raise InputError(f"Expected {logged.spec.n_actions} arms, got {len(names)}.")
    n = len(logged.action)
    uniforms = Streams([seed]).uniforms("thinning").take(n)[:, 0]
    accepted = uniforms * logged.propensity < logged.uniform_share
    features = [f"x{j}" for j in range(logged.context[0].size)]
    contexts = logged.context.reshape(n, -1)[accepted].tolist()
    rounds = zip(
        contexts, logged.action[accepted].tolist(), logged.reward[accepted].tolist(), strict=True
    )
    return [(names, dict(zip(features, x, strict=True)), names[a], r) for x, a, r in rounds]


class RiverRanking(Lists):
    """A river model that predicts clicks, as an agent of ordered lists::

        RiverRanking(lambda seed: linear_model.LogisticRegression())

    It predicts from the features (1, u * v) / sqrt(2) of an item for a user whether she clicks, and
    learns of every item that was looked at; the m items with the best predictions are shown. A
    model does not know what it does not know: with probability `explore` a list is random. Slow by
    design: one Python call for each replica, round and item.

    Guarantee:
        None: what foreign code keeps is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: a model in place of a function; a model that cannot `learn_one` or predict;
            `explore` outside [0, 1]; anything but ordered lists.
    """

    model: Callable[[int], Any] = field(kw_only=False)
    """seed -> a new model, called once for each replica"""
    explore: Chance = field(default=0.05, kw_only=False)
    """probability of a random list, in [0, 1]"""

    def check(self) -> None:
        if not callable(self.model) or hasattr(self.model, "learn_one"):
            raise InputError(
                f"Expected model={abbrev(self.model)} to be a function that returns a new model: "
                f"lambda seed: {type(self.model).__name__}(...)."
            )
        takes("model", self.model, "seed")

    def start(self) -> None:
        super().start()
        self.ledger = no_privacy("foreign code, which claims nothing")
        seeds = (self.streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        self.models = [self.model(seed) for seed in seeds]
        for model in self.models:
            if not hasattr(model, "learn_one"):
                raise InputError(f"Expected a model from every call, got {of_kind(model)}.")
        if len({id(model) for model in self.models}) < len(seeds):
            raise InputError("Expected a new model from every call, got one twice.")
        self.coins, self.random = self.streams.uniforms("explore"), self.spec.uniform(self.streams)
        self.names = tuple(f"x{j}" for j in range(self.spec.features))

    def choose(self, u: Floats) -> Ints:
        R, N = len(u), self.spec.n_items
        everything = np.broadcast_to(rows(N), (R, N))
        phi = features(u, self.spec.catalogue.vectors(everything))
        pairs = zip(self.models, phi.tolist(), strict=True)
        scores = [[self._predicted(model, row) for row in items] for model, items in pairs]
        best = best_lists(np.array(scores), self.spec.clicks)
        return np.where((self.coins() < self.explore)[:, None], self.random(), best)

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        phi, looked = features(u, vectors), self.spec.clicks.looked_at(clicks)
        for model, items, seen, clicked in zip(
            self.models, phi.tolist(), looked, clicks, strict=True
        ):
            for row, at, click in zip(items, seen, clicked, strict=True):
                if at > 0:
                    model.learn_one(self._named(row), bool(click))

    def _predicted(self, model: Any, row: list[float]) -> float:
        if hasattr(model, "predict_proba_one"):
            return float(model.predict_proba_one(self._named(row)).get(True, 0.0))
        return float(model.predict_one(self._named(row)) or 0.0)

    def _named(self, row: list[float]) -> dict[str, float]:
        return dict(zip(self.names, row, strict=True))
