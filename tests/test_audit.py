"""Audits of agents: certified ones pass, broken ones are flagged, views hide what they must."""

import json
import pickle
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from dpbandit import audit, certify
from dpbandit.agents import AGENTS, DPHDB, DPUCB, FLIPHAT, LinUCB
from dpbandit.audit_report import plot_audit
from dpbandit.audit_views import columns_of, memory, moving_directions
from dpbandit.audit_worlds import pairs
from dpbandit.auditing import SMALL, audit_all
from dpbandit.inputs import BadInput
from dpbandit.privacy.calibrate import exact_prefix_sum
from dpbandit.privacy.mechanism import Mechanism, witnessed
from dpbandit.privacy.statistics import ClippedVectors
from dpbandit.protocols import ContextualSpec
from dpbandit.results import plain
from dpbandit.streams import Streams
from tests.harness import discovered, label
from tests.prey.audited import PREY, SUBTLE, Boasts, ByTheSign, HalfTheChoiceNoise, KeepsTheLast

DISJOINT, SHARED = SMALL
QUICK = {"runs": 4000, "progress": False}


# Honest agents


def test_private_agents_are_not_flagged():
    """All of AGENTS, certified, in both views; together wrong with probability 0.1."""
    configs = {name: config() for name, config in AGENTS.items()}
    for view, runs in (("released", 2000), ("actions", 800)):
        reports = audit_all(configs, view=view, failure=0.05, runs=runs, progress=False)
        assert {"dp-ucb", "dp-hdb", "fliphat", "batch-moment", "fade"} <= set(reports)
        assert not [name for name, report in reports.items() if report.flagged]


@pytest.mark.slow
def test_every_private_variant_is_not_flagged():
    """Certified or printed, against its certificate; together wrong with probability 0.05. 1,000
    runs each, to stay within minutes (`docs/audit.md` has 4,000)."""
    pairs = [pair for pair in discovered() if certify(*pair, accountants=False).epsilon < inf]
    assert len(pairs) > 40
    failure = 0.05 / len(pairs)
    reports = {
        label(pair): audit(*pair, runs=1000, failure=failure, progress=False) for pair in pairs
    }
    assert not [name for name, report in reports.items() if report.flagged]


def test_certificates_are_bounded_closely():
    """Power: with 20,000 runs the GDP bound of an exact certificate of 1 is above .55."""
    report = audit(DPUCB(delta=1e-4), DISJOINT, runs=20_000, progress=False)
    assert not report.flagged
    assert 0.55 < report.eps_lower_gdp < 1


def test_an_action_that_shows_its_own_context_is_no_breach():
    """Joint DP hides it from everybody else only; a context kept for the next user is a breach."""
    for view in ("released", "actions"):
        assert not audit(ByTheSign(), DISJOINT, view=view, **QUICK).flagged
        kept = audit(ByTheSign(agent=KeepsTheLast), DISJOINT, view=view, **QUICK)
        assert kept.flagged
        assert kept.eps_lower > 5


def test_own_action_is_in_no_view():
    """Property: the differing user's own action changes nothing that is seen, and everybody
    else's does: an agent that plays by the sign of each context, asked about one more user."""
    pair = next(iter(pairs(DISJOINT, 0)))
    config, seeds = ByTheSign(), [(0, r) for r in range(5)]
    for view in ("released", "actions"):
        seen = [
            columns_of(config, DISJOINT, world, pair, seeds, view, ()).values
            for world in (pair.first, pair.second)
        ]
        np.testing.assert_array_equal(*seen)
    moved = pair.first.with_user(3, -pair.first.context[0], 1.0)
    others = columns_of(config, DISJOINT, moved, pair, seeds, "actions", ()).values
    assert (others != seen[0]).any()


def test_agents_without_privacy_have_nothing_to_refute():
    report = audit(LinUCB(), DISJOINT, **QUICK)
    assert report.eps_lower > 3
    assert not report.flagged
    assert audit_all({"linucb": LinUCB()}, **QUICK) == {}


# Broken agents


@pytest.mark.parametrize("name", PREY)
def test_broken_agents_are_flagged(name):
    """White box; 20,000 runs for subtle faults, 4,000 for the rest."""
    runs = 20_000 if name in SUBTLE else 4000
    assert audit(PREY[name], DISJOINT, runs=runs, progress=False).flagged


def test_half_the_noise_of_choices_is_flagged():
    """20,000 runs, where rewards are large against the parameters and the sensitivity is met; the
    honest mechanism passes there."""
    spec = replace(DISJOINT, reward_low=-50.0, reward_high=50.0, horizon=8, dim=1)
    for kind, broken in ((HalfTheChoiceNoise, True), (DPHDB, False)):
        config = kind(selection="gumbel", delta=1e-4, warm_up=1)
        assert audit(config, spec, runs=20_000, progress=False).flagged == broken


def test_gross_faults_show_in_actions():
    """Black box: a missing clip and an exact sign; 4,000 runs."""
    caught = {
        name: audit(PREY[name], DISJOINT, view="actions", **QUICK).flagged
        for name in ("a missing clip (rewards)", "exact sign after a noisy arg-max")
    }
    assert all(caught.values())


# Printed calibrations


def test_over_noised_calibrations_are_shown_as_such():
    """The printed DP-UCB is certified, and measured, far below its claim of 1."""
    report = audit(DPUCB(delta=1e-4, calibration="paper"), DISJOINT, **QUICK)
    assert report.eps_lower <= report.certified_epsilon < 0.2 < report.claimed_epsilon


def test_certificates_beyond_the_claim_are_shown_and_broken_where_there_is_power():
    """A certificate that exceeds its claim is not refuted; the claim is, by an audit with the
    power. Printed DP-HDB exceeds its claims only where no number of runs could show it."""
    config = DPHDB(calibration="paper", epsilon=20.0, delta=0.3, beyond_validity=True, warm_up=1)
    report = audit(config, DISJOINT, **QUICK)
    assert report.certified_epsilon > report.claimed_epsilon
    assert not report.flagged
    assert not report.breaks_claim
    boasting = audit(Boasts(delta=1e-4), DISJOINT, **QUICK)
    assert boasting.breaks_claim
    assert not boasting.flagged


# The runner


def test_a_report_depends_on_its_seed_alone():
    """Neither on processes nor on chunks; another seed gives other numbers."""
    config, settings = DPUCB(epsilon=3.0), {"runs": 1200, "progress": False}
    one, two = audit(config, DISJOINT, **settings), audit(config, DISJOINT, jobs=2, **settings)
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)
    other = audit(config, DISJOINT, seed=1, **settings)
    assert (one.fpr, one.tpr) != (other.fpr, other.tpr)


def test_delayed_rewards_are_audited_when_they_arrive():
    spec = ContextualSpec(n_actions=2, dim=2, horizon=12, delay=3, reward_low=-1.0)
    pair = next(iter(pairs(spec, 0)))
    config = DPUCB(epsilon=inf)
    (direction,) = moving_directions(config, spec, pair, 0)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert not audit(DPUCB(), spec, runs=2000, progress=False).flagged


def test_sums_are_seen_without_what_others_added():
    """Oracle: without noise what is left of each release is the differing user's part, whatever
    the others do; the same in every release, opposite in the two worlds."""
    config = DPUCB(epsilon=inf, statistics="moment", refresh_every=1)
    for pair in pairs(DISJOINT, 0):
        if not pair.note.startswith("round 1, context from x to -x"):
            continue
        directions = moving_directions(config, DISJOINT, pair, 0)
        seen = []
        for world in (pair.first, pair.second):
            found = columns_of(config, DISJOINT, world, pair, [(0, 1)], "released", directions)
            seen.append(found.values[:, np.array(found.family) == "sums"])
        np.testing.assert_allclose(seen[0], -1.0)
        np.testing.assert_allclose(seen[1], 1.0)


def test_memory_holds_no_mechanism_and_no_noise_to_come():
    agent = FLIPHAT().make(DISJOINT, Streams(range(7)))
    for array in memory(agent, 7).values():
        assert len(array) == 7
    assert not [path for path in memory(agent, 7) if "door" in path or "normals" in path]


def test_witnesses_are_told_of_every_call_and_leave():
    sums, told = exact_prefix_sum(ClippedVectors(1), horizon=9, refresh_every=2), []
    with witnessed(lambda mechanism, datum, release: told.append((mechanism, datum, release))):
        for _ in range(2):
            sums(np.ones((3, 1)))
    sums(np.ones((3, 1)))
    assert [release is None for _, _, release in told] == [True, False]
    assert all(mechanism is sums for mechanism, _, _ in told)
    assert isinstance(pickle.loads(pickle.dumps(sums)), Mechanism)


def test_report_is_plain_and_the_plot_is_drawn(tmp_path):
    report = audit(DPUCB(), DISJOINT, runs=400, progress=False)
    assert json.loads(json.dumps(plain(report.as_dict())))["view"] == "released"
    assert "not refuted" in str(report)
    for name, shown in (
        ("gdp.png", report),
        ("pure.svg", audit(FLIPHAT(), SHARED, runs=400, progress=False)),
    ):
        assert plot_audit(shown, tmp_path / name, title="audit").stat().st_size > 10_000
    with pytest.raises(BadInput, match="suffix"):
        plot_audit(report, tmp_path / "x.gif", title="")


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"runs": 10}, "runs"), ({"view": "all"}, "view"), ({"failure": 0}, "failure")],
)
def test_bad_input(settings, named):
    with pytest.raises(BadInput, match=named):
        audit(DPUCB(), DISJOINT, **settings)
