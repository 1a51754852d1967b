"""What it is worth that privacy expires, and that nothing is projected. See README.md.

Question 4: what a round costs with a projection, and with linear oracles alone.

A round is timed as the agent's own time, acting and learning, one replica at a time; minimisations
of linear functions (`Domain.lowest`) and exact projections (`Domain.project`) are counted. Flows
have no exact projection: there the nearest point is found by Frank-Wolfe, to 1e-6 D^2. A local
oracle of a simplex sorts N numbers and of flows asks for one path, beside the one more that our
certified radius asks for.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dpbandit.agents import FTAL, WDPCOCOL, WDPCOCOP, OnlineConditionalGradient
from dpbandit.base import Floats, Streams
from dpbandit.domains import Domain, Flows, Simplex
from dpbandit.experiments.study import Sizes, runs_of
from dpbandit.privacy import ALL
from dpbandit.results.runs import AgentRun, protected
from dpbandit.running.compare import as_run
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs import Agent, AgentConfig, Spec
from dpbandit.studies import setup_of
from dpbandit.studies.configurations import LastRound, certificate_of

_WINDOW = 16
COUNTED = ("projections", "minimisations")


class TimedConfiguration(LastRound):
    """On an OnlineConvex with a `domain`: one replica at a time, its rounds timed and counted."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        # Measures what a round takes: "seconds", "projections" and "minimisations"
        setup = self.setup
        counted, calls = counting(setup.env_kwargs["domain"])
        problem = problem_maker(setup.environment)(**{**setup.env_kwargs, "domain": counted})
        timed, logs = _Timed(self.config, calls), []
        for replica in range(first, last):
            seeds = [(setup.seed, replica)]
            logs.append(play(problem, timed, seeds, marks=self.marks, advance=advance))
        run = as_run(setup, self.name, self.config, certificate_of(self), logs, first=first)
        steps = max(1, setup.horizon - 1)  # what the last round tells reaches no point
        spent = [{"seconds": agent.seconds, **agent.spent} for agent in timed.agents]
        names = ("seconds", *COUNTED)
        measures = {name: np.array([one.get(name, 0) for one in spent]) / steps for name in names}
        return replace(run, measures=measures)


def timed_on(
    loss: str, domain: Domain, name: str, config: AgentConfig, horizon: int, seed: int = 0
) -> TimedConfiguration:
    """An agent on a loss over a domain."""
    arguments = {"loss": loss, "domain": domain}
    label = f"{loss}, {type(domain).__name__} in {domain.dim}, timed"
    setup = setup_of("OnlineConvex", arguments, horizon=horizon, seed=seed, label=label)
    return TimedConfiguration(setup, name, config)


def with_promise(label: str, runs: Sequence[AgentRun]) -> str:
    """Say in a label what is protected: never window-DP as if it were DP."""
    promises = {protected(run): None for run in runs if protected(run)}
    if not promises:
        return label
    promise = promises.popitem()[0] if len(promises) == 1 else "window-DP, last W"
    return f"{label.partition(', W = ')[0]} ({promise})"


class Timing(NamedTuple):
    """What an agent costs on a domain."""

    kind: str
    size: int
    """N"""
    run: AgentRun

    def row(self) -> dict[str, object]:
        """A row of costs.csv."""
        measures = self.run.measures
        return {
            "domain": self.kind,
            "N": self.size,
            "agent": self.run.name,
            "protected": protected(self.run),
            "seconds_per_round": float(np.median(measures["seconds"])),
            "projections_per_round": float(measures["projections"].mean()),
            "linear_minimisations_per_round": float(measures["minimisations"].mean()),
            "regret": float(self.run.regret[-1].mean()),
        }


def timings(sizes: Sizes, out: Path, *, progress: bool = True) -> list[Timing]:
    """Time all agents on all domains; resumes what it finds in `out`."""
    asked = [
        (kind, domain(kind, size), agent, config)
        for kind, several in (("simplex", sizes["corners"]), ("flows", sizes["layers"]))
        for size in several
        for agent, config in agents(kind, sizes, size).items()
    ]
    timed = [
        timed_on("quadratic", where, agent, config, sizes["timed_rounds"])
        for _, where, agent, config in asked
    ]
    found = runs_of("Rounds", timed, out, replicas=sizes["timed_runs"], progress=progress)
    return [
        Timing(kind, where.dim, found[one.key])
        for (kind, where, *_), one in zip(asked, timed, strict=True)
    ]


def agents(kind: str, sizes: Sizes, size: int) -> dict[str, AgentConfig]:
    """Projections and linear oracles, with and without privacy.

    Flows are x >= 0 and equations, and paths are 0/1: psi = xi = 1 and mu = D, see `local_oracles`.
    """
    geometry = None if kind == "simplex" else domain(kind, size).diameter
    normal: Any = {"epsilon": sizes["epsilon"], "noise": "gaussian", "delta": sizes["delta"]}
    return {
        "COCOP": WDPCOCOP(**normal, window=_WINDOW),
        "COCOL": WDPCOCOL(**normal, window=_WINDOW, geometry=geometry),
        "FTAL": FTAL(),
        "conditional gradient": OnlineConditionalGradient(),
    }


def domain(kind: str, size: int) -> Domain:
    """A simplex with `size` corners, or flows through `size` layers of three nodes."""
    if kind == "simplex":
        return Simplex(size)
    layers = [["s"], *([f"{layer}{node}" for node in "abc"] for layer in range(size)), ["t"]]
    edges = tuple((u, v) for one, two in pairwise(layers) for u in one for v in two)
    return Flows(edges, "s", "t")


def counting(domain: Domain) -> tuple[Domain, Counter[str]]:
    """The same domain, and how often it has been asked."""
    calls: Counter[str] = Counter()
    kind: Any = type(domain)

    class Counting(kind):  # type: ignore[misc]
        def project(self, q: Floats) -> Floats:
            calls["projections"] += 1
            return super().project(q)

        def lowest(self, v: Floats) -> Floats:
            calls["minimisations"] += 1
            return super().lowest(v)

    own: Mapping[str, Any] = {f.name: getattr(domain, f.name) for f in fields(kind) if f.init}
    return Counting(**own), calls


@dataclass(frozen=True)
class _Timed:
    """A config whose running agents add up their own seconds and what they ask the domain."""

    config: AgentConfig
    calls: Counter[str]
    """so far, of everybody"""
    agents: "list[_TimedAgent]" = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> "_TimedAgent":
        self.agents.append(_TimedAgent(self.config.make(spec, streams), self.calls))
        return self.agents[-1]


class _TimedAgent:
    """Passes everything on, and looks at the clock."""

    # rounds are passed on as they are
    hands_on = ALL

    def __init__(self, agent: Agent, calls: Counter[str]) -> None:
        self.ledger, self._agent, self._calls = agent.ledger, agent, calls
        self.seconds, self.spent = 0.0, Counter[str]()

    def act(self, context: Floats) -> Any:
        with self._watch():
            return self._agent.act(context)

    def update(self, context: Floats, action: Any, feedback: Floats) -> None:
        with self._watch():
            self._agent.update(context, action, feedback)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        before, start = self._calls.copy(), perf_counter()
        yield
        self.seconds += perf_counter() - start
        self.spent += self._calls - before
