"""Runs on streams of users in which the points that an agent releases are evaluated."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError, Ints, Seed, whole
from dpbandit.envs.streams.streaming_regression import StreamProblem
from dpbandit.results.runs import AgentRun
from dpbandit.running.compare import as_run
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import Log, play
from dpbandit.specs import AgentConfig, Hindsight
from dpbandit.studies import AgentRecorder, Configuration, certificate_of

TEST_USERS = 10_000  # fresh users on whom points are evaluated


class Release(NamedTuple):
    """Evaluation of the points that R replicas release."""

    suboptimality: Floats
    """Excess risk of the point divided by that of 0, both on `TEST_USERS` fresh users, (R,)"""
    risk: Floats
    """Risk of the point, exact or as exact as the problem can compute it, (R,)"""
    excess: Floats
    """Risk of the point minus the least risk, (R,)"""
    seconds: float
    """Processor time of all replicas in seconds, with the drawing of users but without set-up"""
    log: Log
    """Regret and other logged numbers after the last round"""


def stream_problem(
    environment: str, env_kwargs: Mapping[str, Any], config: AgentConfig, *, users: int
) -> StreamProblem:
    """Return the stream problem on which the point that `config` learns from n users is evaluated.

    The horizon is n + 1, as the last round plays the point learned from the n users before, but n
    for agents whose only release comes after the last round (`refit="once"`).

    Raises:
        InputError: if an environment or argument is unknown, it is not a stream, or users < 1.
    """
    whole("users", users, 1)
    rounds = users if getattr(config, "refit", "") == "once" else users + 1
    problem = problem_maker(environment)(**{**env_kwargs, "horizon": rounds})
    if not isinstance(problem, StreamProblem):
        raise InputError(f"Expected a stream of users, got the environment {environment!r}.")
    return problem


def release(
    problem: StreamProblem,
    config: AgentConfig,
    seeds: Sequence[Seed],
    *,
    users: int,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Release:
    """Play `users` rounds of a `stream_problem`, and evaluate the point of the next round.

    Raises:
        InputError: if `config` is an oracle, which releases no point.
    """
    if isinstance(config, Hindsight):
        raise InputError(
            f"Expected an agent that learns, got an oracle, which has no release: {config}."
        )
    seen, start = AgentRecorder(config), time.process_time()
    log = play(problem, seen, seeds, marks=np.array([users]), advance=advance)
    seconds = time.process_time() - start
    theta = seen.agents[-1].act(problem.context())
    return Release(
        problem.suboptimality(theta, TEST_USERS),
        problem.risk(theta),
        problem.excess_risk(theta),
        seconds,
        log,
    )


class ReleaseConfiguration(Configuration):
    """An agent on a stream, measured by the point that it releases after `horizon` users."""

    def problem(self) -> StreamProblem:
        setup = self.setup
        return stream_problem(setup.environment, setup.env_kwargs, self.config, users=setup.horizon)

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        # The log of the last round; measures "suboptimality", "risk", "excess" and "seconds", its
        # share
        seeds = [(self.setup.seed, r) for r in range(first, last)]
        proof = certificate_of(self)
        found = release(
            self.problem(), self.config, seeds, users=self.setup.horizon, advance=advance
        )
        run = as_run(self.setup, self.name, self.config, proof, [found.log], first=first)
        share = np.full(len(seeds), found.seconds / len(seeds))
        measures = {
            "suboptimality": found.suboptimality,
            "risk": found.risk,
            "excess": found.excess,
            "seconds": share,
        }
        return replace(run, measures=measures)


_LOOKS_PER_GRID = 16  # number of rounds in each of the two grids of `looks`


def looks(users: int) -> Ints:
    """Return rounds of evaluation from 1 to `users`: a geometric grid joined with an even one.

    >>> looks(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20]
    """
    some = [np.geomspace(1, users, _LOOKS_PER_GRID), np.linspace(1, users, _LOOKS_PER_GRID)]
    return np.unique(np.concatenate(some).round().astype(np.int64))


class CurveConfiguration(ReleaseConfiguration):
    """An agent on a stream whose point is evaluated at `looks`, one replica at a time."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        proof, n = certificate_of(self), self.setup.horizon
        logs, suboptimality, seconds = list[Log](), list[Floats](), list[list[float]]()
        for r in range(first, last):
            log, values, times = self._curve((self.setup.seed, r))
            end = {what: getattr(log, what)[-1:] for what in ("regret", "reward", "switches")}
            logs.append(replace(log, **end))
            suboptimality.append(values)
            seconds.append(times)
            advance(n)
        run = as_run(self.setup, self.name, self.config, proof, logs, first=first)
        measures: dict[str, Floats] = {}
        for place, t in enumerate(looks(n).tolist()):
            measures[f"suboptimality after {t}"] = np.array([one[place] for one in suboptimality])
            measures[f"seconds after {t}"] = np.array([one[place] for one in seconds])
        return replace(run, measures=measures)

    def _curve(self, seed: Seed) -> tuple[Log, Floats, list[float]]:
        """Return the run's log, suboptimality at `looks`, and processor time without evaluation."""
        problem, marks = self.problem(), looks(self.setup.horizon)
        seen, points, times = AgentRecorder(self.config), list[Floats](), list[float]()
        start = time.process_time()

        def look(rounds: int) -> None:
            nonlocal start
            times.append(time.process_time() - start)
            points.append(seen.agents[-1].act(problem.context()).copy())
            start = time.process_time() - times[-1]

        log = play(problem, seen, [seed], marks=marks, advance=look)
        return log, _suboptimality(problem, points), times


def _suboptimality(problem: StreamProblem, points: Sequence[Floats]) -> Floats:
    """Return the excess risk of each point (1, N), divided by that of the origin."""
    origin = problem.excess_risk(np.zeros_like(points[0]))
    return np.array([float((problem.excess_risk(theta) / origin)[0]) for theta in points])


def curve(run: AgentRun, measure: str) -> list[Floats]:
    """Return a run's "suboptimality" or "seconds" at each of `looks`, (R,) each."""
    return [run.measures[f"{measure} after {t}"] for t in looks(run.setup.horizon).tolist()]
