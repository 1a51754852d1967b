"""What a run is a run of: one agent on one problem; and a study, a list of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from dpbandit.base.arrays import Ints
from dpbandit.base.inputs import MOST_REPLICAS, InputError, whole
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.runs import AgentRun, Setup, describe, log_marks, run_key
from dpbandit.running.compare import as_run, certify, play_any
from dpbandit.running.given import arguments_of, environment_id, problem_label, problem_maker
from dpbandit.specs.protocols import AgentConfig, Problem
from dpbandit.studies.file import Audit

TARGETS = ("delta", "epsilon")
"""What a privacy target is made of; settings of agents."""


@dataclass(frozen=True)
class Configuration:
    """One agent on one problem: what a run is a run of."""

    setup: Setup
    name: str
    config: AgentConfig

    @property
    def key(self) -> str:
        """The key of its runs."""
        asked = {**vars(self.setup), "agent": self.name, "config": describe(self.config)}
        return run_key(asked)

    def __hash__(self) -> int:
        return hash(self.key)  # the arguments of its environment are a dictionary

    @property
    def marks(self) -> Ints:
        """Rounds to be logged, (marks,), all of `log_marks` or the last one alone."""
        return log_marks(self.setup.horizon)

    def problem(self) -> Problem:
        """A new problem, as it is before the first round."""
        return problem_maker(self.setup.environment)(**self.setup.env_kwargs)

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        """Replicas `first` to `last` - 1: depends on nothing but the configuration and them.

        `advance` is called with the rounds done since it was called last.
        """
        setup, proof = self.setup, certificate_of(self)
        seeds = [(setup.seed, r) for r in range(first, last)]
        how: dict[str, Any] = {"marks": self.marks, "advance": advance}
        log = play_any(self.problem(), self.config, seeds, **how)
        return as_run(setup, self.name, self.config, proof, [log], first=first)


class LastRound(Configuration):
    """Its last round alone is logged: for problems that look long for the best in hindsight."""

    @property
    def marks(self) -> Ints:
        """The horizon."""
        return super().marks[-1:]


@lru_cache(maxsize=64)
def certificate_of(one: Configuration) -> Certificate:
    """Once for all blocks of a configuration: some take longer to certify than to play."""
    return certify(one.config, one.problem().spec, accountants=False)


def setup_of(
    environment: str,
    arguments: Mapping[str, Any],
    *,
    horizon: int,
    seed: int = 0,
    label: str | None = None,
) -> Setup:
    """The problem of a configuration.

    Args:
        environment: id; "dpbandit/" and "-v0" may be left out.
        arguments: of the environment, but for the horizon.
        horizon: rounds T >= 1.
        seed: of the users.
        label: what to call it; id and arguments if left out.

    Raises:
        InputError: an unknown id or argument, or a wrong value.
    """
    known = environment_id(environment)
    make = problem_maker(environment)
    given = arguments_of(make, {**arguments, "horizon": horizon})
    return Setup(
        environment=known,
        env_kwargs=given,
        horizon=horizon,
        seed=seed,
        reward_unit=make(**given).spec.reward_unit,
        problem=label or problem_label(environment, given),
    )


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a sweep runs: configurations from a sweep file (see `plan`), or from Python.

    Raises `InputError` where two configurations would be one line in every plot.
    """

    configurations: tuple[Configuration, ...]
    replicas: int = 20
    name: str = "sweep"
    """title of the report"""
    audit: Audit | None = None
    """also audit every private agent"""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """the sweep file's own words, to be kept beside the results"""

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 1, MOST_REPLICAS)
        _refuse_twins(self.configurations)


def _refuse_twins(configurations: Iterable[Configuration]) -> None:
    seen: dict[Any, Configuration] = {}
    for one in configurations:
        target = tuple(getattr(one.config, name, None) for name in TARGETS)
        place = (one.setup.problem, one.setup.horizon, one.name, *target)
        other = seen.setdefault(place, one)
        if other.key != one.key:
            raise InputError(
                f"Expected one agent {one.name!r} on one problem {one.setup.problem!r}, got "
                f"{one.config} on {one.setup.env_kwargs} and {other.config} on "
                f"{other.setup.env_kwargs}: give them labels of their own."
            )
