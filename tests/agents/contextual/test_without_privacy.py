"""What all non-private agents for finitely many arms owe: they learn, and survive small worlds."""

from functools import cache
from math import inf

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import GLMUCB, Greedy, LassoBandit, LogisticTS, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.each import each

CONFIGS = [GLMUCB(), Greedy(), LassoBandit(), LogisticTS()]
every_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda c: type(c).__name__)
WORLDS = {
    "linear": {},
    "linear shared": {"shared": True},
    "sparse": {"dim": 20, "n_actions": 2, "parameters": "sparse-signs", "context_order": inf},
    "clicks": {"link": "logistic", "signal": 6.0},
    "clicks shared": {"link": "logistic", "signal": 6.0, "shared": True},
    "probit": {"link": "probit", "signal": 3.0, "shared": True},
}


@cache
def regret(config, world):
    problem = problem_maker("GLMBandit")(horizon=400, **WORLDS[world])
    return play(problem, config, range(20), marks=np.array([400])).regret[-1]


def evidence(config, world):
    """t statistic, over 20 replicas with the same users, of 'half of uniform play's regret'."""
    gain = regret(Uniform(), world) / 2 - regret(config, world)
    return gain.mean() / (gain.std(ddof=1) / len(gain) ** 0.5)


@each(
    ("config", "world"),
    [
        *((GLMUCB(), world) for world in ("linear", "clicks shared", "probit")),
        *((Greedy(), world) for world in ("linear shared", "clicks")),
        *((LassoBandit(), world) for world in ("linear shared", "sparse")),
        *((LogisticTS(), world) for world in ("linear", "clicks shared")),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_less_than_half_the_regret_of_uniform_play(config, world):
    """Statistical, paired: beyond 6 standard errors (one-sided, 19 degrees of freedom: below 1e-5
    if the truth were half)."""
    assert evidence(config, world) > 6


@every_config
@each("shared", [False, True])
@each(("dim", "n_actions", "horizon"), [(1, 2, 1), (1, 2, 40), (3, 4, 5)])
def test_small_worlds(config, shared, dim, n_actions, horizon):
    """One feature, two arms, fewer rounds than arms and features: finite scores, legal arms."""
    spec = ContextualSpec(n_actions=n_actions, dim=dim, horizon=horizon, shared=shared)
    agent, rng = config.make(spec, Streams(range(3))), np.random.default_rng(0)
    for _ in range(horizon):
        x = rng.uniform(-0.5, 0.5, (3, *spec.context_shape))
        x[0] = 0.0
        assert np.isfinite(agent.scores(x)).all()
        action = agent.act(x)
        assert action.shape == (3,)
        assert ((action >= 0) & (action < n_actions)).all()
        agent.update(x, action, np.array([0.0, 1.0, 0.3]))


@pytest.mark.parametrize("config", [GLMUCB(), LassoBandit(), LogisticTS()], ids=repr)
@pytest.mark.parametrize("shared", [False, True])
def test_users_that_are_no_numbers_are_forgotten(config, shared):
    spec = ContextualSpec(n_actions=3, dim=2, horizon=30, shared=shared)
    agent = config.make(spec, Streams(range(3)))
    with np.errstate(all="ignore"):
        for t in range(30):
            x = np.full((3, *spec.context_shape), [np.nan, np.inf, 1e300, 0.5][t % 4])
            agent.update(x, agent.act(x), np.array([np.nan, np.inf, -1e9]))
    assert np.isfinite(agent.scores(np.full((3, *spec.context_shape), 0.5))).all()


@every_config
def test_nothing_is_promised_and_prices_without_a_list_are_refused(config):
    assert (
        certify(config, ContextualSpec(n_actions=2, dim=1, horizon=9), accountants=False).epsilon
        == inf
    )
    with pytest.raises(InputError, match="finitely many arms"):
        config.make(PriceSpec(dim=1, horizon=9, low=1.0, high=2.0), Streams([0]))


@each(
    ("config", "field", "value"),
    [
        (GLMUCB, "alpha", -1),
        (GLMUCB, "link", "logit"),
        (GLMUCB, "regularization", 0),
        (Greedy, "turns", -1),
        (LassoBandit, "forced", 0),
        (LassoBandit, "margin", 0),
        (LassoBandit, "penalty", -0.1),
        (LassoBandit, "refresh_every", 0),
        (LogisticTS, "scale", np.nan),
    ],
)
def test_bad_settings_are_named(config, field, value):
    with pytest.raises(InputError, match=f"{field}="):
        config(**{field: value})
