"""No wrapper, and no problem, is certified for more trust than whoever plays it can keep."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import (
    DPUCB,
    FADE,
    AdaCOFUL,
    AdaPrivateTS,
    Broadcast,
    Guard,
    MemoryAlone,
    PerPerson,
    PersonalFADE,
    Priced,
)
from dpbandit.privacy import ALL_FACTS
from dpbandit.privacy.notion import JOINT_DP, Trust
from tests.each import each, refused
from tests.harness import PEOPLE, PRICES, SHARED, STOCK

ADDED = FADE(trust="aggregated", fade=0)
SELLER, NET = "the seller names the price and watches", "trust=central, got trust='aggregated'"


@dataclass(frozen=True, kw_only=True)
class Client:
    """Somebody's own wrapper, with the ledger of one agent that it holds, around another."""

    agent: Any
    beside: Any
    epsilon: float = 1.0
    delta: float = 1e-5

    def make(self, spec, streams):
        agent = self.agent.make(spec, streams)
        beside = self.beside.make(spec, streams.child("beside"))
        agent.act, agent.update = partial(beside.act), lambda *row: beside.update(*row)
        return agent


def in_a_default(agent):
    return lambda inner=agent: inner


def behind_an_unset_name(agent):
    def inner():
        return agent, unset

    if agent is None:
        unset = 1
    return inner


PLACES = (
    lambda agent: np.array([agent], dtype=object), lambda agent: {agent: 1}, in_a_default,
    behind_an_unset_name, lambda agent: (one for one in [agent]),
)  # fmt: skip


@dataclass(frozen=True)
class Holds:
    """Somebody's wrapper with a ledger of its own, and the agent somewhere."""

    agent: Any
    place: Any
    change: Any
    epsilon: float = 1.0
    delta: float = 1e-5

    def make(self, spec, streams):
        return Held(self.agent.make(spec, streams), self.place, dict(self.change))


class Held:
    hands_on = ALL_FACTS

    def __init__(self, agent, place, change):
        notion = replace(agent.ledger.notion, **change)
        self.ledger, self.inner = replace(agent.ledger, notion=notion), place(agent)
        self.ask, self.tell = agent.act, agent.update

    def act(self, context):
        return self.ask(context)

    def update(self, context, action, feedback):
        self.tell(context, action, feedback)


HALF = Broadcast(trust="aggregated", honest=0.5)
PUBLIC = AdaCOFUL(calibration="paper")


def test_a_ledger_of_ones_own_promises_what_is_held():
    """Wherever it is held; before, these were certified. A wrapper that promises no more is."""
    local = (("trust", Trust("local")),)
    for place in PLACES:
        with pytest.raises(InputError, match="Expected the ledger of Holds to promise what"):
            certify(Holds(HALF, place, local), SHARED, accountants=False)
        assert certify(Holds(HALF, place, ()), SHARED, accountants=False).holds
    for agent, change in (
        (HALF, ("trust", Trust("aggregated", 0.1))),
        (PUBLIC, ("contexts", "private")),
    ):
        refused(change[0], certify, Holds(agent, lambda held: [held], (change,)), SHARED)


@each(
    ("agent", "spec", "sentence"), [
        *((Priced(Broadcast(trust=word)), PRICES, SELLER) for word in ("local", "shuffled")),
        (Priced(ADDED), PRICES, SELLER), (Broadcast(), STOCK, SELLER),
        (ADDED, PRICES, "here it is prices, FadePrices"),
        (PerPerson(ADDED), replace(PEOPLE, visit=PRICES), "here it is prices, FadePrices"),
        (Guard(Broadcast()), SHARED, NET), (Guard(ADDED), SHARED, NET),
        (Client(agent=Broadcast(), beside=DPUCB()), SHARED, "the ledger of DPUCB can keep"),
        (Client(agent=Broadcast(), beside=Broadcast(trust="central")), SHARED, "the ledger of B"),
        (Client(agent=Broadcast(), beside=Guard(DPUCB())), SHARED, NET),
        (PerPerson(AdaCOFUL(calibration="paper")), PEOPLE, "anybody came.*AdaCOFUL"),
        (PerPerson(AdaPrivateTS(calibration="paper")), PEOPLE, "anybody came.*AdaPrivateTS"),
    ],
)  # fmt: skip
def test_more_trust_than_can_be_kept_is_refused(agent, spec, sentence):
    """Wrappers pass the ledger of what they hold on; the problem, and every mechanism in sight, has
    to bear it. Before, each of these had a certificate."""
    refused(sentence, certify, agent, spec, accountants=False)


def test_what_is_seen_of_people_is_said():
    """Without a trusted server it sees who sends, so nobody may move; and an empty slot in which
    nobody sends has no noise."""
    for agent in (PersonalFADE(trust="aggregated"), PerPerson(Broadcast())):
        notion = certify(agent, PEOPLE, accountants=False).notion
        assert notion.visits.pattern == "public"
        assert "who sends in which slot" in str(notion)
        assert "may move" not in str(notion)
    assert "may move" in str(certify(PersonalFADE(), PEOPLE, accountants=False).notion)


@pytest.mark.parametrize("visit", [STOCK, replace(PRICES, followed=True)], ids=["stock", "follow"])
def test_people_who_return_to_a_world_that_carries_are_not_covered(visit):
    """A person's actions change the world's answers to others, who are not covered; nor are her
    own data hers alone there. And no wrapper may leave out that they come back to her."""
    spec = replace(PEOPLE, visit=visit)
    for agent in (FADE(), PerPerson(FADE()), PerPerson(Priced(DPUCB()))):
        with suppress(InputError):
            proof = certify(agent, spec, accountants=False)
            assert (proof.epsilon, proof.ledger.brief.startswith("not covered")) == (inf, True)
    assert certify(PerPerson(FADE()), spec, accountants=False).epsilon == inf
    shared = replace(PEOPLE, visit=replace(visit, shared=True))
    assert certify(MemoryAlone(), shared, accountants=False).epsilon == inf
    for change in (("unit", JOINT_DP.unit), ("adjacency", "replace")):
        agent = Holds(MemoryAlone(), lambda held: [held], (("adjacency", "zero out"),))
        with pytest.raises(InputError, match=change[0]):
            certify(Holds(agent, lambda held: [held], (change,)), PEOPLE, accountants=False)
