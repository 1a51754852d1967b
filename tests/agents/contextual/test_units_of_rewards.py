"""Dollars or cents: agents play the same arms, whatever the unit in which rewards are counted."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np

from dpbandit import InputError
from dpbandit.agents import (
    CONTEXTUAL,
    DPUCB,
    FADE,
    GLMUCB,
    BatchMoment,
    FullBudgetFADE,
    LinUCB,
    LogisticTS,
    OnlineFrankWolfe,
)
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import PriceListSpec
from tests import harness
from tests.agents.contextual.runs import curves
from tests.each import asserting, each
from tests.harness import variants

ROUNDS, REPLICAS = 40, 2
DISJOINT, SHARED, PRICES = (
    replace(spec, horizon=ROUNDS) for spec in (harness.DISJOINT, harness.SHARED, harness.PRICES)
)


def found(agents):
    """Their variants on every linear problem that they fit."""
    for agent in agents:
        for config in variants(agent):
            # with a link of its own Frank-Wolfe predicts probabilities, not rewards
            if agent is OnlineFrankWolfe and config.link not in (None, "identity"):
                continue
            for spec in (DISJOINT, SHARED, PRICES):
                with suppress(InputError):
                    config.make(spec, Streams([0]))
                    yield config, spec


PUBLIC = [
    agent
    for agent in CONTEXTUAL.values()
    # full budget is FADE's, which is among the private ones
    if "epsilon" not in agent.__dataclass_fields__ and agent is not FullBudgetFADE
]
PRIVATE = [
    (config, spec)
    for config in (DPUCB(), DPUCB(alpha="theory"), FADE(), FullBudgetFADE(), BatchMoment())
    for spec in (DISJOINT, SHARED)
    if not (isinstance(config, BatchMoment) and spec.shared)
]
LEARN_SIGNS_OR_SHARES = (BatchMoment, FADE, GLMUCB, LogisticTS)
"""A reward is compared with the middle of the range, or counted as a share of it."""


def described(spec, factor, shift=0.0):
    """The same problem with rewards factor r + shift."""
    facts = {"reward_low": spec.reward_low, "reward_high": spec.reward_high}
    if isinstance(spec, PriceListSpec):
        facts |= {"unit_cost": spec.unit_cost}
        prices = tuple(factor * price for price in spec.prices)
        return replace(spec, prices=prices, **{k: factor * v for k, v in facts.items()})
    return replace(spec, **{k: factor * v + shift for k, v in facts.items()})


@cache
def users(spec):
    """Contexts, and rewards all over the range that depend on them."""
    rng, K = np.random.default_rng(1), spec.n_actions
    context = rng.uniform(-1, 1, (spec.horizon, REPLICAS, *spec.context_shape))
    context *= spec.context_norm / 2 / np.linalg.norm(context, axis=-1, keepdims=True)
    lean = context.mean(axis=-1) if spec.shared else context[..., :1] * np.linspace(-1, 1, K)
    share = 0.5 + lean / 2 + 0.3 * rng.uniform(-1, 1, lean.shape)
    return context, spec.reward_low + 2 * spec.half_range * share.clip(0, 1)


@cache
def actions(config, spec, factor=1.0, shift=0.0):
    """Arms played, (T, R), where rewards are told as factor r + shift."""
    context, reward = users(spec)
    agent = config.make(described(spec, factor, shift), Streams(range(REPLICAS)))
    played, everyone = [], np.arange(REPLICAS)
    for x, r in zip(context, reward, strict=True):
        played.append(agent.act(x))
        agent.update(x, played[-1], factor * r[everyone, played[-1]] + shift)
    return np.array(played)


def test_cents_in_place_of_dollars_change_no_action():
    """Every agent without privacy, as discovered, and private ones whose noise follows the range. A
    width, a penalty or a ball in units of nothing plays other arms at 100 times the rewards, as
    LinUCB does with the width of rewards in [0, 1] at whatever range; it was ours."""
    pairs = [*found(PUBLIC), *PRIVATE]
    names = {type(config).__name__ for config, _ in pairs}
    assert names >= {"LinUCB", "LinTS", "GLMUCB", "LogisticTS", "Greedy", "EpsilonGreedy"}
    assert names >= {"LassoBandit", "OnlineFrankWolfe"}
    for pair in pairs:
        with asserting(pair):
            np.testing.assert_array_equal(actions(*pair), actions(*pair, factor=100.0))
    raw = LinUCB(reward_noise=0.5), SHARED
    assert (actions(*raw) != actions(*raw, factor=100.0)).any()


@each("config", [FADE(), FullBudgetFADE()])
@each("factor", [2.0**30, 2.0**-30])
@each("spec", [DISJOINT, SHARED])
def test_units_of_a_thousand_millionth_change_no_action(config, factor, spec):
    """A power of two, so that nothing is rounded: what differs has a constant in units of nothing,
    as the least variance and the least precision had."""
    found = actions(config, spec), actions(config, spec, factor=factor)
    np.testing.assert_array_equal(*found)


def test_a_bonus_for_everybody_changes_no_action():
    """Where rewards count by their place in the range. Ridge regressions, which have no intercept,
    promise no such thing."""
    shifted = [
        (config, spec)
        for config, spec in found(LEARN_SIGNS_OR_SHARES)
        if spec is not PRICES
        and not (isinstance(config, GLMUCB) and config.link in (None, "identity"))
        and getattr(config, "response", None) != "logistic"
    ]
    assert {type(config) for config, _ in shifted} == set(LEARN_SIGNS_OR_SHARES)
    for pair in shifted:
        with asserting(pair):
            np.testing.assert_array_equal(actions(*pair), actions(*pair, shift=50.0))


@each("signal", [0.01, 100.0])
def test_regret_is_in_the_unit_of_rewards(signal):
    """Oracle: a bandit with rewards and noise `signal` times as large costs LinUCB exactly so many
    times the regret."""
    once, often = (
        curves(LinUCB(), horizon=500, replicas=4, signal=s, noise=0.1 * s)[-1]
        for s in (1.0, signal)
    )
    np.testing.assert_allclose(often, signal * once, rtol=1e-9)
