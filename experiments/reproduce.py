"""Run a reference case at the printed size or any other; a table of a paper, row by row."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from math import hypot, inf, isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.agents import AGENTS
from dpbandit.base import MOST_ACTIONS, MOST_ROUNDS, InputError, check_writable, one_of, whole
from dpbandit.experiments.cases import CASES, Case, Reference
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.results.runs import describe, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, play_all, setup_of

if TYPE_CHECKING:
    from rich.table import Table


_LETTERS = {"K": ("n_actions",), "d": ("dim", "n_actions"), "k": ("dim",), "T": ("horizon",)}
"""What papers call them; of several names the first that the problem has."""


def reproduce(
    name: str,
    agent: str,
    *,
    settings: Mapping[str, Any],
    horizon: int = 10_000,
    replicas: int = 50,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """`agent` on the case `name` under `settings`, beside the reference number if there is any.

    A setting goes to the agent where its config has a field of that name, else to the problem;
    `env.NAME` goes to the problem in any case. K, d, k and T are n_actions, dim, dim and horizon;
    d is n_actions where there is no dim, among experts.
    Returns case, agent, config, horizon, replicas, seed, what is measured (regret after `horizon`
    rounds, or the suboptimality of the point released after `horizon` users, as the case has it),
    its mean and se, seconds, certified_epsilon and the notion of privacy it is of, reference (mean
    and se, or None), z, our distance from it in combined standard errors, and least, what an agent
    as private as that loses at least (or None).

    Raises:
        InputError: an unknown case, agent or setting; whatever `compare` refuses.
    """
    one_of("case", name, CASES, see="dpbandit reproduce --list")
    case = CASES[name]
    one_of("agent", agent, case.agents)
    settings = _written_out(settings, _of_problem(case, agent))
    horizon = settings.pop("horizon", horizon)
    whole("horizon", horizon, 1, MOST_ROUNDS)
    config, env_kwargs = _set_up(case, agent, settings, horizon)
    whole("seed", seed, 0, 2**32 - 1)
    setup = setup_of(case.environment_of(agent), env_kwargs, horizon=horizon, seed=seed)
    released = case.measure == "suboptimality"
    kind = ReleaseConfiguration if released else Configuration
    run = play_all(kind(setup, agent, config), replicas, progress=progress)
    values = run.measures["suboptimality"] if released else run.regret[-1]
    mean, se = float(values.mean()), standard_error(values)
    reference = _reference(case, agent, config, env_kwargs, horizon)
    z = None
    if reference is not None and not isnan(se):  # there is more than one replica
        z = _distance(mean - reference.mean, hypot(se, reference.se))
    return {
        "case": name,
        "agent": agent,
        "config": {**describe(config), "env_kwargs": env_kwargs},
        "horizon": horizon,
        "replicas": replicas,
        "seed": seed,
        "measure": case.measure,
        "mean": mean,
        "se": se,
        "seconds": float(run.measures["seconds"].sum()) if released else run.seconds,
        "certified_epsilon": run.certificate.epsilon,
        "notion": run.certificate.notion,
        "reference": None if reference is None else {"mean": reference.mean, "se": reference.se},
        "z": z,
        "least": case.least(run.certificate, env_kwargs),
    }


def _distance(gap: float, se: float) -> float:
    """In standard errors; rounding is forgiven, and without any nothing else."""
    if abs(gap) < 1e-9:
        return 0.0
    return gap / se if se > 0 else inf


def _written_out(settings: Mapping[str, Any], of_problem: Sequence[str]) -> dict[str, Any]:
    """The letters of `_LETTERS` as the names they stand for."""
    names = {key: key for key in settings}
    for key in settings:
        if meant := _LETTERS.get(key.removeprefix("env.")):
            names[key] = next((name for name in meant if name in of_problem), meant[0])
    for name in (twice := list(names.values())):
        if twice.count(name) > 1:
            raise InputError(f"Expected {name} once, got it {twice.count(name)} times.")
    return {names[key]: value for key, value in settings.items()}


def _set_up(
    case: Case, agent: str, settings: Mapping[str, Any], horizon: int
) -> tuple[AgentConfig, dict[str, Any]]:
    """The agent's config, and the arguments of the problem."""
    of_agent = [field.name for field in fields(AGENTS[agent])]
    problem, of_problem = _problem(case, agent), _of_problem(case, agent)
    ours, theirs = {}, dict(case.env_kwargs)
    for key, value in settings.items():
        name = key.removeprefix("env.")
        one_of("setting", name, of_problem if name != key else of_agent + of_problem)
        if key in of_agent:
            ours[key] = _meant(AGENTS[agent], key, value)
        if key not in of_agent or key in case.common:
            theirs[name] = _meant(problem, name, value)
    arms = theirs.get("n_actions", 1)
    whole("n_actions", arms, 1, MOST_ACTIONS)
    return case.config(agent, ours, horizon=horizon, rounds_an_arm=horizon / arms), theirs


def _problem(case: Case, agent: str) -> Any:
    """The class of the problem that `agent` plays."""
    return load_env_creator(gym.spec(case.environment_of(agent)).kwargs["problem"])


def _of_problem(case: Case, agent: str) -> list[str]:
    """Its arguments but for the horizon."""
    return [field.name for field in fields(_problem(case, agent)) if field.name != "horizon"]


def _meant(owner: Any, name: str, value: Any) -> Any:
    """None is the word "none" where `owner` expects a word, say of drift or shrinkage."""
    words = {field.name for field in fields(owner) if isinstance(field.default, str)}
    return "none" if value is None and name in words else value


def _reference(
    case: Case, agent: str, config: AgentConfig, env_kwargs: Mapping[str, Any], horizon: int
) -> Reference | None:
    """The number measured under exactly this config on exactly this problem, if there is one."""
    for reference in case.references:
        if (reference.agent, reference.horizon) != (agent, horizon):
            continue
        if _set_up(case, agent, reference.settings, horizon) == (config, env_kwargs):
            return reference
    return None


ALL = "all"


class Reproduced(NamedTuple):
    """What comes out."""

    tables: Sequence["Table"]
    """to be printed"""
    records: Sequence[Mapping[str, Any]]
    """plain values, one for each entry of the table"""
    files: Sequence[Path]
    """written, where a folder was given"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be measured."""

    readings: tuple[str, ...]
    rows: str
    """a selection of them, in the table's own words"""
    replicas: int
    seed: int
    out: Path
    """folder, whose runs are taken up again"""
    kept: bool
    """it is one that was asked for, and stays"""
    drawn: bool
    """all of it is measured and kept, so that figures are, too"""
    theta: str = ""
    """of `PaperTable.thetas`"""


class Reproduce(Protocol):
    """Measures what is asked."""

    def __call__(self, asked: Asked) -> Reproduced:
        """Tables, records and files of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table, and the readings of what it says."""

    name: str
    summary: str
    readings: Mapping[str, str]
    """name -> what it is"""
    rows: str
    """how to choose some of them"""
    reproduce: Callable[[], Reproduce]
    """loads what it takes"""
    thetas: Mapping[str, str] = field(default_factory=dict)
    """name -> which true parameter it is; the first one unless another is asked for"""

    def run(
        self,
        reading: str,
        rows: str,
        *,
        replicas: int,
        seed: int,
        out: Path | None,
        theta: str | None = None,
    ) -> Reproduced:
        """Measure `rows`, or all, under one reading, or all; keep it in `out`, if given.

        Raises:
            InputError: an unknown reading, row or theta, a folder that cannot be written.
        """
        if theta is not None and not self.thetas:
            raise InputError(
                f"Expected {self.name} without theta={theta!r}: it has none to choose."
            )
        if theta is not None:
            one_of("theta", theta, self.thetas)
        one_of("reading", reading, (*self.readings, ALL))
        readings = tuple(self.readings) if reading == ALL else (reading,)
        if out is not None:
            check_writable(out / "summary.csv")
        with TemporaryDirectory() if out is None else nullcontext(out) as folder:
            drawn = out is not None and (reading, rows) == (ALL, ALL)
            asked = Asked(
                readings=readings,
                rows=rows,
                replicas=replicas,
                seed=seed,
                out=Path(folder),
                kept=out is not None,
                drawn=drawn,
                theta=theta or next(iter(self.thetas), ""),
            )
            made = self.reproduce()(asked)
        return made._replace(files=()) if out is None else made
