"""Notions are compared field by field, and what restricts a promise is said beside it."""

import json
from dataclasses import dataclass, fields, make_dataclass, replace
from math import inf, nan
from types import SimpleNamespace

import pytest

from dpbandit import certify
from dpbandit.agents import FADE, MemoryAlone, PersonalFADE
from dpbandit.base import InputError
from dpbandit.privacy.certificate import ledger_as_dict, ledger_from_dict
from dpbandit.privacy.exchange import as_event, as_measurements
from dpbandit.privacy.ledger import Ledger, no_data, no_privacy
from dpbandit.privacy.notion import (
    ALL_ACTIONS,
    IN_FULL,
    JOINT_DP,
    LATER_ACTIONS,
    NO_DATA,
    NO_PRIVACY,
    OWN_DATA,
    Notion,
    Round,
    Trust,
    Visits,
    strongest,
)
from dpbandit.privacy.pure import PureSpend
from tests.each import each
from tests.harness import PEOPLE, PRICES, STOCK

JOINT = "joint DP under continual observation, "
HALF = Trust("aggregated", 0.5, of="slots")
WORDS = {
    JOINT + "replace one user's round": (Notion(), ""),
    f"window DP ({JOINT}zero out one user's round) for the last 100 rounds only (older data may be "
    "revealed completely)": (
        Notion(adjacency="zero out", window=100),
        "window-DP, last 100, zeroed out",
    ),
    f"{JOINT}replace one user's round; CONDITIONAL: all losses are curved; nobody lies": (
        Notion(conditions=("all losses are curved", "nobody lies")),
        "conditional",
    ),
    f"{JOINT}replace one user's round, for her answers alone: contexts are public": (
        Notion(contexts="public"),
        "contexts public",
    ),
    f"{JOINT}replace one person, of at most 20 rounds, 5 or more apart; the server sees noisy sums "
    "of batches alone and who sends in which slot, if a device adds its noise in 50 % of slots, "
    "empty ones included": (
        Notion(trust=Trust("aggregated", 0.5)).of_person(Visits(20, 5)),
        "person, 20 rounds, aggregated, 50 % of slots honest",
    ),
    f"{JOINT}replace one round of a person, who has others": (
        Notion(unit=Round(returning=True)),
        "one round of a person",
    ),
    "DP of all actions under continual observation, replace one user's round": (
        Notion(covers=ALL_ACTIONS),
        "",
    ),
    "none: exact data reaches later actions": (NO_PRIVACY, ""),
}


@each("words", WORDS)
def test_a_notion_in_words_and_in_brief(words):
    """Every field that is not the ordinary one is in both, but for what is public of a problem."""
    notion, brief = WORDS[words]
    assert (str(notion), notion.brief) == (words, brief)


SEVERAL = [
    *(notion for notion, _ in WORDS.values()),
    *(NO_DATA, OWN_DATA, IN_FULL, Notion(masks="user"), Notion(trust=HALF)),
]


@each("notion", SEVERAL, ids=str)
def test_json_takes_a_notion_there_and_back_and_hides_nothing(notion):
    """A field that is missing, or not known, may be a restriction: neither is read."""
    written = json.loads(json.dumps(notion.to_dict()))
    assert Notion.from_dict(written) == notion
    for doctored in ({**written, "more": 1}, dict(list(written.items())[1:])):
        with pytest.raises(ValueError, match="with the fields"):
            Notion.from_dict(doctored)


WEAKER = {
    "window": (None, 9, 8),
    "adjacency": ("replace", "zero out"),
    "covers": (ALL_ACTIONS, LATER_ACTIONS, frozenset()),
    "reads": ("nothing", "own data", "mechanisms", "releases in full", "exact data"),
    "contexts": ("private", "public"),
    "unit": (Visits(20), Visits(20, pattern="public"), Visits(7, 3, "public")),
    "trust": (Trust("local"), Trust("shuffled", 0.5), Trust("aggregated"), Trust()),
    "conditions": ((), ("a",), ("b", "a")),
}


@each("name", WEAKER)
def test_each_value_implies_the_later_ones_alone(name):
    """Catches an order that is turned round, and one that is left out."""
    public = Notion(unit=Visits(20, pattern="public"))
    chain = [replace(public, **{name: value}) for value in WEAKER[name]]
    for i, one in enumerate(chain):
        for k, other in enumerate(chain):
            assert one.implies(other) == (i <= k), (one, other)
            assert one.weaker(other) == chain[max(i, k)] or name == "conditions"


def test_what_has_no_order_implies_what_is_equal_alone():
    """A field of tomorrow, masks, two units, shares of different things."""
    later = make_dataclass("Later", [("salt", str, "a")], bases=(Notion,), frozen=True)
    assert later().implies(later())
    assert not later().implies(later(salt="b"))
    slots, people = (replace(HALF, of=of) for of in ("slots", "people"))
    for one, other in (
        (Notion(masks="user"), Notion(masks="public")),
        (Notion(unit=Visits()), Notion()),
        (Notion(unit=Round(returning=True)), Notion()),
        (Notion(trust=slots), Notion(trust=people)),
    ):
        for ours, theirs in ((one, other), (other, one)):
            (name,) = ours.lacks(theirs)
            with pytest.raises(InputError, match=f"got {name}="):
                ours.weaker(theirs)
    assert {field.name for field in fields(Notion)} == {*WEAKER, "masks"}


@each(
    ("wrong", "said"),
    [
        ({"adjacency": "add"}, "adjacency"),
        ({"reads": "much"}, "reads"),
        ({"covers": {"later actions"}}, "covers"),
        ({"covers": frozenset({"joint DP "})}, "covers"),
        ({"contexts": True}, "contexts"),
        ({"unit": "a round"}, "unit"),
        ({"trust": "local"}, "trust"),
        ({"conditions": "losses are small"}, "conditions"),
        ({"window": 0}, "window"),
        ({"unit": Visits(), "trust": Trust("local")}, "pattern='public'"),
    ],
)
def test_a_field_of_another_kind_is_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        Notion(**wrong)


@each("honest", [0, -0.1, 1.1, nan])
def test_a_share_of_devices_is_one(honest):
    with pytest.raises(InputError, match="honest"):
        Trust("aggregated", honest)


@dataclass(frozen=True)
class Wordy:
    """FADE, with a ledger that promises something else."""

    notion: Notion
    epsilon: float = 1.0
    delta: float = 1e-5

    def make(self, spec, streams):
        agent = FADE().make(spec, streams)
        agent.ledger = replace(agent.ledger, notion=self.notion)
        return agent


def test_a_world_that_carries_is_never_covered():
    """Before, a scope with another space was certified at 1. Words are no part of a notion now."""
    for notion in (
        JOINT_DP,
        Notion(covers=ALL_ACTIONS),
        Notion(window=4),
        Notion(conditions=(" ",)),
    ):
        proof = certify(Wordy(notion), STOCK, accountants=False)
        assert proof.epsilon == inf
        assert not proof.notion.covers
        assert "not covered" in proof.notion.brief
    with pytest.raises(InputError, match="covers"):  # nobody's word is taken that it hides refusals
        Notion(covers=LATER_ACTIONS | {"refusals"})
    with pytest.raises(InputError, match="notion='joint DP ' of a ledger"):
        Ledger((), "joint DP ")
    nothing = Ledger((PureSpend.of("an answer", [0.1]),), NO_PRIVACY)
    assert (nothing.epsilon(0.1), nothing.delta(9.0), nothing.pure) == (inf, 1.0, inf)
    assert type(as_event(nothing)).__name__ == "NonPrivateDpEvent"
    with pytest.raises(InputError, match="promises something"):
        as_measurements(nothing)


def test_whatever_is_narrower_than_the_strongest_says_so():
    """A visit of a person, a round of hers, zeroed out, public slots: none counts as whole, and
    the first three had no brief."""
    whole = strongest(PEOPLE)
    assert whole == certify(PersonalFADE(), PEOPLE, accountants=False).notion
    assert certify(MemoryAlone(), PEOPLE, accountants=False).notion.implies(whole)
    assert no_data().on(PEOPLE).notion.implies(whole)
    assert not no_privacy("x").on(PEOPLE).notion.implies(whole)
    for narrow in (
        replace(whole, unit=replace(whole.unit, cap=1)),
        replace(whole, unit=replace(whole.unit, pattern="public")),
        Notion().on(PEOPLE),
        replace(whole, adjacency="zero out"),
    ):
        assert not narrow.implies(whole)
        assert narrow.brief
    assert not Notion().on(STOCK).implies(strongest(STOCK))
    assert Notion().on(PRICES) == strongest(PRICES)
    masked = SimpleNamespace(covers=LATER_ACTIONS, unit=Round(), masks="user", carries=False)
    assert NO_DATA.on(masked).reads == "own data"


def test_latest_visits_rest_on_people_and_others_on_slots():
    """The noise of "latest" is a share of people's: 40 visits of 50 people were certified at 1 and
    cost 2.44 where half of the slots, and fewer of the people, add noise."""
    for counted, of in (("latest", "people"), ("first", "slots"), ("batch", "slots")):
        agent = PersonalFADE(trust="aggregated", honest=0.5, counted=counted)
        notion = certify(agent, PEOPLE, accountants=False).notion
        assert notion.trust == Trust("aggregated", 0.5, of=of)
        assert f"50 % of {of}" in str(notion)
        assert f"50 % of {of} honest" in notion.brief


FORMER = {"adjacency": "replace", "window": None, "condition": "", "public_contexts": False}
FORMER |= {"slip": 0.0, "visits": None, "trust": "central", "honest": 1.0, "spends": []}


def test_a_ledger_in_words_is_read_and_another_sentence_refused():
    """Files of format 1, as the shipped results of the suite are."""
    for scope, more, notion in (
        (JOINT + "{} one user's round", {}, Notion()),
        (
            JOINT + "{} one user's round; which actions there are in a round is public",
            {"window": 7, "condition": "a; b", "adjacency": "zero out"},
            Notion(masks="public", window=7, conditions=("a", "b"), adjacency="zero out"),
        ),
        (
            JOINT + "{} one user's round",
            {
                "visits": {"cap": 3, "separation": 2, "pattern": "public"},
                **{"trust": "aggregated", "honest": 0.5, "public_contexts": True},
            },
            Notion(unit=Visits(3, 2, "public"), trust=HALF, contexts="public"),
        ),
        (str(OWN_DATA), {}, OWN_DATA),
    ):
        read = ledger_from_dict({**FORMER, "scope": scope, **more})
        assert read == Ledger((), notion)
        assert ledger_from_dict(ledger_as_dict(read)) == read
    for name, value in (("scope", "joint DP "), ("slip", 1e-9)):
        with pytest.raises(ValueError, match=f"Expected .*{name}.* of format 1"):
            ledger_from_dict({**FORMER, "scope": JOINT + "{} one user's round", name: value})
