"""Errors of DP-HDB's parameters, and its regret by dimension, beside Theorems 4.2 and 4.3.

Han, Liang, Liang, Wang, Yao and Zhang (2022, see `DPHDB`), Theorem 4.2: if theta_t is estimated by
round t, `|theta_t - theta*|_1^2` is O(1 / t) for arms that are best for some context. The problem
is the one in Section 5.4 (`contextual/p1`: 50 features, 5 of them nonzero, two arms), with rewards,
or with clicks of probability link(<x, theta*>), `|theta*|_1 = 5`. Theorem 4.3: regret is
O(log^2(d T) log^2(T) / epsilon^2) for d features; measured along d on the same problem.

Errors are measured at several rounds of a run, which no table of a `study.toml` describes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandit.agents import DPHDB, FADE, FLIPHAT, DPHDBChoices, OnlineFrankWolfe, Uniform
from dpbandit.agents.contextual.dp_hdb import FrankWolfeBandit
from dpbandit.base import Floats, InputError, whole
from dpbandit.envs.contextual.glm import GLMBandit
from dpbandit.experiments import CASES
from dpbandit.experiments.paper_tables import Reproduced, Request, reproduced, selected
from dpbandit.experiments.study import grouped, runs_of, tabulated
from dpbandit.results.plots import legend_at_the_foot, line, panels
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.running.compare import as_run
from dpbandit.running.loop import play
from dpbandit.specs import AgentConfig
from dpbandit.studies import AgentRecorder, Configuration, LastRound, certificate_of, setup_of

_ERROR = "error after {}"  # name of a measure of runs, by round
_MAX_HALVINGS = 6  # of the horizon


def places(horizon: int) -> list[int]:
    """Return the rounds at which errors are measured: the horizon, its half, its quarter, ...

    >>> places(640)
    [10, 20, 40, 80, 160, 320, 640]
    """
    return [horizon // 2**j for j in reversed(range(_MAX_HALVINGS + 1)) if horizon // 2**j]


class EstimateConfiguration(Configuration):
    """Frank-Wolfe bandit on a generalised linear problem; runs measure its estimation errors."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        # Measures "error after t": `|theta_t - theta*|_1^2 / |theta*|_1^2`, mean of the arms, 1 for
        # theta_t = 0
        setup, seen, errors = self.setup, AgentRecorder(self.config), dict[str, Floats]()
        problem, proof = self.problem(), certificate_of(self)
        if not isinstance(problem, GLMBandit):
            raise InputError(f"Expected a GLMBandit, whose parameters are known, got {problem}.")
        wanted, done = set(places(setup.horizon)), 0

        def look(rounds: int) -> None:
            nonlocal done
            done += rounds
            if done in wanted:
                errors[_ERROR.format(done)] = _error(seen.agents[-1], problem)
            advance(rounds)

        marks = np.union1d(self.marks, sorted(wanted))
        seeds = [(setup.seed, r) for r in range(first, last)]
        log = play(problem, seen, seeds, marks=marks, advance=look)
        retained = np.isin(marks, self.marks)
        tables = {what: getattr(log, what)[retained] for what in ("regret", "reward", "switches")}
        run = as_run(setup, self.name, self.config, proof, [replace(log, **tables)], first=first)
        return replace(run, measures=errors)


def _error(agent: object, problem: GLMBandit) -> Floats:
    if not isinstance(agent, FrankWolfeBandit):
        raise InputError(f"Expected an agent that estimates by Frank-Wolfe, got {agent}.")
    true = problem.true_parameters
    gap, length = (np.square(np.abs(v).sum(axis=-1)) for v in (agent.theta - true, true))
    return (gap / length).mean(axis=-1)


def errors(run: AgentRun) -> list[Floats]:
    """Return a run's estimation errors at each round of `places`, (R,) each."""
    return [run.measures[_ERROR.format(t)] for t in places(run.setup.horizon)]


LINKS = ("identity", "logistic", "probit")  # of mean rewards or click probabilities
_SIGNALS = {"identity": 1.0, "logistic": 5.0, "probit": 5.0}
"""Link -> length |theta*|_1, which is also the radius of the agents' domain"""
_CLIPS = {"identity": 0.4, "logistic": 1.0, "probit": 1.0}  # link -> largest norm of a gradient
_LONGEST, _LEAST = 2**15, 640  # default and smallest horizon
_ROUNDS = 10_000  # default horizon of regret along the dimension, that of Section 5.4
_PRINTED_EXPONENT = -1.0  # of the squared error in the round t, by Theorem 4.2


class Entry(NamedTuple):
    """A run of an agent for one link, set up by `reading`: "printed", "certified" or "public"."""

    link: str
    reading: str
    run: AgentRun

    @property
    def estimates(self) -> bool:
        """True if errors of the agent's parameter estimates were measured."""
        return bool(self.run.measures)

    @property
    def exponent(self) -> Slope:
        """Exponent of the error in the round t, fitted over the last three doublings."""
        return slope(places(self.run.setup.horizon), errors(self.run))

    def record(self) -> dict[str, object]:
        """Return a row of the CSV file."""
        regret, facts = self.run.regret[-1], dict[str, object]()
        if self.estimates:
            last = errors(self.run)[-1]
            facts = {
                "error": float(last.mean()),
                "error_se": standard_error(last),
                "exponent": self.exponent.value,
                "exponent_se": self.exponent.se,
            }
        return {
            "link": self.link,
            "reading": self.reading,
            "agent": self.run.name,
            "T": self.run.setup.horizon,
            **facts,
            "printed_exponent": _PRINTED_EXPONENT,
            "regret": float(regret.mean()),
            "regret_se": standard_error(regret),
            "certified_epsilon": self.run.certificate.epsilon,
            "replicas": len(regret),
        }


def _agents(link: str, delta: float) -> dict[str, dict[str, AgentConfig]]:
    """Return the agents for a link, by set-up (printed, certified, public) and label."""
    how: dict[str, Any] = {"radius": _SIGNALS[link], "warm_up": 120}
    clip = _CLIPS[link]

    def sums(epsilon: float, **more: Any) -> AgentConfig:
        return DPHDB(epsilon=epsilon, delta=delta, **how, **more)

    return {
        "printed": {
            "DP-HDB as printed": DPHDBChoices(
                calibration="paper", delta=delta, beyond_validity=True, **how
            )
        },
        "certified": {
            "choices": DPHDBChoices(delta=delta, **how),
            "sums": sums(1.0),
            "sums, clipped": sums(1.0, gradient_clip=clip),
            "sums, clipped, epsilon 10": sums(10.0, gradient_clip=clip),
            "FADE": FADE(delta=delta),
            "uniform play": Uniform(),
        },
        "public": {"online Frank-Wolfe": OnlineFrankWolfe(**how)},
    }


def measure(links: Sequence[str], T: int, request: Request) -> list[Entry]:
    """Run the agents for these links in the requested set-ups; reuse existing runs."""
    whole("replicas", request.replicas, 2)  # there are standard errors
    lines: list[tuple[str, str, Configuration]] = []
    for link in links:
        arguments = {**CASES["contextual/p1"].env_kwargs, "link": link, "signal": _SIGNALS[link]}
        label = f"{link} link"
        setup = setup_of("GLMBandit", arguments, horizon=T, seed=request.seed, label=label)
        for reading, agents in _agents(link, 1 / T).items():
            for label, config in agents.items() if reading in request.readings else ():
                estimates = not isinstance(config, FADE | Uniform)
                kind = EstimateConfiguration if estimates else Configuration
                lines.append((link, reading, kind(setup, label, config)))
    played = (one for *_, one in lines)
    found = runs_of("Theorem 4.2", played, request.out, replicas=request.replicas)
    return [Entry(link, reading, found[one.key]) for link, reading, one in lines]


def reproduce(request: Request) -> Reproduced:
    """Measure errors for links and a horizon, such as "logistic,T=4096"; draw them if requested."""
    every = {link: link for link in LINKS}
    links, sizes = selected(request.name, request.rows, every, {"T": int})
    (T,) = sizes.get("T", [_LONGEST])
    whole("T", T, _LEAST)
    entries = measure(links, T, request)
    by_link = grouped(entries, lambda entry: entry.link)
    caption = (
        "error: |theta - theta*|_1^2 / |theta*|_1^2, mean of the arms; t to the: measured over the "
        f"last three doublings, printed -1; {request.replicas} replicas. Epsilon: certified at "
        "delta = 1/T"
    )
    headings, title = ("agent", "error", "t to the", "regret", "epsilon"), "Errors of parameters"
    tables = [
        tabulated(
            f"{title} and regret, {link} link, T = {T:,}",
            headings,
            map(_row, some),
            caption=caption,
        )
        for link, some in by_link.items()
    ]
    records = [entry.record() for entry in entries]
    drawings = {"theorem-4-2": partial(_draw, by_link)} if request.drawn else {}
    return reproduced(request, "theorem-4-2", records, tables, drawings)


_DIMENSIONS, _EPSILON = (20, 80, 320, 1280), 8.0
"""Numbers of features, and the epsilon at which noise does not hide all of the growth in d"""


def theorem_4_3(request: Request) -> Reproduced:
    """Measure regret along the dimension d; rows choose fewer rounds, or a largest d: T=640,d=80.

    Private agents claim epsilon 8 (`_EPSILON`); at 1 their regret is that of noise at every d.
    """
    whole("replicas", request.replicas, 2)  # there are standard errors
    _, sizes = selected(request.name, request.rows, {}, {"T": int, "d": int})
    (T,), (most,) = sizes.get("T", [_ROUNDS]), sizes.get("d", [_DIMENSIONS[-1]])
    whole("T", T, _LEAST)
    whole("d", most, _DIMENSIONS[0])
    lines: list[tuple[int, str, Configuration]] = []
    for d in (d for d in _DIMENSIONS if d <= most):
        arguments = {**CASES["contextual/p1"].env_kwargs, "dim": d}
        setup = setup_of(
            "GLMBandit", arguments, horizon=T, seed=request.seed, label=f"{d} features"
        )
        for reading, agents in _along_dimensions(1 / T).items():
            for label, config in agents.items() if reading in request.readings else ():
                lines.append((d, reading, LastRound(setup, label, config)))
    found = runs_of(
        "Theorem 4.3", (one for *_, one in lines), request.out, replicas=request.replicas
    )
    records = [_along(d, reading, found[one.key]) for d, reading, one in lines]
    by_agent = grouped(records, lambda record: record["agent"])
    dims = dict.fromkeys(d for d, *_ in lines)
    cells = [
        [label, *(f"{r['regret']:,.4g} ± {r['regret_se']:.2g}" for r in some),
         f"{some[0]['certified_epsilon']:.3g}"]
        for label, some in by_agent.items()
    ]  # fmt: skip
    headings = ("agent", *(f"d = {d:,}" for d in dims), "epsilon")
    caption = f"{request.replicas} replicas, 5 features matter; epsilon: certified at delta = 1/T"
    table = tabulated(f"Regret by dimension, T = {T:,}", headings, cells, caption=caption)
    return reproduced(request, "theorem-4-3", records, [table])


def _along_dimensions(delta: float) -> dict[str, dict[str, AgentConfig]]:
    """Return the agents of Theorem 4.3, by set-up (printed, certified, public) and label."""
    how: dict[str, Any] = {"radius": 1.0, "warm_up": 120}
    loose: dict[str, Any] = {**how, "delta": delta, "epsilon": _EPSILON}
    return {
        "printed": {
            "DP-HDB as printed": DPHDBChoices(calibration="paper", beyond_validity=True, **loose)
        },
        "certified": {
            "choices": DPHDBChoices(**loose),
            "sums": DPHDB(gradient_clip=0.8, **loose),
            "FLIPHAT": FLIPHAT(epsilon=_EPSILON, delta=delta),
            "uniform play": Uniform(),
        },
        "public": {"online Frank-Wolfe": OnlineFrankWolfe(**how)},
    }


def _along(d: int, reading: str, run: AgentRun) -> dict[str, Any]:
    regret = run.regret[-1]
    return {
        "d": d,
        "reading": reading,
        "agent": run.name,
        "T": run.setup.horizon,
        "regret": float(regret.mean()),
        "regret_se": standard_error(regret),
        "certified_epsilon": run.certificate.epsilon,
        "replicas": len(regret),
    }


def _row(entry: Entry) -> Iterator[str]:
    facts = entry.record()
    yield entry.run.name
    if entry.estimates:
        yield f"{facts['error']:.3g} ± {facts['error_se']:.2g}"
        yield f"{entry.exponent.value:.2f} ± {entry.exponent.se:.2f}"
    else:
        yield from ("", "")
    yield f"{facts['regret']:,.4g} ± {facts['regret_se']:.2g}"
    yield f"{facts['certified_epsilon']:.3g}"


def _draw(by_link: Mapping[str, Sequence[Entry]], path: Path) -> None:
    links = {link: [e for e in some if e.estimates] for link, some in by_link.items()}
    replicas = len(next(iter(by_link.values()))[0].run.replicas)
    heading = (
        "Theorem 4.2: the error of DP-HDB's parameters,\nand the slope 1 / t it promises (grey)\n"
        f"50 features, two arms, mean of {replicas} replicas, 95 % intervals"
    )
    titles = [f"{link} link" for link in links]
    with panels(
        path, titles, heading=heading, size=(7.6, 1.8 + 3.4 * len(titles)), rows=len(titles)
    ) as column:
        for axes, some in zip(column, links.values(), strict=True):
            where = places(some[0].run.setup.horizon)
            for look, entry in enumerate(some):
                line(axes, where, errors(entry.run), entry.run.name, look)
            last = errors(some[-1].run)[-1].mean()
            slant = last * where[-1] / np.array(where, dtype=float)
            axes.plot(where, slant, color="0.55", lw=1.4, label="$1/t$")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set(ylabel=r"$|\theta_t-\theta^*|_1^2\;/\;|\theta^*|_1^2$")
        axes.set_xlabel("round t")
        legend_at_the_foot(axes)
