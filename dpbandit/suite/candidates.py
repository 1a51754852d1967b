"""Who competes for a problem: every agent that fits it, with privacy and without it."""

from collections.abc import Iterable, Iterator
from functools import cache
from math import inf
from typing import Any, NamedTuple

from dpbandit.agents.catalogue import entries
from dpbandit.agents.contextual.fade_choice import MODELS
from dpbandit.base import InputError, Ints
from dpbandit.results.problems import Setup
from dpbandit.results.runs import early_marks
from dpbandit.running.settings import parse_agent
from dpbandit.studies import Configuration
from dpbandit.studies.configurations import certificate_of
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems, suite

REACHED = frozenset(kind.__name__ for kinds in MODELS.values() for kind in kinds)
"""Classes of agents that `fade` hands its settings to, of which each would compete twice"""
AS_CLAIMED = 1 + 1e-9
"""Factor by which a certified epsilon may exceed its target, for rounding"""
ZEROS = ("uniform", "best-fixed", "centre")
"""Play that learns nothing; results are told against it, and it is never chosen"""


class Cell(Configuration):
    """A configuration that logs an early round, and the last one."""

    @property
    def marks(self) -> Ints:
        return early_marks(self.setup.horizon)


class Group(NamedTuple):
    """What agents compete for: to lose least on a problem at an epsilon, inf without privacy."""

    problem: str
    epsilon: float

    @property
    def one(self) -> SuiteProblem:
        """The problem."""
        return problems()[self.problem]


def groups(names: Iterable[str]) -> list[Group]:
    """Every epsilon, and infinity, on these problems."""
    return [Group(name, epsilon) for name in names for epsilon in (inf, *epsilons())]


def cell(one: SuiteProblem, setup: Setup, agent: str, epsilon: float) -> Cell:
    """An agent on a problem with a target; raises `InputError` where it does not fit."""
    targets: dict[str, Any] = {"epsilon": epsilon, "delta": suite().delta}
    if one.trust != "central" and epsilon < inf:
        targets["trust"] = one.trust
    return Cell(setup, agent, parse_agent(agent, **targets))


@cache
def candidates(group: Group) -> tuple[Cell, ...]:
    """All agents of the catalogue, and variants of them, that compete for a place.

    At an epsilon those whose certificate counts for at most that. At infinity those that promise
    nothing, every private agent at epsilon = infinity, and those that use nobody else's data.
    """
    return tuple(_candidates(group))


def _candidates(group: Group) -> Iterator[Cell]:
    one, setup = group.one, group.one.selection()
    for name in (*_names(), *one.variants):
        for agent in (name,) if group.epsilon < inf else (f"{name}:epsilon=inf", name):
            try:
                found = cell(one, setup, agent, group.epsilon)
                proof = certificate_of(found)
                one.check_trust(proof)
            except InputError:  # it does not fit, or has no epsilon
                continue
            counted = one.counted(proof)
            # An agent that uses nobody else's data has epsilon 0, and competes everywhere.
            free = group.epsilon == inf and proof.epsilon == proof.claimed_epsilon == inf
            if free or counted <= group.epsilon * AS_CLAIMED < inf or proof.epsilon == 0:
                yield found
                break


def _names() -> list[str]:
    """Ids, with what makes agents fit other problems around them, and variants."""
    some = [one for one in entries() if one.id not in ZEROS and one.config not in REACHED]
    ids = [one.id for one in some]
    around = [f"{word}:{id}" for word in ("priced", "per-person") for id in ids]
    return [*ids, *around, *suite().variants]
