"""Callbacks are told at every mark what the results say afterwards."""

import numpy as np
import pytest

from dpbandit import InputError, compare, play


def test_what_is_told_is_what_results_say():
    """All agents, by their names, every mark, all replicas; the callback cannot change results."""
    told = []

    def see(mark):
        told.append((mark.agent, mark.round, mark.regret.copy(), mark.first_replica))
        mark.regret[...] = -1.0

    results = compare("GLMBandit", {"mine": "linucb"}, horizon=30, replicas=3, on_mark=see)
    for run in results.runs:
        marks = [(t, regret) for name, t, regret, first in told if name == run.name]
        assert [t for t, _ in marks] == run.marks.tolist()
        np.testing.assert_array_equal([regret for _, regret in marks], run.regret)
    assert {first for *_, first in told} == {0}
    alone = []
    play("GLMBandit", "linucb", range(2), horizon=9, marks=np.array([3, 9]), on_mark=alone.append)
    assert [(mark.agent, mark.round) for mark in alone] == [("LinUCB", 3), ("LinUCB", 9)]


def test_wrong_callbacks_are_refused():
    with pytest.raises(InputError, match="on_mark=3 to be a function"):
        compare("GLMBandit", "linucb", horizon=9, replicas=1, on_mark=3)
    with pytest.raises(InputError, match="jobs=2 to be 1"):
        compare("GLMBandit", "linucb", horizon=9, replicas=4, jobs=2, on_mark=print)
