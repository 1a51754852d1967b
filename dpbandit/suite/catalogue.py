"""List the problems of the suite, and the configurations in which an agent plays them."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dpbandit.base import AgentError, InputError, TimeLimit, one_of, time_limit
from dpbandit.privacy import Certificate
from dpbandit.privacy.notion import Trust, TrustModel, strongest
from dpbandit.results.problems import Setup
from dpbandit.running.answers import chosen
from dpbandit.running.environments import problem_maker
from dpbandit.running.settings import parse_agent, plainly_spelt
from dpbandit.specs import Spec
from dpbandit.studies import (
    AgentFailure,
    Configuration,
    Study,
    certificate_of,
    failure_of,
    setup_of,
)

Size: TypeAlias = Literal["small", "full"]
SIZES: tuple[Size, ...] = get_args(Size)  # presets of horizons and replicas


@dataclass(frozen=True, kw_only=True)
class SuiteProblem:
    """A problem of the suite, with the horizons of its sizes "small" and "full"."""

    name: str
    capability: str
    environment: str
    horizon: Mapping[str, int]
    """number of rounds by size"""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    trust: TrustModel = "central"
    """largest trust in the operator (central, ...) that a private agent may need here"""
    variants: tuple[str, ...] = ()
    """agents with non-default settings that compete on this problem only"""
    baseline: str = ""
    """agent without privacy that has the score 1; by default the one that `freeze_suite` chose"""

    @property
    def without_privacy(self) -> str:
        """Non-private agent whose regret defines the score 1."""
        return self.baseline or chosen()[self.name, inf].agent

    def setup(self, size: Size) -> Setup:
        """Return the problem at this size, with the seed on whose users results are reported."""
        return _setup(self.name, size)

    def selection(self) -> Setup:
        """Return the problem at the small size, with the seed on whose users agents are chosen."""
        return replace(_setup(self.name, "small"), seed=suite().selection_seed)

    def counted(self, proof: Certificate) -> float:
        """Return the certified epsilon; infinity if its notion protects less than the suite asks.

        If the certificate's delta exceeds the suite's, epsilon is recomputed at the suite's delta.
        """
        spec = spec_of(self.name)
        if not proof.notion.on(spec).implies(strongest(spec, self.trust)):
            return inf
        most = suite().delta
        return proof.epsilon if proof.claimed_delta <= most else proof.ledger.epsilon(most)

    def check_trust(self, proof: Certificate) -> None:
        """Raise `InputError` if a private agent needs more trust in the operator than `trust`."""
        trust = proof.notion.trust
        if 0 < proof.epsilon < inf and not trust.implies(Trust(self.trust)):
            raise InputError(f"Expected trust={trust.model!r} to be {self.trust!r} or less.")


class Suite(NamedTuple):
    """The problems, with the seeds, privacy targets and numbers of replicas that they share."""

    version: int
    selection_seed: int
    """seed of the users on whom agents are chosen"""
    seed: int
    """seed of the users on whom the chosen agents are reported"""
    epsilons: tuple[float, ...]
    delta: float
    replicas: Mapping[str, int]
    variants: tuple[str, ...]
    """agents with non-default settings that compete on all problems"""
    problems: tuple[SuiteProblem, ...]


@cache
def suite() -> Suite:
    """Return the suite that this package ships, from `problems.toml`."""
    text = files("dpbandit.suite").joinpath("problems.toml").read_text(encoding="utf-8")
    parsed = tomllib.loads(text)
    every = tuple(
        SuiteProblem(**{**one, "variants": tuple(one.get("variants", ()))})
        for one in parsed.pop("problems")
    )
    parsed |= {name: tuple(parsed[name]) for name in ("epsilons", "variants")}
    return Suite(**parsed, problems=every)


@cache
def _setup(name: str, size: Size) -> Setup:
    one = problems()[name]
    horizon, seed = one.horizon[size], suite().seed
    return setup_of(one.environment, one.arguments, horizon=horizon, seed=seed, label=name)


@cache
def spec_of(name: str) -> Spec:
    """Return the `Spec` of a problem at the small size; its privacy notions hold for both sizes."""
    setup = _setup(name, SIZES[0])
    return problem_maker(setup.environment)(**setup.env_kwargs).spec


def problems() -> dict[str, SuiteProblem]:
    """Return all problems by name, in the suite's order.

    >>> len(problems()), problems()["digits"].capability
    (31, 'many classes')
    """
    return {one.name: one for one in suite().problems}


def version() -> int:
    """Return the version of the suite; results of two versions are not comparable."""
    return suite().version


def epsilons() -> tuple[float, ...]:
    """Return the privacy targets epsilon at which private agents are scored."""
    return suite().epsilons


def replicas(size: Size) -> int:
    """Return the number of replicas that every run has at this size."""
    one_of("size", size, SIZES)
    return suite().replicas[size]


class Assignment(NamedTuple):
    """Configurations that an agent is to play on the suite, and problems that it cannot play."""

    configurations: tuple[Configuration, ...]
    unfit: dict[str, str]
    """problems that the agent does not fit, each with the reason"""
    failed: tuple[AgentFailure, ...] = ()
    """problems on which constructing the agent raised an error or took too long"""


def assignment_of(agent: str, size: Size, limit: TimeLimit | None = None) -> Assignment:
    """Return the configurations of an agent on all problems that it fits, for every epsilon.

    Args:
        agent: an id with settings, or MODULE:NAME; an epsilon in the settings is the only target.
        size: "small" or "full".
        limit: limit of the time to construct the agent, if any.

    Raises:
        InputError: for an unknown agent or setting, an id that `plainly_spelt` would change, or if
            the agent fits no problem.
    """
    found, failed = dict[str, Configuration](), dict[str, AgentFailure]()
    unfit: dict[str, str] = {}
    parse_agent(agent)  # raises for an unknown agent, which else would only be unfit everywhere
    if agent != (spelt := plainly_spelt(agent)):
        raise InputError(f"Expected agent={agent!r} to be spelt {spelt!r}.")
    for one in problems().values():
        setup = one.setup(size)
        try:
            for epsilon in epsilons():
                targets: dict[str, Any] = {"epsilon": epsilon, "delta": suite().delta}
                if one.trust != "central":
                    targets["trust"] = one.trust
                configuration = Configuration(setup, agent, parse_agent(agent, **targets))
                if configuration.key in failed:
                    continue  # without a target it is the same at every epsilon
                try:
                    with time_limit(limit):
                        proof = certificate_of(configuration)
                except AgentError as error:
                    failed[configuration.key] = failure_of(configuration, error)
                    continue
                one.check_trust(proof)
                found[configuration.key] = configuration
        except InputError as reason:
            unfit[one.name] = str(reason)
    if not (found or failed):
        why = next(iter(unfit.values()))
        raise InputError(f"Expected agent={agent!r} to fit a problem of the suite: {why}")
    return Assignment(tuple(found.values()), unfit, tuple(failed.values()))


def references(size: Size) -> tuple[Configuration, ...]:
    """Return configurations of uniform play and of the best non-private agent on every problem."""
    return tuple(
        Configuration(one.setup(size), agent, parse_agent(agent))
        for one in problems().values()
        for agent in ("uniform", one.without_privacy)
    )


def study_of(agents: Iterable[str], size: Size, *, with_references: bool) -> Study:
    """Return the study that plays these agents on the suite, for `run_sweep`."""
    assignments = [assignment_of(agent, size) for agent in agents]
    return study_for(assignments, size, with_references=with_references)


def study_for(assignments: Iterable[Assignment], size: Size, *, with_references: bool) -> Study:
    """Return the study that plays these assignments, for `run_sweep`; duplicates are dropped."""
    several = [*(references(size) if with_references else ())]
    several += [one for each in assignments for one in each.configurations]
    once = {one.key: one for one in several}
    return Study(
        configurations=tuple(once.values()),
        replicas=replicas(size),
        name=f"suite {version()}, {size}",
        request={"suite": version(), "size": size},
    )
