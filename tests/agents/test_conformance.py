"""Joint DP, executed: every discovered agent, at the mechanism and before the billboard."""

import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import DPHDB, DPUCB, EpsilonGreedy, FadeLogistic, LinTS, LinUCB, Priced
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import exact_prefix_sum
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.testing.checks import (
    EVERYBODY,
    billboard_differences,
    check_admission,
    check_billboard,
    check_copies,
    check_replicas,
    check_sensitivity,
    largest_move,
    two_worlds,
)
from dpbandit.testing.tapes import extreme_users, run
from tests.broken.leaks import MECHANISM, STATE
from tests.each import asserting
from tests.harness import DISJOINT, SHARED, discovered, every_kind, is_default, label
from tests.pairs import (
    certificate,
    distinct,
    every_third,
    kinds_in_turn,
    of_kinds,
    private,
    some,
    sums,
)

SWAPPED = (0, EVERYBODY), 12
"""Whom joint DP is tried with: the first user, and another in each of twelve replicas. A bound that
is forgotten in a statistic shows in half of the 24 pairs."""


def test_discovery_finds_private_and_public_agents_on_all_specs():
    assert len(private("dp-ucb")) >= 12
    assert len(private("dp-hdb-choices")) >= 24
    demand = {
        type(getattr(config, "agent", config))
        for config, spec in discovered("priced")
        if isinstance(config.make(spec, Streams([0])), Priced)
    }
    assert demand >= {DPUCB, DPHDB, FadeLogistic}


@kinds_in_turn(4)
@every_third
def test_joint_dp(kind, part):
    """Sensitivity at the mechanism and billboard replay, and only what is admissible counts: of
    sums test_noise knows that they are what was queried. Behind the front row one agent in four."""
    admitting = [pair for pair in distinct(kind) if not sums(pair)]
    for pair in some(private(kind), part):
        with asserting(label(pair)):
            tapes = two_worlds(*pair, *SWAPPED)
            check_sensitivity(*tapes)
            check_billboard(*tapes)
            if pair in admitting:
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


def test_the_checks_have_power():
    """Forgotten factors and clips are seen at the mechanism, leaks by replay; random extreme pairs
    come within 25 % of the bound, so the bound is not idle."""
    for broken in MECHANISM:
        assert largest_move(*two_worlds(broken, DISJOINT, *SWAPPED)).max() > 1.01, broken.summed
    for broken in STATE:
        assert billboard_differences(*two_worlds(broken, DISJOINT, *SWAPPED)), broken.agent
    assert largest_move(*two_worlds(DPUCB(), DISJOINT, (7,), replicas=4000)).max() > 0.75


@pytest.mark.parametrize("config", [LinUCB(), LinTS(), EpsilonGreedy()], ids=repr)
@pytest.mark.parametrize("spec", [DISJOINT, SHARED], ids=["disjoint", "shared"])
def test_billboard_catches_agents_without_privacy(config, spec):
    """The check that DP-UCB passes fails for what it builds on."""
    worlds = []
    for seed in (3, 4):
        world = extreme_users(spec, 4, seed)
        reward = np.random.default_rng(seed).random((24, 4, 3))
        context = np.nan_to_num(world.context).clip(-1, 1)
        worlds.append(world._replace(reward=reward, context=context))
    (world, other), t = worlds, np.full(4, 7)
    first = run(config, spec, world)
    assert billboard_differences(first, run(config, spec, world.swapped(t, other), first), t)
    assert certify(config, spec, accountants=False).epsilon == inf


@kinds_in_turn(4)
@every_third
def test_company(kind, part):
    """Replicas do not know each other, blocks equal single rounds; pickles, of which the files of
    players are made, and deep copies go on as the original, bit for bit. Behind the front row one
    agent in four, on the episode and the streams that all share."""
    for pair in some(of_kinds(kind), part):
        with asserting(label(pair)):
            check_replicas(*pair)
            check_copies(*pair)


OTHER = {"epsilon": 0.1, "delta": 1e-3}
"""A second target for every certificate."""


@every_kind
@every_third
def test_certificates(kind, part):
    """Certified calibrations never exceed the claim, exact Gaussian ones meet it to 1e-3, at two
    targets; what is stored, after its curves were looked at, is read again."""
    for pair in some(discovered(kind), part):
        config, proof = pair[0], certificate(pair)
        with asserting(label(pair)):
            if getattr(config, "calibration", "certified") == "certified":
                assert proof.holds
                if proof.mu not in (None, 0.0, inf):
                    assert proof.epsilon == pytest.approx(config.epsilon, rel=1e-3)
                    if {"epsilon", "delta"} <= vars(config).keys():
                        other = certify(replace(config, **OTHER), pair[1], accountants=False)
                        assert other.holds
                        assert other.epsilon == pytest.approx(OTHER["epsilon"], rel=1e-3)
            proof.ledger.delta(0.5)
            assert certificate_from_dict(json.loads(json.dumps(proof.as_dict()))) == proof
            if is_default(config):
                check_promise(*pair)


def check_promise(config, spec):
    """Where points or experts are chosen a user's own action is released, too; who promises less,
    or nothing, keeps words of its own. NumPy's whole numbers are horizons like others, as in
    `for T in np.geomspace(...).astype(int)`."""
    proof = certificate((config, spec))
    if proof.epsilon == inf or proof.epsilon == 0 == proof.delta:
        assert "joint" not in str(proof.notion)
    else:
        every = isinstance(spec, ConvexSpec | ExpertsSpec)
        words = "DP of all actions under" if every else "joint DP under"
        assert ("own action" in proof.notion.covers, words in str(proof.notion)) == (every, True)
    numpys = replace(spec, horizon=np.int64(spec.horizon))
    one, two = (config.make(known, Streams([0])) for known in (spec, numpys))
    assert one.ledger == two.ledger
