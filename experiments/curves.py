"""How good an agent's point is while users come: training curves over users and over seconds."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Seed
from dpbandit.envs.streams.problems import StreamProblem
from dpbandit.experiments.releases import ReleaseConfiguration, Watched
from dpbandit.results.runs import AgentRun
from dpbandit.running.compare import as_run
from dpbandit.running.loop import Log, play
from dpbandit.studies.plan import certificate_of

_LOOKS = 16
_SUBOPTIMALITY, _SECONDS = "suboptimality after {}", "seconds after {}"


def looks(users: int) -> Ints:
    """Rounds after which the point is judged, from one user to all, evenly in log and in number.

    >>> looks(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20]
    """
    some = [np.geomspace(1, users, _LOOKS), np.linspace(1, users, _LOOKS)]
    return np.unique(np.concatenate(some).round().astype(np.int64))


class CurveConfiguration(ReleaseConfiguration):
    """An agent on a stream whose point is judged after 1, 2, .. users, one replica at a time."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        """Measures "suboptimality after n", exactly, and "seconds after n", of one run alone."""
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
            measures[_SUBOPTIMALITY.format(t)] = np.array([one[place] for one in suboptimality])
            measures[_SECONDS.format(t)] = np.array([one[place] for one in seconds])
        return replace(run, measures=measures)

    def _curve(self, seed: Seed) -> tuple[Log, Floats, list[float]]:
        """The log, SubOpt at each of `looks`, and the processor time until then without judging."""
        problem, marks = self.problem(), looks(self.setup.horizon)
        seen, points, times = Watched(self.config), list[Floats](), list[float]()
        start = time.process_time()

        def look(rounds: int) -> None:
            nonlocal start
            times.append(time.process_time() - start)
            points.append(seen.agents[-1].act(problem.context()).copy())
            start = time.process_time() - times[-1]

        log = play(problem, seen, [seed], marks=marks, advance=look)
        return log, _suboptimality(problem, points), times


def _suboptimality(problem: StreamProblem, points: Sequence[Floats]) -> Floats:
    """(F(theta) - F(theta*)) / (F(0) - F(theta*)) of points (1, N)."""
    origin = problem.excess_risk(np.zeros_like(points[0]))
    return np.array([float((problem.excess_risk(theta) / origin)[0]) for theta in points])


def suboptimality(run: AgentRun) -> list[Floats]:
    """At each of `looks`, (R,)."""
    return _along(run, _SUBOPTIMALITY)


def seconds(run: AgentRun) -> list[Floats]:
    """At each of `looks`, (R,)."""
    return _along(run, _SECONDS)


def _along(run: AgentRun, name: str) -> list[Floats]:
    return [run.measures[name.format(t)] for t in looks(run.setup.horizon).tolist()]
