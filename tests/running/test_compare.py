"""The loop: seeds, chunks, delays, baselines, and agents that must learn."""

import gc
import tracemalloc
from collections import Counter
from math import sqrt

import numpy as np
import pytest
from scipy.stats import t as student

from dpbandit import ENVIRONMENTS, InputError, audit, compare, play
from dpbandit.agents import (
    AGENTS,
    ARMS as OF_ARMS,
    CHOICE,
    CONTEXTUAL,
    CONVEX,
    DPUCB,
    EXPERTS,
    LISTS,
    PEOPLE,
    PRICING,
    STOCHASTIC,
    EpsilonGreedy,
    LinTS,
    LinUCB,
    Uniform,
)
from dpbandit.agents.convex.descent import VERIFIED
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Ridge, Squared
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.specs.choice import AssortmentSpec
from dpbandit.specs.contract import made_agent
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.people import ReturningSpec
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.specs.rivals import RivalsSpec
from dpbandit.specs.selling import OfferSpec, PriceListSpec, SellingSpec
from tests.broken.ledgers import PromisesAlone
from tests.each import asserting, by_rota, each, refused
from tests.envs.contextual.ratings_files import ARGUMENTS


def made(name, **arguments):
    return problem_maker(name)(**ARGUMENTS.get(name, {}), **arguments)


ARMS = [name for name in ENVIRONMENTS if isinstance(made(name, horizon=1).spec, ContextualSpec)]


def quick(env, agents, horizon=300, replicas=4, env_kwargs=None, **more):
    more["env_kwargs"] = {**ARGUMENTS.get(env, {}), **(env_kwargs or {})}
    return compare(env, agents, horizon=horizon, replicas=replicas, progress=False, **more)


def better(one, two):
    """p-value of the paired one-sided test that `one` has no less regret than `two`."""
    gain = two - one
    return float(student.sf(gain.mean() / (gain.std(ddof=1) / sqrt(len(gain))), len(gain) - 1))


@each("name", ARMS)
def test_learning_agents_beat_uniform_play(name):
    """Paired t-tests over 20 replicas: one no better than uniform passes with probability 1e-3, as
    uniform play of other users does not; the effects seen have p < 1e-4."""
    marks, glm = np.array([300]), name == "dpbandit/GLMBandit-v0"
    agents = [LinUCB(), EpsilonGreedy(), LinTS()] if glm else [LinUCB()]
    problem = made(name, horizon=300)
    *found, uniform, other = (
        play(problem, config, [(seed, r) for r in range(20)], marks=marks).regret[-1]
        for config, seed in [*((config, 0) for config in agents), (Uniform(), 0), (Uniform(), 1)]
    )
    assert max(better(regret, uniform) for regret in found) < 1e-3
    assert better(other, uniform) > 1e-3


def test_replicas_depend_on_seed_and_number_only(monkeypatch):
    """More replicas, or smaller chunks, leave the first ones bit for bit alone."""
    agents, short = {"DP": DPUCB(), "TS": LinTS()}, {"horizon": 60}
    few, many = (quick("GLMBandit", agents, replicas=R, **short) for R in (3, 8))
    monkeypatch.setattr("dpbandit.running.loop._CACHE_BYTES", 1)
    chunked = quick("GLMBandit", agents, replicas=8, **short)
    for a, b, c in zip(few.runs, many.runs, chunked.runs, strict=True):
        np.testing.assert_array_equal(a.regret, b.regret[:, :3])
        np.testing.assert_array_equal(b.regret, c.regret)
    other = quick("GLMBandit", agents, replicas=3, seed=1, **short)
    assert (other["TS"].runs[0].regret != few["TS"].runs[0].regret).any()


def test_a_certificate_is_of_the_agent_that_played():
    """A ledger that depends on the number of replicas was certified for one, and is refused."""
    with pytest.raises(InputError, match=r"of broken .* epsilon 1 at .* for one and 20 for the 4"):
        quick("GLMBandit", {"broken": PromisesAlone()}, replicas=4, horizon=30)
    with pytest.raises(InputError, match="for one and 20 for the 800 that were played"):
        audit(PromisesAlone(), "GLMBandit", horizon=10, runs=400, progress=False)
    results = quick("GLMBandit", {"broken": PromisesAlone()}, replicas=1, horizon=30)
    assert results["broken"].certificates["broken"].epsilon == pytest.approx(1, rel=1e-3)


def test_all_agents_meet_the_same_users():
    """Regret plus expected reward is the oracle's total, which no agent can change."""
    totals = []
    for config in (Uniform(), LinUCB()):
        problem, oracle = problem_maker("Recommendation")(horizon=50), []
        step = problem.step

        def recorded(action, step=step, oracle=oracle):
            made = step(action)
            oracle.append(made.oracle.copy())
            return made

        problem.step = recorded
        play(problem, config, [0, 1], marks=log_marks(50))
        totals.append(np.array(oracle))
    np.testing.assert_array_equal(*totals)


@each("config", [LinUCB(), DPUCB(), DPUCB(prefix_sums="tree")], ids=repr)
def test_memory_does_not_grow_with_the_horizon(config):
    """Peak allocation over 600 rounds is at most 40 kB above that over 150, the smallest of a few:
    two numbers of each round and replica, kept, would be 58 kB."""

    def peak(horizon):
        problem = problem_maker("GLMBandit")(horizon=horizon)
        tracemalloc.start()
        play(problem, config, range(8), marks=np.array([horizon]))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    gc.collect()
    gc.freeze()  # what other tests left need not be looked through
    try:
        peak(2)  # what is cached once
        allowed = peak(150) + 40_000
        assert any(peak(600) < allowed for _ in range(3))
    finally:
        gc.unfreeze()


PLAYED = {**{env: {} for env in ENVIRONMENTS}, "StreamingRegression": {"p": 1}}
"""Environments with their arguments, and one whose domain some agents need."""


def kind_of(spec):
    """Return the facts of a spec other than numbers that agents need."""
    visit = getattr(spec, "visit", spec)
    words = ("shared", "masks", "link", "context_order", "feedback", "in_hindsight", "followed")
    loss = getattr(visit, "loss", None)
    domain = getattr(loss, "domain", None)
    kinds = [type(part) for part in (spec, visit, loss, domain, getattr(visit, "clicks", None))]
    return *kinds, getattr(domain, "p", None), *(getattr(visit, word, None) for word in words)


@pytest.mark.parametrize("part", by_rota(range(3), 3, slow=False))
@pytest.mark.filterwarnings("ignore:.*released nothing")
def test_every_agent_plays_or_refuses_every_environment(part):
    """An agent plays 20 rounds of the first environment of each kind that it accepts, of a third of
    the kinds at a commit, and is made for its other environments; it refuses the rest in a
    sentence. Most agents accept three environments or more."""
    known, end, played = set(), np.array([20]), Counter()
    for env, settings in PLAYED.items():
        problem = made(env, horizon=20, **settings)
        new = (kind := kind_of(problem.spec)) not in known
        known.add(kind)
        for name in AGENTS:
            with asserting(f"{name} {env}"):
                played[name] += plays(name, problem.spec)
                if not plays(name, problem.spec):
                    refused("choose", made_agent, AGENTS[name](), problem.spec, Streams([0]))
                elif new and len(known) % 3 == part and name != "best-fixed":
                    regret = play(problem, AGENTS[name](), [0, 1], marks=end).regret
                    assert np.isfinite(regret).all()
                else:
                    assert made_agent(AGENTS[name](), problem.spec, Streams([0])).ledger
    assert len(known) > 15
    families = (CONVEX, STOCHASTIC, EXPERTS, CHOICE, LISTS, PEOPLE)
    few = FEW | {name: name not in RARE for family in families for name in family}
    assert all(played[name] >= few.get(name, 3) for name in AGENTS), played


def plays(name, spec):
    if name in ("uniform", "best-fixed"):
        return True
    if name in OF_ARMS:
        return isinstance(spec, ContextualSpec)  # and linear losses on a simplex, of no default
    if isinstance(spec, ExpertsSpec):
        return name in EXPERTS
    if isinstance(spec, AssortmentSpec):
        return name in CHOICE
    if isinstance(spec, ListSpec):
        return name in LISTS
    if isinstance(spec, ConvexSpec):
        return plays_losses(name, spec)
    if isinstance(spec, ReturningSpec):
        if isinstance(spec.visit, RivalsSpec) or name == "personal-pricing":
            return isinstance(spec.visit, RivalsSpec) and name == "personal-pricing"
        return name in PEOPLE and isinstance(spec.visit, ContextualSpec)
    if not isinstance(spec, ContextualSpec):  # a price
        return False
    if name in PRICING:
        of_demand = name in ("fade-prices", "fade-curve")  # margins may depend on the customer
        if isinstance(spec, OfferSpec):  # which are no prices of one product
            return name == "fade-prices"
        return isinstance(spec, SellingSpec if of_demand else PriceListSpec)
    if name in AT_HOME and isinstance(spec, PriceListSpec):
        return False
    return name in CONTEXTUAL and name not in (OF_EACH_ARM if spec.shared else OF_ALL_ARMS)


def plays_losses(name, spec):
    """Return True if the agent of this name can play the loss, domain and feedback of `spec`."""
    loss, domain = spec.loss, spec.loss.domain
    order, dim = getattr(domain, "p", None), domain.dim if isinstance(domain, Ball) else np.inf
    asked = {
        "linear-ftrl": not loss.smoothness,
        "dp-pofw": order == 1,
        "wdp-cocol": order in (None, 1),
        "pocp": type(loss) in VERIFIED,
        "pqftl": type(loss) in (Squared, Ridge),
        "net-experts": dim <= 2,
        "ball-experts": dim <= 5,
        "slope-leader": loss.quadratic,
        "slope-bandit": loss.quadratic,
    }
    known = name in CONVEX or name in STOCHASTIC or name in asked
    return known and asked.get(name, True) and FEEDBACK.get(name, spec.feedback) == spec.feedback


OF_EACH_ARM = ("batch-moment", "fade-arms", "fade-asking", "fade-centred", "fade-moments")
OF_EACH_ARM += ("fade-trying",)
OF_ALL_ARMS = ("private-glm", "fade-slates", "fade-logistic", "fade-regression")
AT_HOME = ("broadcast", "ldp-sgd", "ldp-ols", "local-sgd", "local-linucb")
"""Their users choose on their own devices, which a seller's price does not allow."""
FEW = dict.fromkeys((*OF_EACH_ARM, *PRICING), 2) | dict.fromkeys(OF_ALL_ARMS, 1)
"""Environments that are played, where they are fewer than three."""
RARE = ("pqftl", "net-experts")
"""None has their defaults."""


VALUES = ("private-bandit", "garber-kretzu", "fkm", "bandit-pftal", "bandit-ftal", "slope-bandit")
DATA = ("noisy-oco", "pftal", "ftal", "ogd", "linear-ftrl", "dp-ftrl", "wdp-cocop", "wdp-cocol")
DATA += ("recursive-frank-wolfe", "dp-tofw", "localised-tofw", "online-conditional-gradient")
DATA += ("noisy-sfw", "noisy-sgd", "phased-sgd", "snowball-sgd", "local-md", "least-squares")
DATA += ("pocp", "pqftl", "net-experts", "ball-experts", "slope-leader")
FEEDBACK = dict.fromkeys(VALUES, "value") | dict.fromkeys(DATA, "datum")
"""Feedback that each agent of convex problems needs."""
