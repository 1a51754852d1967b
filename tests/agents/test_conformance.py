"""Joint DP, executed: every discovered agent, at the mechanism and before the billboard."""

import json
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import DPHDB, DPUCB, FADE, DPHDBChoices, EpsilonGreedy, LinTS, LinUCB
from dpbandit.agents.contextual.demand import DemandPricing
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.privacy.statistics.moments import ClippedVectors, SecondMoments
from dpbandit.privacy.sums.calibrate import exact_prefix_sum
from dpbandit.testing.agents import check_admission
from dpbandit.testing.company import check_copies, check_replicas
from dpbandit.testing.joint_dp import (
    SWAPPED,
    billboard_differences,
    check_billboard,
    check_sensitivity,
    largest_move,
    two_worlds,
)
from dpbandit.testing.tapes import run
from dpbandit.testing.worlds import extreme_users
from tests.broken.leaks import MECHANISM, STATE
from tests.harness import DISJOINT, SHARED, label
from tests.pairs import CERTIFICATES, PAIRS, PRIVATE, SUMMING, every_agent


def test_discovery_finds_private_and_public_agents_on_all_specs():
    found = {type(config).__name__ for config, _ in PAIRS}
    assert found >= {"Uniform", "LinUCB", "LinTS", "EpsilonGreedy", "DPUCB"}
    assert sum(type(config) is DPUCB for config, _ in PRIVATE) >= 12
    assert sum(type(config) is DPHDBChoices for config, _ in PRIVATE) >= 24
    sellers = [config for config, spec in PRIVATE if is_demand(config, spec)]
    demand = {type(getattr(config, "agent", config)) for config in sellers}
    assert demand >= {DPUCB, DPHDB, FADE}


def is_demand(config, spec):
    return isinstance(config.make(spec, Streams([0])), DemandPricing)


@pytest.fixture(scope="module", params=PRIVATE, ids=label)
def worlds(request):
    """Of one agent, for a user t who is swapped: both tapes. Tests of one agent share them."""
    return dict(zip(SWAPPED, two_worlds(*request.param), strict=True))


@pytest.mark.parametrize("t", SWAPPED)
def test_sensitivity_at_the_mechanism(worlds, t):
    check_sensitivity(*worlds[t])


@pytest.mark.parametrize("t", SWAPPED)
def test_billboard(worlds, t):
    check_billboard(*worlds[t])


@pytest.mark.parametrize("pair", [pair for pair in PRIVATE if pair not in SUMMING], ids=label)
def test_only_what_is_admissible_counts(pair):
    """Of sums test_noise knows that they are what was queried."""
    check_admission(*pair)


def test_integers_cannot_slip_past_the_clips():
    """Squares of large integers wrap to norm 0; a first user's integers must not round the rest."""
    statistic = SecondMoments(n_actions=2, dim=2)
    for kind in (np.int64, np.int32, np.int16, np.uint8):
        huge = np.array([[[np.iinfo(kind).max // 2 + 1, 0]]], dtype=kind)
        total = statistic.total(huge, np.zeros((1, 1), dtype=int), np.ones((1, 1), dtype=kind))
        assert np.linalg.norm(total / statistic.units) <= 2**0.5 + 1e-12
    sums = exact_prefix_sum(ClippedVectors(2), horizon=9, refresh_every=4)
    for t in range(4):
        release = sums(np.array([[0, 1]]) if t == 0 else np.array([[0.5, 0.0]]))
    np.testing.assert_allclose(release, [[1.5, 1.0]])


@pytest.mark.parametrize("broken", MECHANISM, ids=lambda broken: broken.summed.__name__)
def test_broken_sensitivities_are_caught(broken):
    moves = [largest_move(*tapes).max() for tapes in two_worlds(broken, DISJOINT, (0, 7))]
    assert max(moves) > 1.01


@pytest.mark.parametrize("broken", STATE, ids=lambda broken: broken.agent.__name__)
def test_billboard_catches_leaks(broken):
    assert any(billboard_differences(*tapes) for tapes in two_worlds(broken, DISJOINT, (0, 7)))


@pytest.mark.parametrize("config", [LinUCB(), LinTS(), EpsilonGreedy()], ids=repr)
@pytest.mark.parametrize("spec", [DISJOINT, SHARED], ids=["disjoint", "shared"])
def test_billboard_catches_agents_without_privacy(config, spec):
    """The replay has power: the same check that DP-UCB passes fails for what it builds on."""
    world, other = (
        extreme_users(spec, 4, seed)._replace(reward=np.random.default_rng(seed).random((24, 4, 3)))
        for seed in (3, 4)
    )
    world, other = (
        w._replace(context=np.nan_to_num(w.context).clip(-1, 1)) for w in (world, other)
    )
    first, t = run(config, spec, world), np.full(4, 7)
    assert billboard_differences(first, run(config, spec, world.swapped(t, other), first), t)
    assert certify(config, spec).epsilon == inf


def test_extreme_users_come_near_the_sensitivity():
    """Random extreme pairs come within 25 % of the bound, so the bound is not idle."""
    (tapes,) = two_worlds(DPUCB(), DISJOINT, (7,), replicas=4000)
    assert largest_move(*tapes).max() > 0.75


@every_agent
def test_replicas_do_not_know_each_other(pair):
    check_replicas(*pair)


@every_agent
def test_copies_go_on_alike(pair):
    check_copies(*pair)


def test_what_is_stored_is_read_again():
    """Every certificate, through JSON, after its curves were looked at."""
    for proof in CERTIFICATES.values():
        proof.ledger.delta(0.5)
        document = json.loads(json.dumps(proof.as_dict()))
        assert certificate_from_dict(document) == proof


@pytest.mark.parametrize(
    "pair",
    [pair for pair in PAIRS if getattr(pair[0], "calibration", "certified") == "certified"],
    ids=label,
)
def test_certificates_keep_their_claim(pair):
    """Certified calibrations never exceed the claim; exact Gaussian ones meet it to 1e-3."""
    config, spec = pair
    proof = certify(config, spec)
    assert proof.holds
    if proof.mu not in (None, 0.0, inf):
        assert proof.epsilon == pytest.approx(config.epsilon, rel=1e-3)
