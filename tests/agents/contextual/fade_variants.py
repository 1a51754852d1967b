"""FADE as it is set in its tests, on small problems."""

from dataclasses import replace

import pytest

from dpbandit.agents import FADE
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec

DISJOINT = ContextualSpec(n_actions=3, dim=2, horizon=200, reward_low=-1.0)
HIGHER = replace(DISJOINT, reward_low=-0.5)
PAIR = replace(DISJOINT, n_actions=2)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=200, shared=True)
PRICES = PriceListSpec(
    n_actions=3,
    dim=2,
    horizon=200,
    prices=(1.0, 1.5, 2.0),
    unit_cost=0.5,
    reward_high=1.5,
    link="other",
)
REWARDS = FADE(coding="rewards")
VARIANTS = {
    "arms": (FADE(), DISJOINT),
    "arms of two": (FADE(), PAIR),
    "arms, delayed": (FADE(), replace(DISJOINT, delay=20)),
    "answers": (FADE(), replace(DISJOINT, dim=4, link="other")),
    "answers, delayed": (FADE(), replace(DISJOINT, dim=4, link="other", delay=20)),
    "level": (FADE(), HIGHER),
    "level, delayed": (FADE(), replace(HIGHER, delay=20, link="poisson")),
    "moments": (FADE(model="moments"), DISJOINT),
    "moments of two": (FADE(model="moments"), PAIR),
    "moments without debias": (FADE(model="moments", debias=False), DISJOINT),
    "regression of each": (FADE(model="regression"), DISJOINT),
    "slates": (FADE(), SHARED),
    "slates, delayed": (FADE(), replace(SHARED, delay=20, link="logistic")),
    "regression of signs": (REWARDS, SHARED),
    "regression": (FADE(model="regression", response="linear"), SHARED),
    "logistic": (FADE(model="regression", response="logistic"), SHARED),
    "demand": (FADE(), PRICES),
    "demand of rewards": (REWARDS, PRICES),
    "interactions": (FADE(features="interactions"), PRICES),
    "curve": (FADE(), replace(PRICES, link="identity")),
    "curve, delayed": (FADE(features="curve"), replace(PRICES, delay=20)),
    "other batches": (FADE(model="moments", first_batch=70, growth=0.0, fade=0.9), DISJOINT),
    "delayed": (FADE(), replace(PRICES, delay=20)),
    "centred": (FADE(model="moments", centring="private"), DISJOINT),
    "centred arms": (FADE(centring="private"), DISJOINT),
    "centred regression": (FADE(model="regression", centring="private"), SHARED),
    "centred slates": (FADE(centring="private"), SHARED),
}
LEVELS = ("level", "level, delayed")
"""Arms whose level is learned with them."""
CURVES = ("curve", "curve, delayed")
"""Where sales are counted before anything is summed."""
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def contextual(**fields):
    return ContextualSpec(
        **{"n_actions": 2, "dim": 50, "horizon": 10_000, "reward_low": -1.0, **fields}
    )


def sums_of(agent):
    return getattr(agent, "_inner", agent)._sums
