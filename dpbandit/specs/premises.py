"""Check that problems and outer agents provide the facts that privacy proofs assume.

A fact, such as "a user has one round", is listed in `dpbandit.privacy.premises`, which also says
who declares that a fact is needed or provided.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from dpbandit.base import InputError, Source, Streams, outermost
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.premises import (
    BOUNDING,
    NO_FACTS,
    RELEASING,
    SUMMING,
    Fact,
    Facts,
    facts_of,
    handed_on,
    is_blind,
    stored_outside,
    takes_own_coins,
)

_PAGE = "see 'Say what your proof needs' in docs/howto/agent.md"  # end of the messages


def provided(spec: Any) -> Facts:
    """Return the facts (see `Fact`) that hold for the rounds that a problem passes to an agent."""
    facts = {Fact.CLOCK, Fact.PRESENCE, Fact.ONCE, Fact.AS_CHOSEN, Fact.WORLD}
    if spec.returning:
        facts = facts - {Fact.ONCE} | {Fact.PEOPLE}
        if spec.visits.pattern == "private":
            facts.discard(Fact.PRESENCE)
    if spec.masks == "user":  # another action may stand in for the one that was chosen
        facts.discard(Fact.AS_CHOSEN)
    if spec.carries:
        facts.discard(Fact.WORLD)
    if getattr(spec, "loss", None) is not None:
        facts.add(Fact.LOSS)
    if getattr(spec, "constant_context", False):
        facts.add(Fact.CONTEXT)
    return frozenset(facts)


@dataclass(frozen=True)
class Held:
    """A mechanism or an agent, with the facts that hold for the rounds that it receives."""

    thing: Any
    """mechanism or agent whose privacy proof may need the facts"""
    facts: Facts
    """facts that hold for the rounds that this thing receives"""
    lost: Mapping[Fact, str]
    """facts that do not hold -> name of the environment or agent that fails to provide them"""


class Premises:
    """Check of the facts that an agent's mechanisms need against the facts provided to them.

    Args:
        owner: class name of the config, for messages.
        agent: the running agent.
        spec: public facts of the problem that the agent was made for.
        lost: facts that do not hold, whatever `spec` says -> name of who fails to provide them.
    """

    def __init__(
        self, owner: str, agent: Any, spec: Any, *, lost: Mapping[Fact, str] | None = None
    ) -> None:
        self._owner, self._agent, self._spec, self._lost = owner, agent, spec, dict(lost or {})
        self.known: set[Mechanism] = set()
        """mechanisms whose needs were checked, and which may be called"""

    @property
    def promises(self) -> bool:
        """True if the agent's ledger claims a finite privacy loss."""
        ledger = getattr(self._agent, "ledger", None)
        return isinstance(ledger, Ledger) and not any(spend.mu == inf for spend in ledger.spends)

    def check(self) -> None:
        """Raise `InputError` if a proof needs a fact that nobody provides."""
        for held in self._all():
            self._judge(held)
            if isinstance(held.thing, Mechanism):
                self.known.add(held.thing)

    def __call__(self, mechanism: Mechanism) -> None:
        """Check a mechanism made after the start, at its first call, and raise as `check` does.

        If it is no part of the agent, its proof may only need facts that hold for every part.
        """
        if mechanism in self.known:
            return
        everywhere = list(self._all())
        for held in everywhere:
            if held.thing is mechanism:
                self._judge(held)
                return
        least = frozenset.intersection(*(held.facts for held in everywhere))
        lost = {fact: who for held in everywhere for fact, who in held.lost.items()}
        self._judge(Held(mechanism, least, lost))

    def _all(self) -> Iterator[Held]:
        spec, facts = self._spec, provided(self._spec).difference(self._lost)
        if (
            self._agent.ledger.notion.contexts == "public"
        ):  # the notion says so wherever it is shown
            facts |= {Fact.CONTEXT}
        by = spec.kind + ("" if spec.masks == "none" else f" with masks={spec.masks!r}")
        if spec.returning:
            by += f" with visits of a {spec.visits.pattern} pattern"
        return _inside(self._agent, facts, {**dict.fromkeys(Fact, by), **self._lost}, ())

    def _judge(self, held: Held) -> None:
        if not isinstance(held.thing, Mechanism):
            memory, name = stored_outside(held.thing), type(held.thing).__name__
            if held.thing.ledger.notion.contexts == "public":  # it keeps them exactly
                memory |= {Fact.CONTEXT, Fact.PRESENCE}
            self._refuse(memory, held, f"the memory of {name}")
            return
        what, mechanism = repr(held.thing.spend.note), held.thing
        stated = facts_of(mechanism, "needs", RELEASING, also=BOUNDING, overrides=True)
        needs = self._declared(stated, mechanism)
        closed = (Mechanism, Source, Streams)
        for statistic in outermost(mechanism, _is_statistic, closed):
            stated = facts_of(statistic, "needs", SUMMING, also=BOUNDING)
            needs |= self._declared(stated, statistic)
        self._refuse(needs, held, what)

    def _declared(self, needs: Facts | None, thing: Any) -> Facts:
        if needs is None:
            raise InputError(
                f"Expected {type(thing).__name__} of {self._owner} to declare what its proof takes "
                "for public, such as needs = SUMMED, in the class that defines its methods: "
                f"{_PAGE}."
            )
        return needs

    def _refuse(self, needs: Facts, held: Held, what: str) -> None:
        missing = sorted(needs - held.facts - {Fact.WORLD})  # of which certificates speak
        if missing:
            words = " and ".join(missing)
            who = " and ".join(dict.fromkeys(held.lost[fact] for fact in missing))
            of = "" if self._owner in what else f" of {self._owner}"
            raise InputError(
                f"Expected it to be public {words}, which {what}{of} needs, and {who} does not say "
                f"so: choose another agent or problem, or {_PAGE}."
            )


def _inside(
    agent: Any, facts: Facts, lost: Mapping[Fact, str], around: tuple[Any, ...]
) -> Iterator[Held]:
    """Yield an agent, its mechanisms, and those of agents inside it, each with its facts."""
    name = type(agent).__name__
    no_cell = {**lost, Fact.CELL: f"{name}, which is not `blind`,"}
    as_chosen = Fact.AS_CHOSEN in facts
    cell, without = (
        facts | {Fact.CELL},
        no_cell if as_chosen else {**lost, Fact.CELL: lost[Fact.AS_CHOSEN]},
    )
    handed_facts = cell if as_chosen and is_blind(agent) else facts
    hears_coins = {id(getattr(agent, word, None)) for word in takes_own_coins(agent)}
    for held in outermost(agent, _is_agent_or_mechanism, (Source, Streams)):
        if isinstance(held, Mechanism):
            yield Held(held, cell if id(held) in hears_coins else handed_facts, without)
        elif not any(held is one for one in around):  # it may know who stands around it
            handed = handed_on(agent, facts)
            undeclared = f"{name}, which declares no hands_on,"
            taken = undeclared if handed is None else name
            handed = NO_FACTS if handed is None else handed
            gone = {**lost, **dict.fromkeys(facts - handed, taken)}
            yield from _inside(held, handed, gone, (*around, agent))
    yield Held(agent, handed_facts, without)


def _is_agent_or_mechanism(thing: Any) -> bool:
    plays = all(hasattr(thing, name) for name in ("act", "update", "ledger"))
    return plays or isinstance(thing, Mechanism)


def _is_statistic(thing: Any) -> bool:
    return hasattr(thing, "sensitivity") and any(hasattr(thing, name) for name in SUMMING)
