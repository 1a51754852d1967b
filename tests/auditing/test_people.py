"""Audits of what is promised to a person: she is another at all her visits, and comes at others."""

from dataclasses import replace

import numpy as np
import pytest

from dpbandit import InputError, audit
from dpbandit.agents import DPUCB, MemoryAlone, PerPerson, PersonalFADE
from dpbandit.agents.people import personal
from dpbandit.auditing.users import People
from dpbandit.privacy.fading import PersonSum
from dpbandit.specs.lists import NOBODY
from tests.broken.people import BROKEN, With
from tests.harness import PEOPLE

HONEST = [
    PersonalFADE(first_batch=2),
    PersonalFADE(first_batch=2, counted="latest"),
    PersonalFADE(first_batch=2, counted="batch"),
    PersonalFADE(first_batch=2, counted="visits"),
    MemoryAlone(),
    PerPerson(DPUCB(refresh_every=3)),
]


class NoiseOfAVisit(PersonSum):
    """Counts every visit, with the noise of one."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.stddev /= self.person_norm


def test_worlds_differ_in_one_person():
    """Everybody else says and does the same, in the same slots; she keeps to her pattern, and the
    slots of a private one are empty in the other world."""
    moved = 0
    for pair in People(PEOPLE).handful(np.random.default_rng(0)):
        for world in (pair.first, pair.second):
            hers = np.flatnonzero(world.context[:, 0] == pair.person)
            assert set(hers) <= set(pair.rounds)
            assert len(hers) <= PEOPLE.visits.cap
            assert (np.diff(hers) >= PEOPLE.visits.separation).all()
        others = [t for t in range(PEOPLE.horizon) if t not in pair.rounds]
        np.testing.assert_array_equal(pair.first.context[others], pair.second.context[others])
        empty = [world.context[:, 0] == NOBODY for world in (pair.first, pair.second)]
        moved += (empty[0] != empty[1]).any()
    assert moved == 1
    with pytest.raises(InputError, match="people=1"):
        People(replace(PEOPLE, people=1))


@pytest.mark.parametrize("config", HONEST)
def test_honest_agents_are_not_flagged(config):
    """Together wrong with probability 0.01; memory that is hers alone is no release."""
    assert not audit(config, PEOPLE, runs=400, failure=0.01 / 6, progress=False).flagged


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("one drawer", "released"),
        ("one drawer", "actions"),
        ("next door", "actions"),
        ("a cap of all", "released"),
    ],
)
def test_leaks_between_people_are_flagged(name, view):
    assert audit(BROKEN[name], PEOPLE, runs=400, view=view, progress=False).flagged


@pytest.mark.parametrize("counted", ["visits", "latest"])
def test_noise_for_one_visit_is_flagged(counted):
    """Where k are counted, or she is in every release, by its releases; measured mu 1.7 of visits
    against 0.92."""
    config = PersonalFADE(epsilon=4.0, counted=counted, first_batch=2)
    broken = With(config=config, where=personal, part=NoiseOfAVisit)
    assert audit(broken, PEOPLE, runs=1000, progress=False).flagged
