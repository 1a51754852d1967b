"""Policies that serve one user at a time, as those of mabwiser and river, for `compare`.

Logs become histories for river's `bandit.evaluate_offline`. Nothing here imports river: policies
are arguments, and a history is a list of plain tuples.

Environments of dpbandit with `Discrete` actions run in `river.bandit.evaluate` as they are. That
function gives all policies copies of one environment, so they meet the same users. It passes no
context and cannot run river's contextual policies; `river_policy` can. Leave `delay` at 0 there:
every reward is paired with the action just played.
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
    """Adapter, for one replica, of `inner`, a policy without the methods `act` and `update`."""

    inner: Any


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Agent made of policies that serve one user at a time, whatever the names of their methods::

        class Mine:                                    # a student's class
            def __init__(self, n_actions, seed): ...
            def act(self, context): ...                # (d,) floats -> arm, 0 to K - 1
            def update(self, context, action, reward): ...

        Foreign(policy=lambda spec, seed: Mine(spec.n_actions, seed))

    `policy` is called once for each replica, with the problem's spec and a fresh seed, and must
    return a new object every time: replicas that share an object learn from each other. The context
    is a copy of the replica's, (d,), or (K, d) where arms have rows of features. For ordered lists
    (`ListSpec`) there are m item numbers and m clicks in place of an arm and a reward. Where
    actions come and go, `act` must take `mask`, the available actions (K,), too. Slow by design:
    one Python call for each replica and round.

    Guarantee:
        None: the memory of foreign code is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: an argument that is no function; the same object returned twice; during play,
            an answer that is no arm.

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
    """function (spec, seed) that returns a new policy"""
    act: Callable[[Any, Floats], Any] = _act
    """function (policy, context) that returns an arm, or a list of items"""
    update: Callable[[Any, Floats, Any, Any], Any] = _update
    """function (policy, context, arm, reward), for lists (policy, context, items, clicks)"""

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
    """Make an agent of a mabwiser bandit, where `make(arms, seed)` returns a new `MAB`::

        mabwiser_policy(lambda arms, seed: MAB(arms, LearningPolicy.LinUCB(alpha=1), seed=seed))

    mabwiser predicts nothing before it is fitted, so arms take turns in the first K rounds. The
    first round calls `fit`, all later ones `partial_fit`. Only contextual bandits get contexts.

    Raises:
        InputError: `make` is a bandit, no function; or, when the agent is made, a contextual
            bandit for arms that have rows of features.
    """
    if not callable(make):
        raise InputError(
            f"Expected make={abbrev(make)} to be a function that returns a new bandit: lambda "
            "arms, seed: MAB(arms, ...)."
        )
    takes("make", make, "arms", "seed")
    return Foreign(policy=partial(MabwiserPolicy, make))


class MabwiserPolicy(Wrapped):
    """Adapter from `act` and `update` to mabwiser's `predict`, `fit` and `partial_fit`."""

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
        """Return the predicted arm; in the first K rounds, the next arm not played so far."""
        if self._rounds < self._n_actions:
            return self._rounds
        return self.inner.predict(*self._features(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn from the reward of one round."""
        learn = self.inner.partial_fit if self._rounds else self.inner.fit
        learn([action], [reward], *self._features(context))
        self._rounds += 1

    def _features(self, context: Floats) -> tuple[Floats, ...]:
        return (context[None],) if self.inner.is_contextual else ()


History: TypeAlias = list[tuple[list[Any], dict[str, float], Any, float]]


def river_policy(make: Callable[[int], Any]) -> Foreign:
    """Make an agent of a river bandit policy, where `make(seed)` returns a new policy::

        river_policy(lambda seed: bandit.UCB(delta=1, seed=seed))
        river_policy(lambda seed: bandit.LinUCBDisjoint(alpha=1, seed=seed))

    Policies whose `pull` takes a context get {"x0": ..., "x1": ...}.

    Raises:
        InputError: `make` is a policy, no function; or, when the agent is made, a contextual
            policy for arms that have rows of features.
    """
    if not callable(make):
        raise InputError(
            f"Expected make={abbrev(make)} to be a function that returns a new policy: lambda "
            f"seed: {type(make).__name__}(..., seed=seed)."
        )
    takes("make", make, "seed")
    return Foreign(policy=partial(RiverPolicy, make))


class RiverPolicy(Wrapped):
    """Adapter from `act` and `update` to river's `pull` and `update`."""

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
        """Return the arm that the policy pulls, from the arms that a mask (K,) allows."""
        arms = self._arms if mask is None else np.flatnonzero(mask).tolist()
        if not self._contextual:
            return self.inner.pull(arms)
        return self.inner.pull(arms, context=self._named(context))

    def update(self, context: Floats, action: int, reward: float) -> None:
        """Learn from the reward of one round."""
        features = (self._named(context),) if self._contextual else ()
        self.inner.update(action, *features, reward)

    def _named(self, context: Floats) -> dict[str, float]:
        return dict(zip(self._names, context.tolist(), strict=True))


def river_history(logged: Logged, *, arms: Sequence[Any] | None = None, seed: int = 0) -> History:
    """Convert a log to a list of (arms, context, arm, reward), for river's `evaluate_offline`.

    river replays a log as Li, Chu, Langford and Wang (WSDM 2011) do, and counts rounds in which the
    policy agrees with the log. This is unbiased only for logs of uniformly random actions, and
    river reads no propensities. So rounds are thinned, as in `dpbandit.offline.replay`: each stays
    with probability lowest / propensity, after which all arms are equally likely in every context.
    A uniform log does not change. Contexts are {"x0": ..., "x1": ...}; rows of arms are flattened.

    Args:
        logged: rounds and propensities, from `read_log` or `record`.
        arms: names of the arms in the history; None: 0, 1, ...
        seed: random seed of the thinning.

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
    """Agent of ordered lists that predicts clicks by a river model::

        RiverRanking(lambda seed: linear_model.LogisticRegression())

    The model predicts a user's click on an item from the features (1, u * v) / sqrt(2), with u the
    user's context and v the item's vector, and learns from every item that she examined. Lists are
    the items with the best predictions; models do not say how uncertain they are, so a list is
    random with probability `explore`. Slow by design: one Python call per replica, round and item.

    Guarantee:
        None: the memory of foreign code is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: `model` is a river model, no function; a model that cannot `learn_one` or
            predict; `explore` outside [0, 1]; a problem without ordered lists.
    """

    model: Callable[[int], Any] = field(kw_only=False)
    """function of a seed that returns a new model, called once for each replica"""
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
