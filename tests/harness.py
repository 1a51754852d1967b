"""Shared by conformance tests: discovered agents, a world that can be swapped and replayed."""

import dataclasses
import pickle
import types
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from dpbandit.agents import (
    AGENTS,
    DPHDB,
    DPUCB,
    FADE,
    GLMUCB,
    STOCHASTIC,
    DPHDBChoices,
    FadeCentred,
    FadeLogistic,
    Greedy,
    Guard,
    LinTS,
    LinUCB,
    ListFADE,
    LogisticTS,
    Mapped,
    PerPerson,
    Priced,
)
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.envs.contextual.stock import StockSpec
from dpbandit.losses import Linear, LinearRegression, Quadratic, Ridge
from dpbandit.losses.click_models import Cascade, PositionBased, UntoldPositions
from dpbandit.privacy.notion import Visits
from dpbandit.specs.choice import AssortmentSpec, PricedAssortmentSpec
from dpbandit.specs.contract import made_agent
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec, StreamSpec
from dpbandit.specs.lists import Catalogue, ListSpec
from dpbandit.specs.models import Prior
from dpbandit.specs.people import ReturningSpec
from dpbandit.specs.protocols import ContextualSpec, PriceSpec, Spec
from dpbandit.specs.rivals import RivalsSpec
from dpbandit.specs.selling import PriceListSpec

DISJOINT = ContextualSpec(n_actions=3, dim=2, horizon=24, reward_low=-0.5, reward_high=1.0)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=24, shared=True)
PRICE = PriceSpec(dim=2, horizon=24, low=1.0, high=2.0)
PRICES = PriceListSpec(
    n_actions=4, dim=3, horizon=24, prices=(1.0, 1.5, 2.0, 3.0), unit_cost=0.5, reward_high=2.5
)
DELAYED = ContextualSpec(
    n_actions=2, dim=1, horizon=24, context_order=np.inf, context_bound=2.0, link="probit", delay=3
)
VALUES = ConvexSpec(loss=Linear(Ball(2)), horizon=24)
FLAT = ConvexSpec(loss=Linear(Simplex(3)), horizon=24)
DATA = ConvexSpec(loss=Quadratic(Ball(2)), horizon=24, feedback="datum")
FLAT_DATA = ConvexSpec(loss=Linear(Simplex(3)), horizon=24, feedback="datum")
LATE_DATA = ConvexSpec(loss=Linear(Ball(2)), horizon=24, feedback="datum", delay=3)
CURVED = ConvexSpec(loss=Ridge(Ball(2)), horizon=24, feedback="datum")
"""Spec for the agents that need such a loss."""
STREAM = StreamSpec(loss=LinearRegression(LpBall(3, p=1.5, radius=2.0)), horizon=24)
STREAM_L1 = StreamSpec(loss=LinearRegression(LpBall(2, p=1)), horizon=24)
EXPERTS = ExpertsSpec(n_actions=3, horizon=24)
LATE_EXPERTS = ExpertsSpec(n_actions=2, horizon=24, delay=3)
CHOICE = AssortmentSpec(n_products=3, at_most=2, dim=2, horizon=24, margins=(0.3, 0.7, 1.0))
OFFERS = PricedAssortmentSpec(
    n_products=2,
    at_most=2,
    dim=2,
    horizon=24,
    shared=False,
    prices=(1.0, 2.0),
    unit_costs=(0.5, 0.7),
    delay=3,
)
LISTS = ListSpec(catalogue=Catalogue(12, 2), clicks=Cascade(3), horizon=24)
PLACES = ListSpec(catalogue=Catalogue(9, 2), clicks=PositionBased((1.0, 0.5)), horizon=24)
UNTOLD = ListSpec(catalogue=Catalogue(9, 2), clicks=UntoldPositions(2), horizon=24)
PEOPLE = ReturningSpec(
    visit=ContextualSpec(n_actions=3, dim=2, horizon=24, shared=True, reward_low=-0.5), people=3,
    visits=Visits(3, 2), horizon=24,
)  # fmt: skip
"""Some come more often than the cap, or sooner."""
READERS = ReturningSpec(
    visit=ListSpec(catalogue=Catalogue(5, 2), clicks=Cascade(2), horizon=24), people=3,
    visits=Visits(3, 2), horizon=24,
)  # fmt: skip
MASKED = ContextualSpec(n_actions=4, dim=2, horizon=24, masks="user")
SHOPPERS = ReturningSpec(
    visit=RivalsSpec(
        n_actions=3,
        horizon=24,
        prices=(1.0, 2.0, 3.0),
        unit_cost=0.5,
        reward_high=2.5,
        rivals=2,
        offer=(1.0,),
        largest=(2.0, 3.0),
        survey=Prior([0.5, 0.0], 1.0),
        guess=Prior([0.0, 0.0], 4.0),
    ),
    people=3,
    visits=Visits(3, 2),
    horizon=24,
)
SPECS = {
    name.lower().replace("_", "-"): spec
    for name, spec in list(globals().items())
    if isinstance(spec, Spec)
}
"""All of them, by their names."""
STOCK = StockSpec(
    n_actions=4,
    dim=3,
    horizon=24,
    prices=(1.0, 1.5, 2.0, 3.0),
    unit_cost=0.5,
    reward_high=2.5,
    stock=400,
)
"""None of these: no certificate covers an agent on it."""
ONCE = (MASKED, PRICES, DELAYED, FLAT, FLAT_DATA, LATE_DATA, LATE_EXPERTS, OFFERS, PLACES)
"""Specs on which an agent's defaults alone are tested."""

_RESTS: list[dict[str, Any]] = [
    {},
    {"refresh_every": 3},
    {"prefix_sums": "tree"},
    {"prefix_sums": "gradual", "noise": "laplace"},
    {"selection": "laplace", "warm_up": 2},
    {"anytime": True},
    {"trust": "shuffled"},
    {"trust": "local"},
    {"first": 1.0},
]
"""Other settings that a word may need beside it."""
_ADDED_UP = {"trust": "aggregated", "fade": 0.0}
"""Once for each agent of fading sums that needs no trusted server if they do not fade."""
_ENDLESS = {"anytime": True, "first_batch": 2}
"""Once for each agent with a first batch, which is else longer than the horizon of `SPECS`."""


def variants(config: Any) -> list[Any]:
    """The config with no word or one in a field that allows it, beside every rest it takes."""
    fields = {field.name for field in dataclasses.fields(config)}
    hints = {name: hint for name, hint in get_type_hints(config).items() if name in fields}
    if config is FADE:  # the agents of models are there themselves, with these settings
        hints = {name: hints[name] for name in ("coding", "centring", "features")}
    words = [{name: w} for name, hint in hints.items() for w in _words(hint)]
    found = {config(): None}
    endless = _ENDLESS.keys() <= fields
    if endless and config is not FadeCentred:  # whose first 200 users are in its centre
        found[config(**_ENDLESS)] = None
    if _ADDED_UP.keys() <= fields:
        found[config(**_ADDED_UP)] = None
    for word in [{}, *words]:
        for rest in _RESTS:
            if rest.keys() <= fields - word.keys() and not (endless and "anytime" in rest):
                with suppress(InputError):
                    found[config(**word, **rest)] = None
    return list(found)


def fitting(agent: Any, specs: Sequence[Spec]) -> tuple[Any, Spec]:
    """The first of an agent's settings, defaults before others, that fit a spec, and the spec."""
    for config in variants(agent):
        for spec in specs:
            with suppress(InputError):
                config.make(spec, Streams([0]))
                return config, spec
    raise LookupError(f"{agent.__name__} fits none of {len(specs)} specs: add one of its kind.")


def is_default(config: Any) -> bool:
    """Return True if an agent has only the settings that it needs."""
    return not isinstance(config, Priced | Guard | PerPerson | Mapped) and bool(
        config == type(config)()
    )


def sellers() -> list[Priced]:
    """Agents that price through a model of demand, with every rest they take."""
    found = []
    for kind in (
        DPHDB, DPHDBChoices, DPUCB, FadeLogistic, GLMUCB, Greedy, LinTS, LinUCB, LogisticTS,
    ):  # fmt: skip
        fields = {field.name for field in dataclasses.fields(kind)}
        for rest in _RESTS:
            if rest.keys() <= fields:
                with suppress(InputError):
                    found.append(Priced(kind(**rest)))
    return found


PERSONS = [
    PerPerson(FADE(first_batch=2)),
    PerPerson(DPUCB(refresh_every=3), told=1),
    PerPerson(ListFADE(first_batch=2)),
]
"""Agents for single rounds that play people who return."""
GUARDS = [Guard(DPUCB(refresh_every=3), rate=1.0)]
"""Agents with a safety net, so many explorers that both are heard from in a short run."""


def _words(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return [word for part in get_args(hint) for word in _words(part)]
    return []


MAPS = [
    Mapped(DPUCB(refresh_every=3), basis="products"),
    Mapped(LinUCB(), n_features=4),
    Mapped(FADE(first_batch=2), n_features=4),
]
"""Agents on public features of contexts."""


KINDS = [*AGENTS, "priced", "guarded", "per-person", "mapped"]
"""Ids of all agents, and words for those that play through another one."""
every_kind = pytest.mark.parametrize("kind", KINDS)


def _configs(kind: str) -> list[Any]:
    others = {"guarded": GUARDS, "per-person": PERSONS, "mapped": MAPS}
    if kind == "priced":
        return sellers()
    return others[kind] if kind in others else variants(AGENTS[kind])


@cache
def discovered(kind: str) -> list[tuple[Any, Spec]]:
    """Variants of one agent, on every kind of spec they fit; of those that make the same running
    agent, byte for byte, the first.

    A list of prices is one more set of arms to most; it is for defaults and for models of demand.
    Late rewards of two arms with one feature, arms that come and go, and values on a simplex are
    for defaults, too.
    Shoppers are for those who remember them: in so few rounds one batch is half of a price's cost.
    Streams of users are for the agents that were made for them.
    """
    found: dict[Any, tuple[Any, Spec]] = {}
    for config in _configs(kind):
        for name, spec in SPECS.items():
            demand = isinstance(config, Priced) or getattr(config, "model", None) == "demand"
            if spec is SHOPPERS and kind == "per-person":
                continue
            once = spec in ONCE and not demand
            if isinstance(spec, StreamSpec):
                once = type(config) not in STOCHASTIC.values()
            if (once and not is_default(config)) or (
                spec is CURVED and kind not in ("pocp", "pqftl")
            ):
                continue
            with suppress(InputError):
                made = pickle.dumps(made_agent(config, spec, Streams([0])))
                found.setdefault((name, made), (config, spec))
    return list(found.values())


def label(pair: tuple[Any, Spec]) -> str:
    config, spec = pair
    if isinstance(config, Priced | Guard | PerPerson | Mapped):
        return f"{type(config).__name__} {label((config.agent, spec))}"
    name = next(name for name, known in SPECS.items() if known is spec)
    changed = [
        f"{f.name}={getattr(config, f.name)}"
        for f in dataclasses.fields(config)
        if getattr(config, f.name) != f.default
    ]
    return " ".join([type(config).__name__, *changed, name])
