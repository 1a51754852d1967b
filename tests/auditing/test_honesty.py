"""What an audit must not do: use the differing user's own action, or look at a run twice."""

from collections import Counter

import numpy as np
import pytest

from dpbandit import audit
from dpbandit.agents import DPUCB, DPMoments
from dpbandit.auditing import audit_views
from dpbandit.auditing.audit import pairs
from dpbandit.auditing.bounds import judge
from dpbandit.auditing.everyone import SMALL
from dpbandit.auditing.users import Always, Pair
from dpbandit.auditing.views import columns_of, public_ends, rounds
from dpbandit.auditing.witness import Witness
from tests.auditing.mechanisms import GDP, columns, shown
from tests.broken.audited import ByTheSign, KeepsTheLast

DISJOINT, *_ = SMALL
QUICK = {"runs": 1000, "progress": False}


def test_an_action_that_shows_its_own_context_is_no_breach():
    """Joint DP hides it from everybody else only; a context kept for the next user is a breach."""
    for view in ("released", "actions"):
        assert not audit(ByTheSign(), DISJOINT, view=view, **QUICK).flagged
        kept = audit(ByTheSign(agent=KeepsTheLast), DISJOINT, view=view, **QUICK)
        assert kept.flagged
        assert kept.eps_lower > 4


def own_actions(config, spec, pair, seeds):
    """What the differing user is served in either world."""
    worlds = (pair.first, pair.second)
    for event, user, _, action in rounds(config, spec, worlds, pair.rounds, seeds, Witness()):
        if event == "act" and user == pair.round:
            return np.split(action, 2)


def test_own_action_is_in_no_view():
    """Property: the differing user's own action, another one in every run, changes nothing that is
    seen, and everybody else's does: an agent that plays by the sign of each context, asked
    about one more user."""
    pair, *_ = pairs(DPUCB(), DISJOINT, 0)
    config, seeds = ByTheSign(), [(0, r) for r in range(5)]
    one, two = own_actions(config, DISJOINT, pair, seeds)
    assert (one != two).all()
    for view in ("released", "actions"):
        one, two = columns_of(config, DISJOINT, pair, seeds, view, [])
        np.testing.assert_array_equal(one.values, two.values)
    other = pair.first.with_user(3, -pair.first.context[0], pair.first.answers[0])
    moved = Pair("", 0, pair.first, other)
    one, two = columns_of(config, DISJOINT, moved, seeds, "actions", [])
    assert (one.values != two.values).any()


def after_the_first_round(config):
    return next(pair for pair in pairs(config, DISJOINT, 0) if pair.round > 0)


def test_greedy_play_on_released_state_is_no_breach():
    """Joint DP, in the strict case: a user whose context turns around is served another arm in
    every run, for certain given what was released before; nobody else learns it, and both
    views pass. Moments alone: the arm is the sign of x . (u_0 - u_1)."""
    config = DPMoments(delta=1e-4, refresh_every=1)
    late = after_the_first_round(config)
    one, two = own_actions(config, DISJOINT, late, [(0, r) for r in range(200)])
    assert (one != two).all()
    for view in ("released", "actions"):
        assert not audit(config, DISJOINT, view=view, **QUICK).flagged


def test_sums_are_weighed_by_public_numbers():
    """Property: her own action, another one in some runs, decides which arm's sum she is in; what
    is seen of releases is weighed by the same two ends in all runs, whatever she was served."""
    config = DPMoments(delta=1e-4, refresh_every=1)
    late, seeds = after_the_first_round(config), [(0, r) for r in range(40)]
    context, t = late.first.context[late.round], late.round
    second = late.first.with_user(t, context, Always(np.array(DISJOINT.reward_low)))
    pair = Pair("reward from high to low", t, late.first, second)
    (ends,) = public_ends(config, DISJOINT, pair, 0)
    witness, worlds = Witness(), (pair.first, pair.second)
    for event, user, _, action in rounds(config, DISJOINT, worlds, pair.rounds, seeds, witness):
        if event == "act" and user == pair.round:
            assert set(action[:40]) == {0, 1}
    (known,) = witness.sums
    assert len(np.unique(known.hers.round(9), axis=0)) > 2  # hers in a run is not an end
    one, two = ends.left[-1]
    assert np.linalg.norm(two - one) > 0.5
    told = zip(known.left, ends.left, strict=True)
    wanted = [np.vecdot(v - (one + two) / 2, two - one) for (v, _), (one, two) in told]
    wanted = np.split(np.array(wanted) / known.sensitivity**2, 2, axis=1)
    both = columns_of(config, DISJOINT, pair, seeds, "released", [ends])
    for seen, expected in zip(both, wanted, strict=True):
        sums = seen.values[:, np.array(seen.family) == "sums"]
        np.testing.assert_allclose(sums, expected.T, atol=1e-8)


@pytest.mark.parametrize("scores", [None, {"first": shown}])
def test_no_run_is_looked_at_twice(monkeypatch, scores):
    """Property: every seed is played once in each world; the runs that choose, and their twins, are
    others than those that are evaluated: a quarter, or with learned scores those left of a half."""
    played, judged = (Counter(), Counter()), []

    def sample(world, seeds):
        played[world].update(seeds)
        return columns(np.array([[1e4 * stage + run] for _, stage, run in seeds]) + 0.25 * world)

    def told(selection, evaluation, claim, *, failure):
        judged.extend([selection, evaluation])
        return judge(selection, evaluation, claim, failure=failure)

    monkeypatch.setitem(audit.__globals__, "judge", told)
    audit_views(sample, GDP, runs=800, chunk=70, scores=scores)
    for counted in played:
        assert len(counted) == 800
        assert set(counted.values()) == {1}
    sizes = (200, 600) if scores else (200, 400)
    for (values,), size in zip(map(dict.values, judged), sizes, strict=True):
        assert [len(side) for side in values] == [size, size]
    (selection,), (evaluation,) = map(dict.values, judged)
    assert not set(np.concatenate(selection)) & set(np.concatenate(evaluation))
