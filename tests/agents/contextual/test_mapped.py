"""Public feature maps: lengths, kernels, who is told what, and what they are good for."""

import numpy as np
import pytest

from dpbandit import certify, compare
from dpbandit.agents import (
    DPUCB,
    AllocationTS,
    EpsilonGreedy,
    Guard,
    LinUCB,
    Mapped,
    PerPerson,
    Priced,
    Uniform,
)
from dpbandit.agents.contextual.mapped import fourier, frequencies, products
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.running.loop import play, replicas_at_once
from dpbandit.specs.protocols import ArmsSpec, ContextualSpec
from dpbandit.testing import check_agent
from tests.each import each, refused
from tests.harness import DELAYED, DISJOINT, MASKED, PEOPLE, PRICES, READERS, SHARED, SHOPPERS

FEW = Mapped(LinUCB(), n_features=6, bandwidth=0.7)
CROSSED = Mapped(LinUCB(), basis="products")


def made(config, spec, replicas=1):
    return config.make(spec, Streams(range(replicas)))


@each("config", [FEW, CROSSED])
@each("order", [1, 2, np.inf])
def test_features_are_no_longer_than_one_whatever_the_context(config, order):
    """Property: contexts inside, on and far beyond the bound; what is no number stays none."""
    spec = ContextualSpec(n_actions=3, dim=4, horizon=9, context_bound=3.0, context_order=order)
    agent, rng = made(config, spec), np.random.default_rng(0)
    context = rng.standard_normal((2000, 4)) * rng.choice([0.1, 1, 10, 1e200], size=(2000, 1))
    lost = rng.random(2000) < 0.1
    context[lost, 1] = rng.choice([np.nan, np.inf], size=lost.sum())
    with np.errstate(all="raise", under="ignore"):
        z = agent.features(context)
    np.testing.assert_array_equal(np.isnan(z), np.repeat(lost[:, None], z.shape[1], axis=1))
    lengths = np.linalg.norm(z[~lost], axis=1)
    assert z.shape == (2000, agent.inner.spec.dim)
    assert lengths.max() <= agent.inner.spec.context_norm + 1e-12 == 1 + 1e-12
    assert lengths.max() > 0.99  # the bound is not idle


def test_inner_products_are_kernels():
    """Products exactly; cosines and sines within 5 errors, 5 / sqrt(m): false alarm 1e-6 a pair,
    where twice the bandwidth is off by ten times that (asserted)."""
    x, y = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2, 4, 3))
    dot = np.vecdot(x, y)
    np.testing.assert_allclose(np.vecdot(products(x), products(y)), (dot + dot**2) / 2)
    m, width = 100_000, 0.7
    W = frequencies(3, 2 * m, width, 5)
    found = np.vecdot(fourier(x, W), fourier(y, W))
    squares = ((x - y) ** 2).sum(axis=1)
    assert (abs(found - np.exp(-squares / (2 * width**2))) < 5 / m**0.5).all()
    assert abs(found - np.exp(-squares / (8 * width**2))).max() > 50 / m**0.5


@each("agent", [LinUCB(), EpsilonGreedy(), DPUCB(refresh_every=5)])
@each("spec", [DISJOINT, SHARED])
def test_it_is_told_features_and_nothing_else(agent, spec):
    """Bit for bit the agent that is shown features in place of contexts: its actions and scores."""
    mapped = made(Mapped(agent, basis="products"), spec, 3)
    alone = made(agent, mapped.inner.spec, 3)
    rng = np.random.default_rng(0)
    for _ in range(spec.horizon):
        x = rng.uniform(-0.5, 0.5, size=(3, *spec.context_shape))
        action, z = mapped.act(x), mapped.features(x)
        np.testing.assert_array_equal(action, alone.act(z))
        np.testing.assert_array_equal(mapped.scores(x), alone.scores(z))
        feedback = rng.random(3)
        mapped.update(x, action, feedback)
        alone.update(z.copy(), action, feedback)  # products of z itself would be remembered


def test_neither_blocks_nor_chunks_nor_neighbours_change_a_bit():
    """DP-UCB plays a policy's rounds at once, and one replica alone as among others; `compare` runs
    fewer replicas at a time where an agent's features are many, and other agents as before."""
    problem = {"n_actions": 3, "dim": 3, "horizon": 150}
    seeds = [(7, r) for r in range(3)]
    mapped = Mapped(DPUCB(refresh_every=50), n_features=90)
    together, apart, alone = (
        play(GLMBandit(**problem), mapped, some, blocks=blocks).regret
        for some, blocks in ((seeds, True), (seeds, False), (seeds[1:2], True))
    )
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(together[:, 1:2], alone)
    spec = GLMBandit(**problem).spec
    wide = Mapped(LinUCB(), n_features=300)
    assert [replicas_at_once(spec, one) for one in (LinUCB(), wide, Guard(wide))] == [256, 1, 1]
    assert replicas_at_once(spec, Priced(wide)) == replicas_at_once(PEOPLE, PerPerson(wide)) // 3
    both = {"wide": wide, "linucb": LinUCB()}
    found = compare("GLMBandit", both, horizon=30, replicas=3, seed=7, progress=False)
    runs = {run.name: run.regret[-1] for run in found.runs}
    for name, config in both.items():
        log = play("GLMBandit", config, seeds, horizon=30)
        np.testing.assert_array_equal(runs[name], log.regret[-1])
    assert (runs["BestFixed"] > 0).all()


def test_it_is_private_as_its_agent_is():
    """Executed: sensitivity at the mechanism, billboard, null rounds, masks of users, late answers.

    The certificate is that of the agent, also behind other wrappers, and counts keep what they need
    for public: what a veto put in their place is refused as it is without a map.
    """
    mapped = Mapped(DPUCB(refresh_every=3, epsilon=2.0), n_features=4)
    for config, spec in (
        (mapped, MASKED),
        (mapped, DELAYED),
        (PerPerson(mapped), PEOPLE),
        (Guard(mapped, rate=1.0), DISJOINT),
        (Priced(mapped), PRICES),
        (Mapped(AllocationTS(), n_features=4), DISJOINT),
    ):
        check_agent(config, spec)
        assert certify(config, spec, accountants=False).holds
    assert mapped.epsilon == 2.0
    assert Mapped(LinUCB()).epsilon is None
    refused("sums released by counts", certify, Mapped(AllocationTS()), MASKED)


@each(
    ("make", "sentence"),
    [
        (lambda: Mapped(LinUCB(), basis="splines"), "one of fourier, products"),
        (lambda: Mapped(LinUCB(), n_features=7), "n_features=7 to be even"),
        (lambda: Mapped(LinUCB(), basis="products", bandwidth=0.5), "no bandwidth=0.5 with basis"),
        (lambda: Mapped(LinUCB(), bandwidth=0.0), "bandwidth"),
        (lambda: made(Mapped(LinUCB()), ArmsSpec(n_actions=2, dim=1, horizon=9)), "that differ"),
        (lambda: made(Mapped(LinUCB()), PEOPLE), "Mapped"),
        (lambda: made(PerPerson(Mapped(DPUCB())), SHOPPERS), "contexts as they are for a Rival"),
        (lambda: made(PerPerson(Mapped(DPUCB())), READERS), "Mapped"),
        (lambda: made(Priced(Mapped(Uniform())), PRICES), "agent that scores arms, got Mapped"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    refused(sentence, make)


@pytest.mark.parametrize("basis", ["fourier", "products"])
def test_it_learns_what_no_line_parts(basis):
    """Statistical: classes are the sign of a product of two features, where lines are chance: 300
    of 600 rounds. Half of that is many errors away for either side."""
    x = np.random.default_rng(0).uniform(-1, 1, size=(4000, 2))
    table = {"features": x, "labels": x[:, 0] * x[:, 1] > 0, "low": -1.0, "high": 1.0}
    agents = {"line": LinUCB(), "mapped": Mapped(LinUCB(regularization=0.1), basis=basis)}
    results = compare(
        "ClassificationBandit", agents, env_kwargs=table, horizon=600, replicas=2, progress=False
    )
    mean = results.summary().set_index("agent")["mean"]
    assert mean["mapped"] < 150 < 240 < mean["line"]
