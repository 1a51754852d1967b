"""Premises of privacy proofs: facts that a proof takes for public, denied by default.

A proof of privacy is about clipped data, which a mechanism enforces, and about facts on the rounds
passed to `update`, which a mechanism cannot check: that a round exists, that an action is a coin.
Mechanisms, statistics and an agent's state outside mechanisms declare the facts they NEED;
problems PROVIDE facts; an agent that wraps another one declares the facts it HANDS ON. A fact that
is needed and not provided raises an error when the agent is made.

A declaration holds for the class that makes it. A subclass that overrides a method of the proof
inherits no declaration, and has to prove and declare its own.
"""

from enum import StrEnum
from typing import Any

from dpbandit.base import InputError, abbrev


class Fact(StrEnum):
    """Fact about the rounds passed to `update`; its value completes "it is public ..."."""

    CLOCK = "when a round is handed on"
    """`update` is called at each tick of a public clock, or at ticks chosen by public coins"""
    PRESENCE = "whether anybody came"
    """no round is an empty slot, or the slots of all users are public"""
    AS_CHOSEN = "that what was played is what the agent chose"
    """the action is the agent's or a function of public coins and releases; no user vetoes it"""
    CELL = "which action was played"
    """the action is a function of coins and releases (agent is `blind`), and played `AS_CHOSEN`"""
    CONTEXT = "what contexts are"
    """neighbouring streams agree in contexts, or all contexts are one constant"""
    ONCE = "that a user has one round"
    """a user has one round, or a wrapper of the agent pays for all rounds of a person"""
    PEOPLE = "which number a person has"
    """persons were numbered beforehand, not by their first arrival"""
    LOSS = "which family losses are of"
    """losses are in a public family, and data are moved into its set, so that slopes are bounded"""
    WORLD = "that nobody's answers depend on others' actions"
    """a user's answers do not depend on others' actions; else a notion of privacy covers nothing"""


class Hearing(StrEnum):
    """Fact about mechanism calls that a `Spend` needs; `LedgerCheck` checks it in the call log."""

    EVERY = "hear every round once"
    """a mechanism is called once a round, so that visits are as far apart in calls as in rounds"""
    APART = "hear no user twice"
    """no two of the mechanisms are called for one round"""


Facts = frozenset[Fact]

ALL_FACTS: Facts = frozenset(Fact)
"""All facts, needed by a class without a declaration; no problem provides all of them"""
NO_FACTS: Facts = frozenset()
"""Needs of a proof about clipped data alone"""
SUMMED: Facts = frozenset({Fact.CLOCK, Fact.ONCE})
"""Needs of sums of rounds on a public clock, each user in one round"""

RELEASING = (
    *("__call__", "take_rounds", "several", "query"),
    *("_release", "_release_several", "_release_counted"),
)
"""Methods of a mechanism that a privacy proof covers"""
SUMMING = ("total", "gradient", "query", "after", "scores")
"""Methods of a statistic that a privacy proof covers"""
BOUNDING = ("sensitivity", "units", "move_sensitivity", "spend")
"""Properties of a mechanism or a statistic that a privacy proof covers"""
HANDING = ("act", "act_among", "update")
"""Methods of a wrapping agent that decide which rounds the wrapped agent receives"""
ACTING = ("act", "act_among")
"""Methods of an agent that choose its actions"""


def declared(kind: type, name: str, methods: tuple[str, ...], *, overrides: bool = False) -> Any:
    """Return the declaration `name` of the class that defines the methods, None if there is none.

    Args:
        kind: class of a mechanism, statistic or agent.
        name: class attribute, such as "needs".
        methods: methods whose override voids the inherited declaration.
        overrides: True if overriding any other function or property voids it as well.
    """
    for place, one in enumerate(kind.__mro__):
        mine = vars(one)
        if name in mine:
            return mine[name]
        defined = (word for word in mine if word[:2] != "__" and _does(mine.get(word)))
        if any(method in mine for method in methods) or (
            overrides
            and any(_does(vars(k).get(word)) for word in defined for k in kind.__mro__[place + 1 :])
        ):
            return None
    return None


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
    """Return the facts that the class of `thing` declares as `name`, None without a declaration.

    An instance that replaces one of the `methods` has no declaration; replacing those in `also` is
    allowed in an instance, but not in a subclass.

    Raises:
        InputError: the declaration is no frozenset of `Fact`.
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


def handed_on(agent: Any, facts: Facts) -> Facts | None:
    """Return the facts among `facts` that a wrapping agent hands on, None if not declared."""
    handed_facts = facts_of(agent, "hands_on", HANDING)
    if handed_facts is None:
        return None
    for fact, condition in dict(declared(type(agent), "hands_on_if", HANDING) or {}).items():
        handed_facts |= {fact} if condition in facts else set()
    paid = facts_of(agent, "pays_for", HANDING) or NO_FACTS
    return (facts & handed_facts - {Fact.CELL}) | paid


def stored_outside(agent: Any) -> Facts:
    """Return the premises under which data that an agent stores outside mechanisms leak nothing.

    Its classes declare them; without a declaration it may store releases alone, as tests check.
    """
    found = NO_FACTS
    for kind in type(agent).__mro__:
        found |= frozenset(vars(kind).get("remembers", NO_FACTS))
    return found


def is_blind(agent: Any) -> bool:
    """Tell whether an agent declares that its actions are functions of coins and releases."""
    if any(method in getattr(agent, "__dict__", {}) for method in ACTING):
        return False
    return declared(type(agent), "blind", ACTING) is True


def takes_own_coins(agent: Any) -> frozenset[str]:
    """Return the names of mechanisms whose controls an agent computes from coins and releases.

    These controls do not depend on the action played, so that vetoes and masks do not matter.
    """
    found = None if "update" in vars(agent) else declared(type(agent), "own_coins", ("update",))
    return frozenset(found or ())
