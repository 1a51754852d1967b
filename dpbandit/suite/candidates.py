"""Candidates for a problem: every agent that fits it, with privacy and without it."""

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

FADE_CLASSES = frozenset(kind.__name__ for kinds in MODELS.values() for kind in kinds)
"""Names of the classes that `fade` chooses from; alone, they would compete a second time."""
CLAIM_SLACK = 1 + 1e-9
"""Factor by which a certified epsilon may exceed its target, for rounding."""
BASELINE_IDS = ("uniform", "best-fixed", "centre")
"""Ids of agents that learn nothing; results are compared with theirs, and none is chosen."""


class Cell(Configuration):
    """A configuration that logs an early round, and the last one."""

    @property
    def marks(self) -> Ints:
        return early_marks(self.setup.horizon)


class Group(NamedTuple):
    """A problem and an epsilon (inf: without privacy), at which candidates compete."""

    problem: str
    epsilon: float

    @property
    def one(self) -> SuiteProblem:
        """Problem of the suite with this name."""
        return problems()[self.problem]


def groups(names: Iterable[str]) -> list[Group]:
    """Return the groups of these problems, at infinity and at every epsilon."""
    return [Group(name, epsilon) for name in names for epsilon in (inf, *epsilons())]


def cell(one: SuiteProblem, setup: Setup, agent: str, epsilon: float) -> Cell:
    """Return the cell of an agent on a problem with a target; raise `InputError` if unfit."""
    targets: dict[str, Any] = {"epsilon": epsilon, "delta": suite().delta}
    if one.trust != "central" and epsilon < inf:
        targets["trust"] = one.trust
    return Cell(setup, agent, parse_agent(agent, **targets))


@cache
def candidates(group: Group) -> tuple[Cell, ...]:
    """Return all agents of the catalogue, and variants of them, that compete in a group.

    At a finite epsilon these are agents whose certificate counts for at most that epsilon. At
    infinity they are agents that promise nothing, every private agent at epsilon = infinity, and
    agents that use nobody else's data.
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
            if free or counted <= group.epsilon * CLAIM_SLACK < inf or proof.epsilon == 0:
                yield found
                break


def _names() -> list[str]:
    """Return ids of agents, alone and inside wrappers for other problems, and variants."""
    known = (one for one in entries() if one.id not in BASELINE_IDS)
    ids = [one.id for one in known if one.config not in FADE_CLASSES]
    around = [f"{word}:{id}" for word in ("priced", "per-person") for id in ids]
    return [*ids, *around, *suite().variants]
