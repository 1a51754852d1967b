"""Users who trust somebody, or nobody: reference numbers, what is imagined, mistakes."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import Broadcast, LocalLinUCB, LocalSGD
from dpbandit.agents.contextual.devices import ImaginedPeople
from dpbandit.envs import GLMBandit
from dpbandit.privacy.curves import mu_of
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each
from tests.harness import PRICES

WORLD = {"dim": 10, "n_actions": 5, "link": "logistic", "signal": 4.0}
REFERENCE = {
    "exact": (Broadcast(epsilon=inf), 64, 2, 189, 3),
    "central, fading": (Broadcast(trust="central", fade=0.7), 157, 3, 552, 8),
    "aggregated": (Broadcast(), 146, 4, 572, 10),
    "coins": (Broadcast(trust="shuffled"), 190, 6, 926, 23),
    "privunit": (Broadcast(trust="local"), 947, 45, 2282, 63),
    "gaussian": (Broadcast(trust="local", message="gaussian"), 1952, 101, 2670, 69),
}
LOCAL = {
    "sgd": (LocalSGD(), 1417, 67),
    "sgd, gaussian": (LocalSGD(message="gaussian"), 2481, 68),
    "linucb": (LocalLinUCB(), 2055, 84),
}


@pytest.mark.slow
def test_regret_is_that_of_an_independent_program():
    """Epsilon 1, T = 10,000, one parameter and five; 8 replicas, within 4 combined standard
    errors of their own and the program's (false alarm 2 % for all). Bits of silent arms left
    out, noise of a wrong size and greedy play that is not undone are each seen in several."""
    for name, (config, *cells) in (REFERENCE | LOCAL).items():
        for shared, mean, error in ((True, *cells[:2]), (False, *cells[2:]))[: len(cells) // 2]:
            world = GLMBandit(**WORLD, shared=shared, horizon=10_000)
            regret = play(world, config, range(1000, 1008), marks=np.array([10_000])).regret[-1]
            own = regret.std(ddof=1) / sqrt(8)
            assert abs(regret.mean() - mean) < 4 * np.hypot(own, error), (name, shared)


@pytest.mark.parametrize("shared", [True, False])
def test_people_are_imagined_as_they_are_served(shared):
    """Uniform play sees I / d, shared among the arms; one arm that wins for all is seen alone; of
    two opposite parameters each sees half, stretched along them. Signs tell the mean size."""
    d, blocks = 3, 1 if shared else 2
    people = ImaginedPeople(2, d, shared=shared, signs=False)
    quiet = people.moments(np.zeros((1, blocks, d)))
    np.testing.assert_allclose(
        quiet, np.tile(np.eye(d) / (d * blocks), (1, blocks, 1, 1)), atol=0.02
    )
    theta = np.zeros((1, blocks, d))
    theta[0, 0, 0] = 1.0
    found = people.moments(theta)[0, 0]
    # the better of two uniform heights on [-1, 1], or those of one that are above 0
    assert found[0, 0] == pytest.approx(1 / 3 if shared else 1 / 6, abs=0.02)
    assert found[1, 1] == pytest.approx(1 / 3 if shared else 1 / 6, abs=0.02)
    signs = ImaginedPeople(2, d, shared=shared, signs=True).moments(np.zeros((1, blocks, d)))
    np.testing.assert_allclose(np.diagonal(signs[0, 0]), 0.5 / blocks, atol=0.02)


def test_what_is_promised():
    """Aggregation of the honest is the central release; a pure message is pure, whoever is asked;
    what the server sees stands beside epsilon."""
    spec = ContextualSpec(n_actions=5, dim=5, horizon=10_000)
    for honest in (1.0, 0.5):
        proof = certify(Broadcast(honest=honest), spec, accountants=False)
        assert proof.mu == pytest.approx(mu_of(1.0, 1e-5), rel=1e-12)
    assert proof.ledger.brief == "aggregated, 50 % honest"
    local = certify(Broadcast(trust="local"), spec, accountants=False)
    assert local.ledger.pure == pytest.approx(1.0, rel=1e-11)
    assert "the server sees private messages alone" in local.notion
    shuffled = Broadcast(trust="shuffled", message="flips", first_batch=500)
    flips = certify(shuffled, replace(spec, horizon=1000), accountants=False)
    assert flips.epsilon <= 1.0 < 5 < flips.ledger.pure < inf


@each(
    ("config", "sentence"),
    [
        (lambda: Broadcast(trust="nobody"), "trust='nobody'"),
        (lambda: Broadcast(trust="local", message="coins"), "message='coins'"),
        (lambda: Broadcast(trust="local", honest=0.5), "honest=0.5"),
        (lambda: Broadcast(honest=0.0), "honest=0"),
        (lambda: Broadcast(fade=0.5), "fade=0.5"),
        (lambda: certify(Broadcast(), PRICES, accountants=False), "the seller names"),
        (lambda: certify(LocalLinUCB(), PRICES, accountants=False), "the seller names"),
        (lambda: LocalSGD(step=0.0), "step=0.0"),
    ],
)
def test_mistakes_get_one_sentence(config, sentence):
    with pytest.raises(InputError, match=sentence):
        config()
