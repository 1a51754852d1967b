"""Recommend the agent to start with by public facts of a problem."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from dpbandit.base import positive
from dpbandit.losses import Linear
from dpbandit.running.given import AnyProblem, spec_given
from dpbandit.specs import (
    AssortmentSpec,
    ContextualSpec,
    ConvexSpec,
    ExpertsSpec,
    ListSpec,
    PriceListSpec,
    ReturningSpec,
    Spec,
    StreamSpec,
    TastesSpec,
)


def recommend(
    env: Spec | AnyProblem,
    epsilon: float = 1.0,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> str:
    """Return the agent to start with, private unless epsilon is infinite, as `compare` takes it.

    It looks at public facts alone: the kind of problem, its sizes and its horizon. What it says
    was measured: `docs/suite.md` has a row for most kinds, docs/fade.md those of price lists. Arms
    without contexts go to `allocation-ts`, and experts to `batch-leader`, which has no bound
    against an adversary (`noisy-ftrl` has). Where none of our private agents plays, or what the
    world tells users about others is covered by no certificate (`Spec.carries`, such as "sold
    out"), it says uniform play, which certifies nothing there either.

    Args:
        env: a spec, or a problem in any form that `compare` takes.
        epsilon: the budget; delta is the agent's default. Infinity asks for an agent without
            privacy, the baseline that says what privacy costs.
        horizon: rounds of an environment; its own by default, or 10,000.
        env_kwargs: further arguments of an environment.

    >>> recommend("OJPricing"), recommend("GLMBandit", 0.5), recommend("Arms")
    ('fade:features=curve:epsilon=1', 'fade:epsilon=0.5', 'allocation-ts:epsilon=1')
    >>> recommend("OJPricing", inf)
    'priced:logistic-ts'
    """
    if epsilon != inf:
        positive("epsilon", epsilon)
    spec = spec_given(env, horizon=horizon, env_kwargs=env_kwargs)
    if epsilon == inf:
        return _of_kind(spec, _WITHOUT_PRIVACY)
    agent = _start(spec)
    return agent if agent == "uniform" else f"{agent}:epsilon={epsilon:g}"


def _start(spec: Spec) -> str:
    return "uniform" if spec.carries else _of_kind(spec, _OF_A_KIND)


def _of_kind(spec: Spec, table: "_ByKind") -> str:
    found = next((table[kind] for kind in type(spec).__mro__ if kind in table), "uniform")
    return found if isinstance(found, str) else found(spec)


def _of_visits(spec: ReturningSpec) -> str:
    if isinstance(spec.visit, TastesSpec):
        return "personal-pricing"
    return "per-person:list-fade" if type(spec.visit) is ListSpec else "personal-fade"


def _of_points(spec: ConvexSpec) -> str:
    if spec.feedback == "datum":
        return "pftal"
    linear = isinstance(spec.loss, Linear)  # what is not may be curved: a smaller step is safer
    return "private-bandit:parameters=halved" if linear else "private-bandit"


def _of_arms(spec: ContextualSpec) -> str:
    alone = spec.context_shape[-1] == 1 and spec.masks != "user"  # its counts would tell of them
    return "allocation-ts" if alone else "fade"


def _public_of_visits(spec: ReturningSpec) -> str:
    if isinstance(spec.visit, TastesSpec):
        return "personal-pricing:epsilon=inf"
    return "uniform" if type(spec.visit) is ListSpec else "mixed-effects"


_ByKind = dict[type, str | Callable[[Any], str]]
_OF_A_KIND: _ByKind = {
    ReturningSpec: _of_visits,
    AssortmentSpec: "fade-mnl",
    ListSpec: "list-fade",
    ExpertsSpec: "batch-leader",
    StreamSpec: "localised-tofw",
    PriceListSpec: "fade:features=curve",
    ContextualSpec: _of_arms,
    ConvexSpec: _of_points,
}
"""By the kind of problem; of kinds that are another one, too, the nearest."""
_WITHOUT_PRIVACY: _ByKind = {
    ReturningSpec: _public_of_visits,
    AssortmentSpec: "mnl-ts",
    ListSpec: "ranked-linucb",
    ExpertsSpec: "follow-the-leader",
    StreamSpec: "least-squares",
    PriceListSpec: "priced:logistic-ts",
    ContextualSpec: lambda spec: "thompson" if spec.context_shape[-1] == 1 else "linucb",
    ConvexSpec: lambda spec: "ftal" if spec.feedback == "datum" else "bandit-ftal",
}
"""Agents without privacy, in the same way."""
