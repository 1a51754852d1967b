"""List the agents that compete on a problem: all that fit it, with privacy and without."""

from collections.abc import Iterable, Iterator
from functools import cache
from math import inf
from typing import Any, NamedTuple

from dpbandit.agents.catalogue import entries
from dpbandit.agents.contextual.fade import MODELS
from dpbandit.base import InputError, Ints
from dpbandit.results.problems import Setup
from dpbandit.results.runs import early_marks
from dpbandit.running.settings import parse_agent
from dpbandit.studies import Configuration, certificate_of
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems, suite

FADE_CLASSES = frozenset(kind.__name__ for kinds in MODELS.values() for kind in kinds) - {
    "RaceIMED"
}
"""Names of the classes among which `fade` chooses; they compete only as `fade`, not twice. Only
`RaceIMED` is an agent of other problems, too."""
CLAIM_SLACK = 1 + 1e-9
"""Factor by which a certified epsilon may exceed its target, for rounding."""
BASELINE_IDS = ("uniform", "best-fixed", "centre")
"""Ids of agents that learn nothing; they are baselines of the results and never compete."""


class Cell(Configuration):
    """Configuration of an agent on a problem; its runs log one early round and the last round."""

    @property
    def marks(self) -> Ints:
        return early_marks(self.setup.horizon)


class Group(NamedTuple):
    """Competition of agents on one problem at one epsilon; infinity stands for no privacy."""

    problem: str
    epsilon: float

    @property
    def one(self) -> SuiteProblem:
        """The problem of this competition, as the suite defines it."""
        return problems()[self.problem]


def groups(names: Iterable[str]) -> list[Group]:
    """Return a `Group` for each named problem and each epsilon, infinity (no privacy) first."""
    return [Group(name, epsilon) for name in names for epsilon in (inf, *epsilons())]


def cell(one: SuiteProblem, setup: Setup, agent: str, epsilon: float) -> Cell:
    """Return an agent's configuration at an epsilon; raise `InputError` if it does not fit."""
    targets: dict[str, Any] = {"epsilon": epsilon, "delta": suite().delta}
    if one.trust != "central" and epsilon < inf:
        targets["trust"] = one.trust
    return Cell(setup, agent, parse_agent(agent, **targets))


@cache
def candidates(group: Group) -> tuple[Cell, ...]:
    """Return all agents that compete on the problem of a group at its epsilon.

    At a finite epsilon these are agents whose certified epsilon does not exceed it. At infinity
    they are agents without a guarantee, and private agents with epsilon set to infinity.
    Agents that use nobody else's data have epsilon 0 and always compete.
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
    """Return ids of all agents, alone and in each wrapper, and of the suite's own variants."""
    known = (one for one in entries() if one.id not in BASELINE_IDS)
    ids = [one.id for one in known if one.config not in FADE_CLASSES]
    around = [f"{word}:{id}" for word in ("priced", "per-person") for id in ids]
    return [*ids, *around, *suite().variants]
