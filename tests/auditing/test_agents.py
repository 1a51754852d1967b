"""Audits of agents: certified ones pass, broken ones are flagged, views hide what they must."""

import json
import pickle
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pytest
from scipy.special import ndtri

from dpbandit import audit, certify
from dpbandit.agents import (
    DPUCB,
    FLIPHAT,
    PFTAL,
    AdaptiveSparseVectorExperts,
    BinaryTreeExperts,
    DPHDBChoices,
    DPMoments,
    ExponentialLeader,
    LinUCB,
    MemoryAlone,
    NoisyFTRL,
    PerPerson,
    PersonalFADE,
    PrivateBandit,
    ShariffSheffetUCB,
    ShrinkingDartboard,
    SparseVectorExperts,
)
from dpbandit.agents.contextual.fading import Fading
from dpbandit.agents.people import personal
from dpbandit.auditing.audit import most_moving_pairs, pairs, plot_audit, users_of
from dpbandit.auditing.bounds import Claim
from dpbandit.auditing.returning import People
from dpbandit.auditing.small_problems import SMALL_PROBLEMS, audit_all, with_printed
from dpbandit.auditing.views import columns_of, memory, public_ends
from dpbandit.base.files import plain
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import exact_prefix_sum
from dpbandit.privacy.curves import delta_of
from dpbandit.privacy.mechanism import Mechanism, witnessed
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.person_sums import PersonSum
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.people import NOBODY
from dpbandit.specs.protocols import ContextualSpec
from tests.broken.audited import (
    BROKEN,
    Boasts,
    CountsACorner,
    HalfTheChoiceNoise,
    QuietPeeling,
    SpendsMore,
    SumsRewards,
)
from tests.broken.people import BROKEN as LEAKS, With
from tests.each import by_rota, each, in_turn
from tests.harness import KINDS, PEOPLE, discovered

DISJOINT, SHARED, *_ = SMALL_PROBLEMS
(EXPERTS,) = [spec for spec in SMALL_PROBLEMS if isinstance(spec, ExpertsSpec)]
QUICK = {"runs": 1000, "progress": False}


@pytest.mark.slow
def test_shariff_and_sheffet_s_wishart_noise_is_over_noise():
    """The printed noise is certified and measured far below its claim, ours is certified at the
    claim."""
    both = with_printed({"wishart": ShariffSheffetUCB(delta=1e-4, noise="wishart")})
    reports = audit_all(both, runs=400, progress=False)
    assert [report.verdict for report in reports.values()] == ["not refuted", "over-noised"]


PARTS = 12
"""Number of parts of the agents, of which one is audited at a commit"""
FAILURE = 0.05 / len(KINDS)
"""False alarm of an audit, which is 0.05 for those of all agents together"""


@cache
def private_variants(part):
    """A variant of each private agent of a part, on a spec it fits, in turns, so that agents meet
    all kinds. Without Wishart noise, whose tables take long, promises to persons (below), and those
    that audits refuse, for answers alone."""
    found = []
    for place, kind in list(enumerate(KINDS))[part::PARTS]:
        fitting = []
        for config, spec in discovered(kind):
            if isinstance(config, Fading):
                spec = replace(spec, horizon=9)  # a fit takes long
            proof = certify(config, spec, accountants=False)
            rounds = proof.notion.contexts == "private" and proof.notion.visits is None
            audited = 0 < proof.epsilon < inf and rounds
            if audited and getattr(config, "noise", None) != "wishart":
                fitting.append((config, spec))
        found += [fitting[place // PARTS % len(fitting)]] if fitting else []
    return found


@pytest.mark.parametrize("part", by_rota(range(PARTS), PARTS))
def test_no_private_agent_is_flagged(part):
    """Certified or printed, against its certificate."""
    how = {"runs": 400, "failure": FAILURE, "progress": False}
    reports = [audit(*pair, **how) for pair in private_variants(part)]
    assert len(reports) > 3
    assert not [report for report in reports if report.flagged]


@pytest.mark.parametrize("part", by_rota(range(PARTS), PARTS))
def test_private_agents_are_audited_for_one_round(part):
    """Each works, or is refused in a sentence: all rounds are warm-up."""
    settings = {"runs": 400, "failure": FAILURE, "progress": False}
    reports = []
    for config, spec in private_variants(part):
        with suppress(InputError):
            reports.append(audit(config, replace(spec, horizon=1), **settings))
    assert len(reports) > 2
    assert not [report for report in reports if report.flagged]


def test_agents_without_privacy_have_nothing_to_refute():
    report = audit(LinUCB(), DISJOINT, runs=2000, progress=False)
    assert report.eps_lower > 3
    assert not report.flagged
    assert audit_all({"linucb": LinUCB()}, **QUICK) == {}


class NoiseOfAVisit(PersonSum):
    """Counts every visit, with the noise of one."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.stddev /= self.person_norm


HATS = {"sparsity": 1, "epsilon": 4.0, "delta": 1e-4}
LARGE = replace(DISJOINT, reward_low=-50.0, reward_high=50.0, horizon=8, dim=1)
"""Rewards are large against the ball, and the sensitivity is met."""
CHOICES = {"delta": 1e-4, "warm_up": 1, "radius": 1.0}


def visiting(**settings):
    return PersonalFADE(first_batch=2, **settings)


def of_one_visit(**settings):
    return With(config=visiting(epsilon=4.0, **settings), where=personal, part=NoiseOfAVisit)


ADVISERS = {
    "sparse vector": (SparseVectorExperts(epsilon=1.0), 20, 2000),
    "trees": (BinaryTreeExperts(epsilon=1.0, delta=1e-4), 20, 2000),
    "leader": (ExponentialLeader(epsilon=8.0, delta=1e-4), 20, 2000),
    "noisy sums": (NoisyFTRL(epsilon=1.0, delta=1e-4), 20, 2000),
    "adaptive sparse vector": (AdaptiveSparseVectorExperts(epsilon=2.0), 40, 2000),
    "dartboard": (ShrinkingDartboard(epsilon=8.0), 60, 4000),
}
"""A config, a horizon, and runs in which half of its noise shows."""
HONEST = [visiting(), *(visiting(counted=word) for word in ("latest", "batch", "visits"))]
HONEST += [MemoryAlone(), PerPerson(DPUCB(refresh_every=3))]
KNOWN = {"runs": 4000, "until_known": True}
ACTIONS = {"runs": 400, "view": "actions"}
SURE = {"runs": 400, "failure": 0.01 / len(HONEST)}
SHOWN = ("a missing clip (rewards)", "exact sign after a noisy arg-max")


def advised(name, *, half):
    """Return the case of an audit of an adviser with half of its noise, or with all of it."""
    config, horizon, runs = ADVISERS[name]
    spec, sure = replace(EXPERTS, horizon=horizon), {"runs": runs, "failure": 0.05 / len(ADVISERS)}
    return (SpendsMore(agent=config), spec, KNOWN, True) if half else (config, spec, sure, False)


CASES = {
    **{name: (config, DISJOINT, KNOWN, True) for name, config in BROKEN.items()},
    **{f"{n}, in actions": (BROKEN[n], DISJOINT, {"view": "actions"}, True) for n in SHOWN},
    "half the noise of peelings": (QuietPeeling(**HATS), SHARED, {"runs": 2000}, True),
    "peelings": (FLIPHAT(**HATS), SHARED, {"runs": 2000}, False),
    "one drawer": (LEAKS["one drawer"], PEOPLE, {"runs": 400}, True),
    "one drawer, in actions": (LEAKS["one drawer"], PEOPLE, ACTIONS, True),
    "next door, in actions": (LEAKS["next door"], PEOPLE, ACTIONS, True),
    "a cap of all": (LEAKS["a cap of all"], PEOPLE, {"runs": 400}, True),
    "noise of a visit of k": (of_one_visit(counted="visits"), PEOPLE, {}, True),
    "noise of a visit for all releases": (of_one_visit(counted="latest"), PEOPLE, {}, True),
    **{repr(config): (config, PEOPLE, SURE, False) for config in HONEST},
    **{f"half the noise of {n}": advised(n, half=True) for n in [*ADVISERS][:4]},
}
"""An agent, a spec, settings of the audit, and whether it is flagged."""
LONG_CASES = {
    "half the noise of choices": (HalfTheChoiceNoise(**CHOICES), LARGE, {"runs": 20_000}, True),
    "choices": (DPHDBChoices(**CHOICES), LARGE, {"runs": 20_000}, False),
    **{f"half the noise of {n}": advised(n, half=True) for n in [*ADVISERS][4:]},
    **{f"all the noise of {n}": advised(n, half=False) for n in ADVISERS},
}


@pytest.mark.parametrize("name", [*by_rota(CASES, 3, slow=False), *by_rota(LONG_CASES, 3)])
def test_broken_agents_are_flagged_and_honest_ones_are_not(name):
    """Audits are by bets, which stop, by a view, or in as many runs as show half of the noise. A
    third of the agents, broken and honest ones, is audited at a commit: all try the same audit."""
    config, spec, how, flagged = (CASES | LONG_CASES)[name]
    report = audit(config, spec, **{**QUICK, **how})
    assert report.flagged == flagged
    assert "point" not in str(report) or "until_known" not in how


def test_a_missing_clip_is_what_is_flagged():
    """Golden: the same sum of rewards, clipped to their bounds, is honest."""
    assert not audit(SumsRewards(clip=1.0), DISJOINT, **QUICK).flagged
    report = audit(SumsRewards(), DISJOINT, **QUICK)
    assert report.flagged
    assert "above the bounds to below" in report.pair


def test_certificates_apart_from_the_claim_are_shown():
    """Printed DP-UCB is certified, and measured, far below its claim. A certificate that exceeds
    its claim is not refuted; the claim is, by an audit with the power, which none has of printed
    DP-HDB's."""
    report = audit(ShariffSheffetUCB(delta=1e-4, calibration="paper"), DISJOINT, **QUICK)
    assert report.eps_lower <= report.certified_epsilon < 0.2 < report.claimed_epsilon
    how = {"epsilon": 20.0, "delta": 0.3, "beyond_validity": True, "warm_up": 1}
    report = audit(DPHDBChoices(calibration="paper", **how), DISJOINT, **QUICK)
    assert report.certified_epsilon > report.claimed_epsilon
    boasting = audit(Boasts(delta=1e-4), DISJOINT, **QUICK)
    assert (report.breaks_claim, boasting.breaks_claim) == (False, True)
    assert (report.flagged, boasting.flagged) == (False, False)


def test_the_search_finds_what_moves_a_mechanism_most():
    """Golden, by hand: only contexts along the last of three axes are counted, so e_3 against
    anything else moves the count by its sensitivity 1, and no pair of `extreme_pairs` moves it."""
    spec, config = replace(DISJOINT, dim=3), CountsACorner()
    for pair in users_of(spec).extreme_pairs(np.random.default_rng((0, 7))):
        (ends,) = public_ends(config, spec, pair, 0)
        for one, two in ends.without_others:
            np.testing.assert_array_equal(one, two)
    (worst,) = most_moving_pairs(config, spec, users_of(spec), 0)
    assert "e_3" in worst.note
    (ends,) = public_ends(config, spec, worst, 0)
    assert abs(np.diff(ends.without_others[-1], axis=0)) == 1
    report = audit(config, spec, runs=6000, until_known=True, progress=False)
    assert report.flagged
    assert report.pair == worst.note
    assert not audit(CountsACorner(factor=1.0), spec, **QUICK).flagged


VALUES, DATA = (spec for spec in SMALL_PROBLEMS if isinstance(spec, ConvexSpec))
ADVICE = replace(EXPERTS, horizon=9)


@each(
    ("config", "spec", "told_later"),
    [
        (DPUCB(), DISJOINT, None),
        (DPUCB(), SHARED, None),
        (PrivateBandit(), VALUES, None),
        (PFTAL(), DATA, 1),
        (NoisyFTRL(), ADVICE, 1),
        (NoisyFTRL(), replace(ADVICE, delay=2), 3),
    ],
)
def test_pairs_differ_in_one_user(config, spec, told_later):
    """Property: in one round's context or answer, and in the context that tells it later."""

    def differ(one, two):
        experts = isinstance(spec, ExpertsSpec)
        return (one(np.zeros(1)) != two(np.zeros(1))).any() if experts else one is not two

    for pair in pairs(config, spec, 0):
        contexts = (pair.first.context != pair.second.context).reshape(spec.horizon, -1)
        shown = np.flatnonzero(contexts.any(axis=1)).tolist()
        answers = zip(pair.first.answers, pair.second.answers, strict=True)
        told = [t for t, both in enumerate(answers) if differ(*both)]
        if told_later is None:
            assert {*shown, *told} == {pair.round}
        else:
            assert told == [pair.round]
            assert shown == [t for t in [pair.round + told_later] if t < spec.horizon]


@in_turn(0)
def test_a_report_depends_on_its_seed_alone():
    """Neither on processes nor on chunks; another seed gives other numbers."""
    config, settings = DPUCB(epsilon=3.0), {"runs": 600, "progress": False}
    one, two = audit(config, DISJOINT, **settings), audit(config, DISJOINT, jobs=2, **settings)
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)
    other = audit(config, DISJOINT, seed=1, **settings)
    assert (one.fpr, one.tpr) != (other.fpr, other.tpr)


def test_moments_reach_their_sensitivity_and_are_seen_without_what_others_added():
    """Oracle: a user's r x moves by 2 if x becomes -x, with delayed rewards, too; if what others
    added is subtracted, a release without noise is her part alone."""
    (worst,) = most_moving_pairs(DPMoments(), DISJOINT, users_of(DISJOINT), 0)
    late = ContextualSpec(n_actions=2, dim=2, horizon=12, delay=3, reward_low=-1.0)
    first, *_ = pairs(DPUCB(), late, 0)
    for config, spec, pair in (
        (DPMoments(), DISJOINT, worst),
        (DPMoments(epsilon=inf), late, first),
    ):
        (ends,) = public_ends(config, spec, pair, 0)
        assert np.linalg.norm(np.diff(ends.without_others[-1], axis=0)) == pytest.approx(2)
    assert not audit(DPUCB(), late, **QUICK).flagged
    config = DPMoments(epsilon=inf, refresh_every=1)
    for pair in users_of(DISJOINT).extreme_pairs(np.random.default_rng((0, 7))):
        if pair.note.startswith("round 1, context from x to -x"):
            ends = public_ends(config, DISJOINT, pair, 0)
            both = columns_of(config, DISJOINT, pair, [(0, 1)], "released", ends)
            for seen, wanted in zip(both, (-0.5, 0.5), strict=True):
                np.testing.assert_allclose(seen.values[:, np.array(seen.family) == "sums"], wanted)


def test_memory_holds_no_mechanism_and_witnesses_are_told_of_every_call_and_leave():
    kept = memory(FLIPHAT().make(DISJOINT, Streams(range(7))), 7)
    assert {len(array) for array in kept.values()} == {7}
    assert not [path for path in kept if "mechanism" in path or "normals" in path]
    sums, told = exact_prefix_sum(ClippedVectors(1), horizon=9, refresh_every=2), []
    with witnessed(lambda mechanism, datum, release: told.append((mechanism, release is None))):
        for _ in range(2):
            sums(np.ones((3, 1)))
    sums(np.ones((3, 1)))
    assert told == [(sums, True), (sums, False)]
    assert isinstance(pickle.loads(pickle.dumps(sums)), Mechanism)


def test_report_is_plain_and_the_plot_is_drawn(tmp_path):
    report = audit(DPUCB(), DISJOINT, runs=400, progress=False)
    assert json.loads(json.dumps(plain(report.as_dict())))["view"] == "released"
    assert "not refuted" in str(report)
    pure = audit(FLIPHAT(), SHARED, runs=400, progress=False)
    for name, shown in (("gdp.png", report), ("pure.svg", pure)):
        assert plot_audit(shown, tmp_path / name, title="audit").stat().st_size > 1500
    with pytest.raises(InputError, match="suffix"):
        plot_audit(report, tmp_path / "x.gif", title="")


def test_what_is_proven_is_above_the_certificate_only_if_it_is_refuted():
    """Golden, by hand: lines by (.2, .5) and its mirror image (.5, .8), nowhere above a Gaussian
    curve that the point is on."""
    report = audit(LinUCB(), DISJOINT, runs=400, progress=False)
    report = replace(report, fpr=0.2, tpr=0.5, eps_lower=np.log(2.5), mu_lower=None)
    fpr = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(report.proven(fpr), [0, 0.25, 0.5, 0.65, 0.8, 0.9, 1])
    mirrored = replace(report, fpr=0.5, tpr=0.8)
    np.testing.assert_allclose(mirrored.proven(fpr), report.proven(fpr))
    mu = ndtri(0.5) - ndtri(0.2)  # a claim whose curve the point is on
    grid = np.linspace(0, 1, 101)
    assert (report.proven(grid) <= Claim(1.0, delta_of(mu, 1.0), mu).highest(grid) + 1e-12).all()
    np.testing.assert_array_equal(replace(report, fpr=0.6).proven(fpr), fpr)


@each(("field", "value"), [("runs", 10), ("view", "all"), ("failure", 0)])
def test_bad_input(field, value):
    with pytest.raises(InputError, match=field):
        audit(DPUCB(), DISJOINT, **{field: value})


def test_worlds_differ_in_one_person():
    """Everybody else says and does the same, in the same slots; she keeps to her pattern, and the
    slots of a private one are empty in the other world."""
    moved = 0
    for pair in People(PEOPLE).extreme_pairs(np.random.default_rng(0)):
        for world in (pair.first, pair.second):
            at_visits = np.flatnonzero(world.context[:, 0] == pair.person)
            assert set(at_visits) <= set(pair.rounds)
            assert len(at_visits) <= PEOPLE.visits.cap
            assert (np.diff(at_visits) >= PEOPLE.visits.separation).all()
        others = [t for t in range(PEOPLE.horizon) if t not in pair.rounds]
        np.testing.assert_array_equal(pair.first.context[others], pair.second.context[others])
        empty = [world.context[:, 0] == NOBODY for world in (pair.first, pair.second)]
        moved += (empty[0] != empty[1]).any()
    assert moved == 1
    with pytest.raises(InputError, match="people=1"):
        People(replace(PEOPLE, people=1))
