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
from dpbandit.base import Floats, Streams, positive, whole
from dpbandit.domains import Domain, Flows, Simplex
from dpbandit.experiments.questions import Lines, Panels, agent_of, agents_in, runs_of
from dpbandit.privacy import ALL
from dpbandit.results.runs import AgentRun, protected
from dpbandit.running.compare import as_run
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs import Agent, AgentConfig, Spec
from dpbandit.studies import Configuration, setup_of
from dpbandit.studies.configurations import LastRound, certificate_of

BALL, SIMPLEX = "cocop-ball", "cocol-simplex"
"""Problems"""
WORDS = agents_in("window")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the five questions."""

    horizon: int = 8192
    """of regret against W"""
    windows: Sequence[int] = (1, 4, 16, 64, 256, 1024, 8192)
    horizons: Sequence[int] = tuple(2**j for j in range(8, 17))
    """of regret against T"""
    fixed_windows: Sequence[int] = (16, 256)
    """there"""
    epsilon: float = 10.0
    """of both"""
    customers: int = 20_000
    retentions: Sequence[int] = (100, 1_000)
    """retention periods of the pricing problem, in customers"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    """there"""
    corners: Sequence[int] = (10, 100, 1_000)
    """of simplices on which rounds are timed"""
    layers: Sequence[int] = (2, 4, 6)
    """of flow networks, three nodes each, on which rounds are timed"""
    timed_rounds: int = 64
    timed_runs: int = 5
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("timed_runs", self.timed_runs, 2)
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half
        positive("epsilon", self.epsilon)

    @property
    def normal(self) -> dict[str, Any]:
        """Gaussian noise at this epsilon."""
        return {"epsilon": self.epsilon, "noise": "gaussian", "delta": self.delta}


QUICK = Sizes(
    horizon=256,
    windows=(1, 16, 256),
    horizons=(64, 128, 256, 512),
    fixed_windows=(16,),
    customers=500,
    retentions=(50,),
    epsilons=(1.0, 5.0),
    corners=(10, 50),
    layers=(2,),
    timed_rounds=16,
    timed_runs=2,
    replicas=3,
)


def questions(sizes: Sizes) -> dict[str, Panels]:
    """All of them."""
    return {
        "windows": windows(sizes),
        "horizons": horizons(sizes),
        "retention": {"pricing": retention(sizes)},
    }


def windows(sizes: Sizes) -> Panels:
    """Regret against W, at one epsilon and one horizon."""
    T, known = sizes.horizon, {"epsilon": sizes.epsilon, "delta": sizes.delta}
    return {
        problem: {
            **{
                label: [
                    _on(problem, f"{label}, W = {W}", agent_of(words, **known, W=W), T)
                    for W in sizes.windows
                ]
                for label, words in WORDS[agents].items()
            },
            **{
                label: [_on(problem, label, agent_of(words, **known), T)]
                for label, words in WORDS["lasting"].items()
            },
        }
        for problem, agents in ((BALL, "ball"), (SIMPLEX, "simplex"))
    }


def horizons(sizes: Sizes) -> Panels:
    """Regret against T, at one epsilon."""
    found: dict[str, Lines] = {}
    known = {"epsilon": sizes.epsilon, "delta": sizes.delta}
    for problem, shape in ((BALL, "ball"), (SIMPLEX, "simplex")):
        agents = {
            label.format(W=W): agent_of(words, **known, W=W)
            for W in sizes.fixed_windows
            for label, words in WORDS[f"fixed-{shape}"].items()
        }
        for label, words in WORDS[f"ever-{shape}"].items():
            agents[label] = agent_of(words, **known)
        lines = {
            label: [_on(problem, label, config, T) for T in sizes.horizons]
            for label, config in agents.items()
        }
        for label, words in WORDS["baselines"].items():
            lines[label] = [_on(problem, label, agent_of(words), sizes.horizons[-1])]
        found[problem] = lines
    return found


def retention(sizes: Sizes) -> Lines:
    """Dollars against epsilon, where customers are protected for a while or for ever."""
    groups: list[tuple[int | None, str]] = [(kept, "retained") for kept in sizes.retentions]
    groups += [(sizes.retentions[-1], "last-retained"), (None, "kept")]
    lines = {
        label.format(W=kept): [
            _pricing(
                kept,
                label.format(W=kept),
                agent_of(words, epsilon=epsilon, delta=sizes.delta),
                sizes,
            )
            for epsilon in sizes.epsilons
        ]
        for kept, group in groups
        for label, words in WORDS[group].items()
    }
    for label, words in WORDS["shops"].items():
        lines[label] = [_pricing(None, label, agent_of(words), sizes)]
    return lines


def _on(problem: str, name: str, config: AgentConfig, horizon: int) -> Configuration:
    setup = setup_of("OnlineConvex", {"instance": problem}, horizon=horizon, label=problem)
    return Configuration(setup, name, config)


def _pricing(kept: int | None, name: str, config: AgentConfig, sizes: Sizes) -> Configuration:
    """Three goods; customers are protected until `kept` more have come, or for ever."""
    arguments = {"feedback": "datum", "retention": kept}
    label = f"pricing, retention {kept or 'for ever'}"
    setup = setup_of("ConvexPricing", arguments, horizon=sizes.customers, label=label)
    return Configuration(setup, name, config)


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
    """All agents on all domains, read from or written to `out`."""
    asked = [
        (kind, domain(kind, size), agent, config)
        for kind, several in (("simplex", sizes.corners), ("flows", sizes.layers))
        for size in several
        for agent, config in agents(kind, sizes, size).items()
    ]
    timed = [
        timed_on("quadratic", where, agent, config, sizes.timed_rounds)
        for _, where, agent, config in asked
    ]
    found = runs_of("Rounds", timed, out, replicas=sizes.timed_runs, progress=progress)
    return [
        Timing(kind, where.dim, found[one.key])
        for (kind, where, *_), one in zip(asked, timed, strict=True)
    ]


def agents(kind: str, sizes: Sizes, size: int) -> dict[str, AgentConfig]:
    """Projections and linear oracles, with and without privacy.

    Flows are x >= 0 and equations, and paths are 0/1: psi = xi = 1 and mu = D, see `local_oracles`.
    """
    geometry = None if kind == "simplex" else domain(kind, size).diameter
    return {
        "COCOP": WDPCOCOP(**sizes.normal, window=_WINDOW),
        "COCOL": WDPCOCOL(**sizes.normal, window=_WINDOW, geometry=geometry),
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
