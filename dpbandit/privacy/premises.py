"""Premises: what a proof takes for public or released, as data that is denied by default.

A proof of privacy speaks of clipped data, which a mechanism enforces, and of facts about the rounds
that are handed to `update`, which it cannot see: that a round is there, that the action is a coin.
Mechanisms, statistics and what an agent remembers outside mechanisms say which facts they NEED;
problems PROVIDE them; an agent around another one HANDS ON what it says. What nobody provides is
refused when the agent is made, in one sentence.

A declaration holds for the class that makes it. A subclass that overrides what the proof is about
inherits none, and has to prove, and to say, its own.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from dpbandit.base import InputError, abbrev


class Fact(StrEnum):
    """A fact about rounds that are handed to `update`, as the end of "it is public ..."."""

    CLOCK = "when a round is handed on"
    """one call for each tick of a public clock, or for those that public coins choose"""
    PRESENCE = "whether anybody came"
    """no round stands for nobody, or who comes when is public"""
    AS_CHOSEN = "that what was played is what the agent chose"
    """or what public coins and releases put in its place, but no veto or mask of the user"""
    CELL = "which action was played"
    """a function of coins and releases, as rounds are `AS_CHOSEN` and whoever chose is `blind`"""
    CONTEXT = "what contexts are"
    """neighbours agree in contexts, or all contexts are one constant"""
    ONCE = "that a user has one round"
    """or whoever stands between pays for all rounds of a person"""
    PEOPLE = "which number a person has"
    """numbers that were given out beforehand, never by first arrival"""
    LOSS = "which family losses are of"
    """data are moved into the family's public set, so that its curvature and slope hold"""
    WORLD = "that nobody's answers depend on others' actions"
    """where it is missing, certificates say that privacy is not covered"""


class Hearing(StrEnum):
    """A fact about calls, which a `Spend` needs, and `LedgerCheck` holds against the call log."""

    EVERY = "hear every round once"
    """visits are as far apart in the mechanism's calls as in the rounds"""
    APART = "hear no user twice"
    """no two mechanisms hear one round"""


Facts = frozenset[Fact]

ALL_FACTS: Facts = frozenset(Fact)
"""The facts that are needed where nothing is declared; no problem provides them"""
NO_FACTS: Facts = frozenset()
SUMMED: Facts = frozenset({Fact.CLOCK, Fact.ONCE})
"""The needs of sums of rounds on a public clock, each user in one"""

RELEASING = ("__call__", "take_rounds", "several", "query", "_release", "_release_several")
"""Methods of a mechanism that its proof is about"""
SUMMING = ("total", "gradient", "query", "after", "scores")
"""Methods of a statistic that its proof is about"""
BOUNDING = ("sensitivity", "units", "move_sensitivity", "spend")
"""Properties of a mechanism or a statistic that its proof is about"""
HANDING = ("act", "act_among", "update")
"""Methods of an agent that decide what another one, inside, is told"""
ACTING = ("act", "act_among")
"""Methods of an agent that decide what it plays"""


def declared(kind: type, name: str, methods: tuple[str, ...], *, overrides: bool = False) -> Any:
    """Find what the class that defines the methods declares under `name`; None if nothing.

    Args:
        kind: class of a mechanism, statistic or agent.
        name: of a class attribute, such as "needs".
        methods: whoever defines one of these anew has to declare anew.
        overrides: whether overriding any other function or property of a base class counts as well.
    """
    for place, one in enumerate(kind.__mro__):
        mine = vars(one)
        if name in mine:
            return mine[name]
        own = (word for word in mine if word[:2] != "__" and _does(mine.get(word)))
        if any(method in mine for method in methods) or (
            overrides and any(_has(kind.__mro__[place + 1 :], word) for word in own)
        ):
            return None
    return None


def _has(kinds: Iterable[type], word: str) -> bool:
    return any(_does(vars(kind).get(word)) for kind in kinds)


def _does(part: Any) -> bool:
    return callable(part) or isinstance(part, staticmethod | classmethod | property)


def facts_of(
    thing: Any,
    name: str,
    methods: tuple[str, ...],
    *,
    also: tuple[str, ...] = (),
    overrides: bool = False,
) -> Facts | None:
    """Facts that the class of `thing` declares under `name`, None if it declares nothing.

    A method that was put into the instance is nobody's proof: then nothing is declared. Of what is
    `also` looked at, instances may have their own.

    Raises:
        InputError: what is declared is no frozenset of `Fact`.
    """
    if any(method in getattr(thing, "__dict__", {}) for method in methods):
        return None
    found = declared(type(thing), name, (*methods, *also), overrides=overrides)
    if found is None:
        return None
    if not isinstance(found, frozenset) or not all(isinstance(fact, Fact) for fact in found):
        raise InputError(
            f"Expected {name}={abbrev(found)} of {type(thing).__name__} to be a frozenset of Fact, "
            "such as SUMMED, of dpbandit.privacy.premises."
        )
    return frozenset(found)


def needs_of_statistic(statistic: Any) -> Facts | None:
    """Facts that a statistic needs, None if its class does not say."""
    return facts_of(statistic, "needs", SUMMING, also=BOUNDING)


def needs_of_mechanism(mechanism: Any) -> Facts | None:
    """Facts that a mechanism needs, without its statistic's, None if its class does not say."""
    return facts_of(mechanism, "needs", RELEASING, also=BOUNDING, overrides=True)


def handed_on(agent: Any, facts: Facts) -> Facts | None:
    """Facts, of those that an agent is given, which it hands on; None if its class does not say."""
    facts_kept_on = facts_of(agent, "hands_on", HANDING)
    if facts_kept_on is None:
        return None
    for fact, condition in dict(declared(type(agent), "hands_on_if", HANDING) or {}).items():
        facts_kept_on |= {fact} if condition in facts else set()
    paid = facts_of(agent, "pays_for", HANDING) or NO_FACTS
    return (facts & facts_kept_on - {Fact.CELL}) | paid


def stored_outside(agent: Any) -> Facts:
    """Facts that an agent's memory outside its mechanisms needs, by all classes that say so.

    By default there is none but releases; the billboard test holds an agent to that.
    """
    found = NO_FACTS
    for kind in type(agent).__mro__:
        found |= frozenset(vars(kind).get("remembers", NO_FACTS))
    return found


def is_blind(agent: Any) -> bool:
    """True if an agent says that its actions are functions of coins and releases."""
    if any(method in getattr(agent, "__dict__", {}) for method in ACTING):
        return False
    return declared(type(agent), "blind", ACTING) is True


def takes_own_coins(agent: Any) -> frozenset[str]:
    """Names of mechanisms whose controls an agent makes itself, of coins and releases.

    They take nothing from the action that is told, so that vetoes and masks do no harm.
    """
    found = None if "update" in vars(agent) else declared(type(agent), "own_coins", ("update",))
    return frozenset(found or ())
