"""Lists for people who come back: what is persistent, what an empty slot is, who may be told."""

from itertools import permutations
from math import sqrt

import numpy as np
import pytest
from scipy.special import expit, logit

from dpbandit import InputError, certify, compare
from dpbandit.agents import ListFADE, PerPerson, PersonalFADE
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningLists

SMALL = {"people": 4, "visits": 6, "horizon": 24, "n_items": 5, "length": 2, "taste": 3}


def test_she_is_herself_at_all_visits_and_regret_is_against_her_own_best_list():
    """Oracle: all 20 lists by hand, from the parameters; an empty slot is nothing at all."""
    problem = ReturningLists(**SMALL, empty=0.3, tastes=1.0, churn=5)
    problem.reset(Streams(range(3)))
    spec, said = problem.spec, {}
    lists, empty = np.array(list(permutations(range(5), 2))), 0
    for t in range(24):
        context = problem.context()
        assert (context == problem.context()).all()  # asked twice
        person, u = spec.person(context), spec.shown(context)
        items = spec.visit.catalogue.items.copy()
        shown = lists[[t % 20, (t + 7) % 20, 3]]
        step = problem.step(shown)
        for r, i in enumerate(person):
            if i < 0:
                empty += 1
                assert not u[r].any()
                assert [*step.datum[r], *(part[r] for part in step[:4])] == [0] * 6
                continue
            assert (said.setdefault((r, i), u[r]) == u[r]).all()
            theta = problem._theta[r] + problem._own[r, i]
            chance = expit(logit(0.05) + 0.7 * sqrt(3) * items[r] @ (u[r] * theta))
            values = 1 - np.prod(1 - chance[lists], axis=1)
            assert step.oracle[r] == pytest.approx(values.max(), abs=1e-12)
            mine = 1 - np.prod(1 - chance[shown[r]])
            assert step.expected[r] == pytest.approx(mine, abs=1e-12)
    assert 5 < empty < 40
    assert len(said) > 8


def test_people_who_were_not_clicked_at_come_half_as_often():
    problem = ReturningLists(**{**SMALL, "visits": 60, "horizon": 240}, arrivals="loyal")
    problem.reset(Streams(range(20)))
    here = []
    for _ in range(240):
        here.append(problem.spec.person(problem.context()) >= 0)
        problem.step(np.tile([0, 1], (20, 1)))
    assert np.mean(here[:2]) > 0.9
    assert 0.45 < np.mean(here[60:]) < 0.65  # few click


def test_agents_for_lists_play_it_per_person_and_others_are_told_so():
    """The claim is of a person; without `per-person` there is one sentence."""
    proof = certify(PerPerson(ListFADE(epsilon=1.0)), ReturningLists(**SMALL), accountants=False)
    assert proof.epsilon == pytest.approx(1.0, abs=1e-6)
    assert proof.ledger.brief == "person, 6 rounds"
    for wrong in (ListFADE(), PersonalFADE()):
        with pytest.raises(InputError, match="choose"):
            certify(wrong, ReturningLists(**SMALL), accountants=False)
    found = compare(
        "ReturningLists",
        {"a": PerPerson(ListFADE(epsilon=np.inf))},
        horizon=2_000,
        replicas=2,
        progress=False,
        env_kwargs={"n_items": 50, "people": 50, "arrivals": "robin"},
    )
    (mine,), (random,) = (found.where(agent=name).runs for name in ("a", "Uniform"))
    assert mine.regret[-1].mean() < 0.7 * random.regret[-1].mean()
